"""The units of times: of Arrow's types, by name, and the moment from which they count."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

import pyarrow as pa


def is_text(data_type: pa.DataType) -> bool:
    """Whether values are strings."""
    return bool(
        pa.types.is_string(data_type)
        or pa.types.is_large_string(data_type)
        or pa.types.is_string_view(data_type)
    )


def is_binary(data_type: pa.DataType) -> bool:
    """Whether values are bytes, of fixed or any length."""
    return bool(
        pa.types.is_binary(data_type)
        or pa.types.is_large_binary(data_type)
        or pa.types.is_binary_view(data_type)
        or pa.types.is_fixed_size_binary(data_type)
    )


def is_number(data_type: pa.DataType) -> bool:
    """Whether values are integers, floats or decimals."""
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_decimal(data_type)
    )


def is_moment(data_type: pa.DataType) -> bool:
    """Whether values are dates or timestamps."""
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))


def is_list(data_type: pa.DataType) -> bool:
    """Whether values are lists, of fixed or any length."""
    return bool(
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
        or pa.types.is_list_view(data_type)
        or pa.types.is_large_list_view(data_type)
    )


def storage_type(data_type: pa.DataType) -> pa.DataType:
    """Give the integer type in which values of integers, dates, times or timestamps are kept."""
    if pa.types.is_integer(data_type):
        return data_type
    return pa.int32() if data_type.bit_width == pa.int32().bit_width else pa.int64()


def stored_integer(scalar: pa.Scalar) -> int:
    """Give the integer that stands for an integer, date, time or timestamp."""
    return int(scalar.as_py() if pa.types.is_integer(scalar.type) else scalar.value)


def of_stored_integer(value: int, data_type: pa.DataType) -> pa.Scalar | None:
    """Give the scalar that an integer stands for; None where it does not fit the type."""
    storage = storage_type(data_type)
    bits = storage.bit_width
    is_unsigned = pa.types.is_unsigned_integer(storage)
    low, high = (0, 1 << bits) if is_unsigned else (-(1 << bits - 1), 1 << bits - 1)
    return pa.scalar(value, storage).cast(data_type) if low <= value < high else None


EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
"""Timestamps count from it, dates from its day."""

SECONDS_PER_HOUR: Final = 3_600
SECONDS_PER_DAY: Final = 24 * SECONDS_PER_HOUR
MILLIS_PER_DAY: Final = 1_000 * SECONDS_PER_DAY
"""The step of ``date64``."""
MICROS_PER_MILLI: Final = 1_000
MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_MINUTE: Final = 60 * MICROS_PER_SECOND
MICROS_PER_HOUR: Final = SECONDS_PER_HOUR * MICROS_PER_SECOND
MICROS_PER_DAY: Final = SECONDS_PER_DAY * MICROS_PER_SECOND
NANOS_PER_MICRO: Final = 1_000
NANOS_PER_DAY: Final = MICROS_PER_DAY * NANOS_PER_MICRO
MICROS_BY_NAME: Final[Mapping[str, int]] = {
    "MICROSECOND": 1,
    "MILLISECOND": MICROS_PER_MILLI,
    "SECOND": MICROS_PER_SECOND,
    "MINUTE": MICROS_PER_MINUTE,
    "HOUR": MICROS_PER_HOUR,
    "DAY": MICROS_PER_DAY,
}
"""How many microseconds the units are that SQL names, but those whose lengths differ."""

UNITS_PER_SECOND: Final[Mapping[str, int]] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of a unit of Arrow are a second."""
MICROS_PER_UNIT: Final[Mapping[str, int]] = {"s": 10**6, "ms": 10**3, "us": 1}
"""How many microseconds a unit is; nanoseconds are no whole ones."""
NANOS_PER_UNIT: Final[Mapping[str, int]] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""How many nanoseconds a unit is."""
UNIT_NAMES: Final[Mapping[str, str]] = {
    "s": "Second",
    "ms": "Millisecond",
    "us": "Microsecond",
    "ns": "Nanosecond",
}
"""What DataFusion calls a unit."""
