"""A comparison with a literal of another type, as the same comparison in the column's type.

``int = 5.5`` is never true, ``int > 3000000000`` neither, ``int < 5.5`` is ``int <= 5``: the
literal's place between two neighbouring values of the column's type decides. What Spark would
compare inexactly (a bigint with a double of 2^53 or more) is declined with None.

NULL rules: a comparison that is true for every value but NULL comes to IS NOT NULL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pennon.planning.binding.bound_predicate import (
    FALSE,
    BoundPredicate,
    Compared,
    SourceColumn,
    all_of,
    any_of,
    is_not_null,
)
from pennon.predicate.condition import Comparison, Operator
from pennon.predicate.values.conversion import DOUBLE_INTEGERS, FLOAT_INTEGERS, convert
from pennon.predicate.values.time_units import is_binary, is_number, is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

# Lists from here on are fitted at once.
_LONG = 20
# Decimals of so many digits are different doubles.
_DOUBLE_DIGITS = 15
_LESS = (Operator.LESS, Operator.LESS_OR_EQUAL)
_GREATER = (Operator.GREATER, Operator.GREATER_OR_EQUAL)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a literal lies among the values of a type: right after ``below``, or on it."""

    below: pa.Scalar | None
    is_on: bool
    is_above_all: bool = False


def fit(operator: Operator, literal: pa.Scalar, column: SourceColumn) -> BoundPredicate | None:
    """Compare a column with a literal of any type.

    Args:
        operator: ``=``, ``<>`` or one of the four orderings.
        literal: The literal in its own type; NULL is never true.
        column: The column; dates and timestamps take literals of their own kind or text.

    Returns:
        The predicate in the column's type, or None where the comparison is not understood.

    Example:
        >>> column = SourceColumn(("a",), 0, pa.int32())
        >>> print(fit(Operator.LESS, pa.scalar(5.5), column).comparison)
        <= 5
    """
    if not literal.is_valid:
        return FALSE
    if literal.type.equals(column.type):
        return Compared(column, Comparison(operator, (literal,)))
    if pa.types.is_string(literal.type) and not is_text(column.type):
        read = convert(literal, column.type)
        return None if read is None else Compared(column, Comparison(operator, (read,)))
    if is_number(column.type) and is_number(literal.type):
        place = _place_number(literal, column.type)
        return None if place is None else _decide(operator, place, column)
    same = convert(literal, column.type) if _is_same_kind(literal.type, column.type) else None
    return None if same is None else Compared(column, Comparison(operator, (same,)))


def fit_in(
    literals: Sequence[pa.Scalar], column: SourceColumn, *, negated: bool
) -> BoundPredicate | None:
    """Compare a column with a list without NULLs: IN, or NOT IN."""
    operator = Operator.NOT_EQUAL if negated else Operator.EQUAL
    same = _in_own_type(literals, column.type)
    if same is not None:
        listed = Operator.NOT_IN if negated else Operator.IN
        return Compared(column, Comparison(listed, same))
    parts: list[BoundPredicate] = []
    for literal in literals:
        part = fit(operator, literal, column)
        if part is None:
            return None
        parts.append(part)
    return one_list(parts, column, negated=negated)


def is_mixed(literals: Sequence[pa.Scalar]) -> bool:
    """Whether decimals are listed beside doubles, as which Spark compares all of them."""
    types = {literal.type for literal in literals}
    return any(map(pa.types.is_decimal, types)) and any(map(pa.types.is_floating, types))


def _in_own_type(
    literals: Sequence[pa.Scalar], data_type: pa.DataType
) -> tuple[pa.Scalar, ...] | None:
    """Give a long list of integers or texts in the column's type, all at once; None where not."""
    if len(literals) < _LONG or len({literal.type for literal in literals}) > 1:
        return None
    given = literals[0].type
    is_text_list = pa.types.is_string(given) and pa.types.is_string(data_type)
    if not is_text_list and not (pa.types.is_integer(given) and pa.types.is_integer(data_type)):
        return None
    distinct = pa.array([literal.as_py() for literal in literals], given).unique()
    try:
        fitted = tuple(distinct.cast(data_type))
    except pa.ArrowInvalid:
        return None
    return fitted if len(fitted) > 1 and distinct.null_count == 0 else None


def one_list(
    parts: Sequence[BoundPredicate], column: SourceColumn, *, negated: bool
) -> BoundPredicate:
    """Join comparisons by OR (for NOT IN by AND), the equalities as one IN."""
    equal = Operator.NOT_EQUAL if negated else Operator.EQUAL
    literals: dict[pa.Scalar, None] = {}
    exact = True
    rest: list[BoundPredicate] = []
    for part in parts:
        if isinstance(part, Compared) and part.comparison.operator is equal:
            literals[part.comparison.literal] = None
            exact = exact and part.is_exact
        else:
            rest.append(part)
    listed = Operator.NOT_IN if negated else Operator.IN
    if len(literals) > 1:
        rest.append(Compared(column, Comparison(listed, tuple(literals)), is_exact=exact))
    elif literals:
        rest.append(Compared(column, Comparison(equal, tuple(literals)), is_exact=exact))
    unique = list(dict.fromkeys(rest))
    return all_of(unique) if negated else any_of(unique)


def compare_integer(operator: Operator, value: Fraction, column: SourceColumn) -> BoundPredicate:
    """Compare an integer column with an exact number of any size."""
    return _decide(operator, _place_integer(value, column.type), column)


def is_widened(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast between number types keeps every value, so that it can be left out.

    A bigint cast to double is included: ``fit`` declines the literals for which that matters.
    """
    if source.equals(target):
        return True
    if pa.types.is_integer(source):
        if pa.types.is_integer(target):
            low, high = _limits(source)
            target_low, target_high = _limits(target)
            return target_low <= low and high <= target_high
        if pa.types.is_decimal(target):
            return bool(10 ** (target.precision - target.scale) > _limits(source)[1])
        return bool(pa.types.is_float64(target))
    if pa.types.is_decimal(source):
        return bool(
            pa.types.is_decimal(target)
            and target.scale >= source.scale
            and target.precision - target.scale >= source.precision - source.scale
        )
    return bool(pa.types.is_float32(source) and pa.types.is_float64(target))


def _decide(operator: Operator, place: _Place, column: SourceColumn) -> BoundPredicate:
    if place.is_on and place.below is not None:
        return Compared(column, Comparison(operator, (place.below,)))
    if operator is Operator.EQUAL:
        return FALSE
    if operator is Operator.NOT_EQUAL:
        return is_not_null(column)
    if place.below is None or place.is_above_all:
        is_always = operator in (_GREATER if place.below is None else _LESS)
        return is_not_null(column) if is_always else FALSE
    bounded = Operator.LESS_OR_EQUAL if operator in _LESS else Operator.GREATER
    return Compared(column, Comparison(bounded, (place.below,)))


def _place_number(literal: pa.Scalar, data_type: pa.DataType) -> _Place | None:
    value = literal.as_py()
    if pa.types.is_floating(data_type):
        return _place_float(value, literal.type, data_type)
    if isinstance(value, float):
        if not math.isfinite(value):
            if value < 0:
                return _Place(below=None, is_on=False)
            return _Place(_highest(data_type), is_on=False, is_above_all=True)
        if pa.types.is_decimal(data_type):
            return _place_among_doubles(value, data_type)
        limit = DOUBLE_INTEGERS if pa.types.is_float64(literal.type) else FLOAT_INTEGERS
        if abs(value) >= limit:
            return None
    number = value if isinstance(value, int) else Fraction(value)
    return (
        _place_integer(number, data_type)
        if pa.types.is_integer(data_type)
        else _place_decimal(number, data_type)
    )


def _place_integer(number: int | Fraction, data_type: pa.DataType) -> _Place:
    low, high = _limits(data_type)
    if number < low:
        return _Place(below=None, is_on=False)
    if number > high:
        return _Place(pa.scalar(high, data_type), is_on=False, is_above_all=True)
    below = math.floor(number)
    return _Place(pa.scalar(below, data_type), is_on=below == number)


def _place_decimal(number: int | Fraction, data_type: pa.DataType) -> _Place:
    unscaled = number * 10**data_type.scale
    highest = 10**data_type.precision - 1
    if unscaled < -highest:
        return _Place(below=None, is_on=False)
    if unscaled > highest:
        return _Place(_decimal(highest, data_type), is_on=False, is_above_all=True)
    below = math.floor(unscaled)
    return _Place(_decimal(below, data_type), is_on=below == unscaled)


def _place_among_doubles(value: float, data_type: pa.DataType) -> _Place | None:
    """Place a double among decimals, which Spark compares as doubles: no two of them are one."""
    if data_type.precision > _DOUBLE_DIGITS:
        return None
    nearest = round(Fraction(value) * 10**data_type.scale)
    if abs(nearest) < 10**data_type.precision and nearest / 10**data_type.scale == value:
        return _Place(_decimal(nearest, data_type), is_on=True)
    return _place_decimal(Fraction(value), data_type)


def _place_float(
    value: float | Decimal, literal_type: pa.DataType, data_type: pa.DataType
) -> _Place:
    """Place among doubles, as which Spark compares; NaN is the greatest of them."""
    double = float(value)
    if pa.types.is_float64(data_type) or pa.types.is_float32(literal_type):
        return _Place(pa.scalar(double, data_type), is_on=True)
    with np.errstate(over="ignore"):
        nearest = np.float32(double)
        if math.isnan(double) or float(nearest) == double:
            return _Place(pa.scalar(float(nearest), data_type), is_on=True)
        if float(nearest) > double:
            nearest = np.nextafter(nearest, np.float32(-np.inf))
    return _Place(pa.scalar(float(nearest), data_type), is_on=False)


def _decimal(unscaled: int, data_type: pa.DataType) -> pa.Scalar:
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return pa.scalar(Decimal((int(unscaled < 0), digits, -data_type.scale)), data_type)


def _limits(data_type: pa.DataType) -> tuple[int, int]:
    bits = data_type.bit_width
    if pa.types.is_unsigned_integer(data_type):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _highest(data_type: pa.DataType) -> pa.Scalar:
    if pa.types.is_integer(data_type):
        return pa.scalar(_limits(data_type)[1], data_type)
    return _decimal(10**data_type.precision - 1, data_type)


def _is_same_kind(literal: pa.DataType, column: pa.DataType) -> bool:
    if pa.types.is_timestamp(literal) and pa.types.is_timestamp(column):
        return (literal.tz is None) == (column.tz is None)
    checks = (pa.types.is_boolean, pa.types.is_date, pa.types.is_time, is_text, is_binary)
    return any(check(literal) and check(column) for check in checks)
