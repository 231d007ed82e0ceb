"""Divides a candidate into the tasks of a fragment, or declines where it does not pay.

A join holds all but its largest relation in memory, so a task whose build sides would not fit the
pool is left to Spark, which spills; so is a group that is too coarse for as many tasks as there
are cores. Sizes are those of the manifest; a leaf without statistics counts as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import InternalError
from pennon.grouping.resolve.group_tree import DerivedKeys
from pennon.grouping.tasks import assign
from pennon.planning.splits import ASSIGNED, assigned, pack
from pennon.pushdown.partners import HASH_TABLE_EXPANSION, holds_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pennon.grouping.tasks import TaskTarget
    from pennon.plan import Plan
    from pennon.planning import ScanPlan
    from pennon.pushdown.candidates import Candidate
    from pennon.pushdown.division import Division
    from pennon.spec.functions import LayoutFunction

    Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FragmentTasks:
    """What the tasks of a fragment read.

    Args:
        keys: int64, one per task, at least one: an aggregate over nothing has a row.
        rows: One row per scan, key and leaf or part of a leaf (``ASSIGNED``); None where the only
            task reads all leaves of all scans.
        groupings: For each scan that is read by keys, its functions and what EXPLAIN says of them.
    """

    keys: pa.Array
    rows: pa.Table | None
    groupings: Mapping[int, tuple[Sequence[LayoutFunction], str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: pa.Table,
        groupings: Mapping[int, tuple[Sequence[LayoutFunction], str]] | None = None,
    ) -> FragmentTasks:
        """Make the tasks of what is assigned to keys; under a key there may be nothing to read."""
        keys = pc.unique(rows["key"])
        keys = keys if len(keys) else pa.array([0], pa.int64())
        return cls(keys, rows.filter(pc.is_valid(rows["leaf"])), groupings or {})

    def numbers(self, scan: int) -> tuple[pa.Table, Numbers]:
        """Give what is read of a scan, and the number of the task that reads it.

        Raises:
            InternalError: The only task reads everything, and no rows say so.
        """
        if self.rows is None:
            raise InternalError(what="The only task of a fragment has no rows to number")
        rows = self.rows.filter(pc.equal(self.rows["scan"], pa.scalar(scan, pa.int32())))
        return rows, pc.index_in(rows["key"], self.keys).to_numpy().astype(np.int64)


def tasks_of(
    candidate: Candidate,
    division: Division,
    plans: Mapping[int, ScanPlan],
    target: TaskTarget,
    *,
    pool_bytes: int,
) -> FragmentTasks | None:
    """List the tasks of a fragment.

    Args:
        candidate: The fragment.
        division: The query, and the keys of its scans.
        plans: What each scan of the query reads.
        target: What tasks should look like.
        pool_bytes: The memory of a worker's queries.

    Returns:
        The tasks; None where the fragment does not pay.
    """
    if candidate.is_one_task:
        return FragmentTasks(pa.array([0], pa.int64()), None)
    read = {scan: plans[scan] for scan in candidate.query.scans}
    if candidate.group is None:
        return _packed(read, target)
    around = candidate.surroundings
    keys, view = (division.keys, division.view) if around is None else (around.keys, around.view)
    tasks = _assigned(candidate, keys, view, plans, target)
    if tasks is None:
        return None
    holds_all = holds_rows(division.view, candidate.positions)
    held = _most_held(tasks, read, holds_all=holds_all)
    return None if held * HASH_TABLE_EXPANSION > pool_bytes else tasks


def _packed(plans: Mapping[int, ScanPlan], target: TaskTarget) -> FragmentTasks:
    """Let each task read some leaves of one scan, and nothing of the others."""
    rows, first = [ASSIGNED.empty_table()], 0
    for scan, plan in plans.items():
        packed = pack(plan, target.parallelism, target.max_bytes)
        keys = packed["key"].to_numpy() + first
        rows.append(assigned(scan, keys, packed["leaf"].to_numpy(), packed))
        first = int(keys.max(initial=first - 1)) + 1
    return FragmentTasks.of(pa.concat_tables(rows))


def _assigned(
    candidate: Candidate,
    keys: DerivedKeys,
    view: Plan,
    plans: Mapping[int, ScanPlan],
    target: TaskTarget,
) -> FragmentTasks | None:
    group = candidate.group
    if group is None:
        raise InternalError(what="A fragment is divided by a key, and has none")
    functions = {scan: keys.scans[scan] for scan in group.scans}
    computed = {join: keys.computed[join] for join in group.computed}
    own = DerivedKeys(functions, group.operators, computed, groups=(group,))
    leaves = {scan: plans[scan].table for scan in group.scans}
    assignment = assign(own, view, leaves, target)
    if set(assignment.keys.scans) != set(group.scans):
        return None
    read = candidate.query.scans
    groupings = {scan: (functions[scan], assignment.notes[scan]) for scan in read}
    return FragmentTasks.of(assignment.of(read), groupings)


def _most_held(
    tasks: FragmentTasks, plans: Mapping[int, ScanPlan], *, holds_all: bool = False
) -> int:
    """Add up, for the task where it is most, the bytes of all relations but the largest.

    A window holds that one, too.
    """
    sizes = [_bytes_by_task(tasks, scan, plan) for scan, plan in plans.items()]
    streamed = 0 if holds_all else np.max(sizes, axis=0)
    return int((np.sum(sizes, axis=0) - streamed).max())


def _bytes_by_task(tasks: FragmentTasks, scan: int, plan: ScanPlan) -> npt.NDArray[np.float64]:
    rows, numbers = tasks.numbers(scan)
    read = plan.table.select(["num_bytes", "num_fragments"]).take(rows["leaf"])
    sizes, counts = (
        pc.fill_null(column, 0).cast(pa.float64(), safe=False).to_numpy()
        for column in (read["num_bytes"], read["num_fragments"])
    )
    parts = pc.fill_null(pc.subtract(rows["end_fragment"], rows["first_fragment"]), -1).to_numpy()
    shares = np.where(parts < 0, 1.0, parts / np.maximum(counts, 1.0))
    return np.bincount(numbers, sizes * shares, minlength=len(tasks.keys)).astype(np.float64)
