"""The texts of many leaves' column statistics, read for all rows at once into arrays.

A text that another writer has spoilt makes the statistics of all rows beside it unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from pennon.manifest.format.column_statistics import COLUMN_STATISTICS
from pennon.manifest.format.statistics import COUNTED_VERSION

__all__ = ["ColumnBounds", "StatisticsEntries", "statistics_entries"]

# So many texts stay far below what 32-bit offsets can address.
_AT_ONCE: Final = 50_000
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
            lower = _read(entries["lower"], data_type)
            upper = _read(entries["upper"], data_type)
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


def _read(texts: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(data_type):
        return texts.cast(pa.timestamp("us")).cast(data_type)
    return texts.cast(data_type)


def _json(texts: pa.ChunkedArray, schema: pa.Schema) -> pa.Table | None:
    """Read texts as one JSON file; None where one of them has not the form that is written."""
    if not len(texts):
        return schema.empty_table()
    pieces = [_one_file(texts.slice(at, _AT_ONCE), schema) for at in range(0, len(texts), _AT_ONCE)]
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
