"""DOUBLEs rounded to some fractional digits, or to decimals, and decimals as the nearest DOUBLE.

NULL rules: NULL stays NULL.

| DataFusion | Spark | guard |
|---|---|---|
| ``round`` multiplies, rounds, divides | rounds half up what the DOUBLE's text says | see below |
| a cast to a decimal rounds the DOUBLE | so does it | see below |
| a decimal's digits, then divided | the nearest DOUBLE | its text where there are many digits |

A text of at most 15 digits is that of the DOUBLE which is nearest to it, and greater DOUBLEs have
greater texts. So what is not less than the DOUBLE at the half is rounded up. Of more digits the
text itself is rounded, and where every text has only digits that are kept nothing is.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.semantics import Declined
from pennon.predicate.typed import (
    INTEGER_DIGITS,
    MAX_DIGITS,
    Typed,
    binary,
    call,
    cast,
    choice,
    double,
    has_more_nodes,
    integer,
    least_decimal,
    lossy_cast,
)

_DOUBLE: Final = pa.float64()
_LONG: Final = pa.int64()
_MOST_DIGITS: Final = 12
_SHORT_TEXTS: Final = 10.0**14  # of which the half has one digit more
_WHOLE_DOUBLES: Final = 2**53
_TEXT_DIGITS: Final = 20
_EXACT_POWERS: Final = 22  # 10**22 is a DOUBLE, 10**23 is not
_MOST_NODES: Final = 60


def rounded_double(value: Typed, digits: int) -> Typed:
    """Round a DOUBLE half up to fractional digits; a result of zero has no sign.

    Raises:
        Declined: It is no DOUBLE, or of many terms, which would be there several times; or there
            are many digits.
    """
    if value.type != _DOUBLE or not 0 <= digits <= _MOST_DIGITS:
        raise Declined(why=f"rounding of {value.type} to {digits} digits")
    if has_more_nodes(value.tree, _MOST_NODES):
        raise Declined(why="rounding of many terms")
    units = 10**digits
    magnitude = call("abs", value.tree)
    scaled = binary(exp.Mul, magnitude, double(units))
    cut = call("floor", scaled)
    odd = binary(exp.Add, binary(exp.Mul, double(2), cut), double(1))
    half = binary(exp.Div, odd, double(2 * units))
    is_up = binary(exp.GTE, magnitude.copy(), half)
    above = binary(exp.Add, cut.copy(), double(1))
    whole = choice((is_up, above), default=cut.copy())
    is_short = binary(exp.LT, scaled.copy(), double(_SHORT_TEXTS))
    has_fraction = binary(exp.LTE, scaled.copy(), double(_WHOLE_DOUBLES))
    # Also where DataFusion computes every branch there is nothing that no decimal holds.
    inside = choice((has_fraction, magnitude.copy()), default=double(0))
    exact = cast(cast(inside, pa.utf8()), pa.decimal128(MAX_DIGITS, _TEXT_DIGITS))
    long = cast(lossy_cast(exact, pa.decimal128(MAX_DIGITS, digits)), _DOUBLE)
    rounded = choice((is_short, binary(exp.Div, whole, double(units))), default=long)
    is_negative = binary(exp.LT, value.tree.copy(), double(0))
    signed = choice((is_negative, binary(exp.Sub, double(0), rounded)), default=rounded.copy())
    return Typed(choice((has_fraction.copy(), signed), default=value.tree.copy()), _DOUBLE)


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
