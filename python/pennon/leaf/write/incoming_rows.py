"""Casts the rows of a query to exactly the namespace's schema, or raises an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching import PerObject
from pennon.errors import (
    NotNullViolated,
    TableWithoutColumns,
    WriteColumnTwice,
    WriteColumnUnknown,
    WriteTypeMismatch,
)
from pennon.leaf.schema.array_conversion import relabelled
from pennon.leaf.schema.list_views import without_views
from pennon.leaf.schema.plain_field import plain_schema
from pennon.leaf.schema.store_assignment import check_stored, stored_as
from pennon.spec.schema import children_of, with_children

if TYPE_CHECKING:
    from pennon.spec.schema import NamespaceSchema

__all__ = ["conform"]


def conform(batch: pa.RecordBatch, schema: NamespaceSchema, table: str) -> pa.RecordBatch:
    """Bring rows into the namespace's columns, order and types.

    A column that is missing is NULL in every row. Columns match by name, exactly or as the only
    one but for case; which types they take says ``leaf.schema.store_assignment``.

    Args:
        batch: The rows to write.
        schema: The namespace schema.
        table: The table's name for errors.

    Raises:
        WriteColumnTwice: Two columns of the rows are one of the namespace.
        WriteColumnUnknown: The rows have a column, or a nested field, that the namespace has not.
        WriteTypeMismatch: A value is of another kind than its column, or does not fit its type.
        TableWithoutColumns: There are rows, and no column.
        NotNullViolated: A NOT NULL column, nested ones too, has a NULL.

    Spec: "Schema".
    """
    given: dict[str, pa.Array] = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        expected = schema.field_by_path([name])
        if expected is None:
            raise WriteColumnUnknown(
                column=name, table=table, columns=", ".join(schema.arrow.names)
            )
        if expected.field.name in given:
            raise WriteColumnTwice(column=name, table=table)
        given[expected.field.name] = without_views(array)
    columns = []
    stored, required = _STORED.of(schema.arrow)
    for at, field in enumerate(stored):
        values = given.get(field.name)
        if values is not None and not values.type.equals(field.type):
            _check_fields(values.type, field.type, str(field.name), table)
        column = (
            pa.nulls(batch.num_rows, field.type) if values is None else _cast(values, field, table)
        )
        null_path = _null_path(column, field) if at in required else None
        if null_path is not None:
            raise NotNullViolated(column=null_path, table=table)
        columns.append(relabelled(column, field))
    if not columns:
        if batch.num_rows:
            raise TableWithoutColumns(table=table, count=batch.num_rows)
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=stored)


def _stored_columns(columns: pa.Schema) -> tuple[pa.Schema, frozenset[int]]:
    """Give columns as leaves store them, and where those are that have a NOT NULL."""
    stored = plain_schema(columns)
    required = (
        at for at, field in enumerate(stored) if not field.nullable or _has_required(field.type)
    )
    return stored, frozenset(required)


_STORED: Final[PerObject[pa.Schema, tuple[pa.Schema, frozenset[int]]]] = PerObject(_stored_columns)


def _check_fields(given: pa.DataType, expected: pa.DataType, path: str, table: str) -> None:
    """Refuse fields that the column has not, which Arrow's cast would leave out in silence."""
    if pa.types.is_struct(given) and pa.types.is_struct(expected):
        expected_names = dict.fromkeys(child.name for child in expected)
        for child in given:
            if child.name not in expected_names:
                raise WriteColumnUnknown(
                    column=f"{path}.{child.name}",
                    table=table,
                    columns=", ".join(f"{path}.{name}" for name in expected_names),
                )
            _check_fields(
                child.type, expected.field(child.name).type, f"{path}.{child.name}", table
            )
        return
    for child, own in zip(children_of(given), children_of(expected), strict=False):
        _check_fields(child.type, own.type, f"{path}.{own.name}", table)


def _cast(array: pa.Array, field: pa.Field, table: str) -> pa.Array:
    if array.type.equals(field.type):
        return array
    check_stored(array.type, field, table)
    try:
        return stored_as(array, _relaxed(field.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise WriteTypeMismatch(
            actual=array.type, column=field.name, table=table, expected=field.type, why=error
        ) from error


def _relaxed(data_type: pa.DataType) -> pa.DataType:
    """The type without its inner NOT NULLs, which Arrow would refuse without a name."""
    below = children_of(data_type)
    if pa.types.is_map(data_type):
        key, item = below
        return pa.map_(key, item.with_nullable(True), keys_sorted=data_type.keys_sorted)
    children = [child.with_type(_relaxed(child.type)).with_nullable(True) for child in below]
    return with_children(data_type, children)


def _null_path(array: pa.Array, field: pa.Field) -> str | None:
    """Name the NOT NULL field that has a NULL; None where all is well."""
    if not field.nullable and array.null_count:
        return str(field.name)
    if not _has_required(field.type):
        return None
    if pa.types.is_struct(field.type):
        valid = array.drop_null() if array.null_count else array
        below = [(pc.struct_field(valid, [child.name]), child) for child in field.type]
    elif pa.types.is_map(field.type):
        entries = array.drop_null()
        below = [(entries.keys, field.type.key_field), (entries.items, field.type.item_field)]
    else:
        below = [(pc.list_flatten(array), field.type.value_field)]
    for child_array, child in below:
        path = _null_path(child_array, child)
        if path is not None:
            return f"{field.name}.{path}"
    return None


def _has_required(data_type: pa.DataType) -> bool:
    below = children_of(data_type)
    if pa.types.is_map(data_type):  # Arrow itself keeps keys from being NULL
        below = below[1:]
    return any(not child.nullable or _has_required(child.type) for child in below)
