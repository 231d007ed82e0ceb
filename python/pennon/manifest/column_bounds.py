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
import pyarrow.json
from sqlglot import exp

from pennon.caching import Cache, TableKey
from pennon.errors import InternalError
from pennon.manifest.dataset.select import ADDRESS, FRAGMENT_SHIFT, fragment_key
from pennon.manifest.dataset.storage import reading_failure
from pennon.manifest.format.column_statistics import (
    COLUMN_STATISTICS,
    COUNTED_VERSION,
    IS_COUNTED,
    statistics_columns,
)
from pennon.manifest.format.rows import READ_BRANCH, READ_TAG, READ_VERSION, TABLE
from pennon.manifest.leaves.leaf_rows import few_of
from pennon.predicate.dialect import DataFusion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import lance
    from numpy.typing import NDArray

    from pennon.manifest.snapshot import Snapshot

__all__ = ["BESIDE", "ColumnBounds", "bounds_at", "column_bounds"]

# The texts of many leaves' column statistics, read for all rows at once into arrays.
#
# A text that another writer has spoilt makes the statistics of all rows beside it unknown.

# So many texts stay far below what 32-bit offsets can address.
_TEXTS_AT_ONCE: Final = 50_000
_BLOCK_BYTES: Final = 64 << 20
_METADATA: Final = pa.schema({COLUMN_STATISTICS: pa.utf8(), COUNTED_VERSION: pa.utf8()})
_STATISTICS: Final = pa.schema(
    {
        "version": pa.utf8(),
        "field_ids": pa.list_(pa.int64()),
        "lower": pa.list_(pa.utf8()),
        "upper": pa.list_(pa.utf8()),
        "null_counts": pa.list_(pa.int64()),
        "distinct_counts": pa.list_(pa.int64()),
        "truncated": pa.list_(pa.int64()),
        "is_exact": pa.bool_(),
    }
)
_PER_COLUMN: Final = ("lower", "upper", "null_counts", "distinct_counts")


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """What is known of one column in each of some leaves; all arrays have one value per leaf.

    Args:
        is_known: Whether the leaf has statistics of the column; never NULL.
        lower: A value that none is below, in the column's type; NULL where all are NULL.
        upper: A value that none is above; NULL as well where none is known.
        null_count: NULLs, or more than there are.
        is_exact: Whether these are those of the rows that are there, and bounds are values.
        distinct_count: About how many values there are; NULL where nobody has counted.
    """

    is_known: pa.Array
    lower: pa.Array
    upper: pa.Array
    null_count: pa.Array
    is_exact: pa.Array
    distinct_count: pa.Array

    @classmethod
    def unknown(cls, num_leaves: int, data_type: pa.DataType) -> ColumnBounds:
        """Give those of leaves of which nothing is known.

        Example:
            >>> ColumnBounds.unknown(1, pa.int64()).is_known.to_pylist()
            [False]
        """
        no = pa.array(np.zeros(num_leaves, dtype=bool))
        values, counts = pa.nulls(num_leaves, data_type), pa.nulls(num_leaves, pa.int64())
        return cls(no, values, values, counts, no, counts)

    @property
    def has_nan(self) -> bool:
        """Whether NaN is among the values: what is the greatest number beside it is not known."""
        if not pa.types.is_floating(self.upper.type):
            return False
        return bool(pc.any(pc.is_nan(self.upper), min_count=0).as_py())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(int(array.nbytes) for array in self.arrays)

    @property
    def arrays(self) -> tuple[pa.Array, ...]:
        """The arrays in the order of the fields."""
        return (
            self.is_known,
            self.lower,
            self.upper,
            self.null_count,
            self.is_exact,
            self.distinct_count,
        )


@dataclass(frozen=True, slots=True)
class StatisticsEntries:
    """The statistics of all columns of some rows, one entry per row and column.

    Args:
        num_rows: The rows.
        row: The row of each entry.
        field_id: The column of each entry.
        table: ``lower``, ``upper``, ``null_counts`` and ``distinct_counts`` of each entry.
        is_exact: Of each row, whether its statistics are those of the rows that are there.
        cut_row: The row of each pair of bounds that is no value but a cut text.
        cut_field_id: Its column.
    """

    num_rows: int
    row: np.ndarray
    field_id: np.ndarray
    table: pa.Table
    is_exact: np.ndarray
    cut_row: np.ndarray
    cut_field_id: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self.table.nbytes + self.row.nbytes + self.field_id.nbytes)

    def bounds(self, field_id: int, data_type: pa.DataType) -> ColumnBounds | None:
        """Give what is known of a column; None where no row has bounds that can be read.

        Args:
            field_id: The column.
            data_type: Its type, which may be a wider one than the bounds were written of.
        """
        at = np.flatnonzero(self.field_id == field_id)
        if not len(at):
            return None
        entries = self.table.take(pa.array(at))
        try:
            lower = _read_texts(entries["lower"], data_type)
            upper = _read_texts(entries["upper"], data_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        can_be = _can_be(lower, upper, entries["null_counts"])
        at, entries = at[can_be.to_numpy()], entries.filter(can_be)
        lower, upper = lower.filter(can_be), upper.filter(can_be)
        place = np.full(self.num_rows, -1)
        place[self.row[at]] = np.arange(len(at))
        index = pa.array(place, mask=place < 0)
        is_exact = self.is_exact & (place >= 0)
        is_exact[self.cut_row[self.cut_field_id == field_id]] = False
        return ColumnBounds(
            pa.array(place >= 0),
            _taken(lower, index),
            _taken(upper, index),
            _taken(entries["null_counts"], index),
            pa.array(is_exact),
            _taken(entries["distinct_counts"], index),
        )


def statistics_entries(metadata: pa.ChunkedArray) -> StatisticsEntries:
    """Read the column statistics of rows of the manifest.

    Args:
        metadata: The rows' JSON texts; NULL for none.

    Example:
        >>> import json
        >>> known = {"field_ids": [3], "lower": ["1"], "upper": ["9"], "null_counts": [0]}
        >>> text = json.dumps({"version": "7", **known})
        >>> row = {"counted_version": "7", "column_statistics": text}
        >>> entries = statistics_entries(pa.chunked_array([[json.dumps(row)]]))
        >>> entries.bounds(3, pa.int64()).upper.to_pylist()
        [9]

    Spec: "Manifest Table Schema" (metadata).
    """
    texts = _json(metadata, _METADATA)
    stored = None if texts is None else _json(texts[COLUMN_STATISTICS], _STATISTICS)
    if texts is not None and stored is not None:
        stored = _of_version(stored, texts[COUNTED_VERSION])
    if stored is None or not _is_whole(stored):
        stored = pa.table(
            {statistic.name: pa.nulls(len(metadata), statistic.type) for statistic in _STATISTICS}
        )
    lengths = _lengths(stored, "field_ids")
    columns = {name: _flat(stored, name) for name in _PER_COLUMN}
    counted = _lengths(stored, "distinct_counts")
    columns["distinct_counts"] = _spread(columns["distinct_counts"], lengths, counted > 0)
    rows = np.arange(len(stored))
    return StatisticsEntries(
        len(stored),
        np.repeat(rows, lengths),
        _flat(stored, "field_ids").to_numpy(zero_copy_only=False),
        pa.table(columns),
        pc.fill_null(stored["is_exact"], fill_value=True).to_numpy(),
        np.repeat(rows, _lengths(stored, "truncated")),
        _flat(stored, "truncated").to_numpy(zero_copy_only=False),
    )


def _of_version(stored: pa.Table, counted: pa.ChunkedArray) -> pa.Table:
    """Leave out what is not of the version that the row's other numbers are of."""
    is_of = pc.fill_null(pc.equal(stored["version"], counted), fill_value=False)
    if pc.all(is_of, min_count=0).as_py():
        return stored
    at = pa.array(np.arange(len(stored)))
    index = pc.if_else(is_of, pa.chunked_array([at]), pa.scalar(None, at.type))
    return stored.take(index)


def _is_whole(stored: pa.Table) -> bool:
    """Whether each row has as many bounds as columns, and as many distinct counts or none."""
    lengths = _lengths(stored, "field_ids")
    needed = all(
        np.array_equal(_lengths(stored, name), lengths)
        for name in ("lower", "upper", "null_counts")
    )
    counted = _lengths(stored, "distinct_counts")
    return bool(needed and np.all((counted == lengths) | (counted == 0)))


def _spread(counts: pa.Array, lengths: np.ndarray, is_stated: np.ndarray) -> pa.Array:
    """Give one count to every entry, NULL to those of rows that state none."""
    of_entry = np.repeat(is_stated, lengths)
    place = np.full(len(of_entry), -1)
    place[of_entry] = np.arange(len(counts))
    return pc.take(counts, pa.array(place, mask=place < 0))


def _flat(stored: pa.Table, name: str) -> pa.Array:
    return pc.list_flatten(stored[name]).combine_chunks()


def _lengths(stored: pa.Table, name: str) -> np.ndarray:
    lengths = pc.fill_null(pc.list_value_length(stored[name]), 0)
    return np.asarray(lengths.to_numpy(), dtype=np.int64)


def _can_be(
    lower: pa.ChunkedArray, upper: pa.ChunkedArray, null_counts: pa.ChunkedArray
) -> pa.ChunkedArray:
    """Tell which bounds and NULL counts can be those of values; others are none."""
    is_apart = pc.fill_null(pc.less(upper, lower), fill_value=False)
    is_half = pc.and_(pc.is_null(lower), pc.is_valid(upper))
    is_count = pc.fill_null(pc.greater_equal(null_counts, 0), fill_value=False)
    return pc.and_not(is_count, pc.or_(is_apart, is_half))


def _taken(values: pa.ChunkedArray, index: pa.Array) -> pa.Array:
    return pc.take(values, index).combine_chunks()


def _read_texts(texts: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(data_type):
        return texts.cast(pa.timestamp("us")).cast(data_type)
    return texts.cast(data_type)


def _json(texts: pa.ChunkedArray, schema: pa.Schema) -> pa.Table | None:
    """Read texts as one JSON file; None where one of them has not the form that is written."""
    if not len(texts):
        return schema.empty_table()
    pieces = [
        _one_file(texts.slice(at, _TEXTS_AT_ONCE), schema)
        for at in range(0, len(texts), _TEXTS_AT_ONCE)
    ]
    parsed = [piece for piece in pieces if piece is not None]
    return pa.concat_tables(parsed) if len(parsed) == len(pieces) else None


def _one_file(texts: pa.ChunkedArray, schema: pa.Schema) -> pa.Table | None:
    filled = pc.fill_null(texts, "{}")
    stated = pa.concat_arrays(pc.if_else(pc.equal(filled, ""), "{}", filled).chunks)
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(stated)], stated), "\n")
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pyarrow.json.ReadOptions(block_size=_BLOCK_BYTES)
    try:
        parsed = pyarrow.json.read_json(pa.BufferReader(lines.buffers()[2]), reading, options)
    except pa.ArrowInvalid:
        return None
    return parsed if len(parsed) == len(stated) else None


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
    fragments = {fragment.fragment_id: fragment for fragment in snapshot.rows.get_fragments()}
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
        scanned = snapshot.rows.scanner(
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
