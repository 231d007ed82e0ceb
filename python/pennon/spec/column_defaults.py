"""The value that older rows have in a column that was added with a DEFAULT.

It stands as JSON in the column's metadata under ``pennon:initial_default`` and never changes but
for the column's type; what later rows get by default is another key, Spark's ``CURRENT_DEFAULT``.
A leaf that has the column states its own values: the default is for leaves that lack it. Other
readers know nothing of it and see NULL there.

| type | JSON |
|---|---|
| boolean, integer, text | as JSON has them |
| float | a number, or ``"NaN"``, ``"Infinity"``, ``"-Infinity"`` |
| decimal | its digits as text |
| binary | hexadecimal text |
| date, timestamp | days, or the type's unit, since the epoch |
| struct | an object by name; list: an array; map: ``{"keys": […], "values": […]}`` |
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from pennon.errors import InvalidArrowJson
from pennon.spec.arrow_json import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "INITIAL_DEFAULT",
    "initial_default",
    "value_from_json",
    "value_to_json",
    "with_initial_default",
]

INITIAL_DEFAULT: Final = b"pennon:initial_default"


def initial_default(column: pa.Field) -> pa.Scalar | None:
    """Give what rows of leaves without the column have there; None for NULL.

    Raises:
        InvalidArrowJson: The kept text is no value of the column's type.

    Example:
        >>> initial_default(with_initial_default(pa.field("n", pa.int32()), pa.scalar(5)))
        <pyarrow.Int32Scalar: 5>
    """
    text = (column.metadata or {}).get(INITIAL_DEFAULT)
    if text is None:
        return None
    try:
        return pa.scalar(_from_json(json.loads(text), column.type), column.type)
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise InvalidArrowJson(
            where=f"the initial default of column '{column.name}'",
            actual=text.decode(errors="replace"),
            expected=f"a value of {column.type}",
        ) from error


def with_initial_default(column: pa.Field, value: pa.Scalar | None) -> pa.Field:
    """Keep a value in a column's metadata, in the column's type; None or NULL takes it away."""
    metadata = {
        key: entry for key, entry in (column.metadata or {}).items() if key != INITIAL_DEFAULT
    }
    if value is not None and value.is_valid:
        kept = value if value.type.equals(column.type) else value.cast(column.type)
        metadata[INITIAL_DEFAULT] = text_of(value_to_json(kept)).encode()
    return column.with_metadata(metadata or None)


def value_from_json(written: object, column: pa.Field) -> pa.Scalar:
    """Read a value in the form that is kept; it raises what ``initial_default`` lists."""
    kept = column.with_metadata({INITIAL_DEFAULT: text_of(written).encode()})
    value = initial_default(kept)
    return pa.scalar(None, column.type) if value is None else value


def value_to_json(value: pa.Scalar) -> object:
    """Write a value in the form that is kept; None for NULL."""
    data_type = value.type
    if not value.is_valid:
        return None
    if pa.types.is_dictionary(data_type):
        return value_to_json(value.cast(data_type.value_type))
    if pa.types.is_struct(data_type):
        return {child.name: value_to_json(value[at]) for at, child in enumerate(data_type)}
    if pa.types.is_map(data_type):
        entries = value.values
        return {
            "keys": [value_to_json(entry) for entry in entries.field(0)],
            "values": [value_to_json(entry) for entry in entries.field(1)],
        }
    if hasattr(data_type, "value_field"):
        return [value_to_json(element) for element in value.values]
    if pa.types.is_floating(data_type):
        number = float(value.as_py())
        return number if number - number == 0 else _SPELLED.get(number, "NaN")
    if pa.types.is_decimal(data_type):
        return f"{value.as_py():f}"
    if pa.types.is_temporal(data_type):
        return int(value.cast(_storage(data_type)).as_py())
    plain = value.as_py()
    return plain.hex() if isinstance(plain, bytes) else plain


_SPELLED: Final[Mapping[float, str]] = {float("inf"): "Infinity", float("-inf"): "-Infinity"}


def _from_json(written: object, data_type: pa.DataType) -> object:
    """Give what ``pa.scalar`` makes a value of the type from."""
    if written is None:
        return None
    if pa.types.is_dictionary(data_type):
        return _from_json(written, data_type.value_type)
    if pa.types.is_struct(data_type):
        fields = cast("dict[str, object]", written)
        return {child.name: _from_json(fields.get(child.name), child.type) for child in data_type}
    if pa.types.is_map(data_type):
        entries = cast("dict[str, list[object]]", written)
        keys = [_from_json(key, data_type.key_type) for key in entries["keys"]]
        values = [_from_json(value, data_type.item_type) for value in entries["values"]]
        return list(zip(keys, values, strict=True))
    if hasattr(data_type, "value_field"):
        return [
            _from_json(element, data_type.value_type) for element in cast("list[object]", written)
        ]
    if pa.types.is_floating(data_type):
        return float(cast("float", written))
    if pa.types.is_decimal(data_type):
        return Decimal(cast("str", written))
    if pa.types.is_temporal(data_type):
        return pa.scalar(cast("int", written), _storage(data_type)).cast(data_type)
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return bytes.fromhex(cast("str", written))
    return written


def _storage(data_type: pa.DataType) -> pa.DataType:
    return pa.int32() if data_type.bit_width == pa.int32().bit_width else pa.int64()
