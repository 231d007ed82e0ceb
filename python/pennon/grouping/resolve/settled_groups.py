"""Turns a partitioning that no further operator uses into a key group, or drops it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pennon.grouping.resolve.key_group import KeyGroup, ReportedGroup
from pennon.grouping.resolve.offered_partitioning import PartitionExpression, Partitioning
from pennon.plan import Join, Plan, Scan
from pennon.spec.functions.grouping_function import GroupingFunction
from pennon.spec.functions.partition_layout import LayoutFunction


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
