"""The side of a join whose rows without a partner do not appear in its result.

NULL rules: ``=`` finds no partner for NULL. What is compared by ``<=>``, or under a cast, is not
among the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.plan import (
    Column,
    Expand,
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    Project,
    Scan,
    Side,
    Union,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pennon.plan import Plan

WANTS_PARTNERS: Final[Mapping[Side, frozenset[JoinType]]] = {
    Side.LEFT: frozenset({JoinType.INNER, JoinType.SEMI, JoinType.RIGHT}),
    Side.RIGHT: frozenset(
        {JoinType.INNER, JoinType.SEMI, JoinType.LEFT, JoinType.ANTI, JoinType.EXISTENCE}
    ),
}
"""The joins of which a side's rows without a partner leave no trace, by the side."""

PASSES: Final[Mapping[Side, frozenset[JoinType]]] = {
    Side.LEFT: frozenset(
        {
            *(JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI),
            *(JoinType.EXISTENCE, JoinType.SCALAR),
        }
    ),
    Side.RIGHT: frozenset({JoinType.INNER, JoinType.RIGHT}),
}
"""The joins whose rows each come of one row of a side, by the side.

A row of it that is dropped leaves out its own rows and no others; rows of it that are divided among
tasks give together what they give at once.
"""


@dataclass(frozen=True, slots=True)
class Restriction:
    """The rows of an aggregate's input that count.

    Args:
        key: Attribute of the input by which it groups.
        part: Position of the side that every worker evaluates for itself.
        column: Attribute of that side with all values of the key that can match.
    """

    key: int
    part: int
    column: int


def other_side(side: Side) -> Side:
    """Give the side across.

    Example:
        >>> other_side(Side.LEFT)
        <Side.RIGHT: 'right'>
    """
    return Side.RIGHT if side is Side.LEFT else Side.LEFT


def input_of(join: Join, side: Side) -> int:
    """Give the position of one of the inputs of a join."""
    return join.left if side is Side.LEFT else join.right


def equal_pairs(join: Join, side: Side) -> list[tuple[int, int]]:
    """List the attributes that a join equates as they are, those of a side first.

    Args:
        join: The join.
        side: The side.
    """
    if join.is_null_safe or join.has_casts:
        return []
    pairs = [pair for pair in join.equated if pair not in join.dates]
    return pairs if side is Side.LEFT else [(right, left) for left, right in pairs]


def ruled_out_columns(
    plan: Plan, join: Join, side: Side, parts: Collection[int] = ()
) -> Iterator[tuple[int, int, Column]]:
    """List the columns of one side by which rows without a partner can be left out of scans.

    Args:
        plan: The query.
        join: The join.
        side: The side that rows are left out of.
        parts: Operators that are evaluated elsewhere; scans below them are not listed.

    Yields:
        The attribute of the other side, the position of a scan, and its column.
    """
    if join.join_type not in WANTS_PARTNERS[side]:
        return
    for pruned, attribute in equal_pairs(join, side):
        for scan, column in scan_columns(plan, input_of(join, side), pruned, parts):
            yield attribute, scan, column


def ruled_out_by(
    plan: Plan, root: int, attributes: Iterable[int], parts: Collection[int] = ()
) -> Iterator[tuple[int, int, Column]]:
    """List the columns by which rows can be left out that find no partner in an operator's rows.

    Above an operator an attribute has its values there, some of them, or NULL where a join found
    no partner; so every join further up that equates it wants no others.

    Args:
        plan: The query.
        root: The operator's position.
        attributes: Its attributes.
        parts: Operators that are evaluated elsewhere; scans below them are not listed.

    Yields:
        The attribute of the operator, the position of a scan, and its column.
    """
    sources = {attribute: attribute for attribute in attributes}
    at, parent = root, plan.parents.get(root)
    while sources and parent is not None:
        match plan[parent]:
            case Join() as join:
                side = Side.LEFT if join.right == at else Side.RIGHT
                for attribute, scan, column in ruled_out_columns(plan, join, side, parts):
                    if attribute in sources:
                        yield sources[attribute], scan, column
                if join.right == at and not join.join_type.gives_right:
                    return
            case Project(renamed=pairs):
                sources = {new: sources[old] for new, old in pairs if old in sources}
            case Filter() | Limit():
                pass
            case _:
                return
        at, parent = parent, plan.parents.get(parent)


def scan_columns(
    plan: Plan, position: int, attribute: int, parts: Collection[int] = ()
) -> Iterator[tuple[int, Column]]:
    """Find the scans whose rows may be chosen by an attribute, and its column there.

    Between the operator and the scan stands only what the row leaves no trace in when it is
    dropped: filters, projections, unions, joins whose rows it would come out of, and aggregates
    by the value.

    Args:
        plan: The query.
        position: The operator that has the attribute.
        attribute: Its id.
        parts: Operators that are evaluated elsewhere; scans below them are not listed.
    """
    if position in parts:
        return
    match plan[position]:
        case Scan() as scan:
            columns = (column for column in scan.columns if column.id == attribute)
            yield from ((position, column) for column in columns)
        case Filter(child=child):
            yield from scan_columns(plan, child, attribute, parts)
        case Project(child=child, renamed=pairs) | Expand(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
            if source is not None:
                yield from scan_columns(plan, child, source, parts)
        case Group(child=child, columns=pairs, group_by=keys):
            source = dict(pairs).get(attribute)
            if source is not None and source in keys:
                yield from scan_columns(plan, child, source, parts)
        case Union(children=children, columns=outputs):
            sources = dict(outputs).get(attribute, ())
            for child, source in zip(children, sources, strict=False):
                yield from scan_columns(plan, child, source, parts)
        case Join() as join:
            for side in Side:
                if join.join_type in PASSES[side]:
                    yield from scan_columns(plan, input_of(join, side), attribute, parts)
