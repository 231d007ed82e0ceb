"""A join under resolution: whether its sides are co-partitioned as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, assert_never

from pennon.grouping.resolve.group_tree import (
    DerivedKeys,
    KeyedGroup,
    MovedScans,
    ReportedGroup,
    SettledGroup,
    settled,
)
from pennon.grouping.resolve.offered_partitioning import (
    PartitionExpression,
    Partitioning,
    SatisfiedJoin,
    meeting_functions,
    shared_functions,
)
from pennon.grouping.resolve.verdict import Verdict, grouping_verdict, join_verdict, not_comparable
from pennon.plan import (
    Expand,
    Filter,
    Group,
    Join,
    Limit,
    Offset,
    OneRow,
    Opaque,
    Pass,
    Plan,
    PlanNode,
    Project,
    Scan,
    Side,
    Union,
    Window,
)

if TYPE_CHECKING:
    Columns = Sequence[tuple[int, int]]


# The result of resolving one operator: an immutable value that its parent uses.


@dataclass(frozen=True, slots=True)
class ResolvedNode:
    """What is known at a node, of all at and below it.

    Args:
        offered: The partitioning of its rows; None for none.
        settled: Groups that end at or below it.
        verdicts: What was found at each join, aggregate and window.
        stays_left: For each join of which one side is shuffled onto the other, whether the left
            one stays.
        num_shuffled_bytes: Bytes read below what is shuffled.
    """

    offered: Partitioning | None = None
    settled: tuple[SettledGroup, ...] = ()
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    stays_left: Mapping[int, bool] = field(default_factory=dict)
    num_shuffled_bytes: int = 0

    def judged(self, position: int, verdict: Verdict) -> ResolvedNode:
        """Add what was found at a node."""
        return replace(self, verdicts={**self.verdicts, position: verdict})

    def shuffling(self, num_bytes: int) -> ResolvedNode:
        """Add bytes that are shuffled."""
        return replace(self, num_shuffled_bytes=self.num_shuffled_bytes + num_bytes)


def united(children: Sequence[ResolvedNode]) -> ResolvedNode:
    """Put together what is known of several inputs; it offers nothing yet."""
    return ResolvedNode(
        None,
        tuple(group for child in children for group in child.settled),
        {at: verdict for child in children for at, verdict in child.verdicts.items()},
        {at: stays for child in children for at, stays in child.stays_left.items()},
        sum(child.num_shuffled_bytes for child in children),
    )


def ended(
    plan: Plan, children: Sequence[ResolvedNode], keeping: ResolvedNode | None = None
) -> ResolvedNode:
    """End what the inputs offer, but what one of them does, which goes on."""
    ending = [child.offered for child in children if child is not keeping and child.offered]
    groups = tuple(group for partitioning in ending for group in settled(plan, partitioning))
    both = united(children)
    offered = None if keeping is None else keeping.offered
    return replace(both, offered=offered, settled=(*both.settled, *groups))


def scanned(position: int, scan: Scan) -> ResolvedNode:
    """Resolve a scan: it offers what is constant within each of its partitions."""
    expressions = tuple(
        PartitionExpression(
            function.grouping,
            tuple(scan.attributes.get(source, frozenset()) for source in function.source_ids),
            {position: function.source_ids},
        )
        for function in (scan.layout.functions if scan.layout else ())
        if function.grouping.is_constant_for_spark
    )
    return ResolvedNode(Partitioning(expressions) if expressions else None)


def grouped(
    plan: Plan, position: int, child: ResolvedNode, keys: frozenset[int], columns: Columns | None
) -> ResolvedNode:
    """Resolve an aggregate or, without ``columns``, a window.

    It requires that rows with equal keys are in one partition: every expression of the keys alone
    satisfies that.
    """
    operator = "window" if columns is None else "aggregate"
    offered = child.offered
    satisfying = offered.satisfied_grouping(keys) if offered else ()
    verdict = grouping_verdict(plan, operator, offered, satisfying)
    if offered is None or not satisfying:
        (below,) = plan.children(position)
        return ended(plan, [child]).shuffling(plan.num_read(below)[0]).judged(position, verdict)
    groupings = (*offered.groupings, position)
    narrowed = replace(offered, expressions=satisfying, groupings=groupings, parts=())
    above = narrowed if columns is None else narrowed.above_projection(columns)
    return replace(child, offered=above).judged(position, verdict)


def carried(
    plan: Plan, position: int, children: Sequence[ResolvedNode], columns: Sequence[Columns]
) -> ResolvedNode:
    """Resolve a union or an expansion: it offers what all its inputs are partitioned by."""
    above = [
        child.offered.above_projection(own).expressions if child.offered else ()
        for child, own in zip(children, columns, strict=True)
    ]
    expressions = computable(plan, reduce(shared_functions, above))
    if not expressions:
        return ended(plan, children)
    parts = tuple(child.offered for child in children if child.offered is not None)
    offered = Partitioning(
        expressions,
        tuple(join for part in parts for join in part.joins),
        tuple(grouping for part in parts for grouping in part.groupings),
        (*(carrier for part in parts for carrier in part.carriers), position),
        parts,
    )
    return replace(united(children), offered=offered)


def computable(
    plan: Plan, expressions: Sequence[PartitionExpression]
) -> tuple[PartitionExpression, ...]:
    """Leave out what Spark would have to compute for a member and cannot."""
    return tuple(
        expression
        for expression in expressions
        if expression.function.is_known_to_jvm
        or all(isinstance(plan[member], Scan) for member in expression.sources)
    )


@dataclass(frozen=True, slots=True)
class _Meeting:
    """How the sides of a join meet.

    Args:
        left: The partitioning of the left side, offered or computed by Spark.
        right: That of the right side.
        expressions: What both have in common.
        moved: The side that is shuffled onto the other, though it is partitioned itself.
    """

    left: Partitioning
    right: Partitioning
    expressions: tuple[PartitionExpression, ...]
    moved: Side | None = None


def not_equated(
    plan: Plan, position: int, join: Join, children: Sequence[ResolvedNode]
) -> ResolvedNode:
    """Resolve a join that compares no attributes as they are: it shuffles everything."""
    verdict = not_comparable(plan, [child.offered for child in children], join.text)
    return ended(plan, children).judged(position, verdict)


def resolved_join(
    plan: Plan,
    position: int,
    join: Join,
    left: ResolvedNode,
    right: ResolvedNode,
    *,
    prefers_left: bool | None = None,
) -> ResolvedNode:
    """Resolve a join of equated attributes.

    It requires that rows with equal attributes are in one partition, on both sides by the same
    expressions. Where one side alone is partitioned for that, the other one is shuffled onto it.

    Args:
        plan: The plan.
        position: The join.
        join: The same.
        left: What is known of its left side.
        right: What is known of its right side.
        prefers_left: Whether the left side stays where only one can; None for the one that reads
            more bytes.
    """
    meeting = _met(plan, position, join, left, right, prefers_left=prefers_left)
    sides = (None, None) if meeting is None else (meeting.left, meeting.right)
    num_bytes = sum(
        plan.num_read(child)[0]
        for child, side in zip((join.left, join.right), sides, strict=True)
        if side is None or position in side.members
    )
    common = meeting.expressions if meeting else ()
    is_one_sided = meeting is not None and meeting.moved is not None
    verdict = join_verdict(
        plan, left.offered, right.offered, common, join.equated, is_one_sided=is_one_sided
    )
    if meeting is None:
        return ended(plan, [left, right]).shuffling(num_bytes).judged(position, verdict)
    both = united([left, right]).shuffling(num_bytes).judged(position, verdict)
    moved = left.offered if meeting.moved is Side.LEFT else right.offered
    if meeting.moved is not None and moved is not None:
        groups = settled(plan, moved, is_moved=True)
        stays_left = {**both.stays_left, position: meeting.moved is Side.RIGHT}
        both = replace(both, settled=(*both.settled, *groups), stays_left=stays_left)
    return replace(both, offered=_offered(position, join, meeting))


def _met(
    plan: Plan,
    position: int,
    join: Join,
    left: ResolvedNode,
    right: ResolvedNode,
    *,
    prefers_left: bool | None,
) -> _Meeting | None:
    if left.offered is not None and right.offered is not None:
        common = computable(plan, meeting_functions(left.offered, right.offered, join))
        if common:
            return _Meeting(left.offered, right.offered, common)
    if prefers_left is None:
        prefers_left = plan.num_read(join.left) >= plan.num_read(join.right)
    for stays_left in (prefers_left, not prefers_left):
        stays, moved = (left, right) if stays_left else (right, left)
        offered = stays.offered
        computed = offered and _computed(position, join, offered, is_left=stays_left)
        if offered is None or computed is None:
            continue
        sides = (offered, computed) if stays_left else (computed, offered)
        common = computable(plan, meeting_functions(*sides, join))
        if common:
            moved_side = Side.RIGHT if stays_left else Side.LEFT
            return _Meeting(*sides, common, moved_side if moved.offered else None)
    return None


def _offered(position: int, join: Join, meeting: _Meeting) -> Partitioning:
    strict = replace(join, is_null_safe=True)
    is_matched = not join.is_null_safe and bool(
        meeting_functions(meeting.left, meeting.right, strict)
    )
    satisfied = SatisfiedJoin(position, len(meeting.expressions), is_matched)
    left, right = meeting.left, meeting.right
    return Partitioning(
        meeting.expressions,
        (*left.joins, *right.joins, satisfied),
        (*left.groupings, *right.groupings),
        (*left.carriers, *right.carriers),
    )


def _computed(
    position: int, join: Join, other: Partitioning, *, is_left: bool
) -> Partitioning | None:
    """Find the expressions that Spark can compute for a side that is shuffled onto the other.

    Args:
        position: The join, which stands for that side among the members.
        join: The same.
        other: The side that stays.
        is_left: Whether that is the left one.
    """
    alike = [pair for pair in join.equated if pair not in join.dates]
    pairs = alike if is_left else [(theirs, ours) for ours, theirs in alike]
    expressions: list[PartitionExpression] = []
    for expression in other.expressions:
        partners = [
            next((theirs for ours, theirs in pairs if ours in attributes), None)
            for attributes in expression.compared(is_null_safe=join.is_null_safe)
        ]
        arguments = tuple(partner for partner in partners if partner is not None)
        if len(arguments) == len(partners) and expression.function.is_known_to_jvm:
            columns = tuple(frozenset({argument}) for argument in arguments)
            expressions.append(
                PartitionExpression(expression.function, columns, {position: arguments})
            )
    return Partitioning(tuple(expressions)) if expressions else None


# Resolves which scans of a query share a derived key, and which operators it serves.
#
# For people: docs/joins.md.
#
# A fold over the plan: what is known at a node follows from the node and from what is known at its
# children. A join whose equated attributes carry a common reduction of both sides' expressions
# satisfies what it requires, and offers the two sides' partitionings as one; each further join,
# aggregate or window can only narrow it, and every member follows. A join that is not satisfied
# ends the partitionings below it: its shuffle loses them.
#
# NULL rules: the key is never NULL (NULL is hashed as a value of its own), so ``=`` and ``<=>`` are
# served alike; the real conjuncts stay in the join.


def derive_keys(nodes: Sequence[PlanNode]) -> DerivedKeys:
    """Find the scans that get a derived key, and the operators that use it.

    Args:
        nodes: The plan in post-order.

    Spec: "Storage Partitioned Join".
    """
    plan = nodes if isinstance(nodes, Plan) else Plan(tuple(nodes))
    resolved = _resolved(plan, {})
    for position, stays_left in resolved.stays_left.items():
        # The side with fewer bytes may be the one that the joins above can use.
        other = _resolved(plan, {**resolved.stays_left, position: not stays_left})
        if other.num_shuffled_bytes < resolved.num_shuffled_bytes:
            resolved = other
    keyed = [group for group in resolved.settled if isinstance(group, KeyedGroup)]
    return DerivedKeys(
        {scan: functions for group in keyed for scan, functions in group.scans.items()},
        frozenset(position for keys in keyed for position in keys.group.operators),
        {join: functions for group in keyed for join, functions in group.computed.items()},
        resolved.verdicts,
        tuple(keys.group for keys in keyed),
        tuple(group for group in resolved.settled if isinstance(group, ReportedGroup)),
        frozenset(
            scan
            for moved in resolved.settled
            if isinstance(moved, MovedScans)
            for scan in moved.scans
        ),
    )


def _resolved(plan: Plan, stays_left: Mapping[int, bool]) -> ResolvedNode:
    """Fold the plan.

    Args:
        plan: The plan.
        stays_left: For joins of which one side is shuffled onto the other, whether the left one
            stays; where nothing is said, the one that reads more bytes does.
    """
    resolved: list[ResolvedNode] = []
    for position, node in enumerate(plan):
        children = [resolved[child] for child in plan.children(position)]
        resolved.append(_at_node(plan, position, node, children, stays_left))
    roots = [resolved[position] for position in range(len(plan)) if position not in plan.parents]
    return ended(plan, roots)


def _at_node(
    plan: Plan,
    position: int,
    node: PlanNode,
    children: Sequence[ResolvedNode],
    stays_left: Mapping[int, bool],
) -> ResolvedNode:
    match node:
        case Scan():
            return scanned(position, node)
        case Project():
            (child,) = children
            above = child.offered and child.offered.above_projection(node.renamed)
            return replace(child, offered=above)
        case Pass(equal=equal) if equal:
            (child,) = children
            return replace(child, offered=child.offered and child.offered.beside(equal))
        case Filter() | Pass() | Limit(order=(), is_whole=False):
            (child,) = children
            return child
        case Join(streamed=int(streamed)):
            # The other side is sent to where these rows are.
            rows = children[0 if streamed == node.left else 1]
            return ended(plan, children, keeping=rows)
        case Join(equated=()):
            return not_equated(plan, position, node, children)
        case Join():
            left, right = children
            prefers_left = stays_left.get(position)
            return resolved_join(plan, position, node, left, right, prefers_left=prefers_left)
        case Union(is_keyed=True):
            columns = [
                tuple((new, old[at]) for new, old in node.columns) for at in range(len(children))
            ]
            return carried(plan, position, children, columns)
        case Expand():
            return carried(plan, position, children, [node.columns])
        case Group(keys=()) | Limit() | Offset() | Union() | OneRow() | Opaque():
            return ended(plan, children)
        case Group():
            (child,) = children
            return grouped(plan, position, child, node.group_by, node.columns)
        case Window() if not node.keys:
            return ended(plan, children)
        case Window():
            (child,) = children
            return grouped(plan, position, child, node.keys, None)
        case unknown:
            assert_never(unknown)
