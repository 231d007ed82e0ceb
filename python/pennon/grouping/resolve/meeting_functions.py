"""The functions that two inputs of a join or a union have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pennon.grouping.functions.grouping_function import GroupingFunction
from pennon.grouping.resolve.offer import OfferedFunction
from pennon.plan import JoinType

if TYPE_CHECKING:
    from pennon.grouping.resolve.offer import Offer
    from pennon.plan import Join


def meeting_functions(left: Offer, right: Offer, join: Join) -> tuple[OfferedFunction, ...]:
    """List the finest functions to which both sides reduce on equated attributes."""
    mine = [*left.functions, *_of_identities(left, right, join, flipped=False)]
    theirs = [*right.functions, *_of_identities(right, left, join, flipped=True)]

    def seen(function: OfferedFunction) -> tuple[frozenset[int], ...]:
        return function.compared(is_null_safe=join.is_null_safe)

    found: list[OfferedFunction] = []
    for ours in mine:
        for other in theirs:
            if not _are_equated(seen(ours), seen(other), join.equated):
                continue
            common = ours.grouping.common_reduction(other.grouping)
            if common is not None:
                found.append(_above(join.join_type, common, ours, other))
    return _finest(found)


def shared_functions(
    left: Sequence[OfferedFunction], right: Sequence[OfferedFunction]
) -> tuple[OfferedFunction, ...]:
    """List the finest functions to which two inputs of a union reduce on the same columns."""
    found: list[OfferedFunction] = []
    for ours in left:
        for other in right:
            slots = tuple(map(frozenset.intersection, ours.slots, other.slots))
            if len(ours.slots) != len(other.slots) or not all(slots):
                continue
            common = ours.grouping.common_reduction(other.grouping)
            if common is not None:
                found.append(OfferedFunction(common, slots, {**ours.sources, **other.sources}))
    return _finest(found)


def _above(
    join_type: JoinType, common: GroupingFunction, left: OfferedFunction, right: OfferedFunction
) -> OfferedFunction:
    """See a function above the join: which attributes carry its sources, and which may be NULL.

    Rows that meet have one key. A row without partner has its own side's, and NULL in place of the
    other one's attributes. Above a full join there is no key, for it has no attribute of its own.
    """
    keeps_left, keeps_right = join_type.keeps_left, join_type.keeps_right
    seen_left = join_type is not JoinType.FULL
    seen_right = join_type in (JoinType.INNER, JoinType.LEFT, JoinType.RIGHT)
    slots: list[frozenset[int]] = []
    padded: list[frozenset[int]] = []
    for at, (mine, theirs) in enumerate(zip(left.slots, right.slots, strict=True)):
        visible = [(mine, keeps_left, seen_left), (theirs, keeps_right, seen_right)]
        carrying = [slot for slot, keeps, _ in visible if keeps]
        slots.append(frozenset().union(*carrying))
        maybe = [slot for slot, keeps, is_seen in visible if is_seen and not keeps]
        maybe += [
            side.padded[at]
            for side, is_seen in ((left, seen_left), (right, seen_right))
            if is_seen and side.padded
        ]
        padded.append(frozenset().union(*maybe))
    sources = {**left.sources, **right.sources}
    return OfferedFunction(common, tuple(slots), sources, tuple(padded))


def _finest(found: Sequence[OfferedFunction]) -> tuple[OfferedFunction, ...]:
    """Leave out every function to which another one of the same columns reduces."""
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
    offer: Offer, target: Offer, join: Join, *, flipped: bool
) -> list[OfferedFunction]:
    """List functions of several columns that one side can compute from its identity columns."""
    identities = [function for function in offer.functions if function.grouping.is_identity]
    pairs = [(right, left) for left, right in join.equated] if flipped else join.equated
    found: list[OfferedFunction] = []

    def seen(function: OfferedFunction) -> tuple[frozenset[int], ...]:
        return function.compared(is_null_safe=join.is_null_safe)

    for wanted in target.functions:
        if len(wanted.slots) < 2:  # noqa: PLR2004 - one column reduces directly
            continue
        parts = [
            next((own for own in identities if _are_equated(seen(own), (slot,), pairs)), None)
            for slot in seen(wanted)
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
                    tuple(part.padded[0] if part.padded else frozenset() for part in present),
                )
            )
    return found
