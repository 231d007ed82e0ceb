"""A candidate and what its scans read → the tasks of the fragment, or none where it does not pay.

A join holds all but its largest relation in memory, so a task whose build sides would not fit the
pool is left to Spark, which spills; so is a group that is too coarse for as many tasks as there
are cores. Sizes are those of the manifest; a leaf without statistics counts as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.grouping.assignment import assign
from pennon.grouping.key_group import DerivedKeys
from pennon.planning.splits import Piece, pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.grouping.plan_nodes import PlanNode
    from pennon.grouping.task_target import TaskTarget
    from pennon.planning import ScanPlan
    from pennon.pushdown.candidates import Candidate

# Rows take about this many times as much memory in a hash table as on disk.
_EXPANSION: Final = 3


@dataclass(frozen=True, slots=True)
class FragmentTask:
    """What one task reads.

    Args:
        key: Tells it from the others.
        pieces: For each scan, by position in the plan, what is read of it.
    """

    key: int
    pieces: Mapping[int, tuple[Piece, ...]]


def tasks_of(
    candidate: Candidate,
    keyed: tuple[DerivedKeys, Sequence[PlanNode]],
    plans: Mapping[int, ScanPlan],
    target: TaskTarget,
    *,
    pool_bytes: int,
) -> tuple[FragmentTask, ...] | None:
    """List the tasks of a fragment.

    Args:
        candidate: The fragment.
        keyed: The keys of its scans, and the plan that they were found in.
        plans: What each scan reads.
        target: What tasks should look like.
        pool_bytes: The memory of a worker's queries.

    Returns:
        At least one task; None where the fragment does not pay.
    """
    if candidate.group is None:
        (scan,) = candidate.query.scans
        packed = pack(plans[scan], target.parallelism, target.max_bytes)
        return _or_empty(
            [FragmentTask(key, {scan: tuple(pieces)}) for key, pieces in enumerate(packed)]
        )
    found = _keyed_tasks(candidate, keyed, plans, target)
    if found is None:
        return None
    sizes = [[_bytes(pieces) for pieces in task.pieces.values()] for task in found]
    largest = max((sum(each) - max(each, default=0) for each in sizes), default=0)
    return None if largest * _EXPANSION > pool_bytes else _or_empty(found)


def _or_empty(tasks: list[FragmentTask]) -> tuple[FragmentTask, ...]:
    """Run at least one task: an aggregate over nothing has a row."""
    return tuple(tasks) or (FragmentTask(0, {}),)


def _keyed_tasks(
    candidate: Candidate,
    keyed: tuple[DerivedKeys, Sequence[PlanNode]],
    plans: Mapping[int, ScanPlan],
    target: TaskTarget,
) -> list[FragmentTask] | None:
    keys, plan_nodes = keyed
    group = candidate.group
    assert group is not None  # noqa: S101 - for the type checker
    own = DerivedKeys(
        {scan: keys.scans[scan] for scan in group.scans},
        frozenset((*group.joins, *group.groupings)),
        {},
        groups=(group,),
    )
    leaves = {scan: plans[scan].table for scan in group.scans}
    assignment = assign(own, plan_nodes, leaves, target)
    if set(assignment.keys.scans) != set(group.scans):
        return None
    sizes = {
        scan: [size or 0 for size in table["num_bytes"].to_pylist()]
        for scan, table in leaves.items()
    }
    found: dict[int, dict[int, list[Piece]]] = {}
    rows = assignment.rows
    columns = [rows[name].to_pylist() for name in rows.column_names]
    for scan, key, leaf, first, end in zip(*columns, strict=True):
        part = None if first is None else (first, end)
        pieces = found.setdefault(key, {}).setdefault(scan, [])
        pieces.append(Piece(leaf, part, sizes[scan][leaf]))
    return [
        FragmentTask(key, {scan: tuple(pieces) for scan, pieces in of_key.items()})
        for key, of_key in found.items()
    ]


def _bytes(pieces: Sequence[Piece]) -> int:
    return sum(piece.num_bytes for piece in pieces)
