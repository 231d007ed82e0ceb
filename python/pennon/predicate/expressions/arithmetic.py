"""Arithmetic that is exactly Spark's: one function per difference between DataFusion and Spark.

NULL rules: every operator gives NULL for NULL.

| DataFusion | Spark | guard |
|---|---|---|
| integer arithmetic wraps | an error (ANSI), or NULL (``try_add``) | in a wider type, cast back |
| | so it does without ANSI | none |
| decimals beyond 38 digits are cut | rounded half up | in 76 digits, cast back |
| | one that does not fit is NULL without ANSI | a cast that gives NULL |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.expressions.casts import converted
from pennon.predicate.expressions.floats import rounded_double
from pennon.predicate.typed import (
    INTEGER_DIGITS,
    MAX_DIGITS,
    Typed,
    binary,
    cast,
    choice,
    decimal_type,
    integer,
    least_decimal,
    lossy_cast,
)

if TYPE_CHECKING:
    from pennon.predicate.condition import Semantics

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

    Raises:
        Declined: Types differ.
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
    """Take the opposite; that of the smallest integer is an error under ANSI.

    Raises:
        Declined: No number, or a decimal that Spark may round.
    """
    if value.is_float or _keeps_digits(value):
        return Typed(exp.Neg(this=exp.paren(value.tree)), value.type)
    return arithmetic(exp.Sub, Typed(integer(0, value.type), value.type), value, semantics)


def magnitude(value: Typed, semantics: Semantics) -> Typed:
    """Take the absolute value; that of the smallest integer is an error under ANSI.

    Raises:
        Declined: No number, or a decimal that Spark may round.
    """
    if value.is_float or _keeps_digits(value):
        return Typed(exp.Abs(this=value.tree), value.type)
    opposite = negated(value, semantics)
    zero = integer(0, value.type)
    is_negative = binary(exp.LT, value.tree.copy(), zero)
    tree = choice((is_negative, opposite.tree), default=value.tree.copy())
    return Typed(tree, value.type, can_fail=opposite.can_fail)


def _keeps_digits(value: Typed) -> bool:
    """Whether a value is a decimal that Spark does not round when it turns the sign.

    Raises:
        Declined: It is one that Spark may round.
    """
    if value.is_decimal and value.type.precision > _DIGITS_OF_SCALA:
        raise Declined(why=f"the sign of {value.type}")
    return value.is_decimal


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
        exact = binary(exp.Mul, exact, least_decimal(scale))
    return Typed(cast(exact, kept), kept, can_fail=True)


def rounded(value: Typed, digits: int, semantics: Semantics) -> Typed:
    """Round half up to some fractional digits.

    Raises:
        Declined: FLOATs, digits before the point, or what ``rounded_double`` declines.
    """
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

    Raises:
        Declined: Not only numbers, or too many digits.

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
