"""Which leaves of a query's scans are read under which key: the tasks of its key groups.

Spark runs one task per key of a group: what stands under one key in all scans of the group is
joined there. A leaf may stand under several keys: whole, where it is the partner of a split leaf,
or by ranges of its fragments, where it is the one that is split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.grouping.derived_key import surrogates
from pennon.grouping.plan_nodes import ScanNode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.grouping.join_tree import DerivedKeys
    from pennon.grouping.plan_nodes import PlanNode

ASSIGNED: Final = pa.schema(
    {
        "scan": pa.int32(),
        "key": pa.int64(),
        "leaf": pa.int32(),
        "first_fragment": pa.int32(),
        "end_fragment": pa.int32(),
    }
)


@dataclass(frozen=True, slots=True)
class TaskTarget:
    """What the tasks of a query should look like.

    Args:
        parallelism: How many tasks can run at once.
        max_bytes: The most that one task should read.
    """

    parallelism: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """The keys of every scan that gets a derived key.

    Args:
        keys: What is derived; it may be less than the plan would allow.
        rows: One row per scan, key and leaf (``ASSIGNED``), the rows of a scan together: scan and
            leaf are positions, in the plan's nodes and in the scan's chosen partitions; fragments
            are the first and the one after the last, by position, NULL for the whole leaf.
        notes: For each scan, what EXPLAIN says about its groups.
    """

    keys: DerivedKeys
    rows: pa.Table
    notes: Mapping[int, str]


def assign(
    keys: DerivedKeys,
    nodes: Sequence[PlanNode],
    leaves: Mapping[int, pa.Table],
    target: TaskTarget,
) -> Assignment:
    """Assign the chosen partitions of every scan to keys.

    Args:
        keys: What the plan allows.
        nodes: The plan.
        leaves: For each scan, its rows of ``__manifest`` with their statistics.
        target: What tasks should look like.

    Spec: "Storage Partitioned Join".
    """
    del target
    rows: list[pa.Table] = []
    notes: dict[int, str] = {}
    for position, functions in keys.scans.items():
        node = nodes[position]
        if isinstance(node, ScanNode):
            values = surrogates(node.layout, functions, leaves[position])
            rows.append(whole_leaves(position, values))
            notes[position] = f"{len(values.unique())} groups"
    return Assignment(keys, pa.concat_tables(rows) if rows else ASSIGNED.empty_table(), notes)


def whole_leaves(scan: int, keys: pa.Array) -> pa.Table:
    """Write the rows of a scan whose leaves have one key each, in their order."""
    count = len(keys)
    none = pa.nulls(count, pa.int32())
    positions = pa.array(range(count), pa.int32())
    return pa.Table.from_arrays(
        [pa.repeat(pa.scalar(scan, pa.int32()), count), keys, positions, none, none],
        schema=ASSIGNED,
    )
