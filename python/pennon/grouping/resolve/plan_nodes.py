"""The skeleton of a query plan, as the rule in the JVM hands it over: shapes and attributes only.

Nodes stand in post-order and name each other by position. Attributes are Spark's expression ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennon.grouping.functions.partition_layout import Layout, LayoutFunction


class JoinType(StrEnum):
    """Join types by which sides keep their rows' attributes and grouping above the join."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    EXISTENCE = "existence"

    @property
    def keeps_left(self) -> bool:
        """Whether rows of the left side come out under their own key."""
        return self not in (JoinType.RIGHT, JoinType.FULL)

    @property
    def keeps_right(self) -> bool:
        """Whether rows of the right side come out under their own key."""
        return self in (JoinType.INNER, JoinType.RIGHT)


@dataclass(frozen=True, slots=True)
class ScanNode:
    """A scan of a namespace: its layout, and the attribute of each column in its output."""

    layout: Layout
    attributes: Mapping[int, frozenset[int]]
    """Field id of a column → attributes that carry it."""
    reported: tuple[LayoutFunction, ...] = ()
    """The functions that the scan reports to Spark as keys."""
    table: str = ""
    """The table's name, for people."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Field id of a column → its name, for people."""
    num_bytes: int = 0
    """Bytes of the chosen partitions, as far as they are known."""


@dataclass(frozen=True, slots=True)
class ProjectNode:
    """A projection: for each output attribute that is an input attribute, that one."""

    child: int
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class JoinNode:
    """An equi-join: pairs of equated attributes (``=`` or ``<=>``), left first."""

    left: int
    right: int
    join_type: JoinType
    equated: tuple[tuple[int, int], ...]
    is_null_safe: bool = False
    """Whether some are equated by ``<=>``, which Spark's own matching does not see through."""
    has_casts: bool = False
    """Whether one of them is compared under a cast, behind which Spark sees no partitioning."""
    dates: frozenset[tuple[int, int]] = frozenset()
    """The pairs of a DATE and a timestamp, which compares midnights: only days and coarser fit."""


@dataclass(frozen=True, slots=True)
class GroupNode:
    """An aggregate (or DISTINCT): its grouping attributes, and how they come out."""

    child: int
    keys: frozenset[int]
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class WindowNode:
    """A window or a window group limit: its partitioning attributes."""

    child: int
    keys: frozenset[int]


@dataclass(frozen=True, slots=True)
class UnionNode:
    """A ``UNION ALL``.

    Args:
        children: Its inputs.
        columns: For each output attribute, the one of each input that it takes.
    """

    children: tuple[int, ...]
    columns: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class ExpandNode:
    """Several rows for each one: for each output attribute that is one of the input in all."""

    child: int
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PassNode:
    """What leaves rows and attributes where they are: a filter, a join to a broadcast."""

    child: int


@dataclass(frozen=True, slots=True)
class OpaqueNode:
    """Anything else: nothing of its input's grouping is known above it.

    Args:
        condition: The condition of a join that compares no columns as they are, for people.
        children: The sides of that join.
    """

    condition: str = ""
    children: tuple[int, ...] = ()


PlanNode = (
    ScanNode
    | ProjectNode
    | JoinNode
    | GroupNode
    | WindowNode
    | UnionNode
    | ExpandNode
    | PassNode
    | OpaqueNode
)


def read_by(nodes: Sequence[PlanNode], position: int) -> tuple[int, int]:
    """Sum up what the scans below a node read: bytes as far as they are known, and scans."""
    match nodes[position]:
        case ScanNode() as scan:
            return scan.num_bytes, 1
        case JoinNode(left=left, right=right):
            inputs: tuple[int, ...] = (left, right)
        case UnionNode(children=children) | OpaqueNode(children=children):
            inputs = children
        case ProjectNode() | GroupNode() | WindowNode() | ExpandNode() | PassNode() as node:
            inputs = (node.child,)
    below = [read_by(nodes, each) for each in inputs]
    return sum(each for each, _ in below), sum(scans for _, scans in below)
