"""A parsed predicate and the full schema → a bound predicate in the columns' own types.

What is understood becomes comparisons with literals of the column's type, ranges for functions of
time, or constants; NOT moves into them. What is not understood stays as it is and prunes nothing.

NULL rules: a filter keeps a row only where the predicate is TRUE, so NULL counts as FALSE, and
the NOT of a comparison is its opposite, which is not true for NULL either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.planning.projection.bound_predicate import (
    FALSE,
    TRUE,
    BoundPredicate,
    Opaque,
    all_of,
    any_of,
    is_not_null,
    is_null,
)
from pennon.planning.projection.column_terms import ColumnTerms
from pennon.planning.projection.computed_condition import computed_condition
from pennon.planning.projection.contradictions import without_contradiction
from pennon.planning.projection.source_columns import column_path, resolve_column
from pennon.planning.projection.text_patterns import like, text_test
from pennon.predicate.comparison import Operator
from pennon.predicate.expressions.semantics import Semantics, is_utc_zone
from pennon.predicate.literals import literal_value

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPERATORS: dict[type[exp.Expression], Operator] = {
    exp.EQ: Operator.EQUAL,
    exp.NEQ: Operator.NOT_EQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.LESS_OR_EQUAL,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.GREATER_OR_EQUAL,
}


def bind(predicate: exp.Expression, schema: pa.Schema, time_zone: str = "UTC") -> BoundPredicate:
    """Bind a predicate to the columns of a table.

    Args:
        predicate: What ``parse_predicate`` gave.
        schema: The full schema of the table (never the projected columns), with field ids.
        time_zone: Spark's session time zone, in which zoned timestamps turn into dates and years.

    Returns:
        The predicate; TRUE exactly for the rows for which ``predicate`` is TRUE.

    Raises:
        UnknownColumn: The table has no column of that name.

    Example:
        >>> from pennon.predicate.parse import parse_predicate
        >>> schema = pa.schema([("a", pa.int32())])
        >>> bind(parse_predicate("a = 5.5"), schema)
        Constant(value=False)

    Spec: "Partition Pruning".
    """
    # What cannot be an error under ANSI means the same without it.
    semantics = Semantics(ansi=True, is_utc=is_utc_zone(time_zone))
    terms = ColumnTerms(schema, semantics.is_utc)
    return _Binder(schema, terms, semantics).bound(predicate, negated=False)


def bind_all(
    predicates: Sequence[exp.Expression], schema: pa.Schema, time_zone: str = "UTC"
) -> BoundPredicate:
    """Bind several predicates that all have to hold."""
    return without_contradiction(all_of([bind(each, schema, time_zone) for each in predicates]))


@dataclass(frozen=True, slots=True)
class _Binder:
    schema: pa.Schema
    terms: ColumnTerms
    semantics: Semantics

    def bound(self, node: exp.Expression, *, negated: bool) -> BoundPredicate:
        """Bind a node, or its NOT."""
        match node:
            case exp.Paren():
                return self.bound(node.this, negated=negated)
            case exp.Not():
                return self.bound(node.this, negated=not negated)
            case exp.And() | exp.Or():
                parts = [self.bound(part, negated=negated) for part in _operands(node)]
                if isinstance(node, exp.And) == negated:
                    return any_of(parts)
                return without_contradiction(all_of(parts))
            case exp.Boolean():
                return TRUE if bool(node.this) != negated else FALSE
            case exp.Null():
                return FALSE
        return self._atom(node, negated=negated) or self._opaque(node, negated=negated)

    def _atom(self, node: exp.Expression, *, negated: bool) -> BoundPredicate | None:
        match node:
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._null_safe(node, negated=negated != isinstance(node, exp.NullSafeNEQ))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._is_null(node.this, negated=negated)
            case exp.In():
                return self._in(node, negated=negated)
            case exp.Between():
                return self._between(node, negated=negated)
            case exp.Like() | exp.StartsWith() | exp.EndsWith() | exp.Contains():
                return self._text(node, negated=negated)
            case exp.Column() | exp.Dot():
                return self._flag(node, negated=negated)
        operator = _OPERATORS.get(type(node))
        if operator is None:
            return None
        return self._compared(operator.negated if negated else operator, node.this, node.expression)

    def _compared(
        self, operator: Operator, left: exp.Expression, right: exp.Expression
    ) -> BoundPredicate | None:
        literal = literal_value(right)
        if literal is not None:
            return self.terms.compare(operator, left, literal)
        literal = literal_value(left)
        return None if literal is None else self.terms.compare(operator.flipped, right, literal)

    def _null_safe(self, node: exp.Expression, *, negated: bool) -> BoundPredicate | None:
        left, right = node.this, node.expression
        if literal_value(left) is not None:
            left, right = right, left
        literal = literal_value(right)
        if literal is None:
            return None
        if not literal.is_valid:
            return self._is_null(left, negated=negated)
        # parse_predicate has written the NOT of it as an OR already
        return None if negated else self.terms.compare(Operator.EQUAL, left, literal)

    def _is_null(self, operand: exp.Expression, *, negated: bool) -> BoundPredicate | None:
        literal = literal_value(operand)
        if literal is not None:
            return FALSE if literal.is_valid != negated else TRUE
        path = column_path(operand)
        if path is None:
            return None
        column = resolve_column(path, self.schema)
        return is_not_null(column) if negated else is_null(column)

    def _in(self, node: exp.In, *, negated: bool) -> BoundPredicate | None:
        if node.args.get("query") or node.args.get("unnest") or not node.expressions:
            return None
        literals = [literal_value(item) for item in node.expressions]
        known = [literal for literal in literals if literal is not None]
        if len(known) < len(literals):
            return None
        return self.terms.compare_in(node.this, known, negated=negated)

    def _between(self, node: exp.Between, *, negated: bool) -> BoundPredicate | None:
        low = self._compared(
            Operator.LESS if negated else Operator.GREATER_OR_EQUAL, node.this, node.args["low"]
        )
        high = self._compared(
            Operator.GREATER if negated else Operator.LESS_OR_EQUAL, node.this, node.args["high"]
        )
        if low is None or high is None:
            return None
        if negated:
            return any_of([low, high])
        return without_contradiction(all_of([low, high]))

    def _text(self, node: exp.Expression, *, negated: bool) -> BoundPredicate | None:
        path, pattern = column_path(node.this), literal_value(node.expression)
        if path is None or pattern is None:
            return None
        column = resolve_column(path, self.schema)
        if not pattern.is_valid:
            return FALSE
        if not pa.types.is_string(column.type) or not pa.types.is_string(pattern.type):
            return None
        if isinstance(node, exp.Like):
            return like(column, pattern.as_py(), negated=negated)
        return text_test(type(node), column, pattern.as_py(), negated=negated)

    def _flag(self, node: exp.Expression, *, negated: bool) -> BoundPredicate | None:
        path = column_path(node)
        if path is None or not pa.types.is_boolean(resolve_column(path, self.schema).type):
            return None
        return self.terms.compare(Operator.EQUAL, node, pa.scalar(not negated))

    def _opaque(self, node: exp.Expression, *, negated: bool) -> Opaque:
        whole = exp.Not(this=exp.Paren(this=node.copy())) if negated else node
        return computed_condition(whole, self.schema, self.semantics)


def _operands(node: exp.And | exp.Or) -> list[exp.Expression]:
    """List the operands of a chain of the same connector without recursing into it."""
    found: list[exp.Expression] = []
    waiting: list[exp.Expression] = [node]
    while waiting:
        top = waiting.pop()
        if type(top) is type(node):
            waiting += [top.args["expression"], top.args["this"]]
        else:
            found.append(top)
    return found
