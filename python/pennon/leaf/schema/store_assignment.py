"""Store assignment: which types a column takes without an explicit CAST.

The rules are those of an INSERT in ANSI Spark, and two are narrower, as in other libraries for
tables in Python: nothing but text becomes text by itself, and a value is refused where it would
lose a part. Arrow's own casts go further: they read numbers and dates from text, take bytes for
text, and integers for days and microseconds.
"""

from __future__ import annotations

import pyarrow as pa

from pennon.errors import WriteTypeMismatch
from pennon.predicate.values.arrow_kinds import is_binary, is_list, is_number, is_text

__all__ = ["check_stored", "stored_as"]

# The most digits of an unsigned integer of 64 bits.
_INTEGER_DIGITS = 20


def check_stored(given: pa.DataType, column: pa.Field, table: str) -> None:
    """Check that a column takes values of a type, those that fit.

    Args:
        given: The type of the values.
        column: The column.
        table: The table's name, for the error.

    Raises:
        WriteTypeMismatch: It does not, at any depth.

    Example:
        >>> check_stored(pa.int64(), pa.field("price", pa.decimal128(10, 2)), "shop.orders")
    """
    refused = _refused_types(given, column.type)
    if refused is not None:
        stated, expected = refused
        raise WriteTypeMismatch(
            actual=given,
            column=column.name,
            table=table,
            expected=column.type,
            why=f"{stated} is stored as {expected} by an explicit CAST alone",
        )


def _refused_types(
    given: pa.DataType, column: pa.DataType
) -> tuple[pa.DataType, pa.DataType] | None:
    """Find two types, at any depth, of which the first is not stored as the second."""
    given, column = _plain(given), _plain(column)
    if given.equals(column) or pa.types.is_null(given):
        return None
    kind, expected = _kind(given), _kind(column)
    if kind != expected and (kind, expected) not in {("date", "timestamp"), ("timestamp", "date")}:
        return given, column
    if pa.types.is_struct(given):
        own = {child.name: child.type for child in column}
        pairs = [(child.type, own[child.name]) for child in given if child.name in own]
    else:
        pairs = list(zip(_value_types(given), _value_types(column), strict=True))
    for child, other in pairs:
        if pa.types.is_timestamp(child) and pa.types.is_date(other):
            return child, other  # below a column no one sees that a time of the day is cut off
        refused = _refused_types(child, other)
        if refused is not None:
            return refused
    return None


def stored_as(array: pa.Array, column: pa.DataType) -> pa.Array:
    """Convert values to the type of a column that takes them.

    Raises:
        pa.ArrowInvalid: A value does not fit.
        pa.ArrowNotImplementedError: Arrow has no such conversion.

    Example:
        >>> stored_as(pa.array([7]), pa.decimal128(3, 2)).to_pylist()
        [Decimal('7.00')]
    """
    if pa.types.is_integer(array.type) and pa.types.is_decimal(column):
        # Arrow asks for a precision in which every integer has room, not only those that are there.
        array = array.cast(pa.decimal128(_INTEGER_DIGITS, 0))
    if pa.types.is_timestamp(array.type) and pa.types.is_date(column):
        moments = array.cast(pa.timestamp(array.type.unit))
        if not moments.cast(pa.date32()).cast(moments.type).equals(moments):
            message = "a time that is not midnight in UTC is no date"
            raise pa.ArrowInvalid(message)
    return array.cast(column)


def _plain(data_type: pa.DataType) -> pa.DataType:
    """Give the type of the values themselves: of a dictionary, of an extension type."""
    while True:
        if pa.types.is_dictionary(data_type):
            data_type = data_type.value_type
        elif isinstance(data_type, pa.BaseExtensionType):
            data_type = data_type.storage_type
        else:
            return data_type


def _kind(data_type: pa.DataType) -> str:
    """Name what the values of a type are, whatever their width, unit or offsets."""
    types = pa.types
    kinds = {
        "number": is_number,
        "text": is_text,
        "binary": is_binary,
        "boolean": types.is_boolean,
        "date": types.is_date,
        "timestamp": types.is_timestamp,
        "time": types.is_time,
        "duration": types.is_duration,
        "struct": types.is_struct,
        "map": types.is_map,
        "list": is_list,
    }
    return next((kind for kind, holds in kinds.items() if holds(data_type)), str(data_type))


def _value_types(data_type: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(data_type):
        return [data_type.key_type, data_type.item_type]
    return [data_type.value_type] if is_list(data_type) else []
