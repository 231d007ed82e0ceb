"""Which stored types promote to which: every value keeps its meaning and stays distinct.

NULL rule: NULL stays NULL in every type, so a leaf's column of type null promotes to anything.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["is_promotable", "stream_schema", "stream_type"]

_FLOAT_DIGITS = {16: 11, 32: 24, 64: 53}
_DECIMAL_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_UNITS = ("s", "ms", "us", "ns")


def is_promotable(stored: pa.DataType, expected: pa.DataType) -> bool:
    """Whether values stored as ``stored`` can be read as ``expected`` without loss.

    Example:
        >>> is_promotable(pa.int32(), pa.int64()), is_promotable(pa.int64(), pa.int32())
        (True, False)
    """
    stored, expected = stream_type(stored), stream_type(expected)
    if stored.equals(expected) or pa.types.is_null(stored):
        return True
    if pa.types.is_integer(stored):
        return _integer_promotes(stored, expected)
    if pa.types.is_floating(stored):
        return bool(pa.types.is_floating(expected) and stored.bit_width <= expected.bit_width)
    if pa.types.is_decimal(stored):
        return bool(
            pa.types.is_decimal(expected)
            and expected.scale >= stored.scale
            and expected.precision - expected.scale >= stored.precision - stored.scale
        )
    if pa.types.is_timestamp(expected):
        return _promotes_to_timestamp(stored, expected)
    if pa.types.is_time(stored) and pa.types.is_time(expected):
        return _UNITS.index(stored.unit) <= _UNITS.index(expected.unit)
    if pa.types.is_fixed_size_binary(stored):
        return bool(expected.equals(pa.binary()))
    return bool(pa.types.is_date(stored) and pa.types.is_date(expected))


def _integer_promotes(stored: pa.DataType, expected: pa.DataType) -> bool:
    is_signed = pa.types.is_signed_integer(stored)
    digits = stored.bit_width - (1 if is_signed else 0)
    if pa.types.is_integer(expected):
        if not pa.types.is_signed_integer(expected):
            return bool(not is_signed and digits <= expected.bit_width)
        return bool(digits <= expected.bit_width - 1)
    if pa.types.is_floating(expected):
        return bool(digits <= _FLOAT_DIGITS[expected.bit_width])
    if pa.types.is_decimal(expected):
        return bool(expected.precision - expected.scale >= _DECIMAL_DIGITS[stored.bit_width])
    return False


def _promotes_to_timestamp(stored: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_date(stored):
        return expected.tz is None
    if not pa.types.is_timestamp(stored):
        return False
    # a finer stored unit is read as long as no value loses its last digits: the cast is checked
    return (stored.tz is None) == (expected.tz is None)


def stream_type(data_type: pa.DataType) -> pa.DataType:
    """Give the plain form of a type: 32-bit offsets, no views, no dictionaries, variable lists.

    Example:
        >>> stream_type(pa.list_(pa.large_utf8(), 3))
        ListType(list<item: string>)
    """
    if pa.types.is_struct(data_type):
        return pa.struct([_stream_field(child) for child in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(
            _stream_field(data_type.key_field),
            _stream_field(data_type.item_field),
            keys_sorted=data_type.keys_sorted,
        )
    if pa.types.is_dictionary(data_type):
        return stream_type(data_type.value_type)
    if hasattr(data_type, "value_field"):
        return pa.list_(_stream_field(data_type.value_field))
    if pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return pa.utf8()
    if pa.types.is_large_binary(data_type) or pa.types.is_binary_view(data_type):
        return pa.binary()
    return data_type


def stream_schema(schema: pa.Schema) -> pa.Schema:
    """Give the schema of a scan's stream: the requested one with every type in its plain form."""
    return pa.schema([_stream_field(column) for column in schema], metadata=schema.metadata)


def _stream_field(column: pa.Field) -> pa.Field:
    return column.with_type(stream_type(column.type))
