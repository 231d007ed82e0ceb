"""A filter over the namespace's columns, rewritten for one leaf.

NULL rule: a column that the leaf lacks has its initial default in every row, or NULL, here as in
the rows that are read.
A column that the leaf stores in a narrower type is promoted before it is compared, so that a
literal of the wider type never overflows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.leaf.schema.promotion import stream_type
from pennon.predicate.column_references import replaced_references
from pennon.predicate.dialect import DataFusion, read_condition
from pennon.predicate.values.literals import to_expression
from pennon.predicate.values.time_units import UNIT_NAMES
from pennon.spec.initial_default import initial_default
from pennon.spec.schema import children_of

if TYPE_CHECKING:
    from pennon.leaf.schema.reconciliation import FieldMatch, LeafMatching

__all__ = ["arrow_cast", "lacking", "leaf_filter"]

_TYPE_NAMES = {
    pa.bool_(): "Boolean",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.utf8(): "Utf8",
    pa.binary(): "Binary",
    pa.date32(): "Date32",
    pa.date64(): "Date64",
}


def leaf_filter(sql: str, matching: LeafMatching, leaf: str) -> str | None:
    """Rewrite a filter for the names and types that a leaf has.

    Args:
        sql: A condition in the DataFusion dialect, in the namespace's names.
        matching: Where the leaf has the namespace's columns.
        leaf: The leaf's name for errors.

    Returns:
        The condition in the leaf's names; None when no row can satisfy it.

    Raises:
        LeafTypeMismatch: A column that the filter names has a type that does not promote.
    """
    tree = read_condition(sql)
    rewritten = replaced_references(tree, lambda path: _reference(path, matching, leaf))
    is_never = isinstance(rewritten, exp.Null) or (
        isinstance(rewritten, exp.Boolean) and not rewritten.this
    )
    return None if is_never else rewritten.sql(dialect=DataFusion)


def _reference(path: tuple[str, ...], matching: LeafMatching, leaf: str) -> exp.Expression:
    column = matching.by_name.get(path[0]) or pa.field(path[0], pa.null())
    if pa.types.is_null(column.type):  # not of the namespace: the leaf's own name, as it stands
        named = next((field for field in matching.stored if field.name == path[0]), None)
        return exp.Null() if named is None else _column(path)
    match: FieldMatch | None = matching.of([column], leaf)[0]
    value = initial_default(column) if match is None or match.stored is None else None
    referenced, names = column, []
    for depth, name in enumerate(path):
        if depth:
            inner = [child for child in children_of(referenced.type) if child.name == name]
            if not inner:
                return exp.Null()
            value = None if value is None else value[referenced.type.get_field_index(name)]
            referenced = inner[0]
            match = None if match is None else _child(match, referenced)
        if match is None or match.stored is None:
            match = None
        else:
            names.append(match.stored.name)
    if match is None or match.stored is None:
        return lacking(referenced, value)
    reference = _column(tuple(names))
    stored, target = stream_type(match.stored.arrow.type), stream_type(referenced.type)
    return reference if match.children or stored == target else arrow_cast(reference, target)


def lacking(column: pa.Field, value: pa.Scalar | None) -> exp.Expression:
    """Write what a leaf without a column, or a field of it, has there: its default, or NULL."""
    return arrow_cast(exp.Null() if value is None else _constant(value), column.type)


def _child(match: FieldMatch, target: pa.Field) -> FieldMatch | None:
    return next((child for child in match.children if child.expected is target), None) or next(
        (child for child in match.children if child.expected.name == target.name), None
    )


def _column(path: tuple[str, ...]) -> exp.Expression:
    first, *rest = (exp.to_identifier(name, quoted=True) for name in path)
    reference: exp.Expression = exp.Column(this=first)
    for name in rest:
        reference = exp.Dot(this=reference, expression=name)
    return reference


def _constant(value: pa.Scalar) -> exp.Expression:
    """Write a value of any type as DataFusion evaluates it, nested ones by its constructors."""
    data_type = value.type
    if not value.is_valid:
        return exp.Null()
    if pa.types.is_struct(data_type):
        parts: list[exp.Expression] = []
        for at, child in enumerate(data_type):
            parts += [exp.Literal.string(child.name), arrow_cast(_constant(value[at]), child.type)]
        return exp.Anonymous(this="named_struct", expressions=parts)
    if pa.types.is_map(data_type):
        entries = value.values
        sides = [_array(entries.field(at)) for at in range(2)]
        return exp.Anonymous(this="map", expressions=sides)
    if hasattr(data_type, "value_field"):
        return _array(value.values)
    return to_expression(value)


def _array(values: pa.Array) -> exp.Expression:
    parts = [arrow_cast(_constant(value), values.type) for value in values]
    return exp.Anonymous(this="make_array", expressions=parts)


def arrow_cast(value: exp.Expression, data_type: pa.DataType) -> exp.Expression:
    """Cast a value to the plain form of a type; a nested type leaves it as it is."""
    name = _type_name(stream_type(data_type))
    if name is None:
        return value
    return exp.Anonymous(this="arrow_cast", expressions=[value, exp.Literal.string(name)])


def _type_name(data_type: pa.DataType) -> str | None:
    """The type as DataFusion's ``arrow_cast`` spells it; None for a nested one."""
    if pa.types.is_integer(data_type):
        return str(data_type).replace("uint", "UInt").replace("int", "Int")
    if pa.types.is_decimal(data_type):
        return f"Decimal{data_type.bit_width}({data_type.precision}, {data_type.scale})"
    if pa.types.is_timestamp(data_type):
        zone = f'Some("{data_type.tz}")' if data_type.tz else "None"
        return f"Timestamp({UNIT_NAMES[data_type.unit]}, {zone})"
    if pa.types.is_time(data_type):
        return f"Time{data_type.bit_width}({UNIT_NAMES[data_type.unit]})"
    return _TYPE_NAMES.get(data_type)
