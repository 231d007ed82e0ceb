"""Translates DataFusion's errors in partition expressions into Pennon's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from pennon.errors import PennonError
from pennon.predicate.values.time_units import (
    MICROS_PER_DAY,
    MICROS_PER_UNIT,
    MILLIS_PER_DAY,
    NANOS_PER_MICRO,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from numpy.typing import NDArray

__all__ = ["probes", "versions"]

# Probe values that reveal whether an expression is not a pure function of its sources.
#
# Boundaries of every width, both signs, zero, and what text and time have of edges. Used when an
# expression is checked; no data is read.
#
# Spec: "Partition Expression".

# The first five stand for the other columns while one column is probed: edges among them.
_WHOLE = (
    7, 2**31 - 1, -(2**31), 0, -1, 1, 5, 10, -7, 25, 100, -100, 127, -128, 128, 255, 256,
    1_000, 32_767, -32_768, 32_768, 46_340, 46_341, -46_341, 65_535, 65_536, 1_000_003,
    -(2**31) + 1, 2**31, -(2**31) - 1, 2**32 - 1, 2**32, 2**53, 2**63 - 1, -(2**63), 2**64 - 1,
)  # fmt: skip
_REAL = (
    2.5, 2.0**127, -0.5, 0.0, -7.0, 1.0, 5.0, 0.125, -1.5, 100.0, 16_777_216.0, -0.0,
    2.0**31, -(2.0**31), 2.0**-126, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_TEXT = ("AbC", "", "z", "2025-12-10", "5", "\u00e9", "e\u0301", "\u1e9e", " a ", "US" * 40)
_DAYS = (
    dt.date(2025, 12, 10), dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2000, 2, 29),
    dt.date(1, 1, 1), dt.date(9999, 12, 31),
)  # fmt: skip
_INSTANTS = tuple(
    dt.datetime(year, month, day, hour, 59, 59, tzinfo=dt.UTC)
    for year, month, day, hour in (
        (2025, 12, 10, 23), (1970, 1, 1, 0), (1969, 12, 31, 23), (2000, 2, 29, 12), (1700, 1, 1, 0),
    )
)  # fmt: skip
# Python's own context rounds to 28 digits.
_WIDE = Context(prec=100)
_TIMES = (dt.time(12, 30, 5), dt.time(0), dt.time(23, 59, 59))


def probes(data_type: pa.DataType) -> list[object]:
    """Give the probe values of a type, none of them NULL; a nested type has none.

    Example:
        >>> probes(pa.int8())[:3]
        [7, 0, -1]
    """
    types = pa.types
    if types.is_integer(data_type):
        return [value for value in _WHOLE if _fits(value, data_type)]
    if types.is_floating(data_type):
        return [value for value in _REAL if _fits(value, data_type)]
    if types.is_decimal(data_type):
        return _decimals(data_type)
    if types.is_boolean(data_type):
        return [True, False]
    if types.is_date(data_type):
        return list(_DAYS)
    if types.is_timestamp(data_type):
        naive = [value.replace(tzinfo=None) for value in _INSTANTS]
        return list(_INSTANTS if data_type.tz is not None else naive)
    if types.is_time(data_type):
        return list(_TIMES)
    if (
        types.is_string(data_type)
        or types.is_large_string(data_type)
        or types.is_string_view(data_type)
    ):
        return list(_TEXT)
    if types.is_fixed_size_binary(data_type):
        return [bytes(data_type.byte_width), b"\xff" * data_type.byte_width]
    if (
        types.is_binary(data_type)
        or types.is_large_binary(data_type)
        or types.is_binary_view(data_type)
    ):
        return [b"\x00\x01\x02\x03", b"", b"\xff"]
    return []


def versions(data_type: pa.DataType) -> list[pa.DataType]:
    """Give the types whose equal values have to give equal partition values, the type first.

    Example:
        >>> versions(pa.int16())
        [DataType(int16), DataType(int32), DataType(int64)]
    """
    types = pa.types
    wider: list[pa.DataType] = []
    if types.is_integer(data_type):
        wider = [pa.int32(), pa.int64()]
    elif types.is_floating(data_type):
        wider = [pa.float32(), pa.float64()]
    elif types.is_decimal(data_type):
        make = pa.decimal256 if types.is_decimal256(data_type) else pa.decimal128
        most = 76 if types.is_decimal256(data_type) else 38
        wider = [make(min(data_type.precision + 4, most), data_type.scale)]
    return [data_type, *(other for other in wider if other != data_type)]


def _fits(value: object, data_type: pa.DataType) -> bool:
    try:
        stored = pa.scalar(value, data_type).as_py()
    except (pa.ArrowInvalid, OverflowError):
        return False
    return bool(stored == value) or value != value  # noqa: PLR0124 - NaN is kept


def _decimals(data_type: pa.DataType) -> list[object]:
    largest = 10**data_type.precision - 1
    unscaled = (1234, largest, -largest, 0, -1, 1, 5, -1234)
    return [
        Decimal(value).scaleb(-data_type.scale, _WIDE)
        for value in unscaled
        if abs(value) <= largest
    ]


# Prepares source columns for transforms: one plain array each, times in UTC.
#
# NULL rules: numbers taken from an array stand for NULL rows too and have no meaning there; the
# caller masks them.

INT64_DIGITS = 18


def plain_array(source: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Give one array without chunks and dictionary."""
    array = source.combine_chunks() if isinstance(source, pa.ChunkedArray) else source
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """Give the type of ``plain_array``."""
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def from_scalars(scalars: Sequence[pa.Scalar], data_type: pa.DataType) -> pa.Array:
    """Give an array of the scalars, so that they take the path of the columns."""
    return pa.array(scalars, type=plain_type(data_type))


def integers(array: pa.Array) -> NDArray[np.int64]:
    """Give the stored integers, 0 for NULL."""
    storage = pa.int32() if array.type.bit_width == pa.int32().bit_width else pa.int64()
    values = array.cast(storage).fill_null(0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values, dtype=np.int64)


def day_numbers(array: pa.Array) -> NDArray[np.int64]:
    """Give days since 1970-01-01 (UTC) of dates and timestamps, 0 for NULL."""
    if pa.types.is_date32(array.type):
        return integers(array)
    if pa.types.is_date64(array.type):
        return integers(array) // MILLIS_PER_DAY
    return micros_utc(array) // MICROS_PER_DAY


def micros_utc(array: pa.Array) -> NDArray[np.int64]:
    """Give microseconds of times, or since the epoch (UTC) of timestamps and dates, 0 for NULL."""
    if pa.types.is_date(array.type):
        return day_numbers(array) * MICROS_PER_DAY
    counts = integers(array)
    if array.type.unit == "ns":
        return counts // NANOS_PER_MICRO
    return counts * MICROS_PER_UNIT[array.type.unit]


def with_nulls_of(
    values: NDArray[np.generic], source: pa.Array, data_type: pa.DataType
) -> pa.Array:
    """Give the values as an array of a type, NULL where the source is NULL."""
    if source.null_count == 0:
        return pa.array(values, type=data_type)
    return pa.array(values, type=data_type, mask=source.is_null().to_numpy(zero_copy_only=False))


def low_halves(decimals: pa.Array, rows_before: int = 0) -> NDArray[np.int64]:
    """Give the unscaled values of ``decimal128`` of up to 18 digits, whatever is NULL.

    Args:
        decimals: Not empty.
        rows_before: How many of the rows before its first one are given as well.
    """
    first = 2 * (decimals.offset - rows_before)
    words = np.frombuffer(decimals.buffers()[1], dtype=np.int64)
    return words[first : 2 * (decimals.offset + len(decimals)) : 2]


_RAISED: Final = (Exception, ValueError, RuntimeError)
# The class of a panic is one that no module exports.
_PANIC: Final = "PanicException"


@dataclass(frozen=True, slots=True)
class DataFusionErrors(AbstractContextManager[None]):
    """Translates what DataFusion raises inside: ValueError when it plans, else a bare Exception.

    Args:
        translated: Gives the error of the caller, with what was raised as its reason.
        others: More classes that count as raised by DataFusion, not their subclasses.
    """

    translated: Callable[[BaseException], PennonError]
    others: tuple[type[BaseException], ...] = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or kind is None:
            return
        if kind in _RAISED or kind in self.others or kind.__name__ == _PANIC:
            raise self.translated(error) from error
