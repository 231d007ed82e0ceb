"""A join under resolution: whether its sides are co-partitioned as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pennon.grouping.resolve.meeting_functions import meeting_functions
from pennon.grouping.resolve.offered_partitioning import (
    PartitionExpression,
    Partitioning,
    SatisfiedJoin,
)
from pennon.grouping.resolve.resolved_node import ResolvedNode, computable, ended, united
from pennon.grouping.resolve.settled_groups import settled
from pennon.grouping.resolve.verdict import join_verdict, not_comparable
from pennon.plan import Join, Plan, Side


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
