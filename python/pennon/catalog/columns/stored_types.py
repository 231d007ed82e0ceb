"""The types of new columns that come as an Arrow schema, as Lance stores them.

Lance stores texts and bytes without views and decimals of 128 bits or more, so a column of another
form of the same values becomes one of these. Polars gives its texts as views.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from lance.schema import LanceSchema

from pennon.errors import UnsupportedColumnType

__all__ = ["stored_schema"]

_OF_VIEWS: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.string_view(): pa.utf8(),
    pa.binary_view(): pa.binary(),
}


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Give the columns in the types in which Lance stores their values.

    Raises:
        UnsupportedColumnType: There is none for a column's type.

    Example:
        >>> stored_schema(pa.schema({"name": pa.string_view(), "price": pa.decimal32(5, 2)}))
        name: string
        price: decimal128(5, 2)
    """
    columns = [_stored(column) for column in schema]
    for column in columns:
        try:
            LanceSchema.from_pyarrow(pa.schema([column]))
        except ValueError as error:
            raise UnsupportedColumnType(
                column=column.name, type=str(column.type), target="Lance"
            ) from error
    return pa.schema(columns, metadata=schema.metadata)


def _stored(column: pa.Field) -> pa.Field:
    return column.with_type(_stored_type(column.type))


def _stored_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([_stored(child) for child in data_type])
    if pa.types.is_map(data_type):
        key, item = _stored(data_type.key_field), _stored(data_type.item_field)
        return pa.map_(key, item, keys_sorted=data_type.keys_sorted)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(_stored(data_type.value_field), data_type.list_size)
    if pa.types.is_large_list(data_type):
        return pa.large_list(_stored(data_type.value_field))
    if pa.types.is_list(data_type):
        return pa.list_(_stored(data_type.value_field))
    if pa.types.is_decimal32(data_type) or pa.types.is_decimal64(data_type):
        return pa.decimal128(data_type.precision, data_type.scale)
    return _OF_VIEWS.get(data_type, data_type)
