"""What is known of columns in the leaves of a scan.

The texts of a data fragment of ``__manifest`` are read once: its files never change, so that a
commit costs the fragments that it wrote. Of few leaves the texts at hand are read instead.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import Cache, TableKey, combined_identity
from pennon.manifest.format.rows import TABLE
from pennon.manifest.format.statistics import IS_COUNTED
from pennon.manifest.select import ADDRESS, in_order
from pennon.manifest.statistics_texts import ColumnBounds, StatisticsEntries, statistics_entries
from pennon.manifest.storage import storage_failure
from pennon.predicate.dialect import DataFusion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import lance

    from pennon.manifest.snapshot import Snapshot

__all__ = ["BESIDE", "column_bounds"]

# What ``Snapshot.leaves`` has to give beside.
BESIDE: Final = ("metadata", ADDRESS)
_FRAGMENT_SHIFT: Final = 32
_KEPT_BYTES: Final = 128 << 20
# The texts of so many leaves are read in 5 ms. More are kept, where they are one in ten of all:
# else a few of 1,000,000 would cost the texts of all of them.
_FEW: Final = 500
_ONE_OF: Final = 10


def column_bounds(
    snapshot: Snapshot, leaves: pa.Table, columns: Mapping[int, pa.DataType]
) -> dict[int, ColumnBounds]:
    """Read what is known of columns in some leaves.

    Args:
        snapshot: The namespace.
        leaves: Leaves of it, with what ``BESIDE`` names.
        columns: The types of the columns by field id.

    Returns:
        What is known, for those columns of which something is. Statistics of another version of a
        leaf than the one that is read are none.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema" (metadata).
    """
    if not leaves.num_rows or IS_COUNTED not in leaves.column_names:
        return {}
    is_counted = leaves[IS_COUNTED].combine_chunks()
    if leaves.num_rows <= max(_FEW, snapshot.num_leaves // _ONE_OF):
        entries = statistics_entries(leaves["metadata"])
        found = {number: entries.bounds(number, kind) for number, kind in columns.items()}
    else:
        found = _over_fragments(snapshot, leaves[ADDRESS].to_numpy(), columns)
    return {
        number: replace(
            each,
            is_known=pc.and_(each.is_known, is_counted),
            is_exact=pc.and_(each.is_exact, is_counted),
        )
        for number, each in found.items()
        if each is not None
    }


@dataclass(frozen=True, slots=True)
class _Piece:
    """The table rows of a fragment by their ascending addresses."""

    number: int
    addresses: np.ndarray

    @property
    def nbytes(self) -> int:
        return int(self.addresses.nbytes)


_PIECES: Final[Cache[_Piece]] = Cache(
    "addresses of column statistics", max_bytes=_KEPT_BYTES, weigh=lambda piece: piece.nbytes
)
# Those of one large fragment may be too many to be kept; what was asked of them stays in _BOUNDS.
_ENTRIES: Final[Cache[StatisticsEntries]] = Cache(
    "column statistics", max_bytes=_KEPT_BYTES, weigh=lambda entries: entries.nbytes
)
_BOUNDS: Final[Cache[ColumnBounds | None]] = Cache(
    "bounds of columns",
    max_bytes=_KEPT_BYTES,
    weigh=lambda bounds: 0 if bounds is None else bounds.nbytes,
)
_numbers: Final = itertools.count()


def _over_fragments(
    snapshot: Snapshot, addresses: np.ndarray, columns: Mapping[int, pa.DataType]
) -> dict[int, ColumnBounds | None]:
    wanted = np.unique(addresses >> np.uint64(_FRAGMENT_SHIFT)).tolist()
    fragments = {each.fragment_id: each for each in snapshot.manifest.get_fragments()}
    pieces: list[tuple[TableKey, _Piece]] = []
    found: dict[int, list[ColumnBounds | None]] = {field_id: [] for field_id in columns}
    for number in wanted:
        own = addresses[addresses >> np.uint64(_FRAGMENT_SHIFT) == number]
        key = _key(snapshot, fragments[number])
        piece = _PIECES.peek(key)
        # A newer version of the manifest may have fewer of the fragment's rows than this one.
        if piece is None or not np.isin(own, piece.addresses, assume_unique=True).all():
            piece = _read_piece(snapshot.manifest, fragments[number], key)
        pieces.append((key, piece))
        entries = partial(_entries, snapshot.manifest, fragments[number], key, piece)
        for field_id, kind in columns.items():
            made = partial(_bounds, entries, field_id, kind)
            detail = (piece.number, field_id, str(kind))
            found[field_id].append(_BOUNDS.find(replace(key, detail=detail), made))
    place = np.searchsorted(np.concatenate([piece.addresses for _, piece in pieces]), addresses)
    return {
        field_id: _joined([piece for _, piece in pieces], found[field_id], kind, pa.array(place))
        for field_id, kind in columns.items()
    }


def _bounds(
    entries: Callable[[], StatisticsEntries], field_id: int, kind: pa.DataType
) -> ColumnBounds | None:
    return entries().bounds(field_id, kind)


def _entries(
    manifest: lance.LanceDataset, fragment: lance.LanceFragment, key: TableKey, piece: _Piece
) -> StatisticsEntries:
    """Give the statistics of the rows of a piece; of rows that went since none are known."""

    def read() -> StatisticsEntries:
        rows = _read_rows(manifest, fragment)
        at = pc.index_in(pa.array(piece.addresses), value_set=rows[ADDRESS].combine_chunks())
        return statistics_entries(rows["metadata"].take(at))

    return _ENTRIES.find(replace(key, detail=piece.number), read)


def _joined(
    pieces: Sequence[_Piece],
    found: Sequence[ColumnBounds | None],
    kind: pa.DataType,
    place: pa.Array,
) -> ColumnBounds | None:
    """Give the bounds of a column in rows, by their places in all pieces together."""
    if all(each is None for each in found):
        return None
    known = [
        each or ColumnBounds.unknown(len(piece.addresses), kind)
        for each, piece in zip(found, pieces, strict=True)
    ]
    arrays = zip(*(each.arrays for each in known), strict=True)
    return ColumnBounds(*(pc.take(pa.concat_arrays(each), place) for each in arrays))


def _key(snapshot: Snapshot, fragment: lance.LanceFragment) -> TableKey:
    """The key of a fragment, whichever of its rows are deleted."""
    stored = {**fragment.metadata.to_json(), "deletion_file": "any"}
    files = combined_identity([json.dumps(stored, sort_keys=True)])
    own = snapshot.key
    return TableKey(own.location, fragment.fragment_id, files, own.storage)


def _read_piece(
    manifest: lance.LanceDataset, fragment: lance.LanceFragment, key: TableKey
) -> _Piece:
    rows = _read_rows(manifest, fragment)
    piece = _Piece(next(_numbers), rows[ADDRESS].to_numpy())
    _PIECES.keep(key, piece)
    _ENTRIES.keep(replace(key, detail=piece.number), statistics_entries(rows["metadata"]))
    return piece


def _read_rows(manifest: lance.LanceDataset, fragment: lance.LanceFragment) -> pa.Table:
    is_table = exp.column("object_type").eq(exp.Literal.string(TABLE)).sql(dialect=DataFusion)
    try:
        rows = manifest.scanner(
            columns=["metadata"], filter=is_table, fragments=[fragment], with_row_address=True
        ).to_table()
    except OSError as error:
        raise storage_failure("read", manifest.uri, error) from error
    return in_order(rows)
