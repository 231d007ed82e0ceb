"""The functions that two inputs of a join or a union have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pennon.grouping.resolve.offered_partitioning import PartitionExpression
from pennon.plan import JoinType
from pennon.spec.functions.grouping_function import GroupingFunction

if TYPE_CHECKING:
    from pennon.grouping.resolve.offered_partitioning import Partitioning
    from pennon.plan import Join


def meeting_functions(
    left: Partitioning, right: Partitioning, join: Join
) -> tuple[PartitionExpression, ...]:
    """List the finest functions to which both sides reduce on equated attributes."""
    mine = [*left.expressions, *_of_identities(left, right, join, flipped=False)]
    theirs = [*right.expressions, *_of_identities(right, left, join, flipped=True)]

    def compared(expression: PartitionExpression) -> tuple[frozenset[int], ...]:
        return expression.compared(is_null_safe=join.is_null_safe)

    meeting: list[PartitionExpression] = []
    for ours in mine:
        for other in theirs:
            if not _are_equated(compared(ours), compared(other), join.equated):
                continue
            common = ours.function.common_reduction(other.function)
            if common is not None:
                meeting.append(_above(join.join_type, common, ours, other))
    return _finest(meeting)


def shared_functions(
    left: Sequence[PartitionExpression], right: Sequence[PartitionExpression]
) -> tuple[PartitionExpression, ...]:
    """List the finest functions to which two inputs of a union reduce on the same columns."""
    meeting: list[PartitionExpression] = []
    for ours in left:
        for other in right:
            attributes = tuple(map(frozenset.intersection, ours.attributes, other.attributes))
            if len(ours.attributes) != len(other.attributes) or not all(attributes):
                continue
            common = ours.function.common_reduction(other.function)
            if common is not None:
                meeting.append(
                    PartitionExpression(common, attributes, {**ours.sources, **other.sources})
                )
    return _finest(meeting)


def _above(
    join_type: JoinType,
    common: GroupingFunction,
    left: PartitionExpression,
    right: PartitionExpression,
) -> PartitionExpression:
    """See a common function above the join: what carries its arguments, and what may be NULL.

    Rows that meet have one key. A row without partner has its own side's, and NULL in place of the
    other one's attributes. Above a full join there is no key, for it has no attribute of its own.
    """
    keeps_left, keeps_right = join_type.keeps_left, join_type.keeps_right
    has_left = join_type is not JoinType.FULL
    has_right = join_type in (JoinType.INNER, JoinType.LEFT, JoinType.RIGHT)
    attributes: list[frozenset[int]] = []
    nullable: list[frozenset[int]] = []
    for at, (mine, theirs) in enumerate(zip(left.attributes, right.attributes, strict=True)):
        visible = [(mine, keeps_left, has_left), (theirs, keeps_right, has_right)]
        carrying = [own for own, keeps, _ in visible if keeps]
        attributes.append(frozenset().union(*carrying))
        maybe = [own for own, keeps, is_output in visible if is_output and not keeps]
        maybe += [
            side.nullable[at]
            for side, is_output in ((left, has_left), (right, has_right))
            if is_output and side.nullable
        ]
        nullable.append(frozenset().union(*maybe))
    sources = {**left.sources, **right.sources}
    return PartitionExpression(common, tuple(attributes), sources, tuple(nullable))


def _finest(meeting: Sequence[PartitionExpression]) -> tuple[PartitionExpression, ...]:
    """Leave out every function to which another one of the same columns reduces."""
    return tuple(
        expression
        for position, expression in enumerate(meeting)
        if not any(
            other.sources == expression.sources
            and other.function.reduces_to(expression.function)
            and (other.function != expression.function or at < position)
            for at, other in enumerate(meeting)
            if at != position
        )
    )


def _are_equated(
    left: Sequence[frozenset[int]],
    right: Sequence[frozenset[int]],
    equated: Sequence[tuple[int, int]],
) -> bool:
    return len(left) == len(right) and all(
        any(mine in ours and its in theirs for mine, its in equated)
        for ours, theirs in zip(left, right, strict=True)
    )


def _of_identities(
    side: Partitioning, target: Partitioning, join: Join, *, flipped: bool
) -> list[PartitionExpression]:
    """List functions of several columns that one side can compute from its identity columns."""
    identities = [expression for expression in side.expressions if expression.function.is_identity]
    pairs = [(right, left) for left, right in join.equated] if flipped else join.equated
    meeting: list[PartitionExpression] = []

    def compared(expression: PartitionExpression) -> tuple[frozenset[int], ...]:
        return expression.compared(is_null_safe=join.is_null_safe)

    for required in target.expressions:
        if len(required.attributes) < 2:  # noqa: PLR2004 - one column reduces directly
            continue
        parts = [
            next(
                (own for own in identities if _are_equated(compared(own), (attributes,), pairs)),
                None,
            )
            for attributes in compared(required)
        ]
        present = [part for part in parts if part is not None]
        if len(present) == len(parts):
            meeting.append(
                PartitionExpression(
                    GroupingFunction(
                        required.function.transform,
                        tuple(part.function.source_types[0] for part in present),
                    ),
                    tuple(part.attributes[0] for part in present),
                    {
                        scan: tuple(part.sources[scan][0] for part in present)
                        for scan in present[0].sources
                    },
                    tuple(part.nullable[0] if part.nullable else frozenset() for part in present),
                )
            )
    return meeting
