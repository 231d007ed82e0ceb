"""The partitioning that a scan reports to Spark: keys and one value of each per partition.

Spark knows columns and functions of exactly one column; every column that a key references has
to be in the scan's output, so the report is narrowed to the surviving fields instead of lost
(spj-contract, d.6). Several partitions may have the same key: Spark groups them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.spec.functions.partition_layout import Layout, LayoutFunction, layout_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pennon.manifest.snapshot import Snapshot
    from pennon.planning.scan_plan import ScanPlan
    from pennon.spec.schema import NamespaceSchema

SparkTransform = dict[str, object]


@dataclass(frozen=True, slots=True)
class KeyGrouping:
    """A reported key-grouped partitioning.

    Args:
        keys: One transform per key, in the form of the worker's messages.
        functions: The function of each key.
        layout: How the chosen partitions are grouped.
        leaves: The chosen partitions.
    """

    keys: tuple[SparkTransform, ...]
    functions: tuple[LayoutFunction, ...]
    layout: Layout
    leaves: pa.Table

    @property
    def values(self) -> pa.Table:
        """The keys of each partition of the plan, one column ``key_<n>`` per key."""
        return pa.table(
            {
                f"key_{number}": self.layout.values(function, self.leaves)
                for number, function in enumerate(self.functions)
            }
        )


def report(
    snapshot: Snapshot, plan: ScanPlan, projected: Collection[tuple[str, ...]]
) -> KeyGrouping | None:
    """Build the partitioning to report for a planned scan; None when there is none to report.

    Args:
        snapshot: The namespace that is read.
        plan: The partitions that were chosen.
        projected: Paths of the columns in the scan's output.

    Spec: "Storage Partitioned Join".
    """
    layout = layout_of(snapshot.specs, snapshot.schema, plan.table, plan.fixed)
    functions = reported_functions(layout, snapshot.schema, projected)
    keys = tuple(_spark_transform(function, snapshot.schema) for function in functions)
    return KeyGrouping(keys, functions, layout, plan.table) if keys else None


def reported_functions(
    layout: Layout, schema: NamespaceSchema, projected: Collection[tuple[str, ...]]
) -> tuple[LayoutFunction, ...]:
    """List the functions of a layout that Spark can express over a scan's output."""
    return tuple(
        function
        for function in layout.functions
        if function.grouping.spark_name is not None
        and len(_path(function, schema)) == 1
        and _path(function, schema) in projected
    )


def _path(function: LayoutFunction, schema: NamespaceSchema) -> tuple[str, ...]:
    source = schema.field_by_id(function.source_ids[0])
    return () if source is None else source.path


def _spark_transform(function: LayoutFunction, schema: NamespaceSchema) -> SparkTransform:
    literals = [{"literal": literal} for literal in function.grouping.transform.spark_literals]
    arguments = [*literals, {"column": list(_path(function, schema))}]
    return {"function": function.grouping.spark_name, "arguments": arguments}
