"""The bounds and NULL counts of columns in the leaves of a scan.

The texts of a data fragment of ``__manifest`` are read once: its files never change, so that a
commit costs the fragments that it wrote. Of few leaves the texts at hand are read instead.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import Cache, TableKey
from pennon.errors import InternalError
from pennon.manifest.dataset.fragment_keys import FRAGMENT_SHIFT, fragment_key
from pennon.manifest.dataset.select import ADDRESS
from pennon.manifest.dataset.storage import reading_failure
from pennon.manifest.format.columns import READ_BRANCH, READ_TAG, READ_VERSION
from pennon.manifest.format.rows import TABLE
from pennon.manifest.format.statistics import IS_COUNTED, statistics_columns
from pennon.manifest.leaves.leaf_rows import few_of
from pennon.manifest.statistics_texts import ColumnBounds, StatisticsEntries, statistics_entries
from pennon.predicate.dialect import DataFusion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import lance
    from numpy.typing import NDArray

    from pennon.manifest.snapshot import Snapshot

__all__ = ["BESIDE", "bounds_at", "column_bounds"]

# What ``Snapshot.leaves`` has to give beside.
BESIDE: Final = ("metadata", ADDRESS)
_KEPT_BYTES: Final = 128 << 20
# The texts of so many rows at once: those of 20 columns are 25 MB, and twice as much when read.
_AT_ONCE: Final = 25_000
_BATCH_ROWS: Final = 8_192


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
    if not columns or not leaves.num_rows or IS_COUNTED not in leaves.column_names:
        return {}
    if leaves.num_rows <= few_of(snapshot.num_leaves):
        entries = statistics_entries(leaves["metadata"])
        stated = {
            number: entries.bounds(number, data_type) for number, data_type in columns.items()
        }
        bounds_of = {number: bounds for number, bounds in stated.items() if bounds is not None}
    else:
        bounds_of, _ = _over_fragments(snapshot, leaves[ADDRESS].to_numpy(), columns)
    return _where(leaves[IS_COUNTED].combine_chunks(), bounds_of)


def bounds_at(
    snapshot: Snapshot, addresses: NDArray[np.uint64], columns: Mapping[int, pa.DataType]
) -> dict[int, ColumnBounds]:
    """Read what is known of columns in leaves of which only the places of their rows are at hand.

    Args:
        snapshot: The namespace.
        addresses: Of table rows of its manifest, ascending.
        columns: The types of the columns by field id.

    Returns:
        As ``column_bounds``. Of a leaf whose row does not name its version nothing is known.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema" (metadata).
    """
    if not columns or not len(addresses) or not snapshot.has_read_version_column:
        return {}
    bounds_of, is_counted = _over_fragments(snapshot, addresses, columns)
    return _where(is_counted, bounds_of)


def _where(is_counted: pa.Array, bounds_of: Mapping[int, ColumnBounds]) -> dict[int, ColumnBounds]:
    """Forget what is known of leaves whose statistics are another version's."""
    return {
        number: replace(
            bounds,
            is_known=pc.and_(bounds.is_known, is_counted),
            is_exact=pc.and_(bounds.is_exact, is_counted),
        )
        for number, bounds in bounds_of.items()
    }


@dataclass(frozen=True, slots=True)
class _Piece:
    """The table rows of a fragment.

    Args:
        number: Of its own.
        addresses: Of the rows, ascending.
        is_counted: Of each, whether it names a version and its statistics are that version's.
    """

    number: int
    addresses: NDArray[np.uint64]
    is_counted: pa.Array

    @property
    def nbytes(self) -> int:
        return int(self.addresses.nbytes + self.is_counted.nbytes)

    def has(self, addresses: NDArray[np.uint64]) -> bool:
        """Whether it has all of these rows; a newer version may have fewer of a fragment's."""
        return np.array_equal(addresses, self.addresses) or bool(
            np.isin(addresses, self.addresses, assume_unique=True).all()
        )


def _weight(batches: Sequence[StatisticsEntries]) -> int:
    return sum(batch.nbytes for batch in batches)


_PIECES: Final[Cache[_Piece]] = Cache(
    "addresses of column statistics", max_bytes=_KEPT_BYTES, weigh=lambda piece: piece.nbytes
)
# Those of one large fragment may be too many to be kept; what was asked of them stays in _BOUNDS.
_ENTRIES: Final[Cache[tuple[StatisticsEntries, ...]]] = Cache(
    "column statistics", max_bytes=_KEPT_BYTES, weigh=_weight
)
_BOUNDS: Final[Cache[ColumnBounds]] = Cache(
    "bounds of columns", max_bytes=_KEPT_BYTES, weigh=lambda bounds: bounds.nbytes
)
_numbers: Final = itertools.count()
# One fragment is read at a time, so that nobody reads it twice and memory holds one.
_READING: Final = Lock()


def _over_fragments(
    snapshot: Snapshot, addresses: NDArray[np.uint64], columns: Mapping[int, pa.DataType]
) -> tuple[dict[int, ColumnBounds], pa.Array]:
    """Give what the rows at ascending addresses state, and of each whether it is of its version."""
    numbers = addresses >> np.uint64(FRAGMENT_SHIFT)
    fragments = {fragment.fragment_id: fragment for fragment in snapshot.manifest.get_fragments()}
    pieces: list[_Piece] = []
    by_fragment: list[dict[int, ColumnBounds]] = []
    for number in np.unique(numbers).tolist():
        piece, bounds = _of_fragment(
            snapshot, fragments[number], addresses[numbers == number], columns
        )
        pieces.append(piece)
        by_fragment.append(bounds)
    stated = np.concatenate([piece.addresses for piece in pieces])
    # Where all rows of the pieces are asked for nothing has to be moved.
    place = None
    if not np.array_equal(stated, addresses):
        place = pa.array(np.searchsorted(stated, addresses))

    def joined(arrays: Sequence[pa.Array]) -> pa.Array:
        whole = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return whole if place is None else pc.take(whole, place)

    bounds_of = {
        field_id: ColumnBounds(
            *map(joined, zip(*(bounds[field_id].arrays for bounds in by_fragment), strict=True))
        )
        for field_id in columns
    }
    return bounds_of, joined([piece.is_counted for piece in pieces])


def _of_fragment(
    snapshot: Snapshot,
    fragment: lance.LanceFragment,
    addresses: NDArray[np.uint64],
    columns: Mapping[int, pa.DataType],
) -> tuple[_Piece, dict[int, ColumnBounds]]:
    """Give the rows of a fragment, those at the addresses among them, and the columns' bounds."""
    key = fragment_key(snapshot.key, fragment, is_any_deleted=True)
    piece, bounds_of = _at_hand(key, addresses, columns)
    if piece is not None and len(bounds_of) == len(columns):
        return piece, bounds_of
    with _READING:
        piece, bounds_of = _at_hand(key, addresses, columns)  # another thread may have read it
        missing = {
            number: data_type for number, data_type in columns.items() if number not in bounds_of
        }
        if piece is not None and not missing:
            return piece, bounds_of
        if piece is not None:
            read, bounds = _read(snapshot, fragment, key, piece, missing)
            if read is piece:
                return piece, bounds_of | bounds
        return _read(snapshot, fragment, key, None, columns)


def _at_hand(
    key: TableKey, addresses: NDArray[np.uint64], columns: Mapping[int, pa.DataType]
) -> tuple[_Piece | None, dict[int, ColumnBounds]]:
    """Give the kept rows of a fragment, None where some are not among them, and kept bounds."""
    piece = _PIECES.peek(key)
    if piece is None or not piece.has(addresses):
        return None, {}
    return piece, _kept(key, piece, columns)


def _kept(
    key: TableKey, piece: _Piece, columns: Mapping[int, pa.DataType]
) -> dict[int, ColumnBounds]:
    """Give the bounds of the columns of which something is kept."""
    bounds_of = {}
    batches = _ENTRIES.peek(replace(key, detail=piece.number))
    for field_id, data_type in columns.items():
        own = _bounds_key(key, piece, field_id, data_type)
        bounds = _BOUNDS.peek(own)
        if bounds is None and batches is not None:
            bounds = _joined([_bounds(batch, field_id, data_type) for batch in batches])
            _BOUNDS.keep(own, bounds)
        if bounds is not None:
            bounds_of[field_id] = bounds
    return bounds_of


def _read(
    snapshot: Snapshot,
    fragment: lance.LanceFragment,
    key: TableKey,
    before: _Piece | None,
    columns: Mapping[int, pa.DataType],
) -> tuple[_Piece, dict[int, ColumnBounds]]:
    """Read the texts of a fragment and keep what they state of the columns, and of all if small.

    Args:
        snapshot: The namespace.
        fragment: The fragment.
        key: Of the fragment.
        before: The rows that it had when it was read before; given back where they are the same.
        columns: The types of the columns by field id.
    """
    addresses, is_counted = [np.empty(0, np.uint64)], [pa.array([], pa.bool_())]
    bounds: dict[int, list[ColumnBounds]] = {number: [] for number in columns}
    batches: tuple[StatisticsEntries, ...] = ()
    for rows in _rows(snapshot, fragment):
        addresses.append(rows[ADDRESS].to_numpy())
        counted = statistics_columns(rows["metadata"], _versions(rows))[IS_COUNTED]
        is_counted.append(counted.combine_chunks())
        batch = statistics_entries(rows["metadata"])
        for number, data_type in columns.items():
            bounds[number].append(_bounds(batch, number, data_type))
        batches = (*batches, batch) if _weight(batches) <= _KEPT_BYTES else batches
    places = np.concatenate(addresses)
    if not np.all(places[:-1] < places[1:]):
        raise InternalError(what=f"Lance gave rows of {snapshot.manifest.uri} in no order")
    piece = before
    if piece is None or not np.array_equal(piece.addresses, places):
        piece = _Piece(next(_numbers), places, pa.concat_arrays(is_counted))
        _PIECES.keep(key, piece)
    _ENTRIES.keep(replace(key, detail=piece.number), batches)
    bounds_of = {number: _joined(bounds[number]) for number in columns}
    for number, data_type in columns.items():
        _BOUNDS.keep(_bounds_key(key, piece, number, data_type), bounds_of[number])
    return piece, bounds_of


def _bounds(batch: StatisticsEntries, field_id: int, data_type: pa.DataType) -> ColumnBounds:
    return batch.bounds(field_id, data_type) or ColumnBounds.unknown(batch.num_rows, data_type)


def _joined(parts: Sequence[ColumnBounds]) -> ColumnBounds:
    arrays = zip(*(part.arrays for part in parts), strict=True)
    return ColumnBounds(*(pa.concat_arrays(array) for array in arrays))


def _bounds_key(key: TableKey, piece: _Piece, field_id: int, data_type: pa.DataType) -> TableKey:
    return replace(key, detail=(piece.number, field_id, str(data_type)))


def _versions(rows: pa.Table) -> pa.ChunkedArray:
    """Give the version that each row names; NULL where it names none, a branch or a tag."""
    if READ_VERSION.name not in rows.column_names:
        return pa.chunked_array([pa.nulls(len(rows), READ_VERSION.type)])
    versions = rows[READ_VERSION.name]
    for name in (READ_BRANCH, READ_TAG):
        if name in rows.column_names:
            versions = pc.if_else(pc.is_null(rows[name]), versions, pa.scalar(None, versions.type))
    return versions


def _rows(snapshot: Snapshot, fragment: lance.LanceFragment) -> Iterator[pa.Table]:
    """Read the table rows of a fragment, some at a time."""
    is_table = exp.column("object_type").eq(exp.Literal.string(TABLE)).sql(dialect=DataFusion)
    columns = ["metadata", READ_VERSION.name, READ_BRANCH, READ_TAG]
    present = [name for name in columns if name in snapshot.manifest.schema.names]
    read: list[pa.RecordBatch] = []
    try:
        scanned = snapshot.manifest.scanner(
            columns=present,
            filter=is_table,
            fragments=[fragment],
            with_row_address=True,
            batch_size=_BATCH_ROWS,
            scan_in_order=True,
        )
        for batch in scanned.to_batches():
            read.append(batch)
            if sum(map(len, read)) >= _AT_ONCE:
                yield pa.Table.from_batches(read)
                read = []
    except (pa.ArrowInvalid, OSError) as error:  # Lance raises either of them
        raise reading_failure(snapshot.manifest, error) from error
    if read:
        yield pa.Table.from_batches(read)
