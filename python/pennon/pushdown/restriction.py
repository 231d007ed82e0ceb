"""Restricts an aggregate to the groups that a join above it needs: the keys of a small side.

A correlated subquery is such an aggregate after Spark's rewrite: it has a group for every key, and
the join with the rows around it wants a few of them. Where every key that the join can want is one
of a small side, as a filtered dimension has them, each worker evaluates that side and aggregates
no other rows. The groups that are left are whole: their key is one of the grouping keys.

NULL rules: a join by ``=`` wants no group of NULL; one by ``<=>`` restricts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.plan import Expand, Filter, Group, Join, JoinType, Limit, Project, Side
from pennon.pushdown.division import is_replicable
from pennon.pushdown.partners import (
    PASSES,
    WANTS_PARTNERS,
    Restriction,
    equal_pairs,
    input_of,
    other_side,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.plan import Plan
    from pennon.predicate.semantics import Semantics
    from pennon.pushdown.division import Division

# A side that reads more than this share of what is aggregated costs more than it saves.
_LARGEST_SHARE: Final = 0.25


def restriction_of(division: Division, root: int, semantics: Semantics) -> Restriction | None:
    """Find what restricts an aggregate that is a fragment.

    Args:
        division: The query.
        root: Position of the aggregate.
        semantics: The session's.

    Returns:
        The restriction by the smallest side; None where nothing restricts it.
    """
    plan = division.plan
    restrictions = [
        Restriction(key, part, column)
        for key, position, attribute in _equated_above(plan, root)
        for part, column in _places(plan, position, attribute)
        if plan.is_filtered(part)
        and not plan.is_limited(part)
        and is_replicable(division, part, semantics)
    ]
    most = _LARGEST_SHARE * division.sizes[root].read_bytes
    small = (
        restriction
        for restriction in restrictions
        if division.sizes[restriction.part].read_bytes <= most
    )
    return min(small, key=lambda one: division.sizes[one.part].read_bytes, default=None)


def _equated_above(plan: Plan, root: int) -> Iterator[tuple[int, int, int]]:
    """List the keys that joins above equate: input attribute, the other side and its attribute."""
    group = plan[root]
    if not isinstance(group, Group):
        return
    keys = {new: old for new, old in group.columns if old in group.group_by}
    at, parent = root, plan.parents.get(root)
    while keys and parent is not None:
        node = plan[parent]
        match node:
            case Filter():
                pass
            case Project(renamed=pairs):
                keys = {new: keys[old] for new, old in pairs if old in keys}
            case Join():
                side = Side.LEFT if node.left == at else Side.RIGHT
                if node.join_type in WANTS_PARTNERS[side]:
                    other = input_of(node, other_side(side))
                    for mine, theirs in equal_pairs(node, side):
                        if mine in keys:
                            yield keys[mine], other, theirs
                if node.join_type not in PASSES[side]:
                    return
            case _:
                return
        at, parent = parent, plan.parents.get(parent)


def _places(plan: Plan, position: int, attribute: int) -> Iterator[tuple[int, int]]:
    """List the operators that have all values of an attribute but NULL, and its name there."""
    yield position, attribute
    match plan[position]:
        case Filter(child=child) | Limit(child=child):
            yield from _places(plan, child, attribute)
        case Project(child=child, renamed=pairs) | Expand(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
            if source is not None:
                yield from _places(plan, child, source)
        case Group(child=child, columns=pairs, group_by=keys):
            source = dict(pairs).get(attribute)
            if source is not None and source in keys:
                yield from _places(plan, child, source)
        case Join() as join:
            for side in Side:
                child, other = input_of(join, side), input_of(join, other_side(side))
                if side is Side.RIGHT and not join.join_type.gives_right:
                    continue
                if attribute not in plan.attributes(child):
                    continue
                yield from _places(plan, child, attribute)
                if join.join_type in (JoinType.INNER, JoinType.SEMI):
                    for mine, theirs in equal_pairs(join, side):
                        if mine == attribute:
                            yield from _places(plan, other, theirs)
