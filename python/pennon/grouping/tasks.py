"""Assigns the leaves of a query's scans to the keys of its key groups.

Spark runs one task per key of a group: what stands under one key in all scans of the group is
joined there. A leaf may stand under several keys: whole, where it is the partner of a divided
leaf, or by ranges of its fragments, where it is the one that is divided. A leaf whose key has no
partner that it would need stands under none. A key may stand without a leaf: rows that Spark
shuffles onto one scan of a group lie as those of its other scans do if all have the same keys.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import PartitionExpressionFailed
from pennon.grouping.key_grouping import surrogates
from pennon.grouping.resolve.group_tree import group_tree, needed_keys, splittable_scans
from pennon.grouping.resolve.verdict import expression_fails, too_few_groups
from pennon.plan import Scan
from pennon.planning.splits import ASSIGNED, OPEN_COST_BYTES, assigned, leaf_pieces

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from pennon.grouping.resolve.group_tree import DerivedKeys, KeyGroup, KeySet
    from pennon.plan import PlanNode
    from pennon.spec.functions import LayoutFunction


# The desired number and size of a query's tasks.


@dataclass(frozen=True, slots=True)
class TaskTarget:
    """What the tasks of a query should look like.

    Args:
        parallelism: How many tasks can run at once.
        max_bytes: The most that one task should read; the thresholds are shares of it.
    """

    parallelism: int
    max_bytes: int


if TYPE_CHECKING:
    Numbers = npt.NDArray[np.int64]

# Packs many small key groups into few tasks: a key has the same bin in all scans of the group.
#
# A task for each of a thousand small groups costs more to start than to run. Keys of one bin are
# one key to Spark, which is only coarser: the real conjuncts stay in the joins.

# Twice as many tasks as can run at once keep all busy when their sizes differ.
_TASKS_PER_SLOT: Final = 2
# Beyond this much, a task's own cost counts no more and smaller ones balance better.
_SHARE_OF_MAX_BYTES: Final = 4
# What one task's text may grow to, and what is lost when a task is tried again.
_MOST_LEAVES: Final = 2_000
# So many of the largest keys are placed one by one; the rest fills up what they leave.
_PLACED_ONE_BY_ONE: Final = 2_000


def wanted_tasks(num_bytes: int, num_leaves: int, target: TaskTarget) -> int:
    """Say how many tasks so many bytes in so many leaves should be.

    Example:
        >>> from pennon.grouping.tasks import TaskTarget
        >>> wanted_tasks(10_000, 364, TaskTarget(parallelism=4, max_bytes=128 << 20))
        8
        >>> wanted_tasks(1 << 30, 364, TaskTarget(parallelism=4, max_bytes=128 << 20))
        32
    """
    return max(
        _TASKS_PER_SLOT * target.parallelism,
        -(-num_bytes * _SHARE_OF_MAX_BYTES // target.max_bytes),
        -(-num_leaves // _MOST_LEAVES),
    )


def pack_keys(weights: Numbers, num_bins: int) -> Numbers:
    """Pack keys into bins of about the same weight.

    Args:
        weights: One positive number per key.
        num_bins: The most bins; as many as there are keys suffice.

    Returns:
        The bin of each key; every bin has a key.

    Example:
        >>> pack_keys(np.array([5, 1, 1, 1, 1, 1]), 2).tolist()
        [0, 1, 1, 1, 1, 1]
    """
    num_bins = min(num_bins, len(weights))
    order = np.argsort(-weights, kind="stable")
    bins = np.zeros(len(weights), dtype=np.int64)
    loads = [(0, index) for index in range(num_bins)]
    for key in order[:_PLACED_ONE_BY_ONE].tolist():
        load, lightest = loads[0]
        bins[key] = lightest
        heapq.heapreplace(loads, (load + int(weights[key]), lightest))
    rest = order[_PLACED_ONE_BY_ONE:]
    if len(rest):
        bins[rest] = _filled_up(weights[rest], loads)
    return bins


def _filled_up(weights: Numbers, loads: list[tuple[int, int]]) -> Numbers:
    """Let each bin take of the light keys what brings it up to the others."""
    loads = sorted(loads)
    level = (int(weights.sum()) + sum(load for load, _ in loads)) / len(loads)
    room = np.maximum(0.0, level - np.array([load for load, _ in loads], dtype=np.float64))
    ends = np.cumsum(room) * (weights.sum() / room.sum())
    middles = np.cumsum(weights) - weights / 2
    places = np.minimum(np.searchsorted(ends, middles), len(loads) - 1)
    return np.array([number for _, number in loads], dtype=np.int64)[places]


# The chosen leaves of the scans of one group, each with the number of its key.


@dataclass(frozen=True, slots=True, eq=False)
class MemberLeaves:
    """Leaves of one scan, each with its key.

    Args:
        num_keys: How many keys the group has.
        leaves: Rows of the scan's chosen partitions.
        keys: The number of each leaf's key.
        num_bytes: Bytes of each leaf; 0 where they are not known.
        num_fragments: Fragments of each leaf; 1 where they are not known.
    """

    num_keys: int
    leaves: Numbers
    keys: Numbers
    num_bytes: Numbers
    num_fragments: Numbers

    @property
    def key_leaves(self) -> Numbers:
        """How many leaves each key has."""
        return np.bincount(self.keys, minlength=self.num_keys).astype(np.int64)

    @property
    def key_bytes(self) -> Numbers:
        """How many bytes each key has."""
        weights = self.num_bytes.astype(np.float64)
        return np.bincount(self.keys, weights, minlength=self.num_keys).astype(np.int64)

    @property
    def present(self) -> KeySet:
        """The keys that have a leaf."""
        return self.key_leaves > 0

    def under(self, keys: KeySet) -> MemberLeaves:
        """Keep the leaves of some keys."""
        kept = keys[self.keys]
        return MemberLeaves(
            self.num_keys,
            self.leaves[kept],
            self.keys[kept],
            self.num_bytes[kept],
            self.num_fragments[kept],
        )

    def of_key(self, key: int) -> MemberLeaves:
        """Keep the leaves of one key."""
        return self.under(np.arange(self.num_keys) == key)


def members_of(
    functions: Mapping[int, Sequence[LayoutFunction]],
    nodes: Sequence[PlanNode],
    leaves: Mapping[int, pa.Table],
) -> tuple[Numbers, dict[int, MemberLeaves]]:
    """Number the keys of a group's scans.

    Args:
        functions: For each scan of the group, the functions of its key.
        nodes: The plan.
        leaves: For each scan, its rows of ``__manifest`` with their statistics.

    Returns:
        The keys by number, and the leaves of each scan.
    """
    hashes = {
        scan: surrogates(node.layout, functions[scan], leaves[scan]).to_numpy()
        for scan in functions
        if isinstance(node := nodes[scan], Scan) and node.layout is not None
    }
    values, numbers = np.unique(np.concatenate(list(hashes.values())), return_inverse=True)
    members: dict[int, MemberLeaves] = {}
    start = 0
    for scan, own in hashes.items():
        members[scan] = MemberLeaves(
            len(values),
            np.arange(len(own), dtype=np.int64),
            numbers[start : start + len(own)].astype(np.int64),
            _integers(leaves[scan], "num_bytes", 0),
            np.maximum(1, _integers(leaves[scan], "num_fragments", 1)),
        )
        start += len(own)
    return values, members


def _integers(leaves: pa.Table, name: str, unknown: int) -> Numbers:
    values: Numbers = leaves[name].fill_null(unknown).to_numpy().astype(np.int64)
    return values


# Divides a key group that is too large for one task, where its joins allow it.
#
# One scan's leaves of the key are divided among several tasks, whole or by ranges of fragments; the
# other scans' leaves of the key are read by each of them. Where nothing can be divided and the
# query would run on a part of the machine only, a shuffle is faster and the key is declined.

# A group larger than its fair share by this factor is worth dividing.
_UNFAIR: Final = 1.5
# A shuffle writes and reads everything once more, but keeps all of the machine busy.
_SHUFFLE_COST: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class DividedKey:
    """A key whose leaves in one scan are divided.

    Args:
        scan: The position of that scan.
        pieces: The leaves and ranges of leaves, as ``leaf_pieces`` gives them.
        tasks: The number of each one's task, in ascending order.
    """

    scan: int
    pieces: pa.Table
    tasks: Numbers

    @property
    def task_bytes(self) -> list[int]:
        """The bytes of each task."""
        sizes: list[float] = np.bincount(self.tasks, self.pieces["num_bytes"].to_numpy()).tolist()
        return list(map(int, sizes))


def large_keys(num_bytes: Numbers, target: TaskTarget) -> list[int]:
    """List the keys that are too large for one task.

    Args:
        num_bytes: Bytes of each key, over all scans.
        target: A key of less than half of ``max_bytes`` is never too large.
    """
    fair = _UNFAIR * float(num_bytes.sum()) / target.parallelism
    limit = max(_small(target), fair)
    return [int(key) for key in np.flatnonzero(num_bytes > limit)]


def divide(
    members: Mapping[int, MemberLeaves],
    splittable: Collection[int],
    total: int,
    target: TaskTarget,
) -> DividedKey | None:
    """Divide a key; None where no scan can be, or where it would not pay.

    Args:
        members: The key's leaves in each scan.
        splittable: The scans that may be divided.
        total: Bytes of all keys.
        target: What tasks should look like.
    """
    sizes = {scan: int(leaves.num_bytes.sum()) for scan, leaves in members.items()}
    candidates = [scan for scan in sizes if scan in splittable]
    if not candidates:
        return None
    scan = max(candidates, key=lambda candidate: (sizes[candidate], -candidate))
    repeated = sum(sizes.values()) - sizes[scan]
    # What every task repeats should not outweigh what it has for itself by much.
    piece_bytes = max(_small(target), total // (2 * target.parallelism), repeated // 2)
    own = members[scan]
    pieces = leaf_pieces(own.leaves, own.num_bytes, own.num_fragments, piece_bytes)
    parts = min(-(-sizes[scan] // piece_bytes), pieces.num_rows)
    if parts <= 1:
        return None
    bins = pack_keys(np.maximum(1, pieces["num_bytes"].to_numpy()), parts)
    order = np.argsort(bins, kind="stable")
    return DividedKey(scan, pieces.take(order), bins[order])


def is_slower_than_a_shuffle(
    num_keys: int, task_bytes: Sequence[int], total: int, target: TaskTarget
) -> bool:
    """Whether too few tasks would leave the machine idle for longer than a shuffle takes.

    Args:
        num_keys: How many groups there are.
        task_bytes: Bytes of each task, repeated ones included.
        total: Bytes of all leaves; small data never shuffles.
        target: What tasks should look like.
    """
    if num_keys >= target.parallelism or total <= target.parallelism * _small(target):
        return False
    longest = max(*task_bytes, sum(task_bytes) / target.parallelism)
    return longest > _SHUFFLE_COST * total / target.parallelism


def _small(target: TaskTarget) -> int:
    return target.max_bytes // 2


# How one key group is read: which leaves, which keys are divided, which share a task.


@dataclass(frozen=True, slots=True, eq=False)
class BalancedGroup:
    """One key group, its keys numbered.

    Args:
        values: The derived keys, by number.
        members: For each scan, the leaves that it reads.
        unread: For each scan, how many leaves have no partner that they would need.
        divided: The keys that several tasks read.
        is_hashed: Whether Spark computes the key of a side from its rows: keys stay as they are.
        target: What tasks should look like.
        key_bytes: Bytes of each key, over all scans.
        key_leaves: Leaves of each key, over all scans.
        whole_keys: The keys that have a leaf and one task only.
    """

    values: Numbers
    members: Mapping[int, MemberLeaves]
    unread: Mapping[int, int]
    divided: Mapping[int, DividedKey]
    is_hashed: bool
    target: TaskTarget

    key_bytes: Numbers = field(init=False)
    key_leaves: Numbers = field(init=False)
    whole_keys: Numbers = field(init=False)

    def __post_init__(self) -> None:
        members = self.members.values()
        leaves = _sum([member.key_leaves for member in members])
        counts = leaves.copy()
        counts[list(self.divided)] = 0
        object.__setattr__(self, "key_bytes", _sum([member.key_bytes for member in members]))
        object.__setattr__(self, "key_leaves", leaves)
        object.__setattr__(self, "whole_keys", np.flatnonzero(counts))

    @property
    def num_keys(self) -> int:
        """How many groups there are to read."""
        return len(self.whole_keys) + len(self.divided)

    @property
    def is_slower_than_a_shuffle(self) -> bool:
        """Whether its tasks leave the machine idle for longer than a shuffle takes."""
        sizes = self.key_bytes
        tasks = sizes[self.whole_keys].tolist()
        for key, divided in self.divided.items():
            repeated = int(sizes[key] - self.members[divided.scan].key_bytes[key])
            tasks += [num_bytes + repeated for num_bytes in divided.task_bytes]
        return is_slower_than_a_shuffle(self.num_keys, tasks, int(sizes.sum()), self.target)

    @property
    def is_packed(self) -> bool:
        """Whether keys share tasks, or one is divided among several."""
        return self.tasks()[0] is not self.values

    def tasks(self) -> tuple[Numbers, dict[int, list[int]]]:
        """Name the tasks.

        Returns:
            For each key that is not divided, its task; for each one that is, those of its parts.
        """
        whole = self.whole_keys
        sizes, counts = self.key_bytes[whole], self.key_leaves[whole]
        most = wanted_tasks(int(sizes.sum()), int(counts.sum()), self.target)
        if self.is_hashed or (not self.divided and len(whole) <= most):
            return self.values, {}
        task_of_key = np.full(len(self.values), -1, dtype=np.int64)
        task_of_key[whole] = pack_keys(sizes + counts * OPEN_COST_BYTES, most)
        first = int(task_of_key.max(initial=-1)) + 1
        parts: dict[int, list[int]] = {}
        for key, divided in self.divided.items():
            parts[key] = list(range(first, first + len(divided.task_bytes)))
            first += len(parts[key])
        return task_of_key, parts


def balanced_group(
    keys: DerivedKeys,
    group: KeyGroup,
    nodes: Sequence[PlanNode],
    leaves: Mapping[int, pa.Table],
    target: TaskTarget,
) -> BalancedGroup:
    """Balance the leaves of a group.

    Args:
        keys: The functions of the scans' keys.
        group: The group.
        nodes: The plan.
        leaves: For each scan, its rows of ``__manifest`` with their statistics.
        target: What tasks should look like.
    """
    functions = {scan: keys.scans[scan] for scan in group.scans}
    values, members = members_of(functions, nodes, leaves)
    tree = group_tree(nodes, group)
    needed = needed_keys(tree, {scan: member.present for scan, member in members.items()})
    kept = {scan: member.under(needed[scan]) for scan, member in members.items()}
    unread = {scan: len(members[scan].leaves) - len(member.leaves) for scan, member in kept.items()}
    splittable = frozenset() if group.computed else splittable_scans(tree)
    divided = _divided(kept, splittable, target) if splittable else {}
    return BalancedGroup(values, kept, unread, divided, bool(group.computed), target)


def _divided(
    members: Mapping[int, MemberLeaves], splittable: frozenset[int], target: TaskTarget
) -> dict[int, DividedKey]:
    sizes = _sum([member.key_bytes for member in members.values()])
    by_key: dict[int, DividedKey] = {}
    for key in large_keys(sizes, target):
        of_key = {scan: member.of_key(key) for scan, member in members.items()}
        divided = divide(of_key, splittable, int(sizes.sum()), target)
        if divided is not None:
            by_key[key] = divided
    return by_key


def _sum(numbers: Sequence[Numbers]) -> Numbers:
    total: Numbers = np.sum(numbers, axis=0)
    return total


@dataclass(frozen=True, slots=True)
class Assignment:
    """The keys of every scan that gets a derived key.

    Args:
        keys: What is derived; it may be less than the plan would allow.
        rows: What is read under each key (``ASSIGNED``), the rows of a scan together, and among
            them those of a key.
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
        if divided[key].scan == scan:
            pieces = divided[key].pieces
            tasks = np.array(names)[divided[key].tasks]
            tables.append(assigned(scan, tasks, pieces["leaf"].to_numpy(), pieces))
            continue
        leaves = members.of_key(key).leaves
        tables += [assigned(scan, np.full(len(leaves), name), leaves) for name in names]
    return pa.concat_tables(tables)


def _with_missing(scan: int, rows: pa.Table, tasks: Numbers) -> pa.Table:
    """Add tasks that read nothing of a scan."""
    nothing = assigned(scan, tasks, np.zeros(len(tasks), np.int64))
    nothing = nothing.set_column(2, ASSIGNED.field("leaf"), pa.nulls(len(tasks), pa.int32()))
    return pa.concat_tables([rows, nothing]).sort_by("key")


def _by_task(scan: int, tasks: Numbers, leaves: Numbers) -> pa.Table:
    """Put the rows of a task together, and tasks in the order into which Spark sorts them."""
    order = np.argsort(tasks, kind="stable")
    return assigned(scan, tasks[order], leaves[order])


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
