"""A bound predicate: one whose columns, types and literals are resolved.

NULL rules: a bound predicate is a *filter*. FALSE and NULL both drop the row, and NOT has been
moved into the comparisons, so every node asks only "is it TRUE": a constant is true or false,
and AND and OR are those of two-valued logic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from pennon.errors import PredicateNotEvaluable
from pennon.predicate.condition import Comparison, Operator
from pennon.predicate.dialect import DataFusion, shortened_predicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pennon.transforms.transform import Transform


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the table, by its own spelling.

    Args:
        path: Names from the top, nested fields after their parents.
        field_id: The column's ``lance:field_id``; None for a table without ids.
        type: Its Arrow type in the full schema.
        is_metadata: Whether it is a metadata column, which no leaf has.
    """

    path: tuple[str, ...]
    field_id: int | None
    type: pa.DataType
    is_metadata: bool = False

    def expression(self) -> exp.Expression:
        """Give the column as a quoted name.

        Example:
            >>> import pyarrow as pa
            >>> print(SourceColumn(("a", "b"), 2, pa.int32()).expression().sql())
            "a"."b"
        """
        names = [exp.to_identifier(name, quoted=True) for name in self.path]
        node: exp.Expression = exp.Column(
            this=names[min(1, len(names) - 1)], table=names[0] if len(names) > 1 else None
        )
        for name in names[2:]:
            node = exp.Dot(this=node, expression=name)
        return node


@dataclass(frozen=True, slots=True)
class TransformedColumn:
    """A partition transform of a column, called as a function: ``bucket(8, id)``.

    Args:
        transform: What is computed.
        source: Of which column.
        type: Of the result.
    """

    transform: Transform
    source: SourceColumn
    type: pa.DataType

    @property
    def path(self) -> tuple[str, ...]:
        """The call as a user types it, in the place of a column's name."""
        return (self.transform.sql([".".join(self.source.path)]),)

    def expression(self) -> exp.Expression:
        """Give the call as if it was a column."""
        return exp.column(self.path[0], quoted=True)


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of a column; ``is_exact`` where the leaf filter and Spark agree on it."""

    column: SourceColumn
    comparison: Comparison
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class ComparedDatePart:
    """A comparison of ``month``, ``day`` or ``hour`` of a time column with integers, in UTC."""

    part: str
    column: SourceColumn
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class ComputedCondition:
    """A condition that is computed, in the table's own spelling.

    Args:
        expression: The condition as DataFusion computes it; as it was written where ``why`` says
            that it is not known to be computed as Spark does.
        is_exact: Whether Spark need not evaluate it again.
        sources: Its columns, where it is known.
        can_fail: Whether it is an error for some values.
        why: What is not known; empty for a condition that is.
        written: The condition in Spark's SQL, for people; empty for one as ``expression`` is.
        implied: What holds wherever the condition is true, and says more of partitions; None for
            nothing.
        rejected_nulls: Columns whose NULL it is never true for.
    """

    expression: exp.Expression
    is_exact: bool = False
    sources: tuple[SourceColumn | TransformedColumn, ...] = ()
    can_fail: bool = False
    why: str = ""
    written: str = ""
    implied: BoundPredicate | None = None
    rejected_nulls: tuple[SourceColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, or FALSE and NULL alike."""

    value: bool


@dataclass(frozen=True, slots=True)
class AllOf:
    """AND of at least two parts, none of them an AllOf or a Constant."""

    parts: tuple[BoundPredicate, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """OR of at least two parts, none of them an AnyOf or a Constant."""

    parts: tuple[BoundPredicate, ...]


BoundPredicate = Compared | ComparedDatePart | ComputedCondition | Constant | AllOf | AnyOf

TRUE = Constant(value=True)
FALSE = Constant(value=False)


def all_of(parts: Iterable[BoundPredicate]) -> BoundPredicate:
    """Join by AND, without constants and nested ANDs.

    Example:
        >>> all_of([TRUE, TRUE])
        Constant(value=True)
    """
    kept: dict[int, BoundPredicate] = {}
    for part in parts:
        if part == FALSE:
            return FALSE
        if part != TRUE:
            for inner in part.parts if isinstance(part, AllOf) else (part,):
                kept[id(inner)] = inner
    return _joined(tuple(kept.values()), AllOf, TRUE)


def any_of(parts: Iterable[BoundPredicate]) -> BoundPredicate:
    """Join by OR, without constants and nested ORs.

    Example:
        >>> any_of([FALSE])
        Constant(value=False)
    """
    kept: list[BoundPredicate] = []
    for part in parts:
        if part == TRUE:
            return TRUE
        if part != FALSE:
            kept += part.parts if isinstance(part, AnyOf) else (part,)
    return _joined(tuple(kept), AnyOf, FALSE)


def conjuncts(predicate: BoundPredicate) -> tuple[BoundPredicate, ...]:
    """Take the ANDs at the top apart; TRUE has no conjunct."""
    if predicate == TRUE:
        return ()
    return predicate.parts if isinstance(predicate, AllOf) else (predicate,)


def is_exact(predicate: BoundPredicate) -> bool:
    """Whether the leaf filter evaluates every part of the predicate exactly as Spark does."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return all(is_exact(part) for part in parts)
        case Compared():
            return predicate.is_exact and not predicate.column.is_metadata
        case ComputedCondition():
            return predicate.is_exact and not any(
                _is_metadata(source) for source in predicate.sources
            )
        case ComparedDatePart():
            return False
        case Constant():
            return True


def _is_metadata(column: SourceColumn | TransformedColumn) -> bool:
    """Whether no leaf has the column, so that no leaf filter can name it."""
    source = column.source if isinstance(column, TransformedColumn) else column
    return source.is_metadata


def can_fail(predicate: BoundPredicate) -> bool:
    """Whether a predicate is an error for some rows."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return any(map(can_fail, parts))
        case ComputedCondition():
            return predicate.can_fail
    return False


def not_evaluable(predicate: BoundPredicate) -> ComputedCondition | None:
    """Find a condition that is not known to be computed as Spark does."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            reasons = (not_evaluable(part) for part in parts)
            return next((part for part in reasons if part is not None), None)
        case ComputedCondition() if predicate.why:
            return predicate
    return None


def check_evaluable(predicate: BoundPredicate, location: str) -> None:
    """Refuse a predicate that is not understood, whether there is a row to ask of or not.

    Args:
        predicate: What rows shall satisfy.
        location: The table, for the error.

    Raises:
        PredicateNotEvaluable: A part of it is no condition on a row, as an aggregate is none, or
            DataFusion may compute it otherwise than Spark.
    """
    unknown = not_evaluable(predicate)
    if unknown is not None:
        raise PredicateNotEvaluable(
            predicate=shortened_predicate(unknown.expression.sql(dialect=DataFusion)),
            namespace=location,
            reason=f"it is not known that DataFusion computes it as Spark does ({unknown.why})",
        )


def columns(predicate: BoundPredicate) -> Iterator[SourceColumn]:
    """Yield the columns of the comparisons, once per comparison, those of implied ones too."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from columns(part)
        case Compared() | ComparedDatePart():
            yield predicate.column
        case ComputedCondition(implied=implied) if implied is not None:
            yield from columns(implied)
        case ComputedCondition() | Constant():
            pass


def fixed_values(predicate: BoundPredicate) -> dict[int, pa.Scalar]:
    """List the columns, by field id, that have one value in every row for which it is true.

    Only comparisons on which the leaf filter and Spark agree count.
    """
    return {
        part.column.field_id: part.comparison.literal
        for part in conjuncts(predicate)
        if isinstance(part, Compared)
        and part.is_exact
        and part.column.field_id is not None
        and part.comparison.operator is Operator.EQUAL
    }


def is_null(column: SourceColumn) -> Compared:
    """The comparison ``column IS NULL``."""
    return Compared(column, Comparison(Operator.IS_NULL))


def is_not_null(column: SourceColumn, *, exact: bool = True) -> Compared:
    """The comparison ``column IS NOT NULL``: what an always-true comparison comes to."""
    return Compared(column, Comparison(Operator.IS_NOT_NULL), is_exact=exact)


def _joined(
    parts: tuple[BoundPredicate, ...], kind: type[AllOf | AnyOf], empty: Constant
) -> BoundPredicate:
    match parts:
        case ():
            return empty
        case (one,):
            return one
        case _:
            return kind(parts)
