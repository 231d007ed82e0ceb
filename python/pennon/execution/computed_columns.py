"""Columns computed from batches in memory by Spark's expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.errors import PredicateNotEvaluable, UnknownColumn
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions import typed_expression
from pennon.predicate.parse import parse_with_lists
from pennon.predicate.predicate_text import shortened_predicate
from pennon.predicate.semantics import Declined, Semantics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ComputedColumns"]

_ROWS = "rows"


class ComputedColumns:
    """Expressions over the columns of a table, as DataFusion computes them.

    Args:
        texts: Spark SQL expressions.
        schema: The columns that they name; timestamps are those of a session in UTC.
        table: The table, for errors.

    Raises:
        PredicateNotEvaluable: It is not known that DataFusion computes one of them as Spark does.
        PredicateSyntaxError: One is no expression.
        UnknownColumn: One names another column.
    """

    def __init__(self, texts: Sequence[str], schema: pa.Schema, table: str) -> None:
        columns: Mapping[str, pa.DataType] = dict(zip(schema.names, schema.types, strict=True))
        by_lower: dict[str, list[str]] = {}
        for name in columns:
            by_lower.setdefault(name.lower(), []).append(name)
        trees = []
        types = []
        named_in_lower: set[str] = set()
        for text in texts:
            tree = _resolved(text, by_lower)
            references = tree.find_all(exp.Column)
            named_in_lower.update(part.name.lower() for one in references for part in one.parts)
            try:
                typed = typed_expression(tree, columns, Semantics(is_utc=True))
            except Declined as declined:
                why = f"it is not known that DataFusion computes it as Spark does ({declined})"
                raise PredicateNotEvaluable(
                    predicate=shortened_predicate(text), namespace=table, reason=why
                ) from None
            trees.append(typed.tree.sql(dialect=DataFusion))
            types.append(typed.type)
        self.types = tuple(types)
        # A row has to be there even where no expression names a column.
        self._read = [name for name in columns if name.lower() in named_in_lower] or [*columns][:1]
        named = ", ".join(f"{tree} AS `c{at}`" for at, tree in enumerate(trees))
        self._query = f"SELECT {named} FROM {_ROWS}"  # noqa: S608 - trees that were read and written
        self._is_empty = not trees

    def of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Compute the columns of some rows, in the rows' order.

        Raises:
            FragmentOverflow: A value does not fit its type.
            FragmentDivision: A number is divided by zero.
            FragmentText: A text that is cast is no value of its type.
        """
        if self._is_empty or not rows.num_rows:
            return [pa.nulls(rows.num_rows, type_) for type_ in self.types]
        # A quarter of a second to import, which other statements need not pay.
        from datafusion import SessionConfig, SessionContext  # noqa: PLC0415

        from pennon.execution.engine_failures import engine_failures  # noqa: PLC0415

        options = {"datafusion.execution.target_partitions": "1"}
        context = SessionContext(SessionConfig(options))
        context.register_record_batches(_ROWS, [[_plain(rows.select(self._read))]])
        with engine_failures():
            computed = pa.Table.from_batches(
                [batch.to_pyarrow() for batch in context.sql(self._query).execute_stream()]
            )
        return [column.combine_chunks() for column in computed.columns]


def _resolved(text: str, names: Mapping[str, Sequence[str]]) -> exp.Expr:
    """Read an expression, with the columns' own names where it has them in other letters."""
    tree = parse_with_lists(text)
    for column in tree.find_all(exp.Column):
        if column.table:
            continue  # a field of a struct
        alike = names.get(column.name.lower(), ())
        candidates = [name for name in alike if name == column.name] or alike
        if len(candidates) != 1:
            known = ", ".join(name for several in names.values() for name in several)
            raise UnknownColumn(column=column.name, columns=known)
        column.set("this", exp.to_identifier(candidates[0], quoted=True))
    return tree


def _plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema(
        [pa.field(column.name, column.type, column.nullable) for column in rows.schema]
    )
    return pa.RecordBatch.from_arrays(rows.columns, schema=schema)
