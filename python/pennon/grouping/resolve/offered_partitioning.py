"""The partitioning that an operator offers to its parent, by the rules of Spark's planner.

An operator *offers* a partitioning of its rows, a join, an aggregate or a window *requires* one of
its inputs, and where the offered one *satisfies* the required one, nothing is shuffled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennon.spec.functions.grouping_function import GroupingFunction


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
