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
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from pennon.errors import UnknownColumn
from pennon.planning.binding.bound_predicate import (
    FALSE,
    TRUE,
    AllOf,
    BoundPredicate,
    Compared,
    ComputedCondition,
    all_of,
    any_of,
    is_not_null,
    is_null,
)
from pennon.planning.binding.column_terms import ColumnTerms
from pennon.planning.binding.source_columns import (
    like,
    names_elements,
    resolve_column,
    text_test,
    transformed_column,
    with_own_spelling,
)
from pennon.planning.binding.time_ranges import implied_by_days
from pennon.predicate.condition import (
    Operator,
    is_utc_zone,
    operands,
    reference_path,
    replaced_references,
)
from pennon.predicate.expressions import Declined, Semantics, typed_expression
from pennon.predicate.expressions.functions import is_null_of_null
from pennon.predicate.parse import SparkSql
from pennon.predicate.values.literals import LiteralList, literal_value
from pennon.predicate.values.long_lists import written_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.planning.binding.bound_predicate import SourceColumn, TransformedColumn
    from pennon.predicate.condition import Comparison

__all__ = ["without_contradiction"]

# Finds conjunctions that no row satisfies, such as ``c < 1 AND c > 2``.
#
# ``c BETWEEN 9 AND 5`` is two comparisons, and a partition of ``truncate(10, c)`` satisfies both.

_HIGH: Final = (Operator.LESS, Operator.LESS_OR_EQUAL)
_LOW: Final = (Operator.GREATER, Operator.GREATER_OR_EQUAL)
_VALUES: Final = (Operator.EQUAL, Operator.IN)


def without_contradiction(predicate: BoundPredicate) -> BoundPredicate:
    """Turn an AND into FALSE where the comparisons of one column exclude each other.

    Example:
        >>> from pennon.planning.binding.bound_predicate import SourceColumn
        >>> from pennon.predicate.condition import Comparison
        >>> column = SourceColumn(("a",), 0, pa.int32())
        >>> above, below = (
        ...     Compared(column, Comparison(operator, (pa.scalar(5, pa.int32()),)))
        ...     for operator in (Operator.GREATER, Operator.LESS)
        ... )
        >>> without_contradiction(AllOf((above, below)))
        Constant(value=False)
    """
    if not isinstance(predicate, AllOf):
        return predicate
    by_column: dict[SourceColumn, list[Comparison]] = {}
    for part in predicate.parts:
        if not isinstance(part, Compared) or not part.is_exact:
            continue
        # Floats have two zeros and many NaNs.
        if not pa.types.is_floating(part.column.type):
            by_column.setdefault(part.column, []).append(part.comparison)
    contradicts = any(
        len(comparisons) > 1 and _is_empty(comparisons) for comparisons in by_column.values()
    )
    return FALSE if contradicts else predicate


def _is_empty(comparisons: Sequence[Comparison]) -> bool:
    """Whether no value satisfies all comparisons of one column."""
    operators = {comparison.operator for comparison in comparisons}
    if Operator.IS_NULL in operators:
        return len(operators) > 1
    low = [
        (_key(comparison), comparison.operator)
        for comparison in comparisons
        if comparison.operator in _LOW
    ]
    high = [
        (_key(comparison), comparison.operator)
        for comparison in comparisons
        if comparison.operator in _HIGH
    ]
    lists = [comparison.literals for comparison in comparisons if comparison.operator in _VALUES]
    if lists:
        values = set.intersection(*({_ordered(one) for one in list_} for list_ in lists))
        return not any(_is_between(value, low, high) for value in values)
    if not low or not high:
        return False
    least, most = max(key for key, _ in low), min(key for key, _ in high)
    if least == most:
        return not _is_between(least, low, high)
    return bool(least > most)


def _is_between(
    value: Any, low: Sequence[tuple[Any, Operator]], high: Sequence[tuple[Any, Operator]]
) -> bool:
    above = all(
        value > bound or (value == bound and operator is Operator.GREATER_OR_EQUAL)
        for bound, operator in low
    )
    below = all(
        value < bound or (value == bound and operator is Operator.LESS_OR_EQUAL)
        for bound, operator in high
    )
    return above and below


def _key(comparison: Comparison) -> Any:
    return _ordered(comparison.literal)


def _ordered(literal: pa.Scalar) -> Any:
    """Give a literal's place in the order of its type, to the nanosecond."""
    return literal.value if pa.types.is_temporal(literal.type) else literal.as_py()


# Conditions other than comparisons with literals, computed exactly as by Spark.
#
# Where every column is an identity partition column, partition values decide it. A reader without
# Spark behind it computes it on the rows; one that is not known to be computed as Spark does is an
# error there, and never a guess.
#
# NULL rules: those of ``predicate.expressions``; a filter takes NULL for FALSE.


def computed_condition(
    node: exp.Expression, schema: pa.Schema, semantics: Semantics
) -> ComputedCondition:
    """Bind a condition that only a computation decides.

    Args:
        node: The condition.
        schema: The full schema of the table.
        semantics: The session's.

    Raises:
        UnknownColumn: The table has no column of that name.

    Example:
        >>> import pyarrow as pa
        >>> from sqlglot import parse_one
        >>> schema = pa.schema([("a", pa.int32())])
        >>> bound = computed_condition(parse_one("a % 3 = 1"), schema, Semantics())
        >>> [str(column.path[0]) for column in bound.sources]
        ['a']
    """
    sources: dict[SourceColumn | TransformedColumn, str] = {}
    calls: dict[tuple[str, ...], TransformedColumn] = {}

    def numbered(path: tuple[str, ...]) -> exp.Expression:
        column = calls.get(path) or resolve_column(path, schema)
        return exp.column(sources.setdefault(column, f"c{len(sources)}"), quoted=True)

    def called(inner: exp.Expr) -> exp.Expr:
        call = transformed_column(inner, schema)
        if call is None:
            return inner
        calls[call.path] = call
        return call.expression()

    is_long = node.find(LiteralList) is not None
    written = "" if is_long else node.sql(dialect=SparkSql, normalize_functions="lower")
    node = written_out(node.copy())
    whole = node.transform(called)
    try:
        tree = replaced_references(whole.copy(), numbered)
        types = {name: column.type for column, name in sources.items()}
        value = typed_expression(tree, types, semantics, pa.bool_())
    except Declined as reason:
        own = with_own_spelling(node.copy(), schema)
        rejected = _rejected_nulls(whole, schema, calls)
        return ComputedCondition(own, why=str(reason), written=written, rejected_nulls=rejected)
    named = {name: column for column, name in sources.items()}
    own = replaced_references(value.tree, lambda path: named[path[0]].expression())
    # Rows have no such column, and DataFusion no such function.
    why = f"the transform {min(calls)[0]}" if calls else ""
    can_fail = value.can_fail or not _is_known_without_ansi(tree, types, semantics)
    return ComputedCondition(
        own,
        sources=tuple(sources),
        can_fail=can_fail,
        why=why,
        written=written,
        rejected_nulls=_rejected_nulls(whole, schema, calls),
    )


def _rejected_nulls(
    node: exp.Expr, schema: pa.Schema, calls: Mapping[tuple[str, ...], TransformedColumn]
) -> tuple[SourceColumn, ...]:
    """List the columns for whose NULL a condition is NULL, whatever the other columns are.

    Whether it is an error for these rows is not asked, as Spark infers IS NOT NULL all the same.
    That of a transform is NULL where its source is.
    """
    paths = sorted(_strict_in(node))
    rejected = (
        calls[path].source if path in calls else resolve_column(path, schema) for path in paths
    )
    return tuple(dict.fromkeys(rejected))


def _strict_in(node: exp.Expr) -> frozenset[tuple[str, ...]]:
    path = reference_path(node)
    if path is not None:
        return frozenset({tuple(path)})
    match node:
        case exp.In() | exp.Between():  # the rest of them may be NULL, and one is FALSE still
            return _strict_in(node.this)
        case exp.Not(this=exp.Is(expression=exp.Null()) as test):
            return _strict_in(test.this)
    if not is_null_of_null(node):
        return frozenset()
    return frozenset[tuple[str, ...]]().union(*map(_strict_in, node.iter_expressions()))


def _is_known_without_ansi(
    tree: exp.Expr, types: Mapping[str, pa.DataType], semantics: Semantics
) -> bool:
    """Whether a session that is not ANSI computes a condition, too: plans do not know which."""
    try:
        typed_expression(tree, types, replace(semantics, ansi=False), pa.bool_())
    except Declined:
        return False
    return True


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
