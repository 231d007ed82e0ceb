"""Quotients and remainders that are exactly Spark's.

NULL rules: every operator gives NULL for NULL; dividing NULL by zero is NULL, and no error.

| DataFusion | Spark | guard |
|---|---|---|
| a quotient of decimals is cut after four digits | rounded half up | enough digits, then cast |
| a quotient of integers is one | a DOUBLE, or a BIGINT by ``div`` | cast first |
| a float divided by zero is infinite | an error (ANSI), or NULL | the error of an integer |
| the remainder of decimals has fewer digits | exact | cast |

Declined: what would wrap or be NULL where ANSI is off, and quotients of so many digits that Spark
rounds twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.arithmetic import FEWEST_KEPT_DIGITS, adjusted
from pennon.predicate.expressions.floats.float_order import is_zero
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import (
    MAX_DIGITS,
    WIDE_DIGITS,
    Typed,
    binary,
    cast,
    choice,
    decimal_type,
    integer,
    is_null,
    lossy_cast,
)
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from pennon.predicate.semantics import Semantics

# DataFusion's quotient of decimals has so many more fractional digits than its dividend.
_QUOTIENT_DIGITS: Final = 4


def quotient(left: Typed, right: Typed, semantics: Semantics) -> Typed:
    """Divide by ``/``: two DOUBLEs, or two decimals with the type and rounding of Spark's.

    Raises:
        Declined: Other types, or so many digits that Spark rounds twice.
    """
    if left.is_decimal and right.is_decimal:
        return _decimal_quotient(left, right, semantics)
    if left.type != pa.float64() or right.type != pa.float64():
        raise Declined(why=f"a quotient of {left.type} and {right.type}")
    return _floating(exp.Div, left, right, semantics)


def _floating(operator: type[exp.Binary], left: Typed, right: Typed, semantics: Semantics) -> Typed:
    computed = binary(operator, left.tree, right.tree)
    if _is_other_than(right, 0):
        return Typed(computed, left.type)
    if not semantics.ansi:
        return Typed(choice((is_zero(right), exp.Null()), default=computed), left.type)
    if literal_value(right.tree) is not None:
        raise Declined(why="a division by zero")
    # An integer that is divided by zero is the error that a floating-point number is not.
    whole = pa.int64()
    error = binary(exp.Div, integer(1, whole), cast(right.tree.copy(), whole))
    fails = exp.And(
        this=is_zero(right), expression=exp.Not(this=exp.paren(is_null(left.tree.copy())))
    )
    guarded = choice((fails, cast(error, left.type)), default=computed)
    return Typed(guarded, left.type, can_fail=True)


def _decimal_quotient(left: Typed, right: Typed, semantics: Semantics) -> Typed:
    one, other = left.type, right.type
    scale = max(FEWEST_KEPT_DIGITS, one.scale + other.precision + 1)
    precision = one.precision - one.scale + other.scale + scale
    kept = pa.decimal128(*adjusted(precision, scale))
    can_fail = precision > MAX_DIGITS and semantics.ansi
    divisor = right.tree
    if not _is_other_than(right, 0):
        can_fail |= semantics.ansi
        divisor = divisor if semantics.ansi else _or_null(right)
    tree = _divided(left, Typed(divisor, other), kept, is_tried=not semantics.ansi)
    return Typed(tree, kept, can_fail=can_fail)


def _divided(left: Typed, right: Typed, kept: pa.DataType, *, is_tried: bool) -> exp.Expr:
    """Compute at least one digit more than is kept, cut; rounding half up then is exact.

    Spark rounds to 38 fractional digits first, which shows only where the divisor's digits and the
    kept ones are more than 38 together.
    """
    one, other = left.type, right.type
    fraction = max(one.scale, kept.scale + 1 - _QUOTIENT_DIGITS)
    digits = one.precision + fraction - one.scale
    is_wide = digits + _QUOTIENT_DIGITS + other.scale > MAX_DIGITS
    if (
        other.precision + kept.scale > MAX_DIGITS
        or digits + _QUOTIENT_DIGITS + other.scale > WIDE_DIGITS
        or fraction + _QUOTIENT_DIGITS > MAX_DIGITS
    ):
        raise Declined(why="a quotient of too many digits")
    dividend = exp.Cast(this=left.tree, to=decimal_type(digits, fraction))
    divisor = right.tree
    if is_wide:
        dividend = exp.Cast(this=left.tree, to=decimal_type(WIDE_DIGITS, fraction))
        divisor = exp.Cast(this=divisor, to=decimal_type(MAX_DIGITS + 1, other.scale))
    return lossy_cast(binary(exp.Div, dividend, divisor), kept, is_tried=is_tried)


def average(total: Typed, count: Typed, kept: tuple[int, int], semantics: Semantics) -> Typed:
    """Divide the sum of decimals by their number, as Spark ends an average.

    An average has at most the digits before the point that its values have. The sum has ten more,
    unless it is cut at 38: then an overflow is NULL without ANSI, as that of the sum is. The
    number is not zero, for Spark asks that first.

    Raises:
        Declined: No decimals, or so many digits that Spark rounds twice.

    Example:
        >>> from pennon.predicate.semantics import Semantics
        >>> of = Typed(exp.column("s"), pa.decimal128(25, 2))
        >>> by = Typed(exp.column("n"), pa.decimal128(20, 0))
        >>> average(of, by, (19, 6), Semantics()).type
        Decimal128Type(decimal128(19, 6))
    """
    if not (total.is_decimal and count.is_decimal):
        raise Declined(why=f"an average of {total.type} by {count.type}")
    precision, scale = kept
    can_overflow = MAX_DIGITS in (precision, total.type.precision)
    is_tried = can_overflow and not semantics.ansi
    digits = pa.decimal128(precision, scale)
    # Where all branches of a CASE are computed, a division by zero must not be an error.
    divisor = Typed(_or_null(count), count.type)
    tree = _divided(total, divisor, digits, is_tried=is_tried)
    return Typed(tree, digits, can_fail=can_overflow and not is_tried)


def whole_quotient(left: Typed, right: Typed, semantics: Semantics) -> Typed:
    """Divide integers by ``div``: a BIGINT, cut.

    Raises:
        Declined: No integers.
    """
    if not (left.is_integer and right.is_integer):
        raise Declined(why=f"div of {left.type}")
    whole = pa.int64()
    can_wrap = left.type == whole and not _is_other_than(right, -1)
    divisor, can_fail = _divisor(right, semantics)
    tree = binary(exp.Div, cast(left.tree, whole), cast(divisor, whole))
    if not can_wrap or semantics.ansi:
        return Typed(tree, whole, can_fail=can_fail or can_wrap)
    # The least BIGINT by -1 is an error in DataFusion, and itself in Java.
    is_turned = binary(exp.EQ, cast(right.tree.copy(), whole), integer(-1, whole))
    turned = binary(exp.Sub, integer(0, whole), left.tree.copy())
    return Typed(choice((is_turned, turned), default=tree), whole)


def remainder(left: Typed, right: Typed, semantics: Semantics) -> Typed:
    """Take the remainder by ``%``, which has the sign of the dividend in both engines.

    Raises:
        Declined: Types differ, or are no numbers.
    """
    if left.is_decimal and right.is_decimal:
        one, other = left.type, right.type
        scale = max(one.scale, other.scale)
        whole = min(one.precision - one.scale, other.precision - other.scale)
        larger = max(one.precision - one.scale, other.precision - other.scale)
        if larger + scale > MAX_DIGITS:
            raise Declined(why="a remainder of too many digits")
        common, kept = pa.decimal128(larger + scale, scale), pa.decimal128(whole + scale, scale)
        divisor, can_fail = _divisor(right, semantics)
        tree = binary(exp.Mod, cast(left.tree, common), cast(divisor, common))
        return Typed(cast(tree, kept), kept, can_fail=can_fail)
    if left.type != right.type:
        raise Declined(why="a remainder of two types")
    if left.type == pa.float64():
        return _floating(exp.Mod, left, right, semantics)
    if not left.is_integer:
        raise Declined(why=f"a remainder of {left.type}")
    divisor, can_fail = _divisor(right, semantics)
    tree = binary(exp.Mod, left.tree, divisor)
    return Typed(cast(tree, left.type), left.type, can_fail=can_fail)


def _divisor(value: Typed, semantics: Semantics) -> tuple[exp.Expr, bool]:
    """Give a divisor, and whether it can be an error; without ANSI its zeros are NULL."""
    if _is_other_than(value, 0):
        return value.tree, False
    if literal_value(value.tree) is not None:
        raise Declined(why="a division by zero")
    return (value.tree, True) if semantics.ansi else (_or_null(value), False)


def _or_null(value: Typed) -> exp.Expr:
    return choice((is_zero(value), exp.Null()), default=value.tree.copy())


def _is_other_than(value: Typed, number: int) -> bool:
    """Whether an operand is a literal of another value than a number."""
    literal = literal_value(value.tree)
    return literal is not None and literal.is_valid and literal.as_py() != number
