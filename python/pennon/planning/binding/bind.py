"""A parsed predicate and the full schema → a bound predicate in the columns' own types.

What is understood becomes comparisons with literals of the column's type, ranges for functions of
time, or constants. What is not understood stays as it is, with what it implies of a time column:
by the days for which it is true, and by a range of a day around what functions of zoned times mean
in UTC, where that is not the session's zone. Which forms there are says ``predicate.normalize``:
nothing is rewritten here.

NULL rules: a filter keeps a row only where the predicate is TRUE, so NULL counts as FALSE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.errors import UnknownColumn
from pennon.planning.binding.bound_predicate import (
    FALSE,
    TRUE,
    BoundPredicate,
    ComputedCondition,
    all_of,
    any_of,
    is_not_null,
    is_null,
)
from pennon.planning.binding.column_terms import ColumnTerms
from pennon.planning.binding.computed_condition import computed_condition
from pennon.planning.binding.contradictions import without_contradiction
from pennon.planning.binding.day_conditions import implied_by_days
from pennon.planning.binding.source_columns import names_elements, resolve_column
from pennon.planning.binding.text_patterns import like, text_test
from pennon.predicate.column_references import reference_path
from pennon.predicate.comparison import Operator
from pennon.predicate.connectives import operands
from pennon.predicate.semantics import Semantics, is_utc_zone
from pennon.predicate.values.literal_list import LiteralList
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPERATORS: dict[type[exp.Expression], Operator] = {
    exp.EQ: Operator.EQUAL,
    exp.NullSafeEQ: Operator.EQUAL,  # a filter drops NULL and FALSE alike, and no literal is NULL
    exp.NEQ: Operator.NOT_EQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.LESS_OR_EQUAL,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.GREATER_OR_EQUAL,
}
# No clock is more than 18 hours off from UTC.
_SLACK_DAYS: Final = 1


def bind(predicate: exp.Expression, schema: pa.Schema, time_zone: str = "UTC") -> BoundPredicate:
    """Bind a predicate to the columns of a table.

    Args:
        predicate: What ``parse_predicate`` gave: the normal form of ``predicate.normalize``.
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
    # Plans do not know whether a session is ANSI. What means something else without it, or may,
    # counts as what can fail: no partition value decides it.
    semantics = Semantics(ansi=True, is_utc=is_utc_zone(time_zone))
    terms = ColumnTerms(schema, semantics.is_utc)
    return _Binder(schema, terms, semantics).bound(predicate)


def bind_all(
    predicates: Sequence[exp.Expression], schema: pa.Schema, time_zone: str = "UTC"
) -> BoundPredicate:
    """Bind several predicates that all have to hold."""
    return without_contradiction(
        all_of([bind(predicate, schema, time_zone) for predicate in predicates])
    )


@dataclass(frozen=True, slots=True)
class _Binder:
    schema: pa.Schema
    terms: ColumnTerms
    semantics: Semantics

    def bound(self, node: exp.Expression) -> BoundPredicate:
        """Bind a node of the normal form."""
        match node:
            case exp.Paren():
                return self.bound(node.this)
            case exp.Or():
                return any_of([self.bound(part) for part in operands(node, exp.Or)])
            case exp.And():
                parts = [self.bound(part) for part in operands(node, exp.And)]
                return without_contradiction(all_of(parts))
            case exp.Boolean():
                return TRUE if node.this else FALSE
        is_not = isinstance(node, exp.Not)
        try:
            inner = node.this if is_not else node
            bound = self._leaf(inner, self.terms, negated=is_not)
            if bound is not None:
                return bound
            computed = computed_condition(node, self.schema, self.semantics)
            implied = all_of(self._implied(node))
            return computed if implied == TRUE else replace(computed, implied=implied)
        except UnknownColumn:
            if not names_elements(node, self.schema):
                raise
        return ComputedCondition(node.copy(), why="a field of the elements of a list")

    def _implied(self, node: exp.Expression) -> Iterator[BoundPredicate]:
        """Find what holds wherever a computed condition is true."""
        yield implied_by_days(node, self.schema, self.semantics)
        if not self.semantics.is_utc:
            nearby = replace(self.terms, is_utc=True, slack_days=_SLACK_DAYS)
            is_not = isinstance(node, exp.Not)
            around = self._leaf(node.this if is_not else node, nearby, negated=is_not)
            if around is not None:
                yield around

    def _leaf(
        self, node: exp.Expression, terms: ColumnTerms, *, negated: bool
    ) -> BoundPredicate | None:
        """Bind a form that is understood; the normal form has NOT above few of them."""
        match node:
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._is_null(node.this, negated=negated)
            case exp.In():
                return self._in(node, terms, negated=negated)
            case exp.Like() | exp.StartsWith() | exp.EndsWith() | exp.Contains():
                return self._text(node, negated=negated)
        operator = _OPERATORS.get(type(node))
        literal = None if operator is None else literal_value(node.expression)
        if operator is None or literal is None or negated:
            return None
        return terms.compare(operator, node.this, literal)

    def _is_null(self, operand: exp.Expression, *, negated: bool) -> BoundPredicate | None:
        path = reference_path(operand)
        if path is None:
            return None
        column = resolve_column(path, self.schema)
        return is_not_null(column) if negated else is_null(column)

    def _in(self, node: exp.In, terms: ColumnTerms, *, negated: bool) -> BoundPredicate | None:
        listed = node.args.get("field")
        if isinstance(listed, LiteralList):
            return terms.compare_in(node.this, listed.literals.scalars, negated=negated)
        literals = [literal_value(item) for item in node.expressions]
        converted = [literal for literal in literals if literal is not None]
        if not converted or len(converted) < len(literals):
            return None
        return terms.compare_in(node.this, converted, negated=negated)

    def _text(self, node: exp.Expression, *, negated: bool) -> BoundPredicate | None:
        path, pattern = reference_path(node.this), literal_value(node.expression)
        if path is None or pattern is None:
            return None
        column = resolve_column(path, self.schema)
        if not pa.types.is_string(column.type) or not pa.types.is_string(pattern.type):
            return None
        if isinstance(node, exp.Like):
            return like(column, pattern.as_py(), negated=negated)
        return text_test(type(node), column, pattern.as_py(), negated=negated)
