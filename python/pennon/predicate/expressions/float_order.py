"""Spark's order of floating-point numbers, in which there is one NaN, one zero.

Spark: ``-0.0 = 0.0``, ``NaN = NaN``, and NaN is greater than everything, as value, join key and
grouping key; a grouping key comes out as 0.0 and NaN. DataFusion orders by sign and bits: -0.0 is
less than 0.0, and a NaN with a sign is less than everything. A comparison of a column with a
literal is written shorter, and so that statistics can prune by it, in ``predicate.condition``.

NULL rules: NULL stays NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from pennon.predicate.expressions.typed import call, cast, choice, enclosed

if TYPE_CHECKING:
    from pennon.predicate.expressions.typed import Typed


def comparable(value: Typed) -> exp.Expr:
    """Make equal what Spark holds equal."""
    if not value.is_float:
        return value.tree
    zero = cast(exp.Literal.string("0.0"), value.type)
    return _nan_or(value, exp.Add(this=enclosed(value.tree.copy()), expression=zero))


def extreme_of(value: Typed) -> exp.Expr:
    """Make MIN and MAX see one NaN, greater than everything; zeros keep their sign."""
    return _nan_or(value, value.tree.copy()) if value.is_float else value.tree


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
