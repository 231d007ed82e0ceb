"""What a scan reads and why, for people: ``CALL system.explain_scan``, ``pennon plan``.

Each conjunct of the predicate is projected by itself, so that one can see what it prunes alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from pennon.manifest.partition_struct import spec_versions
from pennon.planning.binding.bound_predicate import (
    BoundPredicate,
    ComputedCondition,
    columns,
    conjuncts,
    is_exact,
    not_evaluable,
)
from pennon.planning.manifest_query import manifest_query
from pennon.planning.reports.explain import readable_condition, readable_filter, written_conditions
from pennon.planning.reports.row_estimate import estimate_rows
from pennon.planning.residual import NO_RESIDUAL, row_condition
from pennon.predicate.dialect import DataFusion

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pennon.planning.scan_plan import ScanPlan

__all__ = ["readable_size", "scan_report"]

_MOST_RESIDUALS: Final = 5
_SIZES: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


def scan_report(plan: ScanPlan) -> list[tuple[str, str]]:
    """Tell what a plan reads, what each condition prunes, and what is left to filter.

    Args:
        plan: A plan of ``plan_scan``.

    Returns:
        Pairs of a line's title and its text: ``partitions``, ``spec v1``, ``predicate``, ``rows``….

    Spec: "Partition Pruning", "Compatibility with Partition Pruning".
    """
    return [
        ("partitions", f"{plan.table.num_rows} of {plan.partitions_total}"),
        *_of_versions(plan),
        *(("predicate", _pruning(plan, part)) for part in conjuncts(plan.bound)),
        *_by_statistics(plan),
        *_residuals(plan),
        ("rows", "unknown" if plan.num_rows is None else f"{plan.num_rows} before filters"),
        *_expected(plan),
        ("bytes", "unknown" if plan.num_bytes is None else readable_size(plan.num_bytes)),
    ]


def _expected(plan: ScanPlan) -> Iterator[tuple[str, str]]:
    """Tell how many rows filters are expected to leave; nothing where there are none."""
    if not plan.row_filters:
        return
    estimate = estimate_rows(plan)
    if estimate is None:
        yield "expected rows", "unknown"
    elif estimate.is_complete:
        yield "expected rows", f"about {estimate.num_rows}"
    else:
        yield (
            "expected rows",
            f"at most about {estimate.num_rows}: not every filter can be estimated",
        )


def _of_versions(plan: ScanPlan) -> Iterator[tuple[str, str]]:
    if len(plan.snapshot.specs) == 1:
        return
    chosen = _versions(plan.table)
    every = _versions(plan.snapshot.leaves().table)
    for version in sorted(plan.snapshot.specs):
        yield f"spec v{version}", f"{chosen.get(version, 0)} of {every.get(version, 0)}"


def _versions(leaves: pa.Table) -> dict[int, int]:
    counts = pc.value_counts(spec_versions(leaves)).to_pylist()
    return {count["values"]: count["counts"] for count in counts}


def _pruning(plan: ScanPlan, part: BoundPredicate) -> str:
    """Tell of one conjunct by what it prunes, or why it does not."""
    written = written_conditions(part)
    text = readable_filter(row_condition(part).sql(dialect=DataFusion), written)
    asked = manifest_query(plan.snapshot, [part])
    if asked.condition is None:
        return f"{text}: prunes nothing, {_why(part)}"
    alone = plan.snapshot.leaves(asked.condition).table.num_rows
    by = readable_condition(asked.condition.sql(dialect=DataFusion), written)
    return f"{text}: keeps {alone} of {plan.partitions_total} by {by}"


def _by_statistics(plan: ScanPlan) -> Iterator[tuple[str, str]]:
    if plan.num_pruned:
        yield "statistics", f"{plan.num_pruned} more partitions pruned by statistics of columns"


def _why(part: BoundPredicate) -> str:
    unknown = not_evaluable(part)
    if unknown is not None:
        return f"it is not known to be computed as Spark does ({unknown.why})"
    if isinstance(part, ComputedCondition) and part.implied is None:
        if part.can_fail:
            return "it is an error for some values"
        return "partitions do not have all of its columns as they stand"
    names = sorted({".".join(column.path) for column in columns(part)})
    return f"no partition field depends on {', '.join(names) or 'a column'}"


def _residuals(plan: ScanPlan) -> Iterator[tuple[str, str]]:
    counts = pc.value_counts(plan.table["row_filter"]).to_pylist()
    by_index = {count["values"]: count["counts"] for count in counts}
    decided = by_index.pop(NO_RESIDUAL, 0)
    written = written_conditions(plan.bound)
    if plan.row_filters and decided:
        yield "decided", f"by the values of {decided} partitions"
    for index in sorted(by_index)[:_MOST_RESIDUALS]:
        yield (
            "residual",
            f"{readable_filter(plan.row_filters[index], written)} in {by_index[index]} partitions",
        )
    if len(by_index) > _MOST_RESIDUALS:
        yield "residual", f"{len(by_index) - _MOST_RESIDUALS} more"
    if not by_index:
        yield "residual", "none"
    inexact = [part for part in conjuncts(plan.bound) if not is_exact(part)]
    for part in inexact if by_index else ():
        yield "left to Spark", readable_filter(row_condition(part).sql(dialect=DataFusion), written)


def readable_size(count: int) -> str:
    """Write a number of bytes as people read it.

    Example:
        >>> readable_size(1536)
        '1.5 KiB'
    """
    number = float(count)
    for unit in _SIZES:
        if number < 1024 or unit == _SIZES[-1]:  # noqa: PLR2004 - KiB and so on
            return f"{number:.0f} {unit}" if unit == _SIZES[0] else f"{number:.1f} {unit}"
        number /= 1024
    return str(count)
