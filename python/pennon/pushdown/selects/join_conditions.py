"""What a join's condition says of how partners are found: by equal values, or as NOT IN does.

Spark computes both values of an equality for every row, whatever stands before it in the condition,
and so may DataFusion. Any other part of the condition Spark computes of the pairs with equal
values; of which of them, where one partner is enough, its plan decides.

NULL rules: an equality that is NULL finds nothing. ``NOT IN``, an anti join that knows of NULLs,
keeps a row where the right side is empty; otherwise only where its value is not NULL, equals no
value of the right side, and the right side has no NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from pennon.plan import JoinType
from pennon.predicate.connectives import operands

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pennon.plan import Join, Plan
    from pennon.predicate.spark_expression import SparkExpression

# Of other joins a row may be decided by its first partner.
_OF_ALL_PAIRS: Final = (JoinType.INNER, JoinType.LEFT, JoinType.RIGHT, JoinType.FULL)


def conjuncts_of(condition: SparkExpression) -> list[exp.Expr]:
    """List what a condition demands together, parts of its tree; nothing where it has none."""
    tree = condition.tree
    return [] if tree is None else list[exp.Expr](operands(tree, exp.And))


def finds_partners(conjunct: exp.Expr, left: Collection[str], right: Collection[str]) -> bool:
    """Whether a conjunct equates a value of the left side with one of the right side.

    Args:
        conjunct: A part of a condition.
        left: The columns of the left side.
        right: The columns of the right side.

    Example:
        >>> from pennon.predicate.spark_expression import SparkExpression
        >>> (week,) = conjuncts_of(SparkExpression("`c1` = (`c2` - 52)"))
        >>> finds_partners(week, ["c1"], ["c2"]), finds_partners(week, ["c1", "c2"], ["c3"])
        (True, False)
    """
    if not isinstance(conjunct, exp.EQ):
        return False
    values = [
        {column.name for column in value.find_all(exp.Column)}
        for value in (conjunct.this, conjunct.expression)
    ]
    return all(values) and any(
        values[0].issubset(one) and values[1].issubset(other)
        for one, other in ((left, right), (right, left))
    )


def is_of_pairs(
    join_type: JoinType,
    conjunct: exp.Expr,
    equalities: Iterable[exp.Expr],
    sides: tuple[Collection[str], Collection[str]],
) -> bool:
    """Whether both engines compute a part of a condition of the same pairs, and of nothing else.

    DataFusion computes what names one side only of all rows there. It also puts the column that an
    equality equates in the place of the other, and then one side may be enough.

    Args:
        join_type: How the sides are joined.
        conjunct: The part, which finds no partners.
        equalities: Those that do.
        sides: The columns of the left side, and of the right one.

    Example:
        >>> from pennon.predicate.spark_expression import SparkExpression
        >>> condition = SparkExpression("`c1` = `c3` AND 10 / (`c2` - `c4`) > 1")
        >>> key, rest = conjuncts_of(condition)
        >>> is_of_pairs(JoinType.INNER, rest, [key], (["c1", "c2"], ["c3", "c4"]))
        True
        >>> is_of_pairs(JoinType.INNER, rest, [key], (["c1"], ["c2", "c3", "c4"]))
        False
    """
    if join_type not in _OF_ALL_PAIRS or isinstance(conjunct, exp.NullSafeEQ):
        return False  # Spark finds partners by <=> as well, and computes it of all rows
    equated = {column.name for part in equalities for column in part.find_all(exp.Column)}
    names = {column.parts[0].name for column in conjunct.find_all(exp.Column)} - equated
    return all(not names.isdisjoint(side) for side in sides)


def is_hashed(plan: Plan, join: Join) -> bool:
    """Whether a join finds partners by a value, of columns or of expressions."""
    if join.equated:
        return True
    conjuncts = [part for part in conjuncts_of(join.condition) if isinstance(part, exp.EQ)]
    if not conjuncts:
        return False
    left, right = (
        {f"c{attribute}" for attribute in plan.attributes(side)} for side in (join.left, join.right)
    )
    return any(finds_partners(conjunct, left, right) for conjunct in conjuncts)


def null_aware_pair(join: Join) -> tuple[exp.Expr, exp.Expr] | None:
    """Find the two values of a null-aware anti join.

    Returns:
        The values in the order of the equality; None for any other join.

    Example:
        >>> from pennon.plan import Join
        >>> from pennon.predicate.spark_expression import SparkExpression
        >>> condition = SparkExpression("(`c1` = `c2`) OR ((`c1` = `c2`) IS NULL)")
        >>> null_aware_pair(Join(0, 1, JoinType.ANTI, condition)) is not None
        True
    """
    if join.join_type is not JoinType.ANTI or join.equated:
        return None
    tree = join.condition.tree
    match [] if tree is None else operands(tree, exp.Or):
        case [exp.EQ() as equality, exp.Is() as unknown] if (
            isinstance(unknown.expression.unnest(), exp.Null) and unknown.this.unnest() == equality
        ):
            return equality.this, equality.expression
    return None
