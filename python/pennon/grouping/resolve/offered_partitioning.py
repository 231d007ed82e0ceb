"""The partitioning that an operator offers to its parent, by the rules of Spark's planner.

An operator *offers* a partitioning of its rows, a join, an aggregate or a window *requires* one of
its inputs, and where the offered one *satisfies* the required one, nothing is shuffled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pennon.plan import JoinType
from pennon.spec.functions import GroupingFunction

if TYPE_CHECKING:
    from pennon.plan import Join


@dataclass(frozen=True, slots=True)
class PartitionExpression:
    """A function of columns that is constant within each partition of all members.

    Args:
        function: The function.
        attributes: For each argument, the visible attributes that carry it.
        sources: For each member scan, the field ids of the arguments there; for the join with a
            side that has no partitioning, that side's attributes.
        nullable: For each argument, the visible attributes that carry it or are NULL, as those of
            the side of an outer join that need not have a row.
    """

    function: GroupingFunction
    attributes: tuple[frozenset[int], ...]
    sources: Mapping[int, tuple[int, ...]]
    nullable: tuple[frozenset[int], ...] = ()

    def compared(self, *, is_null_safe: bool) -> tuple[frozenset[int], ...]:
        """List for each argument the attributes by which a join finds what has the same key.

        Where ``=`` compares an attribute that may be NULL instead, a row without it has no partner
        under any key; ``<=>`` would find one under another.
        """
        if is_null_safe or not self.nullable:
            return self.attributes
        return tuple(map(frozenset.union, self.attributes, self.nullable))

    def above_projection(self, outputs: Mapping[int, Iterable[int]]) -> PartitionExpression:
        """See the expression through a projection: the attributes above by the one below."""

        def above(attributes: frozenset[int]) -> frozenset[int]:
            return frozenset(new for old in attributes for new in outputs.get(old, ()))

        return replace(
            self,
            attributes=tuple(map(above, self.attributes)),
            nullable=tuple(map(above, self.nullable)),
        )

    def beside(self, equal: Mapping[int, Iterable[int]]) -> PartitionExpression:
        """See the expression beside further attributes: for some of its own, those equal to it."""
        widened = (
            attributes.union(*(equal.get(attribute, ()) for attribute in attributes))
            for attributes in self.attributes
        )
        return replace(self, attributes=tuple(widened))


@dataclass(frozen=True, slots=True)
class SatisfiedJoin:
    """A join whose sides meet without a shuffle.

    Args:
        position: The join.
        num_expressions: How many expressions its sides have in common.
        is_matched_by_spark: Whether Spark's own matching finds that they meet.
    """

    position: int
    num_expressions: int
    is_matched_by_spark: bool


@dataclass(frozen=True, slots=True)
class Partitioning:
    """What an operator offers: scans that are partitioned alike, as they are seen above it.

    Args:
        expressions: What all rows are partitioned by.
        joins: The joins that it satisfies.
        groupings: The aggregates and windows that it satisfies.
        carriers: The unions and expansions below its uppermost operator.
        parts: What it is made of right above a union or an expansion: where no operator uses the
            whole, they are groups of their own.
    """

    expressions: tuple[PartitionExpression, ...]
    joins: tuple[SatisfiedJoin, ...] = ()
    groupings: tuple[int, ...] = ()
    carriers: tuple[int, ...] = ()
    parts: tuple[Partitioning, ...] = ()

    @property
    def members(self) -> frozenset[int]:
        """Positions of the scans, and of the joins that stand for a side without partitioning."""
        return frozenset(member for expression in self.expressions for member in expression.sources)

    def above_projection(self, columns: Sequence[tuple[int, int]]) -> Partitioning:
        """See it above a projection: pairs of an attribute above and the one below it."""
        outputs: dict[int, set[int]] = {}
        for new, old in columns:
            outputs.setdefault(old, set()).add(new)
        return replace(
            self,
            expressions=tuple(
                expression.above_projection(outputs) for expression in self.expressions
            ),
        )

    def beside(self, equal: Iterable[tuple[int, int]]) -> Partitioning:
        """See it beside further attributes: pairs of one of its own and another that is equal."""
        others: dict[int, set[int]] = {}
        for own, other in equal:
            others.setdefault(own, set()).add(other)
        widened = tuple(expression.beside(others) for expression in self.expressions)
        return replace(self, expressions=widened)

    def satisfied_grouping(self, keys: frozenset[int]) -> tuple[PartitionExpression, ...]:
        """List the expressions by which rows with equal keys are in one partition."""
        return tuple(
            expression
            for expression in self.expressions
            if all(not keys.isdisjoint(attributes) for attributes in expression.attributes)
        )


# The functions that two inputs of a join or a union have in common.


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
