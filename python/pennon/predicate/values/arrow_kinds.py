"""Arrow types: which are text, binary, numbers, times or lists."""

from __future__ import annotations

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
