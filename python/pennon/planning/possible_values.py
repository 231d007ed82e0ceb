"""What an expression can be in each of some leaves, by what its operands can be there.

Spark computes with one row, this with the bounds of all rows of a leaf: what comes of it holds
every value that a row can have. Where one of them may be an error, as an integer that leaves its
width is, nothing is known of the leaf, so that the error still appears. Floats have no bounds here:
they round, and NaN and the zeros have an order of their own.

NULL rules: bounds are those of the values that are not NULL; ``has_null`` tells whether NULL may be
among them. An operator gives NULL for NULL but for AND, OR, COALESCE, CASE and ``<=>``.
"""

from __future__ import annotations

import bisect
import operator as comparing
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.predicate.expressions.arithmetic import exact_decimal
from pennon.predicate.typed import MAX_DIGITS, WIDE_DIGITS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pennon.manifest.statistics_texts import ColumnBounds

__all__ = [
    "PossibleValues",
    "arithmetic",
    "both",
    "compared",
    "either",
    "first_valid",
    "listed",
    "magnitude",
    "negated",
    "null_safe_equal",
]

_Flags = np.ndarray[Any, np.dtype[np.bool_]]
_ORDERINGS: Final[dict[type[exp.Expr], Callable[[Any, Any], Any]]] = {
    exp.LT: comparing.lt,
    exp.LTE: comparing.le,
    exp.GT: comparing.gt,
    exp.GTE: comparing.ge,
}


@dataclass(frozen=True, slots=True)
class PossibleValues:
    """What an expression can be; all arrays have one value per leaf.

    Args:
        type: Of the expression.
        lower: A value that none is below, where ``has_values``: dates are days since 1970,
            timestamps microseconds, FALSE and TRUE 0 and 1.
        upper: A value that none is above.
        has_values: Whether it can be another value than NULL.
        has_null: Whether it can be NULL.
        is_open: Whether nothing is known of it, or it may be an error.
    """

    type: pa.DataType
    lower: NDArray[np.object_]
    upper: NDArray[np.object_]
    has_values: _Flags
    has_null: _Flags
    is_open: _Flags

    @classmethod
    def of_bounds(cls, bounds: ColumnBounds) -> PossibleValues | None:
        """Take what is known of a column; None where its type has no bounds here."""
        has_values = pc.is_valid(bounds.lower)
        is_bounded = pc.and_(bounds.is_known, pc.equal(has_values, pc.is_valid(bounds.upper)))
        lower, upper = _plain(bounds.lower), _plain(bounds.upper)
        if lower is None or upper is None:
            return None
        has_null = pc.fill_null(pc.greater(bounds.null_count, 0), fill_value=True)
        return cls(
            bounds.lower.type,
            lower,
            upper,
            has_values.to_numpy(zero_copy_only=False),
            has_null.to_numpy(zero_copy_only=False),
            ~is_bounded.to_numpy(zero_copy_only=False),
        )

    @classmethod
    def of_literal(cls, literal: pa.Scalar, num_leaves: int) -> PossibleValues | None:
        """Give a value that is the same in all leaves; None where its type has no bounds here."""
        value = _plain(pa.array([literal], literal.type))
        if value is None:
            return None
        values, is_valid = np.repeat(value, num_leaves), np.full(num_leaves, literal.is_valid)
        never = np.zeros(num_leaves, dtype=bool)
        return cls(literal.type, values, values, is_valid, ~is_valid, never)

    @classmethod
    def of_truth(
        cls, is_true: _Flags, is_false: _Flags, has_null: _Flags, is_open: _Flags
    ) -> PossibleValues:
        """Give a condition by whether it can be TRUE, FALSE and NULL."""
        lower, upper = (~is_false).astype(int), is_true.astype(int)
        values = lower.astype(object), upper.astype(object)
        return cls(pa.bool_(), *values, is_true | is_false, has_null, is_open)

    @property
    def can_be_true(self) -> _Flags:
        """Whether a condition can be TRUE."""
        is_true: _Flags = self.has_values & self.upper.astype(bool)
        return is_true

    @property
    def can_be_false(self) -> _Flags:
        """Whether a condition can be FALSE."""
        is_false: _Flags = self.has_values & ~self.lower.astype(bool)
        return is_false

    def inverted(self) -> PossibleValues:
        """Give NOT of a condition."""
        is_true, is_false = self.can_be_false, self.can_be_true
        return PossibleValues.of_truth(is_true, is_false, self.has_null, self.is_open)

    def is_null(self) -> PossibleValues:
        """Give IS NULL, which is never NULL."""
        never = np.zeros(len(self.lower), dtype=bool)
        return PossibleValues.of_truth(self.has_null, self.has_values, never, self.is_open)

    def cast(self, target: pa.DataType) -> PossibleValues | None:
        """Cast to a type in which every value that fits is the same; None for another one.

        Args:
            target: The type; where a value may not fit it nothing is known.
        """
        source, types = self.type, pa.types
        if source.equals(target):
            return self
        is_same = (
            (types.is_integer(target) and (types.is_integer(source) or types.is_boolean(source)))
            or (types.is_integer(target) and types.is_decimal(source) and source.scale == 0)
            or (types.is_decimal(target) and types.is_integer(source))
            or (
                types.is_decimal(target)
                and types.is_decimal(source)
                and source.scale <= target.scale
            )
            or (source.equals(pa.date32()) and target.equals(pa.int32()))
            or (source.equals(pa.int32()) and target.equals(pa.date32()))
        )
        return replace(self, type=target).where_it_fits() if is_same else None

    def where_it_fits(self) -> PossibleValues:
        """Know nothing of leaves in which a value may be beyond those of the type."""
        least, greatest = _limits(self.type)
        is_beyond = (self.lower < least) | (self.upper > greatest)
        return replace(self, is_open=self.is_open | (self.has_values & is_beyond))

    def with_others(self, others: PossibleValues, where: _Flags) -> PossibleValues:
        """Add what another expression of the type can be, in some leaves.

        Args:
            others: The other expression.
            where: In which leaves.
        """
        is_added, is_only = where & others.has_values, where & others.has_values & ~self.has_values
        lower = np.where(is_added, np.minimum(self.lower, others.lower), self.lower)
        upper = np.where(is_added, np.maximum(self.upper, others.upper), self.upper)
        return PossibleValues(
            self.type,
            np.where(is_only, others.lower, lower),
            np.where(is_only, others.upper, upper),
            self.has_values | is_added,
            self.has_null | (where & others.has_null),
            self.is_open | others.is_open,
        )

    def also_open(self, others: PossibleValues) -> PossibleValues:
        """Know nothing where nothing is known of another expression, which may be an error."""
        return replace(self, is_open=self.is_open | others.is_open)

    def none_of_them(self) -> PossibleValues:
        """Give an expression of the same type that is nothing in any leaf, for others to add to."""
        never = np.zeros(len(self.lower), dtype=bool)
        return replace(self, has_values=never, has_null=never, is_open=never)


def arithmetic(
    operator: type[exp.Binary], left: PossibleValues, right: PossibleValues
) -> PossibleValues | None:
    """Add, subtract or multiply integers of one type, or decimals; None for other types.

    Args:
        operator: Which of the three.
        left: The first operand.
        right: The second one.
    """
    kind = _computed_type(operator, left.type, right.type)
    if kind is None:
        return None
    if operator is exp.Add:
        lower, upper = left.lower + right.lower, left.upper + right.upper
    elif operator is exp.Sub:
        lower, upper = left.lower - right.upper, left.upper - right.lower
    else:
        ends = [one * two for one in (left.lower, left.upper) for two in (right.lower, right.upper)]
        lower, upper = reduce(np.minimum, ends), reduce(np.maximum, ends)
    return PossibleValues(kind, lower, upper, *_of_both(left, right)).where_it_fits()


def negated(value: PossibleValues) -> PossibleValues | None:
    """Take the opposite of a decimal, which always has one."""
    if not pa.types.is_decimal(value.type):
        return None
    return replace(value, lower=-value.upper, upper=-value.lower)


def magnitude(value: PossibleValues) -> PossibleValues | None:
    """Take the absolute value of a decimal."""
    if not pa.types.is_decimal(value.type):
        return None
    lower = np.maximum(np.maximum(value.lower, -value.upper), 0)
    return replace(value, lower=lower, upper=np.maximum(-value.lower, value.upper))


def compared(node: exp.Expr, left: PossibleValues, right: PossibleValues) -> PossibleValues | None:
    """Compare by ``=``, ``<>`` or one of the four orderings."""
    if not _is_comparable(left.type, right.type):
        return None
    has_values, has_null, is_open = _of_both(left, right)
    holds = _ORDERINGS.get(type(node))
    if holds is None:
        is_true = (left.lower <= right.upper) & (right.lower <= left.upper)
        is_false = (left.lower != right.upper) | (right.lower != left.upper)
    elif isinstance(node, exp.LT | exp.LTE):
        is_true, is_false = holds(left.lower, right.upper), ~holds(left.upper, right.lower)
    else:
        is_true, is_false = holds(left.upper, right.lower), ~holds(left.lower, right.upper)
    equal = PossibleValues.of_truth(
        is_true.astype(bool) & has_values, is_false.astype(bool) & has_values, has_null, is_open
    )
    return equal.inverted() if isinstance(node, exp.NEQ) else equal


def null_safe_equal(left: PossibleValues, right: PossibleValues) -> PossibleValues | None:
    """Compare by ``<=>``: TRUE of two NULLs, FALSE of one, and never NULL."""
    equal = compared(exp.EQ(), left, right)
    if equal is None:
        return None
    is_one_null = (left.has_null & right.has_values) | (left.has_values & right.has_null)
    is_true = equal.can_be_true | (left.has_null & right.has_null)
    never = np.zeros(len(is_true), dtype=bool)
    return PossibleValues.of_truth(is_true, equal.can_be_false | is_one_null, never, equal.is_open)


def listed(value: PossibleValues, literals: Sequence[pa.Scalar]) -> PossibleValues | None:
    """Compare by IN with a list of values, of which NULL makes NULL of what is not among them."""
    if not all(_is_comparable(value.type, literal.type) for literal in literals):
        return None
    valid = [literal for literal in literals if literal.is_valid]
    plain = [_plain(pa.array([literal], literal.type)) for literal in valid]
    values = sorted(one[0] for one in plain if one is not None)

    def is_hit(low: Any, high: Any) -> bool:
        at = bisect.bisect_left(values, low)
        return at < len(values) and bool(values[at] <= high)

    bounds = zip(value.lower, value.upper, strict=True)
    hits = np.fromiter((is_hit(*pair) for pair in bounds), bool, len(value.lower))
    is_false = ~(hits & (value.lower == value.upper)) & value.has_values
    has_null = value.has_null | (is_false & (len(valid) < len(literals)))
    return PossibleValues.of_truth(hits & value.has_values, is_false, has_null, value.is_open)


def both(left: PossibleValues, right: PossibleValues) -> PossibleValues:
    """Join two conditions by AND."""
    return PossibleValues.of_truth(
        left.can_be_true & right.can_be_true,
        left.can_be_false | right.can_be_false,
        left.has_null | right.has_null,
        left.is_open | right.is_open,
    )


def either(left: PossibleValues, right: PossibleValues) -> PossibleValues:
    """Join two conditions by OR."""
    return both(left.inverted(), right.inverted()).inverted()


def first_valid(parts: Sequence[PossibleValues]) -> PossibleValues | None:
    """Give COALESCE of expressions of one type."""
    result = parts[0]
    for part in parts[1:]:
        if not part.type.equals(result.type):
            return None
        joined = result.with_others(part, result.has_null)
        result = replace(joined, has_null=result.has_null & part.has_null)
    return result


def _computed_type(
    operator: type[exp.Binary], left: pa.DataType, right: pa.DataType
) -> pa.DataType | None:
    """Give the type of a sum, a difference or a product, in which the engine has it exactly."""
    if pa.types.is_integer(left) and left.equals(right):
        return left
    if not (pa.types.is_decimal(left) and pa.types.is_decimal(right)):
        return None
    precision, scale = exact_decimal(operator, left, right)
    if precision > WIDE_DIGITS:
        return None
    is_wide = precision > MAX_DIGITS
    return pa.decimal256(precision, scale) if is_wide else pa.decimal128(precision, scale)


def _of_both(left: PossibleValues, right: PossibleValues) -> tuple[_Flags, _Flags, _Flags]:
    return (
        left.has_values & right.has_values,
        left.has_null | right.has_null,
        left.is_open | right.is_open,
    )


def _is_comparable(left: pa.DataType, right: pa.DataType) -> bool:
    return left.equals(right) or (_is_exact_number(left) and _is_exact_number(right))


def _is_exact_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_decimal(data_type))


def _plain(values: pa.Array) -> NDArray[np.object_] | None:
    """Give values as Python's numbers and texts, any for NULL; None for a type without bounds."""
    data_type, types = values.type, pa.types
    if types.is_boolean(data_type):
        values = values.cast(pa.int8())
    elif data_type.equals(pa.date32()):
        values = values.cast(pa.int32())
    elif types.is_timestamp(data_type) and data_type.unit == "us":
        values = values.cast(pa.int64())
    if types.is_signed_integer(values.type):
        return np.asarray(pc.fill_null(values, 0).to_numpy().astype(object))
    empty: object = Decimal(0) if types.is_decimal(data_type) else ""
    if not (types.is_decimal(data_type) or types.is_string(data_type)):
        return None
    plain = np.empty(len(values), dtype=object)
    plain[:] = [empty if value is None else value for value in values.to_pylist()]
    return plain


def _limits(data_type: pa.DataType) -> tuple[int | Decimal, int | Decimal]:
    """Give the least and the greatest value of a type of numbers, or of days."""
    if pa.types.is_decimal(data_type):
        greatest = Decimal((0, (9,) * data_type.precision, -data_type.scale))
        return greatest.copy_negate(), greatest
    beyond = 1 << (data_type.bit_width - 1)
    return -beyond, beyond - 1
