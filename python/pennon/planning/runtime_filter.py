"""Prunes a finished plan again by values that the query finds while it runs.

A runtime filter may only drop partitions: what is kept stays in the order of the plan, under its
residual filters. NULL rules are those of any predicate; a filter that prunes nothing keeps all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pennon.planning.scan_plan import plan_scan
from pennon.predicate.parse import readable_predicates
from pennon.transforms.identity import Identity

if TYPE_CHECKING:
    from pennon.planning.scan_plan import ScanPlan


def filter_columns(
    plan: ScanPlan, columns: Sequence[str], *, is_row_change: bool = False
) -> tuple[str, ...]:
    """Name the columns whose values, found while the query runs, can drop partitions.

    These are the sources of all partition fields, whatever their transform: a function of several
    columns prunes when all of them are bound. Nested sources are left out, for Spark filters by
    whole columns.

    Of a scan whose rows are changed Spark collects the values that match, by a join of its own
    before the statement's. That pays for columns with few values, as those are that partitions
    have as they stand, and not for a column that partitions have the bucket or the month of. NULL
    is one of these values where a row of NULL matches, and comes as ``column IS NULL``.

    Args:
        plan: The chosen partitions; one is not worth a filter.
        columns: Top-level columns that the scan gives.
        is_row_change: Whether a statement changes the rows of the scan.

    Returns:
        Names among ``columns``, in the order of the specs.

    Spec: "Partition Pruning".
    """
    if plan.table.num_rows <= 1:
        return ()
    names = {
        field.id: field.path[0] for field in plan.snapshot.schema.fields if len(field.path) == 1
    }

    sources = [
        names[source]
        for _, spec in sorted(plan.snapshot.specs.items(), reverse=True)
        for field in spec.fields
        if not is_row_change or isinstance(field.transform, Identity)
        for source in field.source_ids
        if source in names
    ]
    given = set(columns)
    return tuple(name for name in dict.fromkeys(sources) if name in given)


def filtered(plan: ScanPlan, predicates: Sequence[str], time_zone: str) -> ScanPlan:
    """Keep the partitions of a plan that can have a row under more predicates.

    Args:
        plan: The plan.
        predicates: Spark SQL texts, those that the plan was made with among them.
        time_zone: That of the session.

    Returns:
        The plan with fewer partitions, in their order and with their residual filters.
    """
    possible = (
        plan_scan(
            plan.snapshot, readable_predicates(predicates), time_zone=time_zone, with_metadata=True
        )
        .table["object_id"]
        .combine_chunks()
    )
    return replace(plan, table=plan.table.filter(pc.is_in(plan.table["object_id"], possible)))
