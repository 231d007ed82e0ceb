"""The statistics of a leaf's columns, as they stand in the ``metadata`` of its row.

One more key, ``column_statistics``, with a JSON text of parallel lists, one entry per column that
is counted: ``field_ids``, ``lower`` and ``upper`` (bounds as text), ``null_counts``; then
``truncated``, the ids of those whose bounds are no values, and ``is_exact``, false once rows went.
They are those of ``counted_version`` like all numbers of the row, and say so themselves
(``version``): who counts a leaf anew and does not know them may leave them as they were.

Bounds are inclusive. Numbers are decimal, dates and timestamps (UTC) ISO without trailing zeros,
so that a column that was promoted since reads them as they are. Texts are cut to 16 characters, an
upper bound is rounded up. NULL has no part in bounds; NaN is the greatest number, as in Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from decimal import Decimal
from functools import reduce
from types import UnionType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from pennon.predicate.values.time_units import EPOCH, MICROS_PER_UNIT
from pennon.spec.arrow_json import object_or_empty, text_of

__all__ = [
    "COLUMN_STATISTICS",
    "COUNTED_VERSION",
    "INDEXES",
    "IS_COUNTED",
    "RECORDED_ORDER",
    "STATISTICS",
    "ColumnStatistics",
    "LeafIndex",
    "LeafStatistics",
    "bounds_of",
    "indexes_in",
    "indexes_text",
    "is_counted_type",
    "order_at",
    "order_column",
    "read_statistics",
    "recorded_order",
    "statistics_columns",
    "statistics_in",
    "text_above",
    "with_statistics",
    "without_columns",
]

COLUMN_STATISTICS: Final = "column_statistics"
INDEXES: Final = "indexes"
_MOST_CHARACTERS: Final = 16
_HIGHEST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of one column's values in one leaf.

    Args:
        lower: Text of a value that none is below; None where every value is NULL.
        upper: Text of one that none is above; None as well where there is no such text.
        null_count: NULLs; not fewer than there are where rows went since.
        is_truncated: Whether a bound is no value of the column, but a text below or above one.
        distinct_count: About how many values there are; None where nobody has counted.
    """

    lower: str | None
    upper: str | None
    null_count: int
    is_truncated: bool = False
    distinct_count: int | None = None

    def can_be(self, data_type: pa.DataType) -> bool:
        """Whether these can be bounds of values of a type; texts that were damaged need not be.

        Args:
            data_type: The column's type.

        Example:
            >>> ColumnStatistics("9", "10", 0).can_be(pa.int64())
            True
            >>> ColumnStatistics("9", "1O", 0).can_be(pa.int64())
            False
        """
        if self.lower is None:
            return self.upper is None
        key = _order_of(data_type)
        try:
            least = key(self.lower)
            return self.upper is None or bool(least <= key(self.upper))
        except (ValueError, ArithmeticError):  # of a decimal it is the latter
            return False

    def merged(self, other: ColumnStatistics, data_type: pa.DataType) -> ColumnStatistics:
        """Give the statistics of the rows of both.

        Args:
            other: Those of other rows.
            data_type: The column's type.

        Example:
            >>> one, two = ColumnStatistics("9", "9", 0), ColumnStatistics("10", "10", 1)
            >>> both = one.merged(two, pa.int64())
            >>> both.lower, both.upper, both.null_count
            ('9', '10', 1)
        """
        null_count = self.null_count + other.null_count
        if self.lower is None or other.lower is None:
            return replace(other if self.lower is None else self, null_count=null_count)
        key = _order_of(data_type)
        upper = None
        if self.upper is not None and other.upper is not None:
            upper = max(self.upper, other.upper, key=key)
        return ColumnStatistics(
            min(self.lower, other.lower, key=key),
            upper,
            null_count,
            self.is_truncated or other.is_truncated,
        )


@dataclass(frozen=True, slots=True)
class LeafStatistics:
    """The statistics of a leaf's columns, by field id.

    Args:
        columns: Those of the columns that are counted.
        is_exact: Whether they are those of the rows that are there; else some of the rows that
            they were counted of have gone since, and they are only bounds.
    """

    columns: Mapping[int, ColumnStatistics]
    is_exact: bool = True

    def merged(
        self, others: Iterable[LeafStatistics], types: Mapping[int, pa.DataType]
    ) -> LeafStatistics:
        """Give the statistics of the rows of all: of the columns that each of them has counted.

        Args:
            others: Those of other rows.
            types: The types of columns by field id; others are left out.
        """

        def joined(one: LeafStatistics, two: LeafStatistics) -> LeafStatistics:
            columns = {
                number: stated.merged(other, data_type)
                for number, stated in one.columns.items()
                if (other := two.columns.get(number)) is not None
                and (data_type := types.get(number)) is not None
                and stated.can_be(data_type)
                and other.can_be(data_type)
            }
            return LeafStatistics(columns, one.is_exact and two.is_exact)

        return reduce(joined, others, self)

    def to_json(self, version: int | None = None) -> str | None:
        """Write the statistics as text; None where no column is counted.

        Args:
            version: The leaf's version that they are of; None before there is one.

        Example:
            >>> LeafStatistics({3: ColumnStatistics("1", "9", 0)}).to_json()
            '{"field_ids":[3],"lower":["1"],"upper":["9"],"null_counts":[0]}'
        """
        if not self.columns:
            return None
        columns = self.columns.values()
        written: dict[str, object] = {} if version is None else {"version": str(version)}
        written |= {
            "field_ids": list(self.columns),
            "lower": [column.lower for column in columns],
            "upper": [column.upper for column in columns],
            "null_counts": [column.null_count for column in columns],
        }
        truncated = [field_id for field_id, column in self.columns.items() if column.is_truncated]
        if truncated:
            written["truncated"] = truncated
        if any(column.distinct_count is not None for column in columns):
            written["distinct_counts"] = [column.distinct_count for column in columns]
        if not self.is_exact:
            written["is_exact"] = False
        return text_of(written)


def read_statistics(text: str | None) -> LeafStatistics | None:
    """Read what ``LeafStatistics.to_json`` wrote; None for what it did not write.

    Example:
        >>> read_statistics('{"field_ids":[3],"lower":["1"],"upper":["9"],"null_counts":[0]}')
        LeafStatistics(columns={3: ColumnStatistics(lower='1', ...)}, is_exact=True)
        >>> read_statistics("of another writer")
    """
    try:
        stored = json.loads(text) if text else None
    except json.JSONDecodeError:
        return None
    if not isinstance(stored, dict):
        return None
    ids, truncated = stored.get("field_ids"), stored.get("truncated", [])
    if not isinstance(ids, list) or not (_is_list(ids, int) and _is_list(truncated, int)):
        return None
    lower, upper, nulls = (stored.get(name, []) for name in ("lower", "upper", "null_counts"))
    distinct = stored.get("distinct_counts", [None] * len(ids))
    lists = (lower, upper, nulls, distinct)
    kinds = (str | None, str | None, int, int | None)
    if not all(
        _is_list(list_, kind) and len(list_) == len(ids)
        for list_, kind in zip(lists, kinds, strict=True)
    ):
        return None
    if any(count < 0 for count in nulls):
        return None
    columns = {
        field_id: ColumnStatistics(low, high, count, field_id in truncated, number)
        for field_id, low, high, count, number in zip(
            ids, lower, upper, nulls, distinct, strict=True
        )
    }
    return LeafStatistics(columns, stored.get("is_exact", True) is not False)


def _is_list(value: object, kind: type | UnionType) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def statistics_in(metadata: str | None) -> LeafStatistics | None:
    """Take the statistics of columns out of a row's JSON text; None where it has none.

    Those of another version than the row's other numbers are none.

    Example:
        >>> statistics_in("{}")
    """
    kept = object_or_empty(metadata)
    text, version = kept.get(COLUMN_STATISTICS), kept.get("counted_version")
    if not isinstance(text, str) or version is None:
        return None
    is_of_version = object_or_empty(text).get("version") == str(version)
    return read_statistics(text) if is_of_version else None


def is_counted_type(data_type: pa.DataType) -> bool:
    """Whether statistics are kept of columns of a type.

    Example:
        >>> is_counted_type(pa.int32()), is_counted_type(pa.list_(pa.int32()))
        (True, False)
    """
    types = pa.types
    if types.is_timestamp(data_type):
        return data_type.unit in MICROS_PER_UNIT
    return bool(
        types.is_integer(data_type)
        or types.is_float32(data_type)
        or types.is_float64(data_type)
        or types.is_decimal128(data_type)
        or types.is_boolean(data_type)
        or types.is_date32(data_type)
        or types.is_string(data_type)
        or types.is_large_string(data_type)
    )


def bounds_of(lower: pa.Scalar, upper: pa.Scalar) -> tuple[str | None, str | None, bool] | None:
    """Write two values as bounds.

    Args:
        lower: The least value, of a type that is counted.
        upper: The greatest one; NULL like ``lower`` where there is none.

    Returns:
        The texts, and whether they are cut; None where a value has no text (years before 1 and
        after 9999, texts that are not UTF-8).

    Example:
        >>> bounds_of(pa.scalar("a"), pa.scalar("zebra crossing at midnight"))
        ('a', 'zebra crossing b', True)
        >>> bounds_of(pa.scalar(1.0), pa.scalar(float("nan")))
        ('1.0', 'nan', False)
    """
    if not lower.is_valid:
        return None, None, False
    try:
        low: str = _text(lower)
        high: str | None = _text(upper)
    except (OverflowError, ValueError):  # a UnicodeDecodeError is one
        return None
    if not isinstance(lower, pa.StringScalar | pa.LargeStringScalar):
        return low, high, False
    is_truncated = len(low) > _MOST_CHARACTERS or len(high or "") > _MOST_CHARACTERS
    if high is not None and len(high) > _MOST_CHARACTERS:
        high = text_above(high[:_MOST_CHARACTERS])
    return low[:_MOST_CHARACTERS], high, is_truncated


def _text(value: pa.Scalar) -> str:
    data_type = value.type
    if pa.types.is_timestamp(data_type):
        moment = EPOCH + timedelta(microseconds=value.value * MICROS_PER_UNIT[data_type.unit])
        text = moment.replace(tzinfo=None).isoformat()
        return text.rstrip("0") if "." in text else text
    plain = value.as_py()
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, float):
        return repr(plain)
    if isinstance(plain, Decimal):
        return format(plain, "f")
    return str(plain)


def text_above(prefix: str) -> str | None:
    """Give the least text above all that begin with a prefix; None where there is none.

    Texts are compared by code points, as UTF-8 and Spark compare them.

    Example:
        >>> text_above("ab"), text_above(chr(0xD7FF)) == chr(0xE000), text_above("")
        ('ac', True, None)
    """
    kept = prefix
    while kept:
        following = ord(kept[-1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _HIGHEST:
            return kept[:-1] + chr(following)
        kept = kept[:-1]
    return None


def _order_of(data_type: pa.DataType) -> Callable[[str], Any]:
    """Give what bounds of a type are ordered by; texts of dates and times are in their order."""
    if pa.types.is_integer(data_type):
        return int
    if pa.types.is_decimal(data_type):
        return Decimal
    if pa.types.is_floating(data_type):
        return _float_order
    return str


def _float_order(text: str) -> tuple[bool, float]:
    value = float(text)
    is_nan = value != value  # noqa: PLR0124 - NaN alone is not itself
    return is_nan, 0.0 if is_nan else value


# The ``metadata`` text of ``__manifest`` rows: statistics of leaves, read for all rows at once.
#
# A table row's metadata is a JSON object; Pennon writes ``num_rows``, ``num_bytes``,
# ``num_fragments`` and ``write_order`` into it and keeps every other key. The numbers are written
# as JSON strings: upstream's directory namespace takes the object for a map of strings and cannot
# describe a table otherwise. Both forms are read. A row without them has NULL statistics.
#
# The numbers are those of one version, ``counted_version``. Another writer may move a row on and
# keep what it does not know: then they say nothing of the version that is read. Of a row without
# it, and of a leaf that is read at its newest version, they may be another version's.

# So few texts, as a commit asks for, are read without a pool of threads.
_FEW: Final = 32
STATISTICS: Final = ("num_rows", "num_bytes", "num_fragments")
NUM_FRAGMENTS: Final = "num_fragments"
IS_COUNTED: Final = "is_counted"
RECORDED_ORDER: Final = "write_order"
COUNTED_VERSION: Final = "counted_version"
_AT_ONCE: Final = 50_000
_WRITTEN: Final = pa.schema(dict.fromkeys((*STATISTICS, COUNTED_VERSION), pa.utf8()))
# Versions of detached commits need all 64 bits.
_READ: Final = pa.schema({**dict.fromkeys(STATISTICS, pa.int64()), COUNTED_VERSION: pa.uint64()})


def statistics_columns(
    metadata: pa.ChunkedArray, versions: pa.ChunkedArray | None = None
) -> dict[str, pa.ChunkedArray]:
    """Take the statistics out of a column of JSON texts, without a Python loop over rows.

    Args:
        metadata: The texts.
        versions: The versions that are read (uint64; NULL for the newest). None to take the
            numbers as they stand.

    Returns:
        The statistics, NULL where they are known to be another version's or that of a leaf that is
        read at its newest. With ``versions`` also ``is_counted``, whether they are known to be
        those of the version that is read; ``num_fragments``, of which parts of leaves are made, is
        NULL where they are not.

    Example:
        >>> texts = pa.chunked_array([['{"num_rows":"3","num_bytes":"120"}', "{}", None]])
        >>> statistics_columns(texts)["num_rows"].to_pylist()
        [3, None, None]

    Spec: "Manifest Table Schema" (metadata).
    """
    columns = _columns(metadata)
    counted = columns.pop(COUNTED_VERSION)
    if versions is None:
        return columns
    is_counted = pc.fill_null(pc.equal(counted, versions), fill_value=False)
    is_possible = pc.or_(is_counted, pc.and_(pc.is_null(counted), pc.is_valid(versions)))
    counts = {
        name: pc.if_else(
            is_counted if name == NUM_FRAGMENTS else is_possible,
            column,
            pa.scalar(None, column.type),
        )
        for name, column in columns.items()
    }
    is_known = pc.and_(is_counted, pc.is_valid(counts["num_rows"]))
    return {**counts, IS_COUNTED: is_known}


def _columns(metadata: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    if len(metadata) <= _FEW:
        return _columns_of_few(metadata.to_pylist())
    parsed = _parsed(metadata)
    if parsed is not None:
        return {name: parsed[name] for name in _READ.names}
    columns = {}
    for name, data_type in zip(_READ.names, _READ.types, strict=True):
        # A quoted key, a colon and a number cannot stand inside a JSON string unescaped.
        digits = 20 if name == COUNTED_VERSION else 18
        pattern = rf'"{name}"\s*:\s*"?(?P<number>\d{{1,{digits}}})\b'
        matched = pc.extract_regex(metadata, pattern)
        columns[name] = pc.cast(pc.struct_field(matched, "number"), data_type)
    return columns


def _columns_of_few(texts: Sequence[str | None]) -> dict[str, pa.ChunkedArray]:
    stated = [object_or_empty(text) for text in texts]
    return {
        name: pa.chunked_array(
            [pa.array([_number(leaf.get(name), data_type) for leaf in stated], data_type)]
        )
        for name, data_type in zip(_READ.names, _READ.types, strict=True)
    }


def _number(value: object, data_type: pa.DataType) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < 1 << (63 if data_type == pa.int64() else 64) else None


def _parsed(metadata: pa.ChunkedArray) -> pa.Table | None:
    """Parse all texts as JSON files; None where one of them has not the form that we write.

    Five times as fast as a regular expression per statistic. Of so many texts as one file that
    their bytes never exceed what 32-bit offsets can address.
    """
    if len(metadata) == 0:
        return None
    pieces = [_one_file(metadata.slice(at, _AT_ONCE)) for at in range(0, len(metadata), _AT_ONCE)]
    parsed = [piece for piece in pieces if piece is not None]
    return pa.concat_tables(parsed) if len(parsed) == len(pieces) else None


def _one_file(metadata: pa.ChunkedArray) -> pa.Table | None:
    stated = without_columns(pc.fill_null(metadata, ""))
    texts = pa.concat_arrays(pc.if_else(pc.equal(stated, ""), "{}", stated).chunks)
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")
    try:
        parsed = pyarrow.json.read_json(
            pa.BufferReader(lines.buffers()[2]),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=_WRITTEN, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid:
        return None
    try:
        return parsed.cast(_READ) if len(parsed) == len(metadata) else None
    except pa.ArrowInvalid:
        return None


def without_columns(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cut off the statistics of columns, ten times as long as all others and the last of them.

    Where another writer has put more behind them it is lost here, and unknown.

    Example:
        >>> texts = pa.chunked_array([['{"num_rows":"3","column_statistics":"{}"}', None]])
        >>> without_columns(texts).to_pylist()
        ['{"num_rows":"3"}', None]
    """
    parts = pc.split_pattern(texts, f',"{COLUMN_STATISTICS}":', max_splits=1)
    first = pc.list_element(parts, 0)
    is_cut = pc.equal(pc.list_value_length(parts), 2)
    closed: pa.ChunkedArray = pc.binary_join_element_wise(first, "}", "")
    return pc.if_else(is_cut, closed, first)


def recorded_order(version: int, order: str) -> str:
    """Write what is recorded of an order: only rows of that version are known to be in it.

    Another writer may move a row on and keep what it does not know.

    Args:
        version: The leaf's Lance version.
        order: The identity of the order.

    Example:
        >>> recorded_order(7, "0 int64 ASC")
        '7 0 int64 ASC'
    """
    return f"{version} {order}"


def order_at(recorded: str | None, version: int) -> str | None:
    """Give the order that is recorded for a version; None where none is.

    Example:
        >>> order_at("7 0 int64 ASC", 7), order_at("7 0 int64 ASC", 8)
        ('0 int64 ASC', None)
    """
    stated, _, order = (recorded or "").partition(" ")
    return order if order and stated == str(version) else None


def order_column(metadata: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take what a column of JSON texts records of the order of leaves' rows.

    It is the version that was recorded and the order's identity; NULL where nothing is recorded.

    Example:
        >>> order_column(pa.chunked_array([['{"write_order":"7 0 int64 ASC"}', "{}"]])).to_pylist()
        ['7 0 int64 ASC', None]
    """
    pattern = rf'"{RECORDED_ORDER}"\s*:\s*"(?P<order>[^"\\]*)"'
    return pc.struct_field(pc.extract_regex(metadata, pattern), "order")


def with_statistics(metadata: str | None, statistics: Mapping[str, int | str | None]) -> str:
    """Write statistics into a row's JSON text; its other keys stay.

    Example:
        >>> with_statistics('{"note":"x","num_rows":1}', {"num_rows": 2})
        '{"note":"x","num_rows":"2"}'
    """
    kept = json.loads(metadata) if metadata else {}
    written = kept if isinstance(kept, dict) else {}
    for name, value in statistics.items():
        if value is None or name == COLUMN_STATISTICS:
            written.pop(name, None)
        if value is not None:
            written[name] = str(value)
    if COLUMN_STATISTICS in written:  # the last one, so that readers of the others can cut it off
        written[COLUMN_STATISTICS] = written.pop(COLUMN_STATISTICS)
    return text_of(written)


# The indexes of a leaf, as they stand in the ``metadata`` of its row under ``indexes``: those of
# one version, which the text names. Of any other version they are not known.


@dataclass(frozen=True, slots=True)
class LeafIndex:
    """What a version of a leaf has of an index.

    Args:
        name: The index.
        type: Lance's name of its kind.
        rows: How many of the version's rows are in it; all others are looked at one by one.
        num_bytes: Bytes of its files; None where Lance does not know.
        segments: How many parts it has, those of which no row is left among them.
    """

    name: str
    type: str
    rows: int
    num_bytes: int | None
    segments: int


def indexes_text(version: int, indexes: Sequence[LeafIndex]) -> str | None:
    """Write the indexes of a version of a leaf; None where it has none.

    Example:
        >>> text = indexes_text(7, [LeafIndex("i", "BTREE", 9, 100, 1)])
        >>> indexes_in(text_of({"indexes": text}), 7)
        (LeafIndex(name='i', type='BTREE', rows=9, num_bytes=100, segments=1),)
    """
    if not indexes:
        return None
    return text_of({"version": str(version), "indexes": [asdict(one) for one in indexes]})


def indexes_in(metadata: str | None, version: int | None) -> tuple[LeafIndex, ...] | None:
    """Take the indexes of a leaf out of its row's JSON text; None where they are not known.

    Args:
        metadata: The text.
        version: The version that is read.
    """
    text = object_or_empty(metadata).get(INDEXES)
    if text is None:
        return ()
    stored = object_or_empty(text) if isinstance(text, str) else {}
    listed = stored.get("indexes")
    if stored.get("version") != str(version) or not isinstance(listed, list):
        return None
    try:
        return tuple(LeafIndex(**one) for one in listed)
    except TypeError:  # of another release
        return None
