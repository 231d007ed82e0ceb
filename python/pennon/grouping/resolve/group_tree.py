"""The tree of operators that one derived key serves, over the scans of its key group.

Every operator of the tree works key by key: its rows under a key follow from its inputs' rows
under that key. What does not reach an input of the tree cannot change a row of its output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pennon.grouping.resolve.offered_partitioning import PartitionExpression, Partitioning
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
    Plan,
    Project,
    Scan,
    Union,
    Window,
)
from pennon.spec.functions import GroupingFunction, LayoutFunction

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    from pennon.grouping.resolve.verdict import Verdict
    from pennon.plan import PlanNode


# The resolved key groups: the scans of each, and the operators that it serves.


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """Scans that have one key in common, and the operators that it serves.

    Args:
        scans: Positions of the scans.
        joins: Positions of the served joins.
        groupings: Positions of the served aggregates and windows.
        computed: Positions of the served joins where Spark computes the key of one side.
        carriers: Positions of the unions and expansions that bring the key to an operator.
    """

    scans: tuple[int, ...]
    joins: tuple[int, ...]
    groupings: tuple[int, ...]
    computed: tuple[int, ...]
    carriers: tuple[int, ...] = ()

    @property
    def operators(self) -> frozenset[int]:
        """Positions of all operators that the key serves."""
        return frozenset({*self.joins, *self.groupings, *self.carriers})


@dataclass(frozen=True, slots=True)
class ReportedGroup:
    """A group that needs no derived key, and the functions of the one that it could have.

    Args:
        group: The group, of one scan.
        functions: Those of the scan's key.
        computed: For each join where Spark computes the key of a side, those there.
    """

    group: KeyGroup
    functions: tuple[LayoutFunction, ...]
    computed: Mapping[int, tuple[LayoutFunction, ...]]


@dataclass(frozen=True, slots=True)
class DerivedKeys:
    """The answer to the rule.

    Args:
        scans: The functions behind the key of each scan that gets one.
        served: The joins, groupings, windows, unions and expansions that use a key.
        computed: For each served join with a side that has no partitioning, the functions from
            which Spark computes the key there; their sources are attributes.
        verdicts: What was found at each join, aggregate and window.
        groups: Which of the scans have their key in common.
        reported: Groups of one scan that Spark serves by what the scan reports.
        moved: Scans that get no key because they are shuffled onto others.
    """

    scans: Mapping[int, tuple[LayoutFunction, ...]]
    served: frozenset[int]
    computed: Mapping[int, tuple[LayoutFunction, ...]]
    verdicts: Mapping[int, Verdict] = field(default_factory=dict, compare=False)
    groups: tuple[KeyGroup, ...] = ()
    reported: tuple[ReportedGroup, ...] = field(default=(), compare=False)
    moved: frozenset[int] = frozenset()

    def using(self, reported: ReportedGroup) -> DerivedKeys:
        """Derive a key for a group that Spark serves, too."""
        group = reported.group
        return replace(
            self,
            scans={**self.scans, group.scans[0]: reported.functions},
            served=self.served | group.operators,
            computed={**self.computed, **reported.computed},
            groups=(*self.groups, group),
            reported=tuple(other for other in self.reported if other is not reported),
        )

    def without(self, group: KeyGroup, reason: str, remedy: str) -> DerivedKeys:
        """Take a group back, its operators judged by a reason and what would remedy it."""
        operators = group.operators
        gone = {*group.scans, *group.computed}
        return replace(
            self,
            scans={scan: kept for scan, kept in self.scans.items() if scan not in gone},
            served=self.served - operators,
            computed={join: kept for join, kept in self.computed.items() if join not in gone},
            verdicts={
                position: replace(verdict, reason=reason, remedy=remedy)
                if position in operators
                else verdict
                for position, verdict in self.verdicts.items()
            },
            groups=tuple(other for other in self.groups if other != group),
        )

    def divided(self, group: KeyGroup, note: str) -> DerivedKeys:
        """Say at the operators of a group that some of its keys are read by several tasks."""
        operators = group.operators
        return replace(
            self,
            verdicts={
                position: replace(verdict, common=f"{verdict.common}; {note}")
                if position in operators
                else verdict
                for position, verdict in self.verdicts.items()
            },
        )


# Turns a partitioning that no further operator uses into a key group, or drops it.


@dataclass(frozen=True, slots=True)
class KeyedGroup:
    """A group that needs a derived key.

    Args:
        group: The group.
        scans: For each of its scans, the functions behind the key.
        computed: For each join where Spark computes the key of a side, the functions there.
    """

    group: KeyGroup
    scans: Mapping[int, tuple[LayoutFunction, ...]]
    computed: Mapping[int, tuple[LayoutFunction, ...]]


@dataclass(frozen=True, slots=True)
class MovedScans:
    """Scans that serve no operator and are shuffled onto others."""

    scans: tuple[int, ...]


SettledGroup = KeyedGroup | ReportedGroup | MovedScans


def settled(
    plan: Plan, partitioning: Partitioning, *, is_moved: bool = False
) -> Iterator[SettledGroup]:
    """Settle a partitioning that no operator above uses.

    Args:
        plan: The plan.
        partitioning: What was offered last.
        is_moved: Whether it is shuffled onto another. It may report nothing that Spark knows then:
            Spark would rather move the other one, if that has fewer partitions.
    """
    for part in partitioning.parts:
        yield from settled(plan, part, is_moved=is_moved)
    if partitioning.parts:
        return
    members = partitioning.members
    scans = tuple(sorted(member for member in members if isinstance(plan[member], Scan)))
    if not partitioning.joins and not partitioning.groupings:
        if is_moved:
            yield MovedScans(scans)
        return
    group = KeyGroup(
        scans,
        tuple(join.position for join in partitioning.joins),
        partitioning.groupings,
        tuple(sorted(members.difference(scans))),
        partitioning.carriers,
    )
    computed = {join: _functions(plan, partitioning, join) for join in group.computed}
    if len(scans) == 1 and not is_moved and _is_served_by_spark(plan, partitioning, scans[0]):
        yield ReportedGroup(group, _functions(plan, partitioning, scans[0]), computed)
        return
    yield KeyedGroup(
        group, {scan: _functions(plan, partitioning, scan) for scan in scans}, computed
    )


def _functions(plan: Plan, partitioning: Partitioning, member: int) -> tuple[LayoutFunction, ...]:
    return tuple(_on_member(plan, expression, member) for expression in partitioning.expressions)


def _on_member(plan: Plan, expression: PartitionExpression, member: int) -> LayoutFunction:
    """See an expression on the columns, and the widths of integers, of a member."""
    node, source_ids = plan[member], expression.sources[member]
    types = expression.function.source_types
    if isinstance(node, Scan):
        own = {
            source: type_
            for function in (node.layout.functions if node.layout else ())
            for source, type_ in zip(
                function.source_ids, function.grouping.source_types, strict=True
            )
        }
        types = tuple(own[source] for source in source_ids)
    return LayoutFunction(GroupingFunction(expression.function.transform, types), source_ids)


def _is_served_by_spark(plan: Plan, partitioning: Partitioning, scan: int) -> bool:
    """Whether Spark's own matching serves a group of one scan by what the scan reports."""
    node, num_expressions = plan[scan], len(partitioning.expressions)
    for join in partitioning.joins:
        is_narrowed = join.position in partitioning.members and (
            join.num_expressions > num_expressions
        )
        operator = plan[join.position]
        has_casts = isinstance(operator, Join) and operator.has_casts
        if is_narrowed or has_casts or not join.is_matched_by_spark:
            return False
    return (
        not partitioning.carriers
        and isinstance(node, Scan)
        and any(
            _on_member(plan, expression, scan) in node.reported
            for expression in partitioning.expressions
        )
    )


# The scans whose partitioning no operator of a query uses, so that any leaves are read together.
#
# Spark matches what a scan reports with the keys of the operators above it. An aggregate or a
# window that the resolver could not serve Spark cannot either, but where an operator is between
# them that the resolver does not know. Of joins Spark serves some by shuffling one side onto the
# other: what is beside the scan may be another source's table, or compared under an expression.

ComparedColumns = frozenset[int] | None
"""The attributes by which a join meets; None where that is not known, or it is no join."""


def ungrouped_scans(
    plan: Plan,
    keys: DerivedKeys,
    shuffling: Mapping[int, ComparedColumns],
    inside: Collection[int] = (),
) -> frozenset[int]:
    """Find the scans that neither a derived key nor Spark's own matching makes use of.

    Args:
        plan: The query.
        keys: What is derived for it.
        shuffling: The operators that want rows of equal keys in one task, by their positions.
        inside: Positions of what the workers compute.
    """
    groups = (*keys.groups, *(reported.group for reported in keys.reported))
    used = {scan for group in groups for scan in group.scans}
    return frozenset(
        at
        for at, node in enumerate(plan)
        if isinstance(node, Scan)
        and at not in used
        and at not in inside
        and not (node.reported and _may_be_matched(plan, at, node, shuffling))
    )


def _may_be_matched(
    plan: Plan, position: int, scan: Scan, shuffling: Mapping[int, ComparedColumns]
) -> bool:
    """Whether Spark may use what a scan reports at an operator that the resolver cannot judge."""
    carrying = [
        [set(scan.attributes.get(source, ())) for source in function.source_ids]
        for function in scan.reported
    ]
    # What becomes of a column is followed, and not what becomes of a field of a struct.
    columns = {column.id for column in scan.columns}
    is_hidden = any(not source <= columns for one in carrying for source in one)
    while (above := plan.parents.get(position)) is not None:
        match plan[above]:
            case Join(join_type=JoinType.SCALAR, right=value) if position == value:
                # Spark decides about the plan of a subquery by itself.
                return False
            case Join() if above in shuffling:
                compared = shuffling[above]
                is_hidden |= compared is None or any(
                    all(not compared.isdisjoint(source) for source in one) for one in carrying
                )
            case Project(renamed=renamed):
                for source in (source for one in carrying for source in one):
                    source |= {output for output, of in renamed if of in source}
            case Opaque() | Union():
                is_hidden = True
        if is_hidden and above in shuffling:
            return True
        position = above
    return False


if TYPE_CHECKING:
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
