"""Operands that Spark does not compute where another one is NULL.

NULL rules: an operator on NULL is NULL; Spark computes its operands one after the other, and stops
at the first NULL. An error of a later one is none then.

| DataFusion | Spark | guard |
|---|---|---|
| all operands, then the operator | the left one first; the divisor before the dividend | CASE |
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.floats.float_order import is_zero
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import (
    Typed,
    as_number,
    choice,
    has_more_nodes,
    is_null,
    is_one,
)
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
# These are NULL where an operand is, and nowhere else.
_NULL_BY_OPERANDS: Final = (exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul)
# What is asked for NULL is computed twice, and what stands in it twice as often.
_MOST_NODES: Final = 1_000


class Operands:
    """The operands of an operator, as they are read one after the other.

    Args:
        node: The operator, in Spark's SQL.
        is_ansi: Whether a division by zero is an error, and not NULL.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> sides = Operands(exp.Add(), is_ansi=True)
        >>> for name, can_fail in (("a", False), ("b", True)):
        ...     side = sides.add(Typed(exp.column(name), pa.int64(), can_fail))
        >>> print(side.tree.sql(dialect=DataFusion))
        CASE WHEN `a` IS NULL THEN NULL ELSE `b` END
    """

    def __init__(self, node: exp.Expr, *, is_ansi: bool) -> None:
        tried = tried_operation(node)
        self._node = node if tried is None else tried
        self._is_tried = tried is not None
        self._is_ansi = is_ansi
        self._computed: list[Typed] = []
        self._nulls: list[exp.Expr] = []

    def add(self, operand: Typed, nulls: Sequence[exp.Expr] | None = None) -> Typed:
        """Add what was read, and compute it where Spark does.

        Args:
            operand: The next operand.
            nulls: It is NULL where one of these is, and nowhere else; None for itself.

        Raises:
            Declined: It is not known in which order Spark computes the operands.
        """
        if literal_value(operand.tree) is not None:
            return operand
        if self._computed and not isinstance(self._node, (*_COMPUTED_ALL, *_DIVISIONS)):
            is_in_order = isinstance(self._node, _IN_ORDER)
            if not is_in_order and self._is_unordered(operand):
                raise Declined(why="what can be an error beside what may be NULL")
            if is_in_order and operand.can_fail and self._nulls:
                operand = _guarded(operand, [is_null(tree.copy()) for tree in self._nulls])
        self._computed.append(operand)
        own = [operand.tree] if nulls is None else nulls
        self._nulls += [tree for tree in own if tree not in self._nulls]
        return operand

    def operator(self, value: Typed) -> Typed:
        """Compute an operator where Spark computes its operands: of a division the divisor first.

        Args:
            value: The operator as DataFusion computes it.
        """
        match self._computed:
            case [dividend, divisor] if isinstance(self._node, _DIVISIONS) and dividend.can_fail:
                conditions = [is_null(divisor.tree.copy())]
                if self._is_tried:
                    conditions.append(is_zero(divisor))
                return _guarded(value, conditions)
        return value

    def nulls_of(self, value: Typed) -> Sequence[exp.Expr] | None:
        """Give what tells that an operator is NULL, where that is less than the operator itself.

        Args:
            value: The operator as DataFusion computes it.
        """
        node = self._node
        # Without ANSI a decimal that does not fit is NULL, too.
        is_null_by_operands = isinstance(node, _NULL_BY_OPERANDS) and (
            self._is_ansi or not value.is_decimal
        )
        if self._is_ansi and isinstance(node, exp.Cast):
            is_tried = bool(node.args.get("safe"))
            is_null_by_operands = not is_tried and _is_number_of_integer(value, self._computed)
        elif self._is_ansi and isinstance(node, _DIVISIONS):
            is_null_by_operands = True
        return self._nulls if is_null_by_operands and not self._is_tried else None

    def _is_unordered(self, operand: Typed) -> bool:
        node = self._node
        if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
            return False  # its one argument is read more than once
        is_first_asked = isinstance(node, exp.In)  # a list is asked for what is not NULL
        before = not is_first_asked and any(other.can_fail for other in self._computed)
        return before or operand.can_fail


def _is_number_of_integer(value: Typed, operands: Sequence[Typed]) -> bool:
    is_number = value.is_integer or value.is_float or value.is_decimal
    return is_number and all(operand.is_integer for operand in operands)


def _guarded(value: Typed, are_null: Sequence[exp.Expr]) -> Typed:
    """Compute an expression where no condition is true, and give NULL elsewhere."""
    is_left_out = reduce(lambda left, right: exp.Or(this=left, expression=right), are_null)
    if has_more_nodes(is_left_out, _MOST_NODES):
        raise Declined(why="what can be an error beside many terms")
    if not pa.types.is_boolean(value.type):
        tree = choice((is_left_out, exp.Null()), default=value.tree)
        return Typed(tree, value.type, can_fail=value.can_fail)
    tree = choice((is_left_out, exp.Null()), default=as_number(value.tree))
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
