"""Prepares source columns for transforms: one plain array each, times in UTC.

NULL rules: numbers taken from an array stand for NULL rows too and have no meaning there; the
caller masks them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pennon.predicate.values.time_units import (
    MICROS_PER_DAY,
    MICROS_PER_UNIT,
    MILLIS_PER_DAY,
    NANOS_PER_MICRO,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
