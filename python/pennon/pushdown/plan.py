"""The part of a query plan around Pennon's scans, with the texts of its expressions.

Nodes stand in post-order and name each other by position; every column is called ``c`` and Spark's
expression id. A text that is None could not be written: what needs it stays in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from pennon.grouping.resolve.plan_nodes import JoinType


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a node makes: its id, its text, its type in Arrow; None for a nested one."""

    id: int
    text: str | None
    type: pa.DataType | None


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of a namespace.

    Args:
        columns: Id, name in the table and type of each, in the order of the output.
    """

    columns: tuple[tuple[int, str, pa.DataType | None], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the condition is true.

    Args:
        child: Its input.
        condition: The condition, without the prunings.
        prunings: Ids of filters by the values of another table; a join above implies each.
    """

    child: int
    condition: str | None
    prunings: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Project:
    """Computed columns."""

    child: int
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """A join on the whole of its condition.

    Args:
        left: One input.
        right: The other.
        join_type: What becomes of rows without partner.
        condition: The condition.
        implied: Ids of the prunings below that leave out nothing that this join would not.
    """

    left: int
    right: int
    join_type: JoinType
    condition: str | None
    implied: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """``sum``, ``count``, ``min`` or ``max`` of one argument.

    Args:
        output: Id of the result.
        name: The function.
        argument: Its text.
        type: Type of the result; None for a nested one.
    """

    output: int
    name: str
    argument: str | None
    type: pa.DataType | None


@dataclass(frozen=True, slots=True)
class Group:
    """An aggregate.

    Args:
        child: Its input.
        keys: The grouping expressions and the ids that they get.
        calls: The functions; None where one of them is not known to fragments.
    """

    child: int
    keys: tuple[Output, ...]
    calls: tuple[AggregateCall, ...] | None


@dataclass(frozen=True, slots=True)
class SortKey:
    """By what rows are ordered: an expression, its direction, and where its NULLs stand."""

    text: str | None
    is_ascending: bool
    is_nulls_first: bool


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many rows of what a task computes: any of them, or the first ones by an order.

    Args:
        child: Its input.
        count: The most rows.
        order: What they are ordered by; none where any rows will do.
    """

    child: int
    count: int
    order: tuple[SortKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Opaque:
    """Anything else, with the positions below it."""

    children: tuple[int, ...] = ()


Node = Scan | Filter | Project | Join | Group | Limit | Opaque


def children_of(node: Node) -> tuple[int, ...]:
    """List the positions right below a node."""
    match node:
        case Scan():
            return ()
        case Filter() | Project() | Group() | Limit():
            return (node.child,)
        case Join():
            return (node.left, node.right)
        case Opaque():
            return node.children


def subtree_of(nodes: tuple[Node, ...], root: int) -> tuple[int, ...]:
    """List the positions of a node and all below it."""
    found, waiting = [], [root]
    while waiting:
        position = waiting.pop()
        found.append(position)
        waiting += children_of(nodes[position])
    return tuple(sorted(found))
