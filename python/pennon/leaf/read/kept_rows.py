"""The rows of the smallest leaves, kept in memory from query to query.

Lance takes a quarter of a millisecond for a leaf, however few rows it has: of a query over hundreds
of such leaves that is most of the worker's time. A leaf at a version never changes. What was read
of it is kept, column by column, in a small part of the memory that queries may take.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.caching import Cache, storage_identity
from pennon.leaf.dataset import forget_opened, leaf_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.caching import TableKey
    from pennon.leaf.read.leaf_view import LeafViews

__all__ = ["LEAF_BYTES", "KeptRows", "forget_leaves", "limit_kept_rows"]

_MOST_BYTES: Final = 64 << 20
_SHARE_OF_POOL: Final = 16
LEAF_BYTES: Final = 256 << 10
"""The most bytes that a leaf has of which rows are kept."""
# What a leaf and each of its columns take beside the buffers.
_LEAF_OVERHEAD: Final = 1 << 10
_COLUMN_OVERHEAD: Final = 1 << 8


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a leaf, each by what is requested of it."""

    num_rows: int
    arrays: Mapping[bytes, pa.Array]


def _weight(columns: _Columns) -> int:
    """Give the bytes that columns keep alive: of a slice, all that it was cut from."""
    return _LEAF_OVERHEAD + sum(
        _COLUMN_OVERHEAD + array.get_total_buffer_size() for array in columns.arrays.values()
    )


_kept: Final[Cache[_Columns]] = Cache("rows of small leaves", max_bytes=_MOST_BYTES, weigh=_weight)


class KeptRows:
    """The kept rows of leaves that are read in one way. Threads may share it.

    Args:
        root: Path or URL of the partitioned namespace.
        views: What is requested of the leaves: columns of the table's own, no metadata columns.
        namespace_schema: All columns of the namespace.
        storage_options: As the leaves are opened with.
        table: The table's identity, as the leaves are opened with.
    """

    def __init__(
        self,
        root: str,
        views: LeafViews,
        namespace_schema: pa.Schema,
        storage_options: Mapping[str, str] | None = None,
        table: str = "",
    ) -> None:
        self._root = root
        self._storage = storage_identity(storage_options)
        self._table = table
        self._schema = views.schema.remove_metadata()
        self._columns = [pa.schema([column]).serialize().to_pybytes() for column in views.schema]
        # Beside all columns of the namespace it is certain which of a leaf's are requested.
        known = namespace_schema.serialize().to_pybytes()
        self._namespace_schema = hashlib.blake2b(known, digest_size=16).hexdigest()

    def find(
        self, location: str, version: int | None, fragments: tuple[int, int] | None = None
    ) -> pa.RecordBatch | None:
        """Give the rows of a leaf, of which none is left out by a filter; None where not kept.

        Args:
            location: The leaf's ``location`` in the manifest.
            version: The version that is read; of an unstated one nothing is kept.
            fragments: First fragment and the one after the last, by position; None for all.
        """
        key = self._key(location, version, fragments)
        kept = None if key is None else _kept.peek(key)
        if kept is None or not all(column in kept.arrays for column in self._columns):
            return None
        arrays = [kept.arrays[column] for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def keep(
        self,
        location: str,
        version: int | None,
        fragments: tuple[int, int] | None,
        batches: Sequence[pa.RecordBatch],
    ) -> None:
        """Keep the rows of a small leaf that were read, for as long as there is room for them.

        Args:
            location: The leaf's ``location`` in the manifest.
            version: The version that was read.
            fragments: First fragment and the one after the last, by position; None for all.
            batches: All rows of these, in the order of the leaf.
        """
        key = self._key(location, version, fragments)
        if key is None or not batches or sum(batch.nbytes for batch in batches) > LEAF_BYTES:
            return
        rows = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        others = _kept.peek(key)
        arrays = dict(zip(self._columns, rows.columns, strict=True))
        if others is not None and others.num_rows == rows.num_rows:
            arrays = {**others.arrays, **arrays}
        _kept.keep(key, _Columns(rows.num_rows, arrays))

    def _key(
        self, location: str, version: int | None, fragments: tuple[int, int] | None
    ) -> TableKey | None:
        return leaf_key(
            self._root,
            location,
            version,
            storage=self._storage,
            table=self._table,
            detail=f"{self._namespace_schema} {fragments}",
        )


def limit_kept_rows(pool_bytes: int) -> None:
    """Bound the kept rows by the memory that queries may take, beside which they are.

    Args:
        pool_bytes: The size of the pool in bytes.
    """
    _kept.limit(min(_MOST_BYTES, pool_bytes // _SHARE_OF_POOL))


def forget_leaves() -> None:
    """Drop what is kept of leaves, for example of a dropped table: it only holds memory."""
    _kept.forget(lambda _: True)
    forget_opened()
