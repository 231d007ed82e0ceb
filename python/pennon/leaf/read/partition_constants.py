"""The constant columns of a leaf, as text within a split.

The manifest knows the partition tuple and the spec version of a leaf; a task knows only what it is
told. Each value is a text that keeps it exactly: numbers of days, microseconds and bits of floats
as numbers, bytes in hexadecimal.

NULL rules: NULL is null; what was not written is NULL, and so is a tuple without any field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["constant_of", "constant_texts"]

_LONG_BITS: Final = 64


def constant_texts(columns: Mapping[str, pa.Array | Mapping[str, pa.Array]]) -> pa.Array:
    """Write what each leaf has in its columns as a JSON object.

    Args:
        columns: Arrays of the same length, and structs of such.

    Example:
        >>> days = pa.array([3, None], pa.date32())
        >>> constant_texts({"_partition": {"day": days}}).to_pylist()
        ['{"_partition": {"day": "3"}}', '{"_partition": {"day": null}}']
    """
    names = list(columns)
    texts = [_column_texts(column) for column in columns.values()]
    rows = (json.dumps(dict(zip(names, row, strict=True))) for row in zip(*texts, strict=True))
    return pa.array(rows, pa.utf8())


def constant_of(column: pa.Field, constants: Mapping[str, object]) -> pa.Scalar:
    """Read a value back.

    Args:
        column: A column, or a struct of some of those that were written.
        constants: What ``constant_texts`` wrote for one leaf.

    Example:
        >>> constant_of(pa.field("_spec_version", pa.int32()), {"_spec_version": "2"}).as_py()
        2
    """
    return _array(column, constants)[0]


def _array(column: pa.Field, constants: Mapping[str, object]) -> pa.Array:
    stored = constants.get(column.name)
    if not pa.types.is_struct(column.type):
        return _value(stored if isinstance(stored, str) else None, column.type)
    if not isinstance(stored, Mapping) or not column.type.num_fields:
        return pa.nulls(1, column.type)
    children = [_array(child, stored) for child in column.type]
    return pa.StructArray.from_arrays(children, fields=list(column.type))


def _column_texts(column: pa.Array | Mapping[str, pa.Array]) -> Sequence[object]:
    if isinstance(column, pa.Array):
        return _texts(column)
    texts = [_texts(child) for child in column.values()]
    return [dict(zip(column, row, strict=True)) for row in zip(*texts, strict=True)]


def _texts(values: pa.Array) -> list[str | None]:
    data_type = values.type
    if pa.types.is_binary(data_type):
        return [None if value is None else value.hex() for value in values.to_pylist()]
    bits = _bits(data_type)
    plain = values if bits is None else values.view(bits)
    return plain.cast(pa.utf8()).to_pylist()


def _value(text: str | None, data_type: pa.DataType) -> pa.Array:
    if text is None:
        return pa.nulls(1, data_type)
    if pa.types.is_binary(data_type):
        return pa.array([bytes.fromhex(text)], data_type)
    bits = _bits(data_type)
    if bits is not None:
        return pa.array([int(text)], bits).view(data_type)
    return pa.array([text], pa.utf8()).cast(data_type)


def _bits(data_type: pa.DataType) -> pa.DataType | None:
    """Give the integers whose bits a type has; None where its own text is exact."""
    if pa.types.is_temporal(data_type) or pa.types.is_floating(data_type):
        return pa.int64() if data_type.bit_width == _LONG_BITS else pa.int32()
    return None
