"""The functions that two inputs of a join or a union have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pennon.grouping.grouping_function import GroupingFunction
from pennon.grouping.offer import OfferedFunction

if TYPE_CHECKING:
    from pennon.grouping.offer import Offer
    from pennon.grouping.plan_nodes import JoinNode


def meeting_functions(left: Offer, right: Offer, join: JoinNode) -> tuple[OfferedFunction, ...]:
    """List the finest functions to which both sides reduce on equated attributes."""
    mine = [*left.functions, *_of_identities(left, right, join, flipped=False)]
    theirs = [*right.functions, *_of_identities(right, left, join, flipped=True)]

    def visible(ours: frozenset[int], other: frozenset[int]) -> frozenset[int]:
        kept = ours if join.join_type.keeps_left else frozenset()
        return kept | other if join.join_type.keeps_right else kept

    return _common(mine, theirs, join.equated, visible)


def shared_functions(
    left: Sequence[OfferedFunction], right: Sequence[OfferedFunction]
) -> tuple[OfferedFunction, ...]:
    """List the finest functions to which two inputs of a union reduce on the same columns."""
    columns = sorted({each for function in left for slot in function.slots for each in slot})
    return _common(left, right, [(each, each) for each in columns], frozenset.intersection)


def _common(
    mine: Sequence[OfferedFunction],
    theirs: Sequence[OfferedFunction],
    equated: Sequence[tuple[int, int]],
    visible: Callable[[frozenset[int], frozenset[int]], frozenset[int]],
) -> tuple[OfferedFunction, ...]:
    found: list[OfferedFunction] = []
    for ours in mine:
        for other in theirs:
            if not _are_equated(ours.slots, other.slots, equated):
                continue
            common = ours.grouping.common_reduction(other.grouping)
            if common is not None:
                slots = tuple(map(visible, ours.slots, other.slots))
                found.append(OfferedFunction(common, slots, {**ours.sources, **other.sources}))
    return tuple(
        function
        for position, function in enumerate(found)
        if not any(
            other.sources == function.sources
            and other.grouping.reduces_to(function.grouping)
            and (other.grouping != function.grouping or at < position)
            for at, other in enumerate(found)
            if at != position
        )
    )


def _are_equated(
    left: Sequence[frozenset[int]],
    right: Sequence[frozenset[int]],
    equated: Sequence[tuple[int, int]],
) -> bool:
    return len(left) == len(right) and all(
        any(mine in left_slot and theirs in right_slot for mine, theirs in equated)
        for left_slot, right_slot in zip(left, right, strict=True)
    )


def _of_identities(
    offer: Offer, target: Offer, join: JoinNode, *, flipped: bool
) -> list[OfferedFunction]:
    """List functions of several columns that one side can compute from its identity columns."""
    identities = [function for function in offer.functions if function.grouping.is_identity]
    pairs = [(right, left) for left, right in join.equated] if flipped else join.equated
    found: list[OfferedFunction] = []
    for wanted in target.functions:
        if len(wanted.slots) < 2:  # noqa: PLR2004 - one column reduces directly
            continue
        parts = [
            next((own for own in identities if _are_equated(own.slots, (slot,), pairs)), None)
            for slot in wanted.slots
        ]
        present = [part for part in parts if part is not None]
        if len(present) == len(parts):
            found.append(
                OfferedFunction(
                    GroupingFunction(
                        wanted.grouping.transform,
                        tuple(part.grouping.source_types[0] for part in present),
                    ),
                    tuple(part.slots[0] for part in present),
                    {
                        scan: tuple(part.sources[scan][0] for part in present)
                        for scan in present[0].sources
                    },
                )
            )
    return found
