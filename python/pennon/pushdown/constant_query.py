"""Rows that are known when a query is planned, as a query over literals."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.dialect import DataFusion
from pennon.predicate.typed import cast
from pennon.predicate.values.literals import to_expression
from pennon.pushdown.query import FragmentQuery

__all__ = ["constant_query"]

_TABLE: Final = "r0"
_IS_ROW: Final = "is_row"


def constant_query(query: FragmentQuery, rows: pa.Table) -> FragmentQuery | None:
    """Write the rows of a query as one that reads no relation.

    Args:
        query: The query.
        rows: What it gives.

    Returns:
        The same columns; None where a value has no literal.
    """
    schema = query.schema
    if any(pa.types.is_binary(kind) for kind in schema.types):
        return None
    names = schema.names
    columns = [
        exp.alias_(cast(exp.column(name, quoted=True), kind), name, quoted=True)
        for name, kind in zip(names, schema.types, strict=True)
    ]
    # Where there is no other row, one of NULLs gives the types and is left out afterwards.
    values = [[exp.false(), *(cast(exp.Null(), kind) for kind in schema.types)]]
    for row in range(rows.num_rows):
        cells = [_literal(rows[at][row], kind) for at, kind in enumerate(schema.types)]
        values.append([exp.true(), *cells])
    table = exp.Values(
        expressions=[exp.Tuple(expressions=value) for value in values],
        alias=exp.TableAlias(
            this=exp.to_identifier(_TABLE),
            columns=[exp.to_identifier(name, quoted=True) for name in (_IS_ROW, *names)],
        ),
    )
    sql = exp.select(*columns).from_(table).where(exp.column(_IS_ROW, quoted=True))
    return FragmentQuery(sql.sql(dialect=DataFusion), (), query.columns, schema)


def _literal(value: pa.Scalar, data_type: pa.DataType) -> exp.Expr:
    return cast(to_expression(value) if value.is_valid else exp.Null(), data_type)
