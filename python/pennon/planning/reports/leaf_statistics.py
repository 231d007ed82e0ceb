"""The column statistics in the manifest rows of a plan's leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pennon.manifest.column_bounds import BESIDE
from pennon.planning.binding.bound_predicate import conjuncts
from pennon.planning.manifest_query import manifest_query

if TYPE_CHECKING:
    import pyarrow as pa

    from pennon.planning.scan_plan import ScanPlan

__all__ = ["with_statistics"]


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
