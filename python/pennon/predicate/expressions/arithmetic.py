"""Arithmetic that is exactly Spark's: one function per difference between DataFusion and Spark.

NULL rules: every operator gives NULL for NULL; dividing NULL by zero is NULL, and no error.

| DataFusion | Spark | guard |
|---|---|---|
| integer arithmetic wraps | an error (ANSI) | in a wider type, cast back |
| decimals beyond 38 digits are cut | rounded half up | in 76 digits, cast back |
| a quotient of decimals is cut after four digits | rounded half up | enough digits, then cast |
| a quotient of integers is one | a DOUBLE, or a BIGINT by ``div`` | cast first |
| a float divided by zero is infinite | an error (ANSI), or NULL | the error of an integer |
| the remainder of decimals has fewer digits | exact | cast |

Declined: what overflows where ANSI is off and Spark would wrap or give NULL, and quotients of so
many digits that Spark rounds twice.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.casts import INTEGER_DIGITS, converted
from pennon.predicate.expressions.float_order import is_zero
from pennon.predicate.expressions.semantics import Declined
from pennon.predicate.expressions.typed import (
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
from pennon.predicate.literals import literal_value

if TYPE_CHECKING:
    from pennon.predicate.expressions.semantics import Semantics

_FEWEST_KEPT_DIGITS: Final = 6
# DataFusion's quotient of decimals has so many more fractional digits than its dividend.
_QUOTIENT_DIGITS: Final = 4


def arithmetic(
    operator: type[exp.Binary], left: Typed, right: Typed, semantics: Semantics
) -> Typed:
    """Add, subtract or multiply as Spark does.

    Spark: an integer that leaves its width is ARITHMETIC_OVERFLOW; decimals have the type of
    ``exact_decimal``, rounded half up, and one that does not fit is an error. Both under ANSI.

    Raises:
        Declined: Types differ, or an overflow would not be an error in this session.
    """
    if left.is_decimal and right.is_decimal:
        return _decimal(operator, left, right, semantics)
    if left.type != right.type:
        raise Declined(why="arithmetic on two types")
    if left.is_float:
        return Typed(binary(operator, left.tree, right.tree), left.type)
    if not left.is_integer:
        raise Declined(why=f"arithmetic on {left.type}")
    if not semantics.ansi:
        raise Declined(why="integers that wrap")
    if left.type.bit_width < pa.int64().bit_width:
        wide = pa.int64()
        computed = binary(operator, cast(left.tree, wide), cast(right.tree, wide))
    else:
        # exact in 128 bits: a product has less than 39 digits
        exact = pa.decimal128(INTEGER_DIGITS[left.type.bit_width], 0)
        computed = binary(operator, cast(left.tree, exact), cast(right.tree, exact))
    return Typed(cast(computed, left.type), left.type, can_fail=True)


def _decimal(operator: type[exp.Binary], left: Typed, right: Typed, semantics: Semantics) -> Typed:
    precision, scale = exact_decimal(operator, left.type, right.type)
    if precision <= MAX_DIGITS:
        return Typed(binary(operator, left.tree, right.tree), pa.decimal128(precision, scale))
    if not semantics.ansi:
        raise Declined(why="decimals beyond 38 digits that would be NULL")
    kept = pa.decimal128(*adjusted(precision, scale))
    computed = _wide(operator, (left, left.type.scale), (right, right.type.scale))
    return Typed(lossy_cast(computed, kept), kept, can_fail=True)


def exact_decimal(
    operator: type[exp.Binary], left: pa.DataType, right: pa.DataType
) -> tuple[int, int]:
    """Give the precision and scale in which the result of ``+``, ``-`` or ``*`` is exact.

    Example:
        >>> exact_decimal(exp.Mul, pa.decimal128(15, 2), pa.decimal128(16, 2))
        (32, 4)
    """
    if operator is exp.Mul:
        return left.precision + right.precision + 1, left.scale + right.scale
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return whole + scale + 1, scale


def adjusted(precision: int, scale: int) -> tuple[int, int]:
    """Fit a decimal type into 38 digits as Spark does: fractions give way, down to six digits.

    Example:
        >>> adjusted(49, 6), adjusted(49, 12)
        ((38, 6), (38, 6))
    """
    if precision <= MAX_DIGITS:
        return precision, scale
    fewest = min(scale, _FEWEST_KEPT_DIGITS)
    return MAX_DIGITS, max(MAX_DIGITS - (precision - scale), fewest)


def _wide(
    operator: type[exp.Binary], left: tuple[Typed, int], right: tuple[Typed, int]
) -> exp.Expr:
    """Compute in 256 bits, where no operator on two values of at most 38 digits overflows."""
    sides = [
        exp.Cast(this=side.tree, to=decimal_type(MAX_DIGITS + 1, scale))
        for side, scale in (left, right)
    ]
    return binary(operator, *sides)


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
    """Compute at least one digit more than is kept, cut; rounding half up then is exact.

    Spark rounds to 38 fractional digits first, which shows only where the divisor's digits and the
    kept ones are more than 38 together.
    """
    one, other = left.type, right.type
    scale = max(_FEWEST_KEPT_DIGITS, one.scale + other.precision + 1)
    precision = one.precision - one.scale + other.scale + scale
    kept = pa.decimal128(*adjusted(precision, scale))
    fraction = max(one.scale, kept.scale + 1 - _QUOTIENT_DIGITS)
    digits = one.precision + fraction - one.scale
    is_wide = digits + _QUOTIENT_DIGITS + other.scale > MAX_DIGITS
    if (
        other.precision + kept.scale > MAX_DIGITS
        or digits + _QUOTIENT_DIGITS + other.scale > WIDE_DIGITS
        or fraction + _QUOTIENT_DIGITS > MAX_DIGITS
    ):
        raise Declined(why="a quotient of too many digits")
    if precision > MAX_DIGITS and not semantics.ansi:
        raise Declined(why="a quotient beyond 38 digits that would be NULL")
    dividend = exp.Cast(this=left.tree, to=decimal_type(digits, fraction))
    divisor = right.tree
    if is_wide:
        dividend = exp.Cast(this=left.tree, to=decimal_type(WIDE_DIGITS, fraction))
        divisor = exp.Cast(this=divisor, to=decimal_type(MAX_DIGITS + 1, other.scale))
    can_fail = precision > MAX_DIGITS
    if not _is_other_than(right, 0):
        can_fail |= semantics.ansi
        divisor = divisor if semantics.ansi else _or_null(Typed(divisor, other))
    tree = lossy_cast(binary(exp.Div, dividend, divisor), kept)
    return Typed(tree, kept, can_fail=can_fail)


def whole_quotient(left: Typed, right: Typed, semantics: Semantics) -> Typed:
    """Divide integers by ``div``: a BIGINT, cut.

    Raises:
        Declined: No integers, or a quotient that would wrap.
    """
    if not (left.is_integer and right.is_integer):
        raise Declined(why=f"div of {left.type}")
    whole = pa.int64()
    can_wrap = left.type == whole and not _is_other_than(right, -1)
    if can_wrap and not semantics.ansi:
        raise Declined(why="integers that wrap")
    divisor, can_fail = _divisor(right, semantics)
    tree = binary(exp.Div, cast(left.tree, whole), cast(divisor, whole))
    return Typed(tree, whole, can_fail=can_fail or can_wrap)


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


def negated(value: Typed, semantics: Semantics) -> Typed:
    """Take the opposite; that of the smallest integer is an error under ANSI.

    Raises:
        Declined: No number, or an integer that would wrap.
    """
    if value.is_float or value.is_decimal:
        return Typed(exp.Neg(this=exp.paren(value.tree)), value.type)
    return arithmetic(exp.Sub, Typed(integer(0, value.type), value.type), value, semantics)


def magnitude(value: Typed, semantics: Semantics) -> Typed:
    """Take the absolute value; that of the smallest integer is an error under ANSI.

    Raises:
        Declined: No number, or an integer that would wrap.
    """
    if value.is_float or value.is_decimal:
        return Typed(exp.Abs(this=value.tree), value.type)
    opposite = negated(value, semantics)
    zero = integer(0, value.type)
    is_negative = binary(exp.LT, value.tree.copy(), zero)
    tree = choice((is_negative, opposite.tree), default=value.tree.copy())
    return Typed(tree, value.type, can_fail=True)


def unscaled(value: Typed) -> Typed:
    """Take the digits of a decimal as a BIGINT, which Spark sums instead of a short decimal.

    Raises:
        Declined: No decimal, or one of more digits than a BIGINT has.
    """
    if not value.is_decimal or value.type.precision >= INTEGER_DIGITS[64]:
        raise Declined(why=f"the digits of {value.type}")
    whole = pa.int64()
    if not value.type.scale:
        return Typed(cast(value.tree, whole), whole)
    factor = cast(integer(10**value.type.scale, whole), pa.decimal128(value.type.scale + 1, 0))
    return Typed(cast(binary(exp.Mul, value.tree, factor), whole), whole)


def decimal_of_unscaled(value: Typed, precision: int, scale: int, semantics: Semantics) -> Typed:
    """Make a decimal of its digits; too many of them are an error under ANSI.

    Raises:
        Declined: No BIGINT, or digits that would be NULL.
    """
    if (
        value.type != pa.int64()
        or not semantics.ansi
        or not scale <= precision < INTEGER_DIGITS[64]
    ):
        raise Declined(why=f"a decimal of the digits {value.type}")
    kept = pa.decimal128(precision, scale)
    exact = cast(value.tree, pa.decimal128(INTEGER_DIGITS[64], 0))
    if scale:
        least = cast(
            exp.Literal.string(f"{Decimal(1).scaleb(-scale):f}"), pa.decimal128(scale, scale)
        )
        exact = binary(exp.Mul, exact, least)
    return Typed(cast(exact, kept), kept, can_fail=True)


def rounded(value: Typed, digits: int, semantics: Semantics) -> Typed:
    """Round half up to some fractional digits: decimals and integers.

    Raises:
        Declined: Floats, which Spark rounds by their decimal text, and digits before the point.
    """
    if digits < 0:
        raise Declined(why="rounding before the point")
    if value.is_integer:
        return value
    if not value.is_decimal:
        raise Declined(why=f"rounding of {value.type}")
    scale = min(digits, value.type.scale)
    precision = min(value.type.precision - value.type.scale + 1 + scale, MAX_DIGITS)
    return converted(value, pa.decimal128(precision, scale), semantics)


def common_number(types: list[pa.DataType]) -> pa.DataType:
    """Give the type to which Spark casts numbers that it compares, or has in one column.

    Raises:
        Declined: Not only numbers, or too many digits.

    Example:
        >>> common_number([pa.int32(), pa.decimal128(5, 2)])
        Decimal128Type(decimal128(12, 2))
    """
    if pa.float64() in types:
        if all(pa.types.is_floating(each) or pa.types.is_integer(each) for each in types):
            return pa.float64()
        raise Declined(why="decimals beside floats")
    if all(pa.types.is_signed_integer(each) for each in types):
        return max(types, key=lambda each: each.bit_width)
    sizes = [
        (each.precision, each.scale)
        if pa.types.is_decimal(each)
        else (INTEGER_DIGITS.get(each.bit_width, 0) if pa.types.is_signed_integer(each) else 0, 0)
        for each in types
    ]
    scale = max(scale for _, scale in sizes)
    whole = max(precision - scale for precision, scale in sizes)
    if any(precision == 0 for precision, _ in sizes) or whole + scale > MAX_DIGITS:
        raise Declined(why="values of several types")
    return pa.decimal128(whole + scale, scale)
