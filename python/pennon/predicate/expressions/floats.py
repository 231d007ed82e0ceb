"""Floating-point numbers that are exactly Spark's: order, rounding, whole numbers.

NULL stays NULL in all of it.

**Order.** Spark has one NaN, which is greater than everything, and one zero, as value, join key and
grouping key; a grouping key comes out as 0.0 and NaN. DataFusion orders by sign and bits: -0.0 is
less than 0.0, and a NaN with a sign is less than everything. A comparison of a column with a
literal is written shorter, and so that statistics can prune by it, in ``predicate.condition``.

**Rounding.** A text of at most 15 digits is that of the DOUBLE which is nearest to it, and greater
DOUBLEs have greater texts: what is not less than the DOUBLE at the half is rounded up. Of more
digits the text itself is rounded; where every text has only digits that are kept nothing is.

| DataFusion | Spark | guard |
|---|---|---|
| ``round`` multiplies, rounds, divides | rounds half up what the DOUBLE's text says | as above |
| a cast to a decimal rounds the DOUBLE | so does it | as above |
| a decimal's digits, then divided | the nearest DOUBLE | its text where there are many digits |

**Whole numbers.**

| DataFusion | Spark | guard |
|---|---|---|
| floor and ceil are DOUBLEs | BIGINT; 0 of NaN; beyond it an error (ANSI), or its end | cast |
| a cast of NaN, or beyond the type, is an error | so under ANSI; else 0, or its end | CASE |
| a cast of 2**63 is an error | the last BIGINT, under ANSI too | apart |

Spark before 4.3 ends ``floor`` and ``ceil`` at the ends of BIGINT under ANSI, too: here that is an
error as it is since.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final
from typing import cast as as_type

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Comparison, Declined, Operator, condition
from pennon.predicate.typed import (
    INTEGER_DIGITS,
    MAX_DIGITS,
    Typed,
    binary,
    call,
    cast,
    choice,
    double,
    enclosed,
    has_more_nodes,
    integer,
    is_null,
    least_decimal,
    lossy_cast,
)
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.predicate.condition import Semantics

_DOUBLE: Final = pa.float64()
_LONG: Final = pa.int64()
_MOST_DIGITS: Final = 12
_SHORT_TEXTS: Final = 10.0**14  # of which the half has one digit more
_WHOLE_DOUBLES: Final = 2**53
_TEXT_DIGITS: Final = 20
_EXACT_POWERS: Final = 22  # 10**22 is a DOUBLE, 10**23 is not
_MOST_NODES: Final = 60


def rounded_double(value: Typed, digits: int) -> Typed:
    """Round a DOUBLE half up to fractional digits; a result of zero has no sign."""
    if value.type != _DOUBLE or not 0 <= digits <= _MOST_DIGITS:
        raise Declined(why=f"rounding of {value.type} to {digits} digits")
    if has_more_nodes(value.tree, _MOST_NODES):
        raise Declined(why="rounding of many terms")
    units = 10**digits
    magnitude = call("abs", value.tree)
    scaled = binary(exp.Mul, magnitude, double(units))
    cut = call("floor", scaled)
    half = binary(exp.Div, binary(exp.Add, cut, double(0.5)), double(units))
    # Cast by way of an integer: Arrow's own cast of a BOOLEAN to a DOUBLE takes twice as long.
    is_up = cast(cast(exp.paren(binary(exp.GTE, magnitude.copy(), half)), pa.int32()), _DOUBLE)
    short = binary(exp.Div, binary(exp.Add, cut.copy(), is_up), double(units))
    # Also where DataFusion computes every branch there is nothing that no decimal holds.
    has_fraction = binary(exp.LTE, scaled.copy(), double(_WHOLE_DOUBLES))
    inside = choice((has_fraction, magnitude.copy()), default=double(0))
    exact = cast(cast(inside, pa.utf8()), pa.decimal128(MAX_DIGITS, _TEXT_DIGITS))
    long = cast(lossy_cast(exact, pa.decimal128(MAX_DIGITS, digits)), _DOUBLE)
    sign = call("signum", value.tree.copy())
    tree = choice(
        (
            binary(exp.LT, scaled.copy(), double(_SHORT_TEXTS)),
            binary(exp.Add, binary(exp.Mul, sign, short), double(0)),
        ),
        (has_fraction.copy(), binary(exp.Mul, sign.copy(), long)),
        default=value.tree.copy(),
    )
    return Typed(tree, _DOUBLE)


def double_of_decimal(value: Typed) -> Typed:
    """Give the DOUBLE that is nearest to a decimal."""
    by_text = cast(cast(value.tree, pa.utf8()), _DOUBLE)
    scale = value.type.scale
    if scale > _EXACT_POWERS or has_more_nodes(value.tree, _MOST_NODES):
        return Typed(by_text, _DOUBLE)
    precision = max(len(str(_WHOLE_DOUBLES)), scale)
    end = exp.Literal.string(f"{Decimal(_WHOLE_DOUBLES).scaleb(-scale):f}")
    magnitude = call("abs", value.tree.copy())
    is_short = binary(exp.LTE, magnitude, cast(end, pa.decimal128(precision, scale)))
    return Typed(choice((is_short, cast(value.tree.copy(), _DOUBLE)), default=by_text), _DOUBLE)


def decimal_of_double(value: Typed, target: pa.DataType) -> Typed:
    """Round a DOUBLE to a decimal of at most 14 digits; NaN and the infinite ones are NULL."""
    magnitude, units = call("abs", value.tree), 10**target.scale
    cut = cast(call("floor", binary(exp.Mul, magnitude, double(units))), _LONG)
    odd = binary(exp.Add, binary(exp.Mul, integer(2, _LONG), cut), integer(1, _LONG))
    half = binary(exp.Div, cast(exp.paren(odd), _DOUBLE), double(2 * units))
    is_up = binary(exp.GTE, magnitude.copy(), half)
    up = choice((is_up, integer(1, _LONG)), default=integer(0, _LONG))
    digits = cast(exp.paren(binary(exp.Add, cut.copy(), up)), pa.decimal128(INTEGER_DIGITS[64], 0))
    if target.scale:
        digits = binary(exp.Mul, digits, least_decimal(target.scale))
    rounded = cast(exp.paren(digits), target)
    is_negative = binary(exp.LT, value.tree.copy(), double(0))
    is_number = binary(exp.LT, magnitude.copy(), cast(exp.Literal.string("Infinity"), _DOUBLE))
    tree = choice(
        (exp.And(this=is_number, expression=is_negative), exp.Neg(this=rounded)),
        (is_number.copy(), rounded.copy()),
        default=exp.Null(),
    )
    return Typed(tree, target, can_fail=True)


def next_whole_number(
    operator: type[exp.Floor | exp.Ceil], value: Typed, semantics: Semantics
) -> Typed:
    """Give the next whole number below, or above, a DOUBLE as a BIGINT."""
    name = "floor" if operator is exp.Floor else "ceil"
    if not semantics.ansi:
        return Typed(_within(value.tree, _LONG, name), _LONG)
    is_nan = call("isnan", value.tree.copy())
    number = choice((is_nan, double(0)), default=value.tree.copy())
    return Typed(cast(call(name, number), _LONG), _LONG, can_fail=True)


def cut_number(value: Typed, target: pa.DataType, semantics: Semantics) -> Typed:
    """Cast a DOUBLE to an INT or a BIGINT."""
    if not semantics.ansi:
        return Typed(_within(value.tree, target, None), target)
    if target != _LONG:
        return Typed(cast(value.tree, target), target, can_fail=True)
    is_last = binary(exp.EQ, value.tree.copy(), double(2**63))
    other = choice((is_last, double(0)), default=value.tree.copy())
    whole = choice((is_last.copy(), integer(2**63 - 1, _LONG)), default=cast(other, _LONG))
    return Typed(whole, _LONG, can_fail=True)


def _within(number: exp.Expr, target: pa.DataType, name: str | None) -> exp.Expr:
    """Cut a DOUBLE, after ``floor`` or ``ceil``: 0 of NaN, and what is beyond a type is its end."""
    ends = 2 ** (target.bit_width - 1)
    is_nan = call("isnan", number.copy())
    is_above = binary(exp.GTE, number.copy(), double(ends))
    is_below = binary(exp.LT, number.copy(), double(-ends))
    # Also where DataFusion computes every branch there is nothing beyond the type.
    inside = choice(
        (is_nan, double(0)), (is_above, double(0)), (is_below, double(0)), default=number.copy()
    )
    whole = cast(inside if name is None else call(name, inside), target)
    return choice(
        (is_nan.copy(), integer(0, target)),
        (is_above.copy(), integer(ends - 1, target)),
        (is_below.copy(), integer(-ends, target)),
        default=whole,
    )


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
    """Give the greatest, or the least, of a few values that are not NULL; of zeros the first."""
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
