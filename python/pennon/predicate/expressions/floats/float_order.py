"""Spark's order of floating-point numbers, in which there is one NaN, one zero.

Spark: ``-0.0 = 0.0``, ``NaN = NaN``, and NaN is greater than everything, as value, join key and
grouping key; a grouping key comes out as 0.0 and NaN. DataFusion orders by sign and bits: -0.0 is
less than 0.0, and a NaN with a sign is less than everything. A comparison of a column with a
literal is written shorter, and so that statistics can prune by it, in ``predicate.condition``.

NULL rules: NULL stays NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from typing import cast as as_type

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.comparison import Comparison, Operator
from pennon.predicate.condition import condition
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import Typed, call, cast, choice, enclosed, is_null
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_COMPARED: Final = 3
_OPERATORS: Final[Mapping[type[exp.Expr], Operator]] = {
    exp.EQ: Operator.EQUAL,
    exp.NEQ: Operator.NOT_EQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.LESS_OR_EQUAL,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.GREATER_OR_EQUAL,
}


def compared(operator: type[exp.Expr], left: Typed, right: Typed) -> Typed:
    """Compare two values of one type; a float with a literal as ``predicate.condition`` writes it.

    That form has no CASE, which Lance's filters do not know.
    """
    named, literal = _OPERATORS.get(operator), literal_value(right.tree)
    if left.is_float and named is not None and literal is not None and literal.is_valid:
        column = as_type("exp.Expression", enclosed(left.tree))
        tree = condition(Comparison(named, (literal,)), column)
        return Typed(exp.paren(tree, copy=False), pa.bool_())
    sides = [enclosed(comparable(operand)) for operand in (left, right)]
    return Typed(operator(this=sides[0], expression=sides[1]), pa.bool_())


def comparable(value: Typed) -> exp.Expr:
    """Make equal what Spark holds equal."""
    if not value.is_float:
        return value.tree
    zero = cast(exp.Literal.string("0.0"), value.type)
    return _nan_or(value, exp.Add(this=enclosed(value.tree.copy()), expression=zero))


def extreme_float(values: Sequence[Typed], *, is_greatest: bool) -> Typed:
    """Give the greatest, or the least, of a few values that are not NULL; of zeros the first.

    Raises:
        Declined: There are many, of which each is written several times.
    """
    if len(values) > _MOST_COMPARED:
        raise Declined(why="the greatest or least of many floats")
    extreme = values[0]
    for other in values[1:]:
        beyond = compared(exp.GT if is_greatest else exp.LT, other, extreme).tree
        tree = choice(
            (is_null(extreme.tree.copy()), other.tree.copy()),
            (is_null(other.tree.copy()), extreme.tree.copy()),
            (beyond, other.tree.copy()),
            default=extreme.tree.copy(),
        )
        extreme = Typed(tree, extreme.type)
    return extreme


def is_zero(value: Typed) -> exp.Expr:
    """Test a number for either zero."""
    zero = cast(exp.Literal.string("0"), value.type)
    tree = value.tree
    if value.is_float:
        tree = exp.Add(this=enclosed(tree), expression=zero.copy())
    return exp.EQ(this=enclosed(tree), expression=zero)


def _nan_or(value: Typed, other: exp.Expr) -> exp.Expr:
    nan = cast(exp.Literal.string("NaN"), value.type)
    return choice((call("isnan", value.tree.copy()), nan), default=other)
