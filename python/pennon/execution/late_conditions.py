"""Conditions that DataFusion computes over rows that Lance has read.

Lance reads no CASE, which is how conditions are written that are an error for some rows; and of few
rows its filter takes longer than reading them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.leaf import LeafViews
from pennon.predicate.connectives import and_all, operands
from pennon.predicate.dialect import DataFusion, read_condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.execution.fragment import Relation

__all__ = ["LeafReading", "read_all_of", "read_by_lance"]


@dataclass(frozen=True, slots=True)
class LeafReading:
    """A way to read leaves that have one filter.

    Args:
        views: The columns, those that only the condition names last.
        residual: What Lance filters by; None for nothing.
        condition: What DataFusion computes afterwards; None for nothing.
    """

    views: LeafViews
    residual: str | None = None
    condition: exp.Expr | None = None


def read_all_of(residual: str, relation: Relation) -> LeafReading | None:
    """Leave a filter to DataFusion.

    Args:
        residual: The filter.
        relation: What is read.

    Returns:
        The way; None for a filter that names other than plain columns.
    """
    return _late([], [read_condition(residual)], relation)


def read_by_lance(residual: str | None, relation: Relation) -> LeafReading:
    """Leave to DataFusion what of a filter Lance does not read.

    Args:
        residual: The filter; None for none.
        relation: What is read.
    """
    way = None
    if residual is not None and "CASE" in residual:
        whole = read_condition(residual)
        parts = operands(whole, exp.And)
        late = [part for part in parts if part.find(exp.Case)]
        read = [part for part in parts if part not in late]
        way = _late(read, late, relation) if late else None
    views = LeafViews(relation.schema, relation.namespace_schema)
    return way or LeafReading(views, residual)


def _late(
    read: Sequence[exp.Expression], late: Sequence[exp.Expression], relation: Relation
) -> LeafReading | None:
    namespace_schema, schema_read = relation.namespace_schema, relation.schema
    columns = [column for part in late for column in part.find_all(exp.Column)]
    if any(part.find(exp.Dot) for part in late):
        return None
    if not all(_is_plain(column, namespace_schema) for column in columns):
        return None
    residual = str(and_all(read).sql(dialect=DataFusion)) if read else None
    for column in columns:
        column.set("this", exp.to_identifier(column.name, quoted=True))
    names = sorted({column.name for column in columns} - set(schema_read.names))
    schema = pa.schema([*schema_read, *map(namespace_schema.field, names)])
    return LeafReading(LeafViews(schema, namespace_schema), residual, and_all(late))


def _is_plain(column: exp.Column, namespace_schema: pa.Schema) -> bool:
    if len(column.parts) > 1 or column.name not in namespace_schema.names:
        return False
    data_type = namespace_schema.field(column.name).type
    return not pa.types.is_nested(data_type) and not pa.types.is_null(data_type)
