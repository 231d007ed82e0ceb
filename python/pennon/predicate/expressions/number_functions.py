"""Functions of numbers that are exactly Spark's.

NULL rules: every function gives NULL for NULL.

| DataFusion | Spark | guard |
|---|---|---|
| the sign of zero is 1 or -1, or loses its own | zero as it is | CASE |
| floor and ceil of decimals are floats | decimals without a fraction | rounded, then corrected |
| bits move by any number | by its last five or six bits | literals in between |
| no operator inverts bits | ``~`` | -1 minus the value |
| ``%`` has the dividend's sign | ``pmod`` of a positive divisor has none | it is added |

Declined: other powers, logarithms and trigonometry, of which the last digit differs between
libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.casts import converted
from pennon.predicate.expressions.floats.float_order import compared
from pennon.predicate.expressions.floats.whole_numbers import next_whole_number
from pennon.predicate.expressions.quotients import remainder
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import (
    MAX_DIGITS,
    Typed,
    binary,
    call,
    cast,
    choice,
    double,
    integer,
    lossy_cast,
    stated_integer,
)
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from pennon.predicate.semantics import Semantics

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
    """Raise a DOUBLE to a power of which Java says the value to the last bit.

    Raises:
        Declined: Another exponent than 2, 1, -1 or 0.5, or one that is computed.
    """
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

    Raises:
        Declined: No number, or a decimal of too many digits.
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

    Raises:
        Declined: No integers of one type.
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
    """Combine the bits of two integers of one width.

    Raises:
        Declined: No integers, or of two widths; or ``^`` of two that are computed: DataFusion makes
            ``a ^ a`` zero where ``a`` is NULL.
    """
    if not (left.is_integer and left.type == right.type):
        raise Declined(why=f"bits of {left.type} and {right.type}")
    is_stated = any(stated_integer(value) is not None for value in (left, right))
    if operator is exp.BitwiseXor and not is_stated:
        raise Declined(why="^ of two columns")
    tree = exp.paren(binary(operator, left.tree, right.tree), copy=False)
    return Typed(cast(tree, left.type), left.type)


def shifted(value: Typed, count: Typed, *, is_left: bool) -> Typed:
    """Move the bits of an INT or a BIGINT; to the right the sign comes in.

    Raises:
        Declined: Another type; or a number of bits that is computed, or that Java would cut.
    """
    stated = stated_integer(count)
    if value.type not in (pa.int32(), _WHOLE):
        raise Declined(why=f"bits of {value.type}")
    if stated is None or not 0 <= stated < value.type.bit_width:
        raise Declined(why="a computed or large number of bits")
    operator = exp.BitwiseLeftShift if is_left else exp.BitwiseRightShift
    tree = exp.paren(binary(operator, value.tree, integer(stated, value.type)), copy=False)
    return Typed(cast(tree, value.type), value.type)


def number_or(value: Typed, other: Typed) -> Typed:
    """Give another value for NaN (``nanvl``).

    Raises:
        Declined: No floats of one type; or the other one can be an error.
    """
    if not value.is_float or value.type != other.type or other.can_fail:
        raise Declined(why=f"nanvl of {value.type}")
    is_nan = call("isnan", value.tree.copy())
    return Typed(choice((is_nan, other.tree), default=value.tree), value.type)


def complement(value: Typed) -> Typed:
    """Invert all bits of an integer: that is -1 minus it, which always fits.

    Raises:
        Declined: No integer.
    """
    if not value.is_integer:
        raise Declined(why=f"bits of {value.type}")
    return Typed(cast(binary(exp.Sub, integer(-1, value.type), value.tree), value.type), value.type)
