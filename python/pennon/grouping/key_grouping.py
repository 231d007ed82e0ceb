"""The partitioning that a scan reports to Spark: keys and one value of each per partition.

Spark knows columns and functions of exactly one column; every column that a key references has
to be in the scan's output, so the report is narrowed to the surviving fields instead of lost
(spj-contract, d.6). Several partitions may have the same key: Spark groups them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pennon.spec.functions import Layout, LayoutFunction, layout_of
from pennon.transforms.murmur3 import murmur3

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pennon.manifest.snapshot import Snapshot
    from pennon.planning.scan_plan import ScanPlan
    from pennon.spec.schema import NamespaceSchema

# The derived key of a scan: a never-NULL 64-bit surrogate of its reduced partition values.
#
# Equal tuples give equal surrogates on every side of a join; a collision only makes a group
# coarser, for the real conjuncts stay in the join (derived-keys contract, 1.3). The JVM function
# that computes the surrogate for the side without partitioning has the same definition: starting
# with 0, ``surrogate = surrogate * 1000003 + h`` in wrapping 64 bits, where ``h`` is the murmur3
# hash of the value, or 2**32 for NULL.

_FACTOR = np.int64(1_000_003)
_NULL_HASH = np.int64(2**32)


def surrogates(layout: Layout, functions: Sequence[LayoutFunction], leaves: pa.Table) -> pa.Array:
    """Compute the derived key of each chosen leaf.

    Args:
        layout: The layout of the scan.
        functions: The reduced functions of the key, in the order of the group.
        leaves: Rows of ``__manifest``, as the plan has them.

    Returns:
        int64 without NULLs, one value per leaf.

    Spec: "Storage Partitioned Join".
    """
    return surrogate_of(
        [layout.values(function, leaves) for function in functions], leaves.num_rows
    )


def surrogate_of(tuples: Sequence[pa.Array], num_rows: int) -> pa.Array:
    """Hash tuples of partition values, given column by column, into surrogates.

    Example:
        >>> surrogate_of([pa.array([None, None], pa.int32())], 2).to_pylist()
        [4294967296, 4294967296]
    """
    key = np.zeros(num_rows, dtype=np.int64)
    with np.errstate(over="ignore"):
        for values in tuples:
            hashes = murmur3(values)
            hashed = hashes.cast(pa.int64()).fill_null(int(_NULL_HASH)).to_numpy()
            key = key * _FACTOR + hashed
    return pa.array(key, pa.int64())


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
