"""DOUBLEs rounded to some fractional digits, and decimals as the nearest DOUBLE.

NULL rules: NULL stays NULL.

| DataFusion | Spark | guard |
|---|---|---|
| ``round`` multiplies, rounds, divides | rounds half up what the DOUBLE's text says | see below |
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
    MAX_DIGITS,
    Typed,
    binary,
    call,
    cast,
    choice,
    lossy_cast,
)

_DOUBLE: Final = pa.float64()
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
    if _is_large(value.tree):
        raise Declined(why="rounding of many terms")
    units = 10**digits
    magnitude = call("abs", value.tree)
    scaled = binary(exp.Mul, magnitude, _double(units))
    cut = call("floor", scaled)
    odd = binary(exp.Add, binary(exp.Mul, _double(2), cut), _double(1))
    half = binary(exp.Div, odd, _double(2 * units))
    is_up = binary(exp.GTE, magnitude.copy(), half)
    above = binary(exp.Add, cut.copy(), _double(1))
    whole = choice((is_up, above), default=cut.copy())
    is_short = binary(exp.LT, scaled.copy(), _double(_SHORT_TEXTS))
    has_fraction = binary(exp.LTE, scaled.copy(), _double(_WHOLE_DOUBLES))
    # Also where DataFusion computes every branch there is nothing that no decimal holds.
    inside = choice((has_fraction, magnitude.copy()), default=_double(0))
    exact = cast(cast(inside, pa.utf8()), pa.decimal128(MAX_DIGITS, _TEXT_DIGITS))
    long = cast(lossy_cast(exact, pa.decimal128(MAX_DIGITS, digits)), _DOUBLE)
    rounded = choice((is_short, binary(exp.Div, whole, _double(units))), default=long)
    is_negative = binary(exp.LT, value.tree.copy(), _double(0))
    signed = choice((is_negative, binary(exp.Sub, _double(0), rounded)), default=rounded.copy())
    return Typed(choice((has_fraction.copy(), signed), default=value.tree.copy()), _DOUBLE)


def double_of_decimal(value: Typed) -> Typed:
    """Give the DOUBLE that is nearest to a decimal."""
    by_text = cast(cast(value.tree, pa.utf8()), _DOUBLE)
    scale = value.type.scale
    if scale > _EXACT_POWERS or _is_large(value.tree):
        return Typed(by_text, _DOUBLE)
    precision = max(len(str(_WHOLE_DOUBLES)), scale)
    end = exp.Literal.string(f"{Decimal(_WHOLE_DOUBLES).scaleb(-scale):f}")
    magnitude = call("abs", value.tree.copy())
    is_short = binary(exp.LTE, magnitude, cast(end, pa.decimal128(precision, scale)))
    return Typed(choice((is_short, cast(value.tree.copy(), _DOUBLE)), default=by_text), _DOUBLE)


def _is_large(tree: exp.Expr) -> bool:
    return sum(1 for _ in tree.walk()) > _MOST_NODES


def _double(value: float) -> exp.Expr:
    return cast(exp.Literal.string(repr(float(value))), _DOUBLE)
