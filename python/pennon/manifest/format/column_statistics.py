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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from functools import reduce
from types import UnionType
from typing import Any, Final

import pyarrow as pa

from pennon.predicate.values.time_units import EPOCH, MICROS_PER_UNIT
from pennon.spec.json_text import object_or_empty, text_of

__all__ = [
    "COLUMN_STATISTICS",
    "ColumnStatistics",
    "LeafStatistics",
    "bounds_of",
    "is_counted_type",
    "read_statistics",
    "statistics_in",
    "text_above",
]

COLUMN_STATISTICS: Final = "column_statistics"
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
