"""A group of co-partitioned scans as it is seen at one place of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennon.grouping.functions.grouping_function import GroupingFunction


@dataclass(frozen=True, slots=True)
class OfferedFunction:
    """A function that groups all members: where its sources are visible, and in each member.

    Args:
        grouping: The function.
        slots: For each source, the visible attributes that carry it.
        sources: For each member scan, the field ids of the function's sources there; for the
            join with a side that has no partitioning, that side's attributes.
        padded: For each source, the visible attributes that carry it or are NULL, as those of the
            side of an outer join that need not have a row.
    """

    grouping: GroupingFunction
    slots: tuple[frozenset[int], ...]
    sources: Mapping[int, tuple[int, ...]]
    padded: tuple[frozenset[int], ...] = ()

    def compared(self, *, is_null_safe: bool) -> tuple[frozenset[int], ...]:
        """List for each source the attributes by which a join finds what has the same key.

        Where ``=`` compares an attribute that may be NULL instead, a row without it has no partner
        under any key; ``<=>`` would find one under another.
        """
        if is_null_safe or not self.padded:
            return self.slots
        return tuple(map(frozenset.union, self.slots, self.padded))


@dataclass(frozen=True, slots=True)
class Offer:
    """A group of scans as it is seen at one place of the plan.

    Args:
        functions: What all its rows are grouped by.
        joins: The joins that it serves.
        groupings: The aggregates and windows that it serves.
        carriers: The unions and expansions below its uppermost operator.
        parts: What it is made of right above a union or an expansion: where no operator uses the
            whole, they are groups of their own.
    """

    functions: tuple[OfferedFunction, ...]
    joins: tuple[int, ...] = ()
    groupings: tuple[int, ...] = ()
    carriers: tuple[int, ...] = ()
    parts: tuple[Offer, ...] = ()

    @property
    def members(self) -> frozenset[int]:
        """Positions of the group's scans."""
        return frozenset(scan for function in self.functions for scan in function.sources)


def renamed(offer: Offer | None, columns: Sequence[tuple[int, int]]) -> Offer | None:
    """See a group above a projection: pairs of an attribute above and the one below it."""
    if offer is None:
        return None
    outputs: dict[int, set[int]] = {}
    for new, old in columns:
        outputs.setdefault(old, set()).add(new)

    def seen(slot: frozenset[int]) -> frozenset[int]:
        return frozenset(new for old in slot for new in outputs.get(old, ()))

    return replace(
        offer,
        functions=tuple(
            replace(
                function,
                slots=tuple(seen(slot) for slot in function.slots),
                padded=tuple(seen(slot) for slot in function.padded),
            )
            for function in offer.functions
        ),
    )
