"""Assigns the leaves of a query's scans to the keys of its key groups.

Spark runs one task per key of a group: what stands under one key in all scans of the group is
joined there. A leaf may stand under several keys: whole, where it is the partner of a divided
leaf, or by ranges of its fragments, where it is the one that is divided. A leaf whose key has no
partner that it would need stands under none. A key may stand without a leaf: rows that Spark
shuffles onto one scan of a group lie as those of its other scans do if all have the same keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import PartitionExpressionFailed
from pennon.grouping.resolve.verdict import expression_fails, too_few_groups
from pennon.grouping.tasks.balanced_group import BalancedGroup, balanced_group

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from pennon.grouping.resolve.key_group import DerivedKeys
    from pennon.grouping.tasks.member_leaves import MemberLeaves
    from pennon.grouping.tasks.task_target import TaskTarget
    from pennon.plan import PlanNode

    Numbers = npt.NDArray[np.int64]

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
class Assignment:
    """The keys of every scan that gets a derived key.

    Args:
        keys: What is derived; it may be less than the plan would allow.
        rows: One row per scan, key and leaf (``ASSIGNED``), the rows of a scan together, and among
            them those of a key: scan and leaf are positions, in the plan's nodes and in the scan's
            chosen partitions, the leaf NULL where there is nothing to read; fragments are the first
            and the one after the last, by position, NULL for the whole leaf.
        notes: For each scan, what EXPLAIN says about its groups.
        declined: Scans that are shuffled: because it is faster, and what they would report by
            themselves is as coarse, or onto scans that stay.
    """

    keys: DerivedKeys
    rows: pa.Table = field(default_factory=ASSIGNED.empty_table)
    notes: Mapping[int, str] = field(default_factory=dict)
    declined: frozenset[int] = frozenset()

    def of(self, scans: Collection[int]) -> pa.Table:
        """Give what is assigned to some of the scans."""
        return self.rows.filter(pc.is_in(self.rows["scan"], pa.array(scans, pa.int32())))


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
    rows: list[pa.Table] = []
    notes: dict[int, str] = {}
    declined = keys.moved
    reported = {own.group: own for own in keys.reported if not own.group.computed}
    for group in (*keys.groups, *reported):
        wider = keys.using(reported[group]) if group in reported else keys
        try:
            balanced = balanced_group(wider, group, nodes, leaves, target)
        except PartitionExpressionFailed as error:
            # Who wrote the other side may have been an engine that computes it for the value, so
            # that it is no proof that no row there has it: the join is shuffled.
            if group not in reported:
                keys = keys.without(group, *expression_fails(error))
            continue
        if balanced.is_slower_than_a_shuffle:
            declined |= frozenset(group.scans)
            num_bytes = int(balanced.key_bytes.sum())
            why = too_few_groups(balanced.num_keys, num_bytes, target.parallelism)
            keys = wider.without(group, *why)
            continue
        if group in reported and not balanced.is_packed:
            continue
        keys = wider
        if balanced.divided:
            count = f"{len(balanced.divided)} of {balanced.num_keys} groups"
            keys = keys.divided(group, f"{count} large and divided among several tasks")
        task_of_key, parts = balanced.tasks()
        for scan, members in balanced.members.items():
            rows.append(_rows(scan, members, task_of_key, parts, balanced))
            notes[scan] = _note(scan, balanced, task_of_key, parts)
    table = pa.concat_tables(rows) if rows else ASSIGNED.empty_table()
    return Assignment(keys, table, notes, declined)


def _rows(
    scan: int,
    members: MemberLeaves,
    task_of_key: Numbers,
    parts: Mapping[int, Sequence[int]],
    group: BalancedGroup,
) -> pa.Table:
    if group.is_hashed:
        missing = np.setdiff1d(group.whole_keys, members.keys)
        of_keys = _by_task(scan, task_of_key[members.keys], members.leaves)
        return _with_missing(scan, of_keys, task_of_key[missing])
    if not parts:
        return _by_task(scan, task_of_key[members.keys], members.leaves)
    divided = group.divided
    is_whole = ~np.isin(members.keys, list(parts))
    tables = [_by_task(scan, task_of_key[members.keys[is_whole]], members.leaves[is_whole])]
    for key, names in parts.items():
        for name, pieces in zip(names, divided[key].tasks, strict=True):
            if divided[key].scan == scan:
                leaves = np.array([piece.leaf for piece in pieces], np.int64)
                fragments = [piece.fragments for piece in pieces]
            else:
                leaves = members.of_key(key).leaves
                fragments = [None] * len(leaves)
            tables.append(_table(scan, np.full(len(leaves), name), leaves, fragments))
    return pa.concat_tables(tables)


def _with_missing(scan: int, rows: pa.Table, tasks: Numbers) -> pa.Table:
    """Add tasks that read nothing of a scan."""
    nothing = _table(scan, tasks, np.zeros(len(tasks), np.int64))
    nothing = nothing.set_column(2, ASSIGNED.field("leaf"), pa.nulls(len(tasks), pa.int32()))
    return pa.concat_tables([rows, nothing]).sort_by("key")


def _by_task(scan: int, tasks: Numbers, leaves: Numbers) -> pa.Table:
    """Put the rows of a task together, and tasks in the order into which Spark sorts them."""
    order = np.argsort(tasks, kind="stable")
    return _table(scan, tasks[order], leaves[order])


def _table(
    scan: int,
    tasks: Numbers,
    leaves: Numbers,
    fragments: Sequence[tuple[int, int] | None] | None = None,
) -> pa.Table:
    none = pa.nulls(len(leaves), pa.int32())
    first, end = none, none
    if fragments is not None:
        first, end = (
            pa.array(
                [None if fragment is None else fragment[at] for fragment in fragments], pa.int32()
            )
            for at in (0, 1)
        )
    positions = pa.array(np.full(len(leaves), scan, np.int32))
    columns = [positions, pa.array(tasks), pa.array(leaves.astype(np.int32)), first, end]
    return pa.Table.from_arrays(columns, schema=ASSIGNED)


def _note(
    scan: int,
    group: BalancedGroup,
    task_of_key: Numbers,
    parts: Mapping[int, Sequence[int]],
) -> str:
    """Say how many groups there are and in how many tasks they are read."""
    whole = len(np.unique(task_of_key[group.whole_keys]))
    num_tasks = whole + sum(len(names) for names in parts.values())
    texts = [f"{group.num_keys} groups"]
    if num_tasks != group.num_keys:
        texts[0] += f" in {num_tasks} tasks"
    own = [key for key in parts if group.divided[key].scan == scan]
    if parts:
        of_this = "divided here" if own else "divided in another table, repeated here"
        texts.append(f"{len(parts)} of them large: {of_this}")
    if group.unread[scan]:
        texts.append(f"{group.unread[scan]} partitions without partner are not read")
    return "; ".join(texts)
