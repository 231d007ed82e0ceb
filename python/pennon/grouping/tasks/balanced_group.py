"""How one key group is read: which leaves, which keys are divided, which share a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pennon.grouping.resolve.group_tree import group_tree, needed_keys, splittable_scans
from pennon.grouping.tasks.balance import pack_keys, wanted_tasks
from pennon.grouping.tasks.member_leaves import members_of
from pennon.grouping.tasks.skew import divide, is_slower_than_a_shuffle, large_keys
from pennon.planning.splits import OPEN_COST_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from pennon.grouping.resolve.key_group import DerivedKeys, KeyGroup
    from pennon.grouping.tasks.member_leaves import MemberLeaves
    from pennon.grouping.tasks.skew import DividedKey
    from pennon.grouping.tasks.task_target import TaskTarget
    from pennon.plan import PlanNode

    Numbers = npt.NDArray[np.int64]


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
            tasks += [sum(piece.num_bytes for piece in task) + repeated for task in divided.tasks]
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
            parts[key] = list(range(first, first + len(divided.tasks)))
            first += len(divided.tasks)
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
