"""Prunes leaves by column statistics: those in which no row can satisfy the predicate.

It comes behind the partition values and has the same rule: a leaf without a matching row may be
kept, one with such a row is never lost. A leaf without statistics of the version that is read is
kept, and so is every leaf under what is neither a comparison of a column with literals nor one that
``predicate.expressions.intervals`` can compute with bounds.

NULL rules: a comparison is true of no NULL, so a column of NULLs alone satisfies IS NULL only. An
unknown bound is NULL here, and what comes of it is kept.
"""

from __future__ import annotations

import bisect
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.column_bounds import ColumnBounds, bounds_at, column_bounds
from pennon.manifest.format.column_statistics import is_counted_type, text_above
from pennon.planning.binding.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Compared,
    ComputedCondition,
    Constant,
    SourceColumn,
    columns,
)
from pennon.predicate.condition import Comparison, Operator
from pennon.predicate.expressions.functions import interval_of
from pennon.predicate.expressions.intervals import Interval
from pennon.predicate.typed import has_more_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from pennon.manifest.snapshot import Snapshot

__all__ = ["counted_columns", "has_possible_row", "may_match_at", "may_prune"]


def may_prune(predicate: BoundPredicate) -> bool:
    """Whether statistics can say something of a predicate at all.

    Example:
        >>> may_prune(Constant(value=True))
        False
    """
    return bool(_asked_columns([predicate]))


def has_possible_row(
    snapshot: Snapshot, leaves: pa.Table, parts: Sequence[BoundPredicate]
) -> pa.Array:
    """Tell of each leaf whether it can have a row that satisfies all parts.

    Args:
        snapshot: The namespace.
        leaves: Leaves of it, with what ``column_bounds.BESIDE`` names.
        parts: Bound predicates that all have to hold.

    Returns:
        A boolean per leaf, never NULL.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Partition Pruning", "Manifest Table Schema" (metadata).
    """
    bounds_of = column_bounds(snapshot, leaves, _asked_columns(parts))
    return _possible_by(parts, bounds_of, leaves.num_rows)


def may_match_at(
    snapshot: Snapshot, parts: Sequence[BoundPredicate], addresses: NDArray[np.uint64]
) -> pa.Array:
    """Tell the same of leaves of which only the places of their rows are at hand.

    Rows of which nothing is known are kept; ``has_possible_row`` examines some of them further.

    Args:
        snapshot: The namespace.
        parts: Bound predicates that all have to hold.
        addresses: Of the leaves' rows in the manifest, ascending.

    Returns:
        A boolean per leaf, never NULL.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Partition Pruning", "Manifest Table Schema" (metadata).
    """
    bounds_of = bounds_at(snapshot, addresses, _asked_columns(parts))
    return _possible_by(parts, bounds_of, len(addresses))


def counted_columns(parts: Sequence[BoundPredicate]) -> dict[int, pa.DataType]:
    """List the types of the compared columns that statistics can be kept of, by field id."""
    return _counted(column for part in parts for column in columns(part))


def _asked_columns(parts: Sequence[BoundPredicate]) -> dict[int, pa.DataType]:
    """List those of the columns that conditions compute with, too."""
    computed = (condition for part in parts for condition in _computed_conditions(part))
    asked = (column for condition in computed for column in _deciding_columns(condition))
    return counted_columns(parts) | _counted(asked)


def _counted(listed: Iterable[SourceColumn]) -> dict[int, pa.DataType]:
    return {
        column.field_id: column.type
        for column in listed
        if column.field_id is not None and is_counted_type(column.type)
    }


def _computed_conditions(predicate: BoundPredicate) -> Iterator[ComputedCondition]:
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _computed_conditions(part)
        case ComputedCondition():
            yield predicate


def _possible_by(
    parts: Sequence[BoundPredicate], bounds_of: Mapping[int, ColumnBounds], num_leaves: int
) -> pa.Array:
    every = pa.array(np.ones(num_leaves, dtype=bool))
    return _all([_possible(part, bounds_of, every) for part in parts] if bounds_of else [], every)


def _possible(
    predicate: BoundPredicate, bounds_of: Mapping[int, ColumnBounds], every: pa.Array
) -> pa.Array:
    match predicate:
        case Constant(value):
            return every if value else pc.invert(every)
        case AllOf(parts):
            return _all([_possible(part, bounds_of, every) for part in parts], every)
        case AnyOf(parts):
            conjuncts = [_possible(part, bounds_of, every) for part in parts]
            result = pc.invert(every)
            for conjunct in conjuncts:
                result = pc.or_(result, conjunct)
            return result
        case ComputedCondition(implied=implied):
            by_values = _can_be_true(predicate, bounds_of, len(every))
            possible = every if implied is None else _possible(implied, bounds_of, every)
            return possible if by_values is None else pc.and_(possible, by_values)
        case Compared(column=SourceColumn(field_id=int(field_id))) if field_id in bounds_of:
            bounds = bounds_of[field_id]
            possible = pc.fill_null(_compared(predicate.comparison, bounds), fill_value=True)
            return pc.or_(pc.invert(bounds.is_known), possible)
    return every


def _all(parts: Sequence[pa.Array], every: pa.Array) -> pa.Array:
    result = every
    for part in parts:
        result = pc.and_(result, part)
    return result


def _compared(comparison: Comparison, bounds: ColumnBounds) -> pa.Array:
    """Tell where a comparison can be true; NULL where it is not known."""
    has_values = pc.is_valid(bounds.lower)
    if comparison.operator is Operator.IS_NULL:
        return pc.greater(bounds.null_count, 0)
    if comparison.operator is Operator.IS_NOT_NULL:
        return has_values
    if any(literal.type != bounds.lower.type for literal in comparison.literals):
        return has_values
    if pa.types.is_floating(bounds.lower.type):
        if any(literal.as_py() != literal.as_py() for literal in comparison.literals):
            return has_values
        bounds = _without_nan(bounds)
    is_within = _within(comparison, bounds)
    return has_values if is_within is None else pc.and_kleene(has_values, is_within)


def _without_nan(bounds: ColumnBounds) -> ColumnBounds:
    """NaN is above all numbers: no number is an upper bound of it, and infinity a lower one."""
    none = pa.scalar(None, bounds.upper.type)
    most = pa.scalar(float("inf"), bounds.lower.type)
    return replace(
        bounds,
        lower=pc.if_else(pc.is_nan(bounds.lower), most, bounds.lower),
        upper=pc.if_else(pc.is_nan(bounds.upper), none, bounds.upper),
    )


def _within(comparison: Comparison, bounds: ColumnBounds) -> pa.Array | None:
    lower, upper = bounds.lower, bounds.upper
    match comparison.operator:
        case Operator.EQUAL:
            value = comparison.literal
            return pc.and_kleene(pc.less_equal(lower, value), pc.greater_equal(upper, value))
        case Operator.LESS:
            return pc.less(lower, comparison.literal)
        case Operator.LESS_OR_EQUAL:
            return pc.less_equal(lower, comparison.literal)
        case Operator.GREATER:
            return pc.greater(upper, comparison.literal)
        case Operator.GREATER_OR_EQUAL:
            return pc.greater_equal(upper, comparison.literal)
        case Operator.IN:
            return _in(comparison.literals, bounds)
        case Operator.NOT_EQUAL | Operator.NOT_IN:
            is_one = pc.equal(lower, upper)
            values = pa.array(comparison.literals, lower.type)
            return pc.invert(pc.and_kleene(is_one, pc.is_in(lower, value_set=values)))
        case Operator.STARTS_WITH:
            prefix = comparison.literal.as_py()
            above = text_above(prefix)
            may_reach = pc.greater_equal(upper, comparison.literal)
            if above is None:
                return may_reach
            return pc.and_kleene(may_reach, pc.less(lower, pa.scalar(above, lower.type)))
    return None


def _in(literals: Sequence[pa.Scalar], bounds: ColumnBounds) -> pa.Array | None:
    """Tell where one of the values lies between the bounds."""
    if not literals:
        return None
    values = pa.array(literals, bounds.lower.type)
    values = values.take(pc.array_sort_indices(values))
    least, greatest = values[0], values[-1]
    spanned = pc.and_kleene(
        pc.less_equal(bounds.lower, greatest), pc.greater_equal(bounds.upper, least)
    )
    asked = pc.fill_null(spanned, fill_value=False)
    at = pa.array(np.flatnonzero(asked.to_numpy(zero_copy_only=False)))
    low, high = bounds.lower.take(at), bounds.upper.take(at)
    # The first value that is not below the lower bound is not above the upper one either.
    first = values.take(pa.array(_first_not_below(values, low), pa.int64()))
    is_there = pc.fill_null(pc.less_equal(first, high), fill_value=False)
    return pc.replace_with_mask(spanned, asked, is_there)


def _first_not_below(values: pa.Array, bounds: pa.Array) -> NDArray[np.int64] | list[int]:
    """Give the place of the first of sorted values that is not below each bound; one is there."""
    data_type = values.type
    if pa.types.is_floating(data_type) or pa.types.is_integer(data_type):
        return np.asarray(np.searchsorted(values.to_numpy(), bounds.to_numpy()))
    if pa.types.is_temporal(data_type):
        stored = pa.int32() if data_type.bit_width == pa.int32().bit_width else pa.int64()
        sought = bounds.cast(stored).to_numpy()
        return np.asarray(np.searchsorted(values.cast(stored).to_numpy(), sought))
    bounds_in_order = values.to_pylist()
    return [bisect.bisect_left(bounds_in_order, bound) for bound in bounds.to_pylist()]


# Whether a computed condition can be TRUE in a leaf, by the bounds of its columns.

# Of a longer condition nothing is said: planning walks it several times.
_MOST_NODES: Final = 2_000


def _deciding_columns(condition: ComputedCondition) -> tuple[SourceColumn, ...]:
    """List the columns whose bounds can tell that a condition is TRUE of no row, if they can."""
    sources = condition.sources
    columns = [column for column in sources if isinstance(column, SourceColumn)]
    is_counted = all(
        column.field_id is not None and is_counted_type(column.type) for column in columns
    )
    is_known = not condition.why and is_counted and len(columns) == len(sources) > 0
    if not is_known or has_more_nodes(condition.expression, _MOST_NODES):
        return ()
    return tuple(columns) if _interval(condition, {}, 0) is not None else ()


def _can_be_true(
    condition: ComputedCondition, bounds_of: Mapping[int, ColumnBounds], num_leaves: int
) -> pa.Array | None:
    """Tell of each leaf whether a condition can be TRUE of a row in it, or an error."""
    if not _deciding_columns(condition):
        return None
    possible = _interval(condition, bounds_of, num_leaves)
    return None if possible is None else pa.array(possible.is_open | possible.can_be_true)


def _interval(
    condition: ComputedCondition, bounds_of: Mapping[int, ColumnBounds], num_leaves: int
) -> Interval | None:
    columns: dict[tuple[str, ...], Interval] = {}
    for column in condition.sources:
        if isinstance(column, SourceColumn):
            bounds = bounds_of.get(column.field_id) if column.field_id is not None else None
            bounds = bounds or ColumnBounds.unknown(num_leaves, column.type)
            has_null = pc.fill_null(pc.greater(bounds.null_count, 0), fill_value=True)
            values = Interval.of_bounds(bounds.lower, bounds.upper, has_null, bounds.is_known)
            if values is None:
                return None
            columns[column.path] = values
    value = interval_of(condition.expression, columns, num_leaves)
    return value if value is not None and pa.types.is_boolean(value.type) else None
