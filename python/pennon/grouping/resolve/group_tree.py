"""The tree of operators that one derived key serves, over the scans of its key group.

Every operator of the tree works key by key: its rows under a key follow from its inputs' rows
under that key. What does not reach an input of the tree cannot change a row of its output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pennon.plan import (
    Expand,
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    Offset,
    OneRow,
    Opaque,
    Pass,
    Project,
    Scan,
    Union,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from pennon.grouping.resolve.key_group import KeyGroup
    from pennon.plan import PlanNode

    KeySet = npt.NDArray[np.bool_]
    """For each key of a group, whether it is in the set."""


@dataclass(frozen=True, slots=True)
class MemberScan:
    """A scan that has the group's key."""

    position: int


@dataclass(frozen=True, slots=True)
class ServedJoin:
    """A join that meets key by key."""

    join_type: JoinType
    left: GroupTree
    right: GroupTree


@dataclass(frozen=True, slots=True)
class ServedGrouping:
    """An aggregate or a window that is complete under each key."""

    child: GroupTree


@dataclass(frozen=True, slots=True)
class ServedUnion:
    """Rows of several inputs under each key."""

    children: tuple[GroupTree, ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """A side without partitioning: rows of any key."""


GroupTree = MemberScan | ServedJoin | ServedGrouping | ServedUnion | Outside


def group_tree(nodes: Sequence[PlanNode], group: KeyGroup) -> GroupTree:
    """Find the tree of a group; its last operator in post-order is its root."""
    return _tree(nodes, group, max(group.joins + group.groupings))


def _tree(nodes: Sequence[PlanNode], group: KeyGroup, position: int) -> GroupTree:
    match nodes[position]:
        case Scan() if position in group.scans:
            return MemberScan(position)
        case Join() as join if position in group.joins:
            left, right = (_tree(nodes, group, side) for side in (join.left, join.right))
            return ServedJoin(join.join_type, left, right)
        case Group(child=child) | Window(child=child) if position in group.groupings:
            return ServedGrouping(_tree(nodes, group, child))
        case Union(children=children) if position in group.carriers:
            return ServedUnion(tuple(_tree(nodes, group, child) for child in children))
        case (
            Project(child=child)
            | Filter(child=child)
            | Pass(child=child)
            | Expand(child=child)
            | Limit(child=child, is_whole=False)
            | Join(streamed=int(child))
        ):
            return _tree(nodes, group, child)
        case (
            Scan()
            | OneRow()
            | Join()
            | Group()
            | Window()
            | Union()
            | Limit()
            | Offset()
            | Opaque()
        ):
            return Outside()


def needed_keys(tree: GroupTree, present: Mapping[int, KeySet]) -> dict[int, KeySet]:
    """Find the keys under which a row of a scan can matter.

    A key without partner in an inner join, or of the right side alone in a left one, cannot.

    Args:
        tree: The group's operators.
        present: For each scan, the keys that it has.

    Returns:
        For each scan of the tree, a subset of its keys.
    """
    needed: dict[int, KeySet] = {}
    _narrow(tree, present, _produced(tree, present), needed)
    return needed


def _produced(tree: GroupTree, present: Mapping[int, KeySet]) -> KeySet:
    """Find the keys under which a tree can have rows."""
    match tree:
        case MemberScan(position):
            return present[position]
        case ServedGrouping(child):
            return _produced(child, present)
        case ServedUnion(children):
            any_of: KeySet = np.logical_or.reduce([_produced(child, present) for child in children])
            return any_of
        case Outside():
            return np.ones_like(next(iter(present.values())))
        case ServedJoin(join_type, left, right):
            ours, theirs = _produced(left, present), _produced(right, present)
            match join_type:
                case JoinType.LEFT | JoinType.ANTI | JoinType.EXISTENCE | JoinType.SCALAR:
                    return ours
                case JoinType.RIGHT:
                    return theirs
                case JoinType.FULL:
                    return ours | theirs
                case JoinType.INNER | JoinType.SEMI:
                    return ours & theirs


def _narrow(
    tree: GroupTree, present: Mapping[int, KeySet], required: KeySet, needed: dict[int, KeySet]
) -> None:
    match tree:
        case MemberScan(position):
            needed[position] = present[position] & required
        case ServedGrouping(child):
            _narrow(child, present, required, needed)
        case ServedJoin(_, left, right):
            # Also below a join that keeps its other side: Spark fails to shuffle that one onto the
            # keys of an inner join without any.
            reached = required & _produced(tree, present)
            _narrow(left, present, reached, needed)
            _narrow(right, present, reached, needed)
        case ServedUnion(children):
            for child in children:
                _narrow(child, present, required, needed)
        case Outside():
            pass


def splittable_scans(tree: GroupTree) -> frozenset[int]:
    """List the scans whose rows of one key may be read by several tasks.

    Each task then has some of the scan's rows, and all rows of the other scans, under a key of its
    own. That is right where every operator above the scan gives, for the rows together, what it
    gives for them apart: a join does for its left rows unless right rows come out without partner,
    for its right rows only where no left row comes out without one; an aggregate does not, nor a
    union, whose other inputs would come out once for each task.
    """
    match tree:
        case MemberScan(position):
            return frozenset({position})
        case ServedJoin(join_type, left, right):
            scans: frozenset[int] = frozenset()
            if join_type not in (JoinType.RIGHT, JoinType.FULL):
                scans |= splittable_scans(left)
            if join_type in (JoinType.INNER, JoinType.RIGHT):
                scans |= splittable_scans(right)
            return scans
        case ServedGrouping() | ServedUnion() | Outside():
            return frozenset()
