"""Writes a comparison so that DataFusion and Lance decide it as Spark does.

NULL rules: the condition of every comparison is NULL for NULL, save IS [NOT] NULL.

Floats: Spark holds NaN equal to NaN and greater than all else, and -0.0 equal to 0.0. DataFusion
orders by sign and bits (-0.0 below 0.0), Lance follows IEEE for zeros; so zeros are written as
both, and NaN as ``isnan``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.comparison import Comparison, Operator
from pennon.predicate.values.literal_list import LiteralList
from pennon.predicate.values.literals import to_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

# Lists from here on are one leaf of the tree.
_LONG: Final = 20
_BINARY: dict[Operator, type[exp.Expression]] = {
    Operator.EQUAL: exp.EQ,
    Operator.NOT_EQUAL: exp.NEQ,
    Operator.LESS: exp.LT,
    Operator.LESS_OR_EQUAL: exp.LTE,
    Operator.GREATER: exp.GT,
    Operator.GREATER_OR_EQUAL: exp.GTE,
}


def condition(comparison: Comparison, column: exp.Expression) -> exp.Expression:
    """Write a comparison of a column as DataFusion SQL with Spark's meaning.

    Args:
        comparison: Operator and literals of the column's type.
        column: The compared expression.

    Example:
        >>> from sqlglot import column
        >>> from pennon.predicate.dialect import DataFusion
        >>> less = Comparison(Operator.LESS, (pa.scalar(5),))
        >>> condition(less, column("a")).sql(dialect=DataFusion)
        '`a` < 5'
    """
    operator, literals = comparison.operator, comparison.literals
    if operator is Operator.IS_NULL:
        return is_null(column)
    if operator is Operator.IS_NOT_NULL:
        return is_not_null(column)
    if operator in (Operator.IN, Operator.NOT_IN):
        positive = one_of(column, literals)
        return positive if operator is Operator.IN else negation(positive)
    if operator in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        positive = exp.StartsWith(this=column.copy(), expression=to_expression(comparison.literal))
        return positive if operator is Operator.STARTS_WITH else negation(positive)
    if pa.types.is_floating(comparison.literal.type):
        return _float_condition(operator, float(comparison.literal.as_py()), comparison, column)
    return _binary(operator, column, comparison.literal)


def is_null(column: exp.Expression) -> exp.Expression:
    """Write IS NULL."""
    return exp.Is(this=column.copy(), expression=exp.Null())


def is_not_null(column: exp.Expression) -> exp.Expression:
    """Write IS NOT NULL."""
    return exp.Not(this=is_null(column))


def negation(tree: exp.Expression) -> exp.Expression:
    """Write NOT; NULL stays NULL."""
    match tree:
        case exp.Not():
            inner: exp.Expression = tree.this
            return inner.this if isinstance(inner, exp.Paren) else inner
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            opposite = {kind: operator.negated for operator, kind in _BINARY.items()}[type(tree)]
            return _BINARY[opposite](this=tree.this, expression=tree.expression)
        case exp.Boolean():
            return exp.Boolean(this=not tree.this)
        case exp.And() | exp.Or():
            return exp.Not(this=exp.Paren(this=tree))
        case _:
            return exp.Not(this=tree)


def one_of(column: exp.Expression, literals: Sequence[pa.Scalar]) -> exp.Expression:
    """Write membership in a list, which may be long, and is FALSE when it is empty."""
    if not literals:
        return exp.Boolean(this=False)
    if not pa.types.is_floating(literals[0].type):
        if len(literals) >= _LONG:
            return exp.In(this=column.copy(), field=LiteralList.of(literals))
        return _membership(column, [to_expression(literal) for literal in literals])
    data_type = literals[0].type
    values = [float(literal.as_py()) for literal in literals]
    plain = [value for value in values if not math.isnan(value) and value != 0]
    if 0.0 in values:
        plain += [0.0, -0.0]
    alternatives = [_membership(column, [_float(v, data_type) for v in plain])] if plain else []
    if any(math.isnan(value) for value in values):
        alternatives.append(_is_nan(column))
    return _either(*alternatives) if len(alternatives) > 1 else alternatives[0]


def _either(first: exp.Expression, second: exp.Expression) -> exp.Expression:
    return exp.Paren(this=exp.Or(this=first, expression=second))


def _membership(column: exp.Expression, values: list[exp.Expression]) -> exp.Expression:
    if len(values) == 1:
        return exp.EQ(this=column.copy(), expression=values[0])
    return exp.In(this=column.copy(), expressions=values)


def _binary(operator: Operator, column: exp.Expression, literal: pa.Scalar) -> exp.Expression:
    return _BINARY[operator](this=column.copy(), expression=to_expression(literal))


def _float(value: float, data_type: pa.DataType) -> exp.Expression:
    return to_expression(pa.scalar(value, data_type))


def _is_nan(column: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this="isnan", expressions=[column.copy()])


def _float_condition(
    operator: Operator, value: float, comparison: Comparison, column: exp.Expression
) -> exp.Expression:
    nan = _is_nan(column)
    if operator is Operator.EQUAL:
        return one_of(column, comparison.literals)
    if math.isnan(value) and operator in (Operator.LESS_OR_EQUAL, Operator.GREATER):
        # true of all numbers, and of none; NULL for NULL
        whole = exp.EQ if operator is Operator.LESS_OR_EQUAL else exp.NEQ
        return whole(this=column.copy(), expression=column.copy())
    if operator in (Operator.NOT_EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL):
        opposite = Comparison(operator.negated, comparison.literals)
        return negation(_float_condition(opposite.operator, value, opposite, column))
    is_greater = operator is Operator.GREATER
    if math.isnan(value):
        return nan
    # of the two zeros, the one beyond which no zero lies in either order
    bound = (0.0 if is_greater else -0.0) if value == 0 else value
    greater = _binary(operator, column, pa.scalar(bound, comparison.literal.type))
    return _either(greater, nan)
