"""Estimates how many rows a scan returns, from column bounds; shown to people only.

Values count as spread evenly between the bounds of their leaf, and conditions on several columns as
independent of each other. Nothing is pruned by it, and Spark does not see it.

NULL rules: a comparison is true of no NULL. A fraction that is not known is NaN here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.column_bounds import BESIDE, column_bounds
from pennon.planning.binding.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Compared,
    Constant,
    SourceColumn,
    conjuncts,
)
from pennon.planning.manifest_query import NO_RESIDUAL, manifest_query
from pennon.planning.statistics_pruning import counted_columns
from pennon.predicate.condition import Comparison, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from pennon.manifest.column_bounds import ColumnBounds
    from pennon.planning.scan_plan import ScanPlan

__all__ = ["estimate_rows", "with_statistics"]


# The column statistics in the manifest rows of a plan's leaves.


def with_statistics(plan: ScanPlan, table: pa.Table) -> pa.Table | None:
    """Read the rows of some leaves of a plan again, with what ``column_bounds`` needs of them.

    Only those that the plan's predicate keeps are read: a plan of one partition of many costs one.

    Args:
        plan: What a scan reads.
        table: Rows of its partitions.

    Returns:
        As ``Snapshot.leaves``, in the order of ``table``; None where a leaf is not found.

    Raises:
        StorageFailure: The storage refused.

    Example:
        >>> with_statistics(plan, plan.table.slice(0, 1)).num_rows  # doctest: +SKIP
        1

    Spec: "Manifest Table Schema" (metadata).
    """
    condition = manifest_query(plan.snapshot, conjuncts(plan.bound)).condition
    every = plan.snapshot.leaves(condition, (), BESIDE).table
    at = pc.index_in(table["object_id"], value_set=every["object_id"].combine_chunks())
    return None if at.null_count else every.take(at)


_MOST_VALUES: Final = 1_000
_BELOW: Final = frozenset({Operator.LESS, Operator.LESS_OR_EQUAL})
_ABOVE: Final = frozenset({Operator.GREATER, Operator.GREATER_OR_EQUAL})


@dataclass(frozen=True, slots=True)
class RowEstimate:
    """The rows behind the filters of a scan.

    Args:
        num_rows: About how many there are.
        is_complete: Whether every filter counted; else there may be far fewer.
    """

    num_rows: int
    is_complete: bool


def estimate_rows(plan: ScanPlan) -> RowEstimate | None:
    """Estimate how many rows of the chosen partitions satisfy the predicate of a plan.

    Args:
        plan: A plan of ``plan_scan``.

    Returns:
        The estimate; exact where partition values decide all; None where a partition does not say
        how many rows it has.

    Raises:
        StorageFailure: The storage refused.

    Example:
        >>> estimate_rows(plan_scan(snapshot, "price < 10")).num_rows  # doctest: +SKIP
        120

    Spec: "Manifest Table Schema" (metadata).
    """
    if plan.num_rows is None:
        return None
    filtered = pc.not_equal(plan.table["row_filter"], NO_RESIDUAL)
    table = plan.table.filter(filtered)
    if not table.num_rows:
        return RowEstimate(plan.num_rows, is_complete=True)
    parts = [part for part in conjuncts(plan.bound) if part not in plan.decided]
    leaves = with_statistics(plan, table)
    columns = {} if leaves is None else counted_columns(parts)
    bounds = {} if leaves is None else column_bounds(plan.snapshot, leaves, columns)
    rows = np.asarray(table["num_rows"].to_numpy(), dtype=np.float64)
    share, is_complete = np.ones(len(rows)), True
    for leaf_shares in _shares(parts, bounds, rows):
        is_complete &= not bool(np.isnan(leaf_shares[rows > 0]).any())
        share *= np.nan_to_num(leaf_shares, nan=1.0)
    others = plan.num_rows - int(rows.sum())
    return RowEstimate(others + round(float((rows * share).sum())), is_complete)


def _shares(
    parts: Sequence[BoundPredicate],
    bounds_of: Mapping[int, ColumnBounds],
    rows: NDArray[np.float64],
) -> Iterator[NDArray[np.float64]]:
    """Give the share of each of several conditions; one for the two ends of a range."""
    ends: dict[int, list[Compared]] = {}
    for part in parts:
        match part:
            case Compared(column=SourceColumn(field_id=int(field_id)), comparison=comparison) if (
                field_id in bounds_of and comparison.operator in {*_BELOW, *_ABOVE}
            ):
                ends.setdefault(field_id, []).append(part)
            case _:
                yield _share(part, bounds_of, rows)
    for field_id, ranges in ends.items():
        column = ranges[0].column
        every = _share(Compared(column, Comparison(Operator.IS_NOT_NULL)), bounds_of, rows)
        below, above = every, every
        for range_ in ranges:
            share = _share(range_, bounds_of, rows)
            if range_.comparison.operator in _BELOW:
                below = np.minimum(below, share)
            else:
                above = np.minimum(above, share)
        # What is beyond either end is beyond one of them only.
        between = np.maximum(below + above - every, 0.0)
        yield np.where(bounds_of[field_id].is_known.to_numpy(zero_copy_only=False), between, np.nan)


def _share(
    predicate: BoundPredicate, bounds_of: Mapping[int, ColumnBounds], rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give the share of each leaf's rows that satisfy a predicate; NaN where it is not known."""
    unknown = np.full(len(rows), np.nan)
    match predicate:
        case Constant(value):
            return np.full(len(rows), 1.0 if value else 0.0)
        case AllOf(parts):
            share = np.ones(len(rows))
            for shares in _shares(parts, bounds_of, rows):
                share = share * shares
            return share
        case AnyOf(parts):
            missed = np.ones(len(rows))
            for part in parts:
                missed = missed * (1.0 - _share(part, bounds_of, rows))
            return 1.0 - missed
        case Compared(column=SourceColumn(field_id=int(field_id))) if field_id in bounds_of:
            bounds = bounds_of[field_id]
            share = np.clip(_compared(predicate.comparison, bounds, rows), 0.0, 1.0)
            return np.where(bounds.is_known.to_numpy(zero_copy_only=False), share, np.nan)
    return unknown


def _compared(
    comparison: Comparison, bounds: ColumnBounds, rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    nulls = _numbers(bounds.null_count) / np.maximum(rows, 1.0)
    if comparison.operator is Operator.IS_NULL:
        return nulls
    valued = np.where(bounds.lower.is_null().to_numpy(zero_copy_only=False), 0.0, 1.0 - nulls)
    if comparison.operator is Operator.IS_NOT_NULL:
        return valued
    if any(literal.type != bounds.lower.type for literal in comparison.literals):
        return np.full(len(rows), np.nan)
    # A leaf of NULLs alone has no row of it, whatever the values are.
    return np.where(valued == 0.0, 0.0, valued * _of_values(comparison, bounds, rows))


def _of_values(
    comparison: Comparison, bounds: ColumnBounds, rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give the share of the values that are not NULL."""
    match comparison.operator:
        case Operator.EQUAL | Operator.IN:
            return _equal(comparison, bounds, rows)
        case Operator.NOT_EQUAL | Operator.NOT_IN:
            return 1.0 - _equal(comparison, bounds, rows)
        case Operator.LESS | Operator.LESS_OR_EQUAL:
            return _below(comparison, bounds, is_closed=comparison.operator is not Operator.LESS)
        case Operator.GREATER | Operator.GREATER_OR_EQUAL:
            is_closed = comparison.operator is Operator.GREATER
            return 1.0 - _below(comparison, bounds, is_closed=is_closed)
    return np.full(len(rows), np.nan)


def _equal(
    comparison: Comparison, bounds: ColumnBounds, rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    if len(comparison.literals) > _MOST_VALUES:
        return np.full(len(rows), np.nan)
    within = np.zeros(len(rows))
    for value in comparison.literals:
        is_within = pc.and_kleene(
            pc.less_equal(bounds.lower, value), pc.greater_equal(bounds.upper, value)
        )
        within += pc.fill_null(is_within, fill_value=True).to_numpy(zero_copy_only=False)
    return np.where(within == 0.0, 0.0, np.minimum(1.0, within / _values(bounds)))


def _values(bounds: ColumnBounds) -> NDArray[np.float64]:
    """Give about how many values each leaf has: counted, or as many as fit; NaN for neither."""
    counted = _numbers(bounds.distinct_count)
    one = pc.fill_null(pc.equal(bounds.lower, bounds.upper), fill_value=False)
    counted = np.where(one.to_numpy(zero_copy_only=False), 1.0, counted)
    if pa.types.is_integer(bounds.lower.type) or pa.types.is_date32(bounds.lower.type):
        width = _positions(bounds.upper) - _positions(bounds.lower) + 1.0
        counted = np.where(np.isnan(counted), width, counted)
    return np.maximum(counted, 1.0)


def _below(comparison: Comparison, bounds: ColumnBounds, *, is_closed: bool) -> NDArray[np.float64]:
    """Give the share of values below one, or as far as it: of what lies between the bounds."""
    value = comparison.literal
    passes = pc.less_equal if is_closed else pc.less
    all_below = pc.fill_null(passes(bounds.upper, value), fill_value=False)
    none_below = pc.invert(pc.fill_null(passes(bounds.lower, value), fill_value=True))
    low, high = _positions(bounds.lower), _positions(bounds.upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (_positions(pa.array([value], bounds.lower.type))[0] - low) / (high - low)
    share = np.clip(share, 0.0, 1.0)
    share = np.where(none_below.to_numpy(zero_copy_only=False), 0.0, share)
    return np.where(all_below.to_numpy(zero_copy_only=False), 1.0, share)


def _positions(values: pa.Array) -> NDArray[np.float64]:
    """Give values as numbers in their order; NaN for NULL, and for types without distances."""
    data_type = values.type
    if pa.types.is_date32(data_type):
        values = values.cast(pa.int32())
    elif (
        pa.types.is_timestamp(data_type)
        or pa.types.is_date64(data_type)
        or pa.types.is_time64(data_type)
    ):
        values = values.cast(pa.int64())
    elif not (
        pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_decimal(data_type)
    ):
        return np.full(len(values), np.nan)
    return _numbers(values)


def _numbers(values: pa.Array) -> NDArray[np.float64]:
    cast = pc.cast(values, pa.float64(), safe=False)
    return np.asarray(pc.fill_null(cast, float("nan")).to_numpy(zero_copy_only=False))
