"""Operands that Spark does not compute where another one is NULL.

NULL rules: an operator on NULL is NULL; Spark computes its operands one after the other, and stops
at the first NULL. An error of a later one is none then.

| DataFusion | Spark | guard |
|---|---|---|
| all operands, then the operator | the left one first; the divisor before the dividend | CASE |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.floats.float_order import is_zero
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import Typed, as_number, choice, is_null, is_one
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIVISIONS: Final = (exp.Div, exp.IntDiv, exp.Mod)
_TRIED: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Bracket)
# Of these every operand is computed, or those that are not are seen to where they are read.
_COMPUTED_ALL: Final = (
    *(exp.And, exp.Or, exp.NullSafeEQ, exp.NullSafeNEQ, exp.DPipe, exp.Concat, exp.ConcatWs),
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least),
)
# These are read in the order in which Spark computes their operands.
_IN_ORDER: Final = (
    *(exp.Binary, exp.Substring, exp.Replace, exp.StartsWith, exp.EndsWith, exp.Contains),
    *(exp.TsOrDsAdd, exp.DateDiff, exp.TimestampDiff, exp.MonthsBetween),
)


def computed_in_order(
    node: exp.Expr, value: Typed, operands: Sequence[Typed], *, is_tried: bool
) -> Typed:
    """Compute no operand that can be an error where one is NULL that Spark computes before it.

    Args:
        node: The operator, in Spark's SQL.
        value: It as DataFusion computes it.
        operands: Its operands, in the order in which they were read.
        is_tried: Whether a division by zero is NULL, too: then the dividend is not computed.

    Raises:
        Declined: It is not known in which order Spark computes them.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> read = [Typed(exp.column(name), pa.int64()) for name in "ab"]
        >>> read[1] = Typed(read[1].tree, pa.int64(), can_fail=True)
        >>> total = Typed(exp.Add(this=read[0].tree, expression=read[1].tree), pa.int64())
        >>> guarded = computed_in_order(total.tree, total, read, is_tried=False)
        >>> print(guarded.tree.sql(dialect=DataFusion))
        CASE WHEN `a` IS NULL THEN NULL ELSE `a` + `b` END
    """
    computed = [operand for operand in operands if literal_value(operand.tree) is None]
    if len(computed) < 2 or isinstance(node, _COMPUTED_ALL):  # noqa: PLR2004 - one beside another
        return value
    if isinstance(node, _DIVISIONS):
        computed.reverse()
    failing = [at for at, operand in enumerate(computed) if operand.can_fail]
    if not failing or (failing == [0] and isinstance(node, (*_IN_ORDER, exp.In))):
        return value
    if not isinstance(node, _IN_ORDER):
        raise Declined(why="what can be an error beside what may be NULL")
    guards = [(is_null(operand.tree.copy()), exp.Null()) for operand in computed[: failing[-1]]]
    if is_tried and isinstance(node, _DIVISIONS):
        guards.append((is_zero(computed[0]), exp.Null()))
    if not pa.types.is_boolean(value.type):
        return Typed(choice(*guards, default=value.tree), value.type, can_fail=value.can_fail)
    tree = choice(*guards, default=as_number(value.tree))
    return Typed(is_one(tree), value.type, can_fail=value.can_fail)


def tried_operation(node: exp.Expr) -> exp.Expr | None:
    """Give the operator of ``tried(…)``: it is NULL where it would be an error (``try_add``).

    Returns:
        None for any other expression.
    """
    if not (isinstance(node, exp.Anonymous) and node.name == "tried"):
        return None
    operation = node.expressions[0].unnest()
    return operation if isinstance(operation, _TRIED) else None
