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
import decimal
import operator as comparing
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.manifest.column_bounds import ColumnBounds
from pennon.manifest.format.column_statistics import is_counted_type
from pennon.planning.binding.bound_predicate import ComputedCondition, SourceColumn
from pennon.predicate.condition import operands, reference_path
from pennon.predicate.expressions.arithmetic import exact_decimal
from pennon.predicate.typed import MAX_DIGITS, WIDE_DIGITS, has_more_nodes
from pennon.predicate.values.literals import arrow_type, literal_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["can_be_true", "deciding_columns"]

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


# Whether a computed condition can be TRUE in a leaf, by the bounds of its columns.
#
# What is walked is the condition as DataFusion computes it, in which every implicit cast, and every
# width in which Spark would find an overflow, is written. A form that is not known here says
# nothing of the whole condition.
#
# NULL rules: those of ``possible_values``; a leaf is kept where the condition can be TRUE.

# Of a longer condition nothing is said: planning walks it several times.
_MOST_NODES: Final = 2_000
# More digits than the product of two of the widest decimals has, so that none is rounded.
_EXACT: Final = decimal.Context(prec=400, traps=[decimal.Inexact, decimal.InvalidOperation])


def deciding_columns(condition: ComputedCondition) -> tuple[SourceColumn, ...]:
    """List the columns whose bounds can tell that a condition is TRUE of no row.

    Args:
        condition: Any that is computed.

    Returns:
        Its columns; none where bounds say nothing of it.

    Example:
        >>> deciding_columns(ComputedCondition(exp.true()))
        ()

    Spec: "Partition Pruning".
    """
    sources = condition.sources
    columns = [column for column in sources if isinstance(column, SourceColumn)]
    is_counted = all(
        column.field_id is not None and is_counted_type(column.type) for column in columns
    )
    is_known = not condition.why and is_counted and len(columns) == len(sources) > 0
    if not is_known or has_more_nodes(condition.expression, _MOST_NODES):
        return ()
    return tuple(columns) if _possible(condition, {}, 0) is not None else ()


def can_be_true(
    condition: ComputedCondition, bounds_of: Mapping[int, ColumnBounds], num_leaves: int
) -> pa.Array | None:
    """Tell of each leaf whether a condition can be TRUE of a row in it, or an error.

    Args:
        condition: One of which there are ``deciding_columns``.
        bounds_of: What is known of columns, by field id.
        num_leaves: How many leaves there are.

    Returns:
        A boolean per leaf, never NULL; None where nothing is known of any.

    Example:
        >>> can_be_true(ComputedCondition(exp.true()), {}, 1)

    Spec: "Partition Pruning".
    """
    if not deciding_columns(condition):
        return None
    possible = _possible(condition, bounds_of, num_leaves)
    return None if possible is None else pa.array(possible.is_open | possible.can_be_true)


def _possible(
    condition: ComputedCondition, bounds_of: Mapping[int, ColumnBounds], num_leaves: int
) -> PossibleValues | None:
    columns: dict[tuple[str, ...], PossibleValues] = {}
    for column in condition.sources:
        if isinstance(column, SourceColumn):
            bounds = bounds_of.get(column.field_id) if column.field_id is not None else None
            bounds = bounds or ColumnBounds.unknown(num_leaves, column.type)
            values = PossibleValues.of_bounds(bounds)
            if values is None:
                return None
            columns[column.path] = values
    with decimal.localcontext(_EXACT):
        value = _Walk(columns, num_leaves).value(condition.expression)
    return value if value is not None and pa.types.is_boolean(value.type) else None


@dataclass(frozen=True, slots=True)
class _Walk:
    columns: Mapping[tuple[str, ...], PossibleValues]
    num_leaves: int

    def value(self, node: exp.Expr) -> PossibleValues | None:
        """Find what a node can be; None where its form is not known."""
        literal = literal_value(node)
        if literal is not None:
            return PossibleValues.of_literal(literal, self.num_leaves)
        path = reference_path(node)
        if path is not None:
            return self.columns.get(path)
        match node:
            case exp.Paren():
                return self.value(node.this)
            case exp.Cast() if type(node) is exp.Cast:
                value, target = self.value(node.this), arrow_type(node.to)
                return None if value is None or target is None else value.cast(target)
            case exp.Add() | exp.Sub() | exp.Mul():
                operands_of = self._several([node.this, node.expression])
                return None if operands_of is None else arithmetic(type(node), *operands_of)
            case exp.Neg() | exp.Abs():
                value = self.value(node.this)
                if value is None:
                    return None
                return negated(value) if isinstance(node, exp.Neg) else magnitude(value)
            case exp.Coalesce():
                parts = self._several([node.this, *node.expressions])
                return None if parts is None else first_valid(parts)
            case exp.Case() if node.this is None:
                return self._case(node)
            case exp.Anonymous() if node.name.lower() == "greatest" and len(node.expressions) == 1:
                return self.value(node.expressions[0])  # it stands for its only value
        return self._condition(node)

    def _condition(self, node: exp.Expr) -> PossibleValues | None:
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                sides = self._several([node.this, node.expression])
                return None if sides is None else compared(node, *sides)
            case exp.NullSafeEQ():
                sides = self._several([node.this, node.expression])
                return None if sides is None else null_safe_equal(*sides)
            case exp.Is() if isinstance(node.expression, exp.Null):
                value = self.value(node.this)
                return None if value is None else value.is_null()
            case exp.In():
                return self._in(node)
            case exp.Not():
                condition = self._truths([node.this])
                return None if condition is None else condition[0].inverted()
            case exp.And():
                conditions = self._truths(operands(node, exp.And))
                return None if conditions is None else reduce(both, conditions)
            case exp.Or():
                conditions = self._truths(operands(node, exp.Or))
                return None if conditions is None else reduce(either, conditions)
        return None

    def _several(self, nodes: Sequence[exp.Expr]) -> list[PossibleValues] | None:
        values = [self.value(node) for node in nodes]
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else None

    def _truths(self, nodes: Sequence[exp.Expr]) -> list[PossibleValues] | None:
        values = self._several(nodes)
        if values is None or not all(pa.types.is_boolean(value.type) for value in values):
            return None
        return values

    def _in(self, node: exp.In) -> PossibleValues | None:
        value = self.value(node.this)
        literals = [literal_value(item) for item in node.expressions]
        known = [literal for literal in literals if literal is not None]
        if value is None or not known or len(known) < len(literals):
            return None
        return listed(value, known)

    def _case(self, node: exp.Case) -> PossibleValues | None:
        """Join the values of the branches that can be reached."""
        branches = node.args["ifs"]
        conditions = self._truths([branch.this for branch in branches])
        values = self._several([branch.args["true"] for branch in branches])
        default = None if node.args.get("default") is None else self.value(node.args["default"])
        if conditions is None or values is None or default is None:
            return None
        result, is_reached = default.none_of_them(), np.ones(self.num_leaves, dtype=bool)
        for condition, value in zip(conditions, values, strict=True):
            if not value.type.equals(result.type):
                return None
            result = result.with_others(value, is_reached & condition.can_be_true)
            is_reached &= condition.can_be_false | condition.has_null
            result = result.also_open(condition)
        return result.with_others(default, is_reached)
