"""Where DataFusion is not Spark, and what makes it so: one function per difference.

NULL rules: every guard gives NULL for NULL, and comparisons keep SQL's three values.

| DataFusion | Spark | guard |
|---|---|---|
| sums of 64-bit integers wrap | an error (ANSI) | ``total``: sum as DECIMAL(38, 0), cast back |
| sums of decimals wrap beyond 38 digits | an error (ANSI) | ``total``: sum in 76 digits |
| integer arithmetic wraps | an error (ANSI) | ``arithmetic``: in a wider type, cast back |
| decimals beyond 38 digits are cut | rounded half up | ``arithmetic``: in 76 digits, cast back |
| -0.0 is less than 0.0; NaNs differ by sign | equal; one NaN, greatest | ``comparable`` |
| literals are BIGINT or DECIMAL(20, 0) | of their own type | every literal is a CAST |

Declined: divisions, casts from text or to text, AVG of decimals as a whole, whatever depends on a
time zone, and every overflow where ANSI is off and Spark would give NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.pushdown.semantics import Declined
from pennon.pushdown.typed import MAX_DIGITS, WIDE_DIGITS, Typed, cast, decimal_type, enclosed

if TYPE_CHECKING:
    from pennon.pushdown.semantics import Semantics

_INTEGER_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 19}
_FEWEST_KEPT_DIGITS = 6
# Sums of at most this many decimal digits more than their values cannot overflow: 10**10 rows.
_SUM_DIGITS = 10
_OPERATORS: Final = {exp.Add: exp.Add, exp.Sub: exp.Sub, exp.Mul: exp.Mul}


def comparable(value: Typed) -> exp.Expr:
    """Make equal what Spark holds equal: one NaN, one zero.

    Spark: ``-0.0 = 0.0``, ``NaN = NaN``, and NaN is greater than everything, as value, join key
    and grouping key; a grouping key comes out as 0.0 and NaN.
    """
    if not value.is_float:
        return value.tree
    zero = cast(exp.Literal.string("0.0"), value.type)
    return _nan_or(value, exp.Add(this=enclosed(value.tree.copy()), expression=zero))


def extreme_of(value: Typed) -> exp.Expr:
    """Make MIN and MAX see one NaN, greater than everything; zeros keep their sign."""
    return _nan_or(value, value.tree.copy()) if value.is_float else value.tree


def _nan_or(value: Typed, other: exp.Expr) -> exp.Expr:
    nan = cast(exp.Literal.string("NaN"), value.type)
    is_nan = exp.Anonymous(this="isnan", expressions=[value.tree.copy()])
    return exp.Case(ifs=[exp.If(this=is_nan, true=nan)], default=other)


def arithmetic(
    operator: type[exp.Binary], left: Typed, right: Typed, semantics: Semantics
) -> Typed:
    """Add, subtract or multiply as Spark does.

    Spark: an integer that leaves its width is ARITHMETIC_OVERFLOW; decimals have the type of
    ``decimal_result``, rounded half up, and one that does not fit is an error. Both under ANSI.

    Raises:
        Declined: Types differ, or an overflow would not be an error in this session.
    """
    if left.is_decimal and right.is_decimal:
        return _decimal(operator, left, right, semantics)
    if left.type != right.type:
        raise Declined(why="arithmetic on two types")
    if left.is_float:
        return Typed(_apply(operator, left.tree, right.tree), left.type)
    if not left.is_integer:
        raise Declined(why=f"arithmetic on {left.type}")
    if not semantics.ansi:
        raise Declined(why="integers that wrap")
    if left.type.bit_width < pa.int64().bit_width:
        wide = pa.int64()
        computed = _apply(operator, cast(left.tree, wide), cast(right.tree, wide))
    else:
        # DataFusion's cast from 256 bits to BIGINT wraps, the one from 128 bits does not
        whole = pa.decimal128(MAX_DIGITS, 0)
        computed = cast(_wide_apply(operator, (left, 0), (right, 0)), whole)
    return Typed(cast(computed, left.type), left.type)


def _decimal(operator: type[exp.Binary], left: Typed, right: Typed, semantics: Semantics) -> Typed:
    precision, scale = exact_decimal(operator, left.type, right.type)
    if precision <= MAX_DIGITS:
        return Typed(_apply(operator, left.tree, right.tree), pa.decimal128(precision, scale))
    if not semantics.ansi:
        raise Declined(why="decimals beyond 38 digits that would be NULL")
    kept = pa.decimal128(*adjusted(precision, scale))
    computed = _wide_apply(operator, (left, left.type.scale), (right, right.type.scale))
    return Typed(cast(computed, kept), kept)


def exact_decimal(
    operator: type[exp.Binary], left: pa.DataType, right: pa.DataType
) -> tuple[int, int]:
    """Give the precision and scale in which the result of an operator is exact.

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


def _wide_apply(
    operator: type[exp.Binary], left: tuple[Typed, int], right: tuple[Typed, int]
) -> exp.Expr:
    """Compute in 256 bits, where no operator on two values of at most 38 digits overflows."""
    sides = [
        exp.Cast(this=side.tree, to=decimal_type(MAX_DIGITS + 1, scale))
        for side, scale in (left, right)
    ]
    return _apply(operator, *sides)


def _apply(operator: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return operator(this=enclosed(left), expression=enclosed(right))


def total(value: Typed, semantics: Semantics) -> Typed:
    """Sum as Spark does.

    Spark: integers sum to BIGINT, decimals to ten more digits (at most 38), floats to DOUBLE in no
    defined order. A sum that does not fit is an error under ANSI; without, a BIGINT sum wraps.

    Raises:
        Declined: Not a number, or an overflow would be NULL in this session.
    """
    if value.is_float:
        return Typed(_sum(cast(value.tree, pa.float64())), pa.float64())
    if value.is_integer:
        is_safe = value.type.bit_width < pa.int64().bit_width  # 2**32 rows cannot overflow
        if is_safe or not semantics.ansi:
            return Typed(_sum(cast(value.tree, pa.int64())), pa.int64())
        exact = _sum(cast(value.tree, pa.decimal128(MAX_DIGITS, 0)))
        return Typed(cast(exact, pa.int64()), pa.int64())
    if not value.is_decimal:
        raise Declined(why=f"the sum of {value.type}")
    precision, scale = value.type.precision, value.type.scale
    kept = pa.decimal128(min(MAX_DIGITS, precision + _SUM_DIGITS), scale)
    if precision + _SUM_DIGITS <= MAX_DIGITS:
        return Typed(_sum(value.tree), kept)
    if not semantics.ansi:
        raise Declined(why="sums of decimals that would be NULL")
    wide = exp.Cast(this=value.tree, to=decimal_type(WIDE_DIGITS, scale))
    return Typed(cast(_sum(wide), kept), kept)


def _sum(tree: exp.Expr) -> exp.Expr:
    return exp.Sum(this=tree)


def converted(value: Typed, target: pa.DataType, semantics: Semantics) -> Typed:
    """Cast as Spark does, where nothing is read from or written as text.

    Spark: integers widen; to a decimal or a float they are exact or nearest; a decimal is rounded
    half up, and one that does not fit is an error under ANSI.

    Raises:
        Declined: The cast is not one of these.
    """
    if value.type == target:
        return value
    is_widening = (
        pa.types.is_null(value.type)
        or (value.is_integer and _integer_widens(value.type, target))
        or (value.type == pa.float32() and target == pa.float64())
        or (value.is_decimal and _decimal_is_cast(value.type, target, semantics))
    )
    if not is_widening:
        raise Declined(why=f"a cast of {value.type} to {target}")
    return Typed(cast(value.tree, target), target)


def _integer_widens(found: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_signed_integer(target):
        return bool(target.bit_width >= found.bit_width)
    if pa.types.is_decimal(target):
        return bool(target.precision - target.scale >= _INTEGER_DIGITS[found.bit_width])
    return bool(pa.types.is_floating(target))


def _decimal_is_cast(found: pa.DataType, target: pa.DataType, semantics: Semantics) -> bool:
    if not pa.types.is_decimal(target):
        return False
    fits = target.precision - target.scale >= found.precision - found.scale
    return semantics.ansi or (fits and target.scale >= found.scale)
