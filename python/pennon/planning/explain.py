"""A scan plan as a few lines of text for EXPLAIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    from pennon.planning.scan_plan import ScanPlan

_MOST_FILTERS = 5


def explain(plan: ScanPlan) -> str:
    """Describe a plan: partitions chosen of how many, manifest SQL, residual filters.

    Args:
        plan: A plan of ``plan_scan``.

    Returns:
        Lines without a final line break; a residual is shown with the partitions that have it.
    """
    chosen = plan.table.num_rows
    lines = [f"partitions: {chosen} of {plan.partitions_total}", f"manifest: {plan.manifest_sql}"]
    if plan.predicate:
        lines.append(f"predicate: {plan.predicate}")
        lines.append(f"pushed: {plan.pushed or 'none'}")
    counts = pc.value_counts(plan.table.column("residual")).to_pylist() if chosen else []
    by_index = {each["values"]: each["counts"] for each in counts}
    for index, text in list(enumerate(plan.residuals))[:_MOST_FILTERS]:
        lines.append(f"residual: {text} ({by_index.get(index, 0)} partitions)")
    if len(plan.residuals) > _MOST_FILTERS:
        lines.append(f"residual: {len(plan.residuals) - _MOST_FILTERS} more")
    if not plan.residuals:
        lines.append("residual: none")
    return "\n".join(lines)
