"""Changes of columns and properties in the form that ``catalog.ddl.alter`` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.columns.spark_types import arrow_type, spark_schema
from pennon.errors import ArgumentRefused, DefaultNotOfType
from pennon.predicate.values.literals import to_expression, type_named
from pennon.spec.column_names import column_path
from pennon.spec.initial_default import value_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["added", "altered", "property_changes", "renamed"]

_Change = dict[str, object]


def added(
    name: str,
    data_type: pa.DataType,
    *,
    nullable: bool,
    default: object,
    comment: str | None,
) -> _Change:
    """Describe a column that is added.

    Args:
        name: Its path, with dots; a name that has one itself in backquotes.
        data_type: Its type.
        nullable: Whether it may be NULL.
        default: Its value in rows that are there; None for NULL.
        comment: Its comment.

    Raises:
        DefaultNotOfType: The default is no value of the type.
        ArgumentRefused: The type is nested, which only Spark SQL writes a default of.
    """
    spark_type = _spark_type(name, data_type)
    change: _Change = {
        "change": "add_column",
        "column": column_path(name),
        "type": spark_type,
        "nullable": nullable,
        "comment": comment,
    }
    if default is not None:
        value = _default(name, data_type, arrow_type(spark_type, name), default)
        change["default"] = _spark_literal(value)
        change["initial"] = value_to_json(value)
    return change


def renamed(name: str, to: str) -> _Change:
    """Describe a column that gets another name."""
    return {"change": "rename_column", "column": column_path(name), "new_name": to}


def altered(
    name: str, data_type: pa.DataType | None, *, nullable: bool | None, comment: str | None
) -> Iterator[_Change]:
    """Describe what changes of a column.

    Raises:
        ArgumentRefused: Nothing does.
    """
    if data_type is None and nullable is None and comment is None:
        raise ArgumentRefused(
            function="alter_column",
            parameter="type",
            why="it is None, and so are nullable and comment",
            expected="one of them",
        )
    column = column_path(name)
    if data_type is not None:
        yield {"change": "update_type", "column": column, "type": _spark_type(name, data_type)}
    if nullable is not None:
        yield {"change": "update_nullability", "column": column, "nullable": nullable}
    if comment is not None:
        yield {"change": "update_comment", "column": column, "comment": comment}


def property_changes(properties: Mapping[str, str | None]) -> Iterator[_Change]:
    """Describe properties that are set, or with None removed."""
    for name, value in properties.items():
        if value is None:
            yield {"change": "remove_property", "property": name}
        else:
            yield {"change": "set_property", "property": name, "value": value}


def _default(
    name: str, data_type: pa.DataType, stored_type: pa.DataType, default: object
) -> pa.Scalar:
    """Give a default as the column stores it, which may have another unit or width."""
    if pa.types.is_nested(data_type):
        raise ArgumentRefused(
            function="add_column",
            parameter="default",
            why=f"column {name} is of type {data_type}, and a default is a single value",
            expected="none, and update the rows that are there",
        )
    try:
        return pa.scalar(default, data_type).cast(stored_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DefaultNotOfType(column=name, default=repr(default), type=data_type) from error


def _spark_literal(value: pa.Scalar) -> str:
    literal = to_expression(value)
    if pa.types.is_timestamp(value.type) and value.type.tz is None:
        # What DataFusion calls so has no zone; in Spark it has the session's.
        literal.set("to", type_named("TIMESTAMP_NTZ"))
    return literal.sql(dialect="spark")


def _spark_type(name: str, data_type: pa.DataType) -> object:
    struct = spark_schema(pa.schema([pa.field(name, data_type)]))
    fields = struct["fields"]
    return fields[0]["type"] if isinstance(fields, list) else None
