"""Which rows of one side of a join leave no trace where the other side has no partner for them.

NULL rules: ``=`` finds no partner for NULL. What is compared by ``<=>``, or under a cast, is not
among the pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.plan import JoinType, Side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.plan import Join

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
"""The joins of which a side's row that is dropped leaves out its own rows and no others."""


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
