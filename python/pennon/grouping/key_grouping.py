"""The partitioning that a scan reports to Spark: keys and one value of each per partition.

Spark knows columns and functions of exactly one column; every column that a key references has
to be in the scan's output, so the report is narrowed to the surviving fields instead of lost
(spj-contract, d.6). Several partitions may have the same key: Spark groups them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.grouping.layout import LayoutFunction, layout_of
from pennon.transforms.bucket import Bucket

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
        values: One row per partition of the plan, one column ``key_<n>`` per key.
    """

    keys: tuple[SparkTransform, ...]
    values: pa.Table


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
    layout = layout_of(snapshot.specs, snapshot.schema, plan.table)
    keys: list[SparkTransform] = []
    columns: dict[str, pa.Array] = {}
    for function in layout.functions:
        transform = spark_transform(function, snapshot.schema, projected)
        if transform is None:
            continue
        columns[f"key_{len(keys)}"] = layout.values(function, plan.table)
        keys.append(transform)
    if not keys:
        return None
    return KeyGrouping(tuple(keys), pa.table(columns))


def spark_transform(
    function: LayoutFunction, schema: NamespaceSchema, projected: Collection[tuple[str, ...]]
) -> SparkTransform | None:
    """Spell a function as Spark's transform; None when Spark cannot express it here."""
    name = function.grouping.spark_name
    source = schema.field_by_id(function.source_ids[0])
    if name is None or source is None or len(source.path) != 1 or source.path not in projected:
        return None
    transform = function.grouping.transform
    literals = [{"literal": transform.num_buckets}] if isinstance(transform, Bucket) else []
    return {"function": name, "arguments": [*literals, {"column": list(source.path)}]}
