"""What an expression can be, by what its columns can be: in each of some leaves, or for all rows.

Spark computes with one row, this with the bounds of all rows: what comes of it holds every value
that a row can have. Where one of them may be an error, as an integer that leaves its width is,
nothing is known, so that the error still appears. Floats have no bounds here: they round, and NaN
and the zeros have an order of their own.

What is walked is the expression as DataFusion computes it, in which every implicit cast, and every
width in which Spark would find an overflow, is written. The rule of each operator stands in its row
of ``functions``; a form without one says nothing of what it is in.

NULL rules: bounds are those of the values that are not NULL; ``has_null`` tells whether NULL may be
among them. An operator gives NULL for NULL but for AND, OR, COALESCE, CASE and ``<=>``.
"""

from __future__ import annotations

import bisect
import operator as comparing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.predicate.condition import operands
from pennon.predicate.expressions.number_functions import exact_decimal
from pennon.predicate.typed import MAX_DIGITS, WIDE_DIGITS
from pennon.predicate.values.literals import arrow_type, literal_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ends: TypeAlias = tuple[int | Decimal, int | Decimal]
"""The least and the greatest of some numbers."""

_Flags = np.ndarray[Any, np.dtype[np.bool_]]
_ORDERINGS: Final[dict[type[exp.Expr], Callable[[Any, Any], Any]]] = {
    exp.LT: comparing.lt,
    exp.LTE: comparing.le,
    exp.GT: comparing.gt,
    exp.GTE: comparing.ge,
}


@dataclass(frozen=True, slots=True)
class Interval:
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
    def of_bounds(
        cls, lower: pa.Array, upper: pa.Array, has_null: pa.Array, is_known: pa.Array
    ) -> Interval | None:
        """Take what is known of a column in each leaf; None where its type has no bounds here.

        Args:
            lower: A value that none is below; NULL where there are only NULLs.
            upper: A value that none is above; NULL as well where none is known.
            has_null: Whether there may be NULLs.
            is_known: Whether anything is known.
        """
        least, greatest = _plain(lower), _plain(upper)
        if least is None or greatest is None:
            return None
        has_values = pc.is_valid(lower)
        is_bounded = pc.and_(is_known, pc.equal(has_values, pc.is_valid(upper)))
        is_open = np.asarray(pc.invert(is_bounded))
        values, nulls = np.asarray(has_values), np.asarray(has_null)
        return cls(lower.type, least, greatest, values, nulls, is_open)

    @classmethod
    def of_range(cls, data_type: pa.DataType, ends: Ends | None = None) -> Interval | None:
        """Give what a column can be whose values lie between two, or are all that its type has.

        Returns:
            The interval, of one leaf; None where the type is none of integers and decimals.
        """
        if not (_is_exact_number(data_type) and _plain(pa.nulls(0, data_type)) is not None):
            return None
        low, high = limits(data_type) if ends is None else ends
        flag = np.ones(1, dtype=bool)
        lower, upper = (np.array([end], dtype=object) for end in (low, high))
        return cls(data_type, lower, upper, flag, flag, ~flag)

    @classmethod
    def of_literal(cls, literal: pa.Scalar, num_leaves: int) -> Interval | None:
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
    ) -> Interval:
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

    def inverted(self) -> Interval:
        """Give NOT of a condition."""
        is_true, is_false = self.can_be_false, self.can_be_true
        return Interval.of_truth(is_true, is_false, self.has_null, self.is_open)

    def cast(self, target: pa.DataType) -> Interval | None:
        """Cast a number, a date or a boolean to a number or a date; None for other types.

        Args:
            target: The type; where a value may not fit it nothing is known.
        """
        source, types = self.type, pa.types
        if source.equals(target):
            return self
        is_exact = _is_exact_number(target) and _is_exact_number(source)
        is_count = types.is_integer(target) and types.is_boolean(source)
        if not (is_exact or is_count or {source, target} == {pa.date32(), pa.int32()}):
            return None
        scale = target.scale if types.is_decimal(target) else 0
        if not types.is_decimal(source) or source.scale <= scale:
            return replace(self, type=target).where_it_fits()
        unit = Decimal(1).scaleb(-scale)  # what has more digits is rounded, or cut
        near = replace(self, type=target, lower=self.lower - unit, upper=self.upper + unit)
        return near.where_it_fits()

    def where_it_fits(self) -> Interval:
        """Know nothing of leaves in which a value may be beyond those of the type."""
        least, greatest = limits(self.type)
        is_beyond = (self.lower < least) | (self.upper > greatest)
        return replace(self, is_open=self.is_open | (self.has_values & is_beyond))

    def with_others(self, others: Interval, where: _Flags) -> Interval:
        """Add what another expression of the type can be, in some leaves.

        Args:
            others: The other expression.
            where: In which leaves.
        """
        is_added, is_only = where & others.has_values, where & others.has_values & ~self.has_values
        lower = np.where(is_added, np.minimum(self.lower, others.lower), self.lower)
        upper = np.where(is_added, np.maximum(self.upper, others.upper), self.upper)
        return Interval(
            self.type,
            np.where(is_only, others.lower, lower),
            np.where(is_only, others.upper, upper),
            self.has_values | is_added,
            self.has_null | (where & others.has_null),
            self.is_open | others.is_open,
        )


# The rules of operators: what each is, by what its operands are. ``of`` finds that of a node.

IntervalOf: TypeAlias = Callable[[exp.Expr], Interval | None]
Rule: TypeAlias = Callable[[exp.Expr, IntervalOf], Interval | None]


def of_operands(compute: Callable[..., Interval | None]) -> Rule:
    """Make a rule of a function of the node and of what its one or two operands are."""

    def rule(node: exp.Expr, of: IntervalOf) -> Interval | None:
        nodes = [node.this]
        if isinstance(node, exp.Binary) and not isinstance(node, exp.Is):
            nodes.append(node.expression)
        values = _several(nodes, of)
        return None if values is None else compute(node, *values)

    return rule


def arithmetic(node: exp.Expr, left: Interval, right: Interval) -> Interval | None:
    """Add, subtract or multiply integers of one type, or decimals; None for other types."""
    kind = _computed_type(type(node), left.type, right.type)
    if kind is None:
        return None
    if isinstance(node, exp.Add):
        lower, upper = left.lower + right.lower, left.upper + right.upper
    elif isinstance(node, exp.Sub):
        lower, upper = left.lower - right.upper, left.upper - right.lower
    else:
        ends = [one * two for one in (left.lower, left.upper) for two in (right.lower, right.upper)]
        lower, upper = reduce(np.minimum, ends), reduce(np.maximum, ends)
    return Interval(kind, lower, upper, *_of_both(left, right)).where_it_fits()


def negated(_: exp.Expr, value: Interval) -> Interval | None:
    """Take the opposite of a decimal, which always has one."""
    is_decimal = pa.types.is_decimal(value.type)
    return replace(value, lower=-value.upper, upper=-value.lower) if is_decimal else None


def magnitude(_: exp.Expr, value: Interval) -> Interval | None:
    """Take the absolute value of a decimal."""
    if not pa.types.is_decimal(value.type):
        return None
    lower = np.maximum(np.maximum(value.lower, -value.upper), 0)
    return replace(value, lower=lower, upper=np.maximum(-value.lower, value.upper))


def cast(node: exp.Expr, value: Interval) -> Interval | None:
    """Cast to a number, or a date."""
    target = arrow_type(node.args["to"])
    return None if target is None or isinstance(node, exp.TryCast) else value.cast(target)


def same(_: exp.Expr, value: Interval) -> Interval:
    """Give the operand itself."""
    return value


def is_null(node: exp.Expr, value: Interval) -> Interval | None:
    """Give IS NULL, which is never NULL."""
    if not isinstance(node.expression, exp.Null):
        return None
    never = np.zeros(len(value.lower), dtype=bool)
    return Interval.of_truth(value.has_null, value.has_values, never, value.is_open)


def compared(node: exp.Expr, left: Interval, right: Interval) -> Interval | None:
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
    equal = Interval.of_truth(
        is_true.astype(bool) & has_values, is_false.astype(bool) & has_values, has_null, is_open
    )
    return equal.inverted() if isinstance(node, exp.NEQ) else equal


def null_safe_equal(node: exp.Expr, left: Interval, right: Interval) -> Interval | None:
    """Compare by ``<=>``: TRUE of two NULLs, FALSE of one, and never NULL."""
    equal = compared(exp.EQ(), left, right)
    if equal is None or not isinstance(node, exp.NullSafeEQ):
        return None
    is_one_null = (left.has_null & right.has_values) | (left.has_values & right.has_null)
    is_true = equal.can_be_true | (left.has_null & right.has_null)
    never = np.zeros(len(is_true), dtype=bool)
    return Interval.of_truth(is_true, equal.can_be_false | is_one_null, never, equal.is_open)


def inverted(node: exp.Expr, of: IntervalOf) -> Interval | None:
    """Give NOT of a condition."""
    condition = _truths([node.this], of)
    return None if condition is None else condition[0].inverted()


def connected(node: exp.Expr, of: IntervalOf) -> Interval | None:
    """Join conditions by AND or OR."""
    is_and = isinstance(node, exp.And)
    conditions = _truths(operands(node, exp.And if is_and else exp.Or), of)
    if conditions is None:
        return None
    if is_and:
        return reduce(_both, conditions)
    return reduce(_both, [condition.inverted() for condition in conditions]).inverted()


def _both(left: Interval, right: Interval) -> Interval:
    return Interval.of_truth(
        left.can_be_true & right.can_be_true,
        left.can_be_false | right.can_be_false,
        left.has_null | right.has_null,
        left.is_open | right.is_open,
    )


def listed(node: exp.Expr, of: IntervalOf) -> Interval | None:
    """Compare by IN with a list of values, of which NULL makes NULL of what is not among them."""
    value, literals = of(node.this), [literal_value(item) for item in node.expressions]
    known = [literal for literal in literals if literal is not None]
    if value is None or not known or len(known) < len(literals):
        return None
    if not all(_is_comparable(value.type, literal.type) for literal in known):
        return None
    valid = [literal for literal in known if literal.is_valid]
    plain = [_plain(pa.array([literal], literal.type)) for literal in valid]
    values = sorted(one[0] for one in plain if one is not None)

    def is_hit(low: Any, high: Any) -> bool:
        at = bisect.bisect_left(values, low)
        return at < len(values) and bool(values[at] <= high)

    bounds = zip(value.lower, value.upper, strict=True)
    hits = np.fromiter((is_hit(*pair) for pair in bounds), bool, len(value.lower))
    is_false = ~(hits & (value.lower == value.upper)) & value.has_values
    has_null = value.has_null | (is_false & (len(valid) < len(known)))
    return Interval.of_truth(hits & value.has_values, is_false, has_null, value.is_open)


def first_valid(node: exp.Expr, of: IntervalOf) -> Interval | None:
    """Give COALESCE of expressions of one type."""
    parts = _several([node.this, *node.expressions], of)
    if parts is None or any(not part.type.equals(parts[0].type) for part in parts):
        return None
    result = parts[0]
    for part in parts[1:]:
        joined = result.with_others(part, result.has_null)
        result = replace(joined, has_null=result.has_null & part.has_null)
    return result


def chosen(node: exp.Expr, of: IntervalOf) -> Interval | None:
    """Join the values of the branches of CASE that can be reached."""
    branches, default = node.args["ifs"], node.args.get("default")
    if node.this is not None or default is None:
        return None
    conditions = _truths([branch.this for branch in branches], of)
    results = [branch.args["true"] for branch in branches]
    last, values = of(default), _several([one for one in results if not _is_null(one)], of)
    if conditions is None or last is None or values is None:
        return None
    never = np.zeros(len(last.lower), dtype=bool)
    # A NULL without a type is one of the others' type.
    null, known = replace(last, has_values=never, has_null=~never, is_open=never), iter(values)
    values = [null if _is_null(one) else next(known) for one in results]
    result = replace(last, has_values=never, has_null=never, is_open=never)
    is_reached = ~never
    for condition, value in zip(conditions, values, strict=True):
        if not value.type.equals(last.type):
            return None
        result = result.with_others(value, is_reached & condition.can_be_true)
        is_reached &= condition.can_be_false | condition.has_null
        result = replace(result, is_open=result.is_open | condition.is_open)
    return result.with_others(last, is_reached)


def _is_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Null)


def _several(nodes: Sequence[exp.Expr], of: IntervalOf) -> list[Interval] | None:
    values = [of(node) for node in nodes]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _truths(nodes: Sequence[exp.Expr], of: IntervalOf) -> list[Interval] | None:
    values = _several(nodes, of)
    if values is None or not all(pa.types.is_boolean(value.type) for value in values):
        return None
    return values


def _computed_type(
    operator: type[exp.Expr], left: pa.DataType, right: pa.DataType
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


def _of_both(left: Interval, right: Interval) -> tuple[_Flags, _Flags, _Flags]:
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


def limits(data_type: pa.DataType) -> Ends:
    """Give the least and the greatest value of a type of numbers, or of days.

    Example:
        >>> print(limits(pa.decimal128(3, 1))[1])
        99.9
    """
    if pa.types.is_decimal(data_type):
        greatest = Decimal((0, (9,) * data_type.precision, -data_type.scale))
        return greatest.copy_negate(), greatest
    beyond = 1 << (data_type.bit_width - 1)
    return -beyond, beyond - 1
