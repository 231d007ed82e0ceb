"""Arithmetic and functions of numbers that are exactly Spark's.

NULL rules: every function gives NULL for NULL; dividing NULL by zero is NULL, and no error.

| DataFusion | Spark | guard |
|---|---|---|
| integer arithmetic wraps | an error (ANSI), or NULL (``try_add``) | in a wider type, cast back |
| | so it does without ANSI | none |
| decimals beyond 38 digits are cut | rounded half up | in 76 digits, cast back |
| | one that does not fit is NULL without ANSI | a cast that gives NULL |
| the sign of zero is 1 or -1, or loses its own | zero as it is | CASE |
| floor and ceil of decimals are floats | decimals without a fraction | rounded, then corrected |
| bits move by any number | by its last five or six bits | literals in between |
| no operator inverts bits | ``~`` | -1 minus the value |
| ``%`` has the dividend's sign | ``pmod`` of a positive divisor has none | it is added |
| a quotient of decimals is cut after four digits | rounded half up | enough digits, then cast |
| a quotient of integers is one | a DOUBLE, or a BIGINT by ``div`` | cast first |
| a float divided by zero is infinite | an error (ANSI), or NULL | the error of an integer |
| the remainder of decimals has fewer digits | exact | cast |

Declined: other powers, logarithms and trigonometry, of which the last digit differs between
libraries; and quotients of so many digits that Spark rounds twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.expressions.casts import converted
from pennon.predicate.expressions.floats import compared, is_zero, next_whole_number, rounded_double
from pennon.predicate.typed import (
    INTEGER_DIGITS,
    MAX_DIGITS,
    WIDE_DIGITS,
    Typed,
    binary,
    call,
    cast,
    choice,
    decimal_type,
    double,
    integer,
    is_null,
    least_decimal,
    lossy_cast,
    stated_integer,
)
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from pennon.predicate.condition import Semantics

# DataFusion's quotient of decimals has so many more fractional digits than its dividend.
_QUOTIENT_DIGITS: Final = 4


def quotient(left: Typed, right: Typed, semantics: Semantics) -> Typed:
    """Divide by ``/``: two DOUBLEs, or two decimals with the type and rounding of Spark's."""
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

    Example:
        >>> from pennon.predicate.condition import Semantics
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
    """Divide integers by ``div``: a BIGINT, cut."""
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
    """Take the remainder by ``%``, which has the sign of the dividend in both engines."""
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


_DOUBLE: Final = pa.float64()
_WHOLE: Final = pa.int64()


def sign(value: Typed, semantics: Semantics) -> Typed:
    """Give -1, 0 or 1 as a DOUBLE; NaN and the zeros as they are."""
    number = converted(value, _DOUBLE, semantics)
    one, zero = (Typed(double(value), _DOUBLE) for value in (1, 0))
    tree = choice(
        (call("isnan", number.tree.copy()), number.tree.copy()),
        (compared(exp.GT, number, zero).tree, one.tree),
        (compared(exp.LT, number, zero).tree, exp.Neg(this=one.tree.copy())),
        default=number.tree.copy(),
    )
    return Typed(tree, _DOUBLE)


def square_root(value: Typed, semantics: Semantics) -> Typed:
    """Take the square root, which IEEE 754 defines to the last bit; NaN of what is negative."""
    number = converted(value, _DOUBLE, semantics)
    return Typed(call("sqrt", number.tree), _DOUBLE)


def power(value: Typed, exponent: Typed) -> Typed:
    """Raise a DOUBLE to a power of which Java says the value to the last bit."""
    literal = literal_value(exponent.tree)
    number = value.tree
    if value.type != _DOUBLE or exponent.type != _DOUBLE or literal is None or not literal.is_valid:
        raise Declined(why="a computed power")
    match literal.as_py():
        case 2.0:
            return Typed(binary(exp.Mul, number, number.copy()), _DOUBLE)
        case 1.0:
            return value
        case -1.0:
            return Typed(binary(exp.Div, double(1), number), _DOUBLE)
        case 0.5:
            least = binary(exp.EQ, number, exp.Neg(this=_infinite()))
            root = call("sqrt", binary(exp.Add, number.copy(), double(0)))
            return Typed(choice((least, _infinite()), default=root), _DOUBLE)
    raise Declined(why=f"the power {literal}")


def _infinite() -> exp.Expr:
    return cast(exp.Literal.string("Infinity"), _DOUBLE)


def whole_number(operator: type[exp.Floor | exp.Ceil], value: Typed, semantics: Semantics) -> Typed:
    """Give the next whole number below, or above.

    A decimal keeps its digits before the point and one more; an integer or a DOUBLE is a BIGINT.
    """
    if value.is_decimal:
        return _whole_decimal(operator, value)
    if value.is_integer:
        return converted(value, _WHOLE, semantics)
    if value.type == _DOUBLE:
        return next_whole_number(operator, value, semantics)
    raise Declined(why=f"the next whole number of {value.type}")


def _whole_decimal(operator: type[exp.Floor | exp.Ceil], value: Typed) -> Typed:
    whole = value.type.precision - value.type.scale
    if whole + 1 + value.type.scale > MAX_DIGITS:
        raise Declined(why=f"a whole number of {value.type}")
    kept = pa.decimal128(whole + 1, 0)
    rounded = lossy_cast(value.tree.copy(), kept)
    one = cast(exp.Literal.string("1"), pa.decimal128(1, 0))
    is_floor = operator is exp.Floor
    beyond = binary(exp.GT if is_floor else exp.LT, rounded, value.tree.copy())
    corrected = binary(exp.Sub if is_floor else exp.Add, rounded.copy(), one)
    return Typed(choice((beyond, cast(corrected, kept)), default=rounded.copy()), kept)


def positive_remainder(left: Typed, right: Typed, semantics: Semantics) -> Typed:
    """Take the remainder that is not negative (``pmod``) where the divisor is positive.

    A negative remainder gets the divisor added, and is divided again. In both engines that sum
    wraps, of short integers as an INT.
    """
    if not (left.is_integer and left.type == right.type):
        raise Declined(why=f"pmod of {left.type}")
    over = remainder(left, right, semantics)
    wide = left.type if left.type == _WHOLE else pa.int32()
    divisor = Typed(cast(right.tree.copy(), wide), wide)
    added = cast(binary(exp.Add, cast(over.tree.copy(), wide), divisor.tree), wide)
    again = Typed(added, wide)
    if (stated_integer(right) or 0) <= 0:
        again = remainder(again, divisor, semantics)
    is_negative = binary(exp.LT, over.tree, integer(0, left.type))
    tree = choice((is_negative, cast(again.tree, left.type)), default=over.tree.copy())
    return Typed(tree, left.type, can_fail=over.can_fail)


def bits(operator: type[exp.Binary], left: Typed, right: Typed) -> Typed:
    """Combine the bits of two integers of one width."""
    if not (left.is_integer and left.type == right.type):
        raise Declined(why=f"bits of {left.type} and {right.type}")
    is_stated = any(stated_integer(value) is not None for value in (left, right))
    if operator is exp.BitwiseXor and not is_stated:
        raise Declined(why="^ of two columns")
    tree = exp.paren(binary(operator, left.tree, right.tree), copy=False)
    return Typed(cast(tree, left.type), left.type)


def shifted(value: Typed, count: Typed, *, is_left: bool) -> Typed:
    """Move the bits of an INT or a BIGINT; to the right the sign comes in."""
    stated = stated_integer(count)
    if value.type not in (pa.int32(), _WHOLE):
        raise Declined(why=f"bits of {value.type}")
    if stated is None or not 0 <= stated < value.type.bit_width:
        raise Declined(why="a computed or large number of bits")
    operator = exp.BitwiseLeftShift if is_left else exp.BitwiseRightShift
    tree = exp.paren(binary(operator, value.tree, integer(stated, value.type)), copy=False)
    return Typed(cast(tree, value.type), value.type)


def number_or(value: Typed, other: Typed) -> Typed:
    """Give another value for NaN (``nanvl``)."""
    if not value.is_float or value.type != other.type or other.can_fail:
        raise Declined(why=f"nanvl of {value.type}")
    is_nan = call("isnan", value.tree.copy())
    return Typed(choice((is_nan, other.tree), default=value.tree), value.type)


def complement(value: Typed) -> Typed:
    """Invert all bits of an integer: that is -1 minus it, which always fits."""
    if not value.is_integer:
        raise Declined(why=f"bits of {value.type}")
    return Typed(cast(binary(exp.Sub, integer(-1, value.type), value.tree), value.type), value.type)


FEWEST_KEPT_DIGITS: Final = 6
# Spark turns a decimal's sign in Scala's usual precision, and rounds what has more digits.
_DIGITS_OF_SCALA: Final = 34


def arithmetic(
    operator: type[exp.Binary], left: Typed, right: Typed, semantics: Semantics
) -> Typed:
    """Add, subtract or multiply as Spark does.

    Spark: an integer that leaves its width is ARITHMETIC_OVERFLOW; decimals have the type of
    ``exact_decimal``, rounded half up, and one that does not fit is an error. Both under ANSI;
    without, integers wrap, and a decimal that does not fit is NULL.
    """
    if left.is_decimal and right.is_decimal:
        return _decimal(operator, left, right, semantics)
    if left.type != right.type:
        raise Declined(why="arithmetic on two types")
    if left.is_float:
        return Typed(binary(operator, left.tree, right.tree), left.type)
    if not left.is_integer:
        raise Declined(why=f"arithmetic on {left.type}")
    if not (semantics.ansi or semantics.is_tried):
        return Typed(cast(binary(operator, left.tree, right.tree), left.type), left.type)
    if left.type.bit_width < pa.int64().bit_width:
        wide = pa.int64()
        computed = binary(operator, cast(left.tree, wide), cast(right.tree, wide))
    else:
        # exact in 128 bits: a product has less than 39 digits
        exact = pa.decimal128(INTEGER_DIGITS[left.type.bit_width], 0)
        computed = binary(operator, cast(left.tree, exact), cast(right.tree, exact))
    tree = lossy_cast(computed, left.type, is_tried=semantics.is_tried)
    return Typed(tree, left.type, can_fail=not semantics.is_tried)


def _decimal(operator: type[exp.Binary], left: Typed, right: Typed, semantics: Semantics) -> Typed:
    precision, scale = exact_decimal(operator, left.type, right.type)
    if precision <= MAX_DIGITS:
        return Typed(binary(operator, left.tree, right.tree), pa.decimal128(precision, scale))
    kept = pa.decimal128(*adjusted(precision, scale))
    computed = _wide(operator, (left, left.type.scale), (right, right.type.scale))
    tree = lossy_cast(computed, kept, is_tried=not semantics.ansi)
    return Typed(tree, kept, can_fail=semantics.ansi)


def exact_decimal(
    operator: type[exp.Expr], left: pa.DataType, right: pa.DataType
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
    fewest = min(scale, FEWEST_KEPT_DIGITS)
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


def negated(value: Typed, semantics: Semantics) -> Typed:
    """Take the opposite; that of the smallest integer is an error under ANSI."""
    if value.is_float or _keeps_digits(value):
        return Typed(exp.Neg(this=exp.paren(value.tree)), value.type)
    return arithmetic(exp.Sub, Typed(integer(0, value.type), value.type), value, semantics)


def magnitude(value: Typed, semantics: Semantics) -> Typed:
    """Take the absolute value; that of the smallest integer is an error under ANSI."""
    if value.is_float or _keeps_digits(value):
        return Typed(exp.Abs(this=value.tree), value.type)
    opposite = negated(value, semantics)
    zero = integer(0, value.type)
    is_negative = binary(exp.LT, value.tree.copy(), zero)
    tree = choice((is_negative, opposite.tree), default=value.tree.copy())
    return Typed(tree, value.type, can_fail=opposite.can_fail)


def _keeps_digits(value: Typed) -> bool:
    """Whether a value is a decimal that Spark does not round when it turns the sign."""
    if value.is_decimal and value.type.precision > _DIGITS_OF_SCALA:
        raise Declined(why=f"the sign of {value.type}")
    return value.is_decimal


def unscaled(value: Typed) -> Typed:
    """Take the digits of a decimal as a BIGINT, which Spark sums instead of a short decimal."""
    if not value.is_decimal or value.type.precision >= INTEGER_DIGITS[64]:
        raise Declined(why=f"the digits of {value.type}")
    whole = pa.int64()
    if not value.type.scale:
        return Typed(cast(value.tree, whole), whole)
    factor = cast(integer(10**value.type.scale, whole), pa.decimal128(value.type.scale + 1, 0))
    return Typed(cast(binary(exp.Mul, value.tree, factor), whole), whole)


def decimal_of_unscaled(value: Typed, precision: int, scale: int, semantics: Semantics) -> Typed:
    """Make a decimal of its digits; too many of them are an error under ANSI."""
    if (
        value.type != pa.int64()
        or not semantics.ansi
        or not scale <= precision < INTEGER_DIGITS[64]
    ):
        raise Declined(why=f"a decimal of the digits {value.type}")
    kept = pa.decimal128(precision, scale)
    exact = cast(value.tree, pa.decimal128(INTEGER_DIGITS[64], 0))
    if scale:
        exact = binary(exp.Mul, exact, least_decimal(scale))
    return Typed(cast(exact, kept), kept, can_fail=True)


def rounded(value: Typed, digits: int, semantics: Semantics) -> Typed:
    """Round half up to some fractional digits."""
    if digits < 0:
        raise Declined(why="rounding before the point")
    if value.is_float:
        return rounded_double(value, digits)
    if value.is_integer:
        return value
    if not value.is_decimal:
        raise Declined(why=f"rounding of {value.type}")
    scale = min(digits, value.type.scale)
    precision = min(value.type.precision - value.type.scale + 1 + scale, MAX_DIGITS)
    return converted(value, pa.decimal128(precision, scale), semantics)


def common_number(types: list[pa.DataType]) -> pa.DataType:
    """Give the type to which Spark casts numbers that it compares, or has in one column.

    Example:
        >>> common_number([pa.int32(), pa.decimal128(5, 2)])
        Decimal128Type(decimal128(12, 2))
    """
    if pa.float64() in types:
        if all(pa.types.is_floating(type_) or pa.types.is_integer(type_) for type_ in types):
            return pa.float64()
        raise Declined(why="decimals beside floats")
    if all(pa.types.is_signed_integer(type_) for type_ in types):
        return max(types, key=lambda type_: type_.bit_width)
    sizes = [
        (type_.precision, type_.scale)
        if pa.types.is_decimal(type_)
        else (INTEGER_DIGITS.get(type_.bit_width, 0) if pa.types.is_signed_integer(type_) else 0, 0)
        for type_ in types
    ]
    scale = max(scale for _, scale in sizes)
    whole = max(precision - scale for precision, scale in sizes)
    if any(precision == 0 for precision, _ in sizes) or whole + scale > MAX_DIGITS:
        raise Declined(why="values of several types")
    return pa.decimal128(whole + scale, scale)
