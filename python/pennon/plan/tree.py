"""A plan: its operators in post-order, with children, parents and subtrees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never, overload

from pennon.plan.nodes import (
    Expand,
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    Offset,
    OneRow,
    Opaque,
    Pass,
    PlanNode,
    Project,
    Scan,
    Union,
    Window,
)


@dataclass(frozen=True)
class Plan(Sequence[PlanNode]):
    """The nodes of a query, children before their parents.

    Example:
        >>> plan = Plan((Scan(), Filter(0, "TRUE"), Scan(), Opaque((1, 2))))
        >>> plan.subtree(1), plan.parents[1], plan.leaves(3)
        ((0, 1), 3, (0, 2))
    """

    nodes: tuple[PlanNode, ...]

    @overload
    def __getitem__(self, position: int) -> PlanNode: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[PlanNode, ...]: ...
    def __getitem__(self, position: int | slice) -> PlanNode | tuple[PlanNode, ...]:
        """Give the node at a position."""
        return self.nodes[position]

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self.nodes)

    @cached_property
    def parents(self) -> Mapping[int, int]:
        """The position right above each node but the root."""
        return {
            child: position for position, node in enumerate(self) for child in children_of(node)
        }

    def children(self, position: int) -> tuple[int, ...]:
        """List the positions right below a node."""
        return children_of(self.nodes[position])

    def subtree(self, position: int) -> tuple[int, ...]:
        """List the positions of a node and all below it, in post-order."""
        reached, waiting = [], [position]
        while waiting:
            current = waiting.pop()
            reached.append(current)
            waiting += children_of(self.nodes[current])
        return tuple(sorted(reached))

    def leaves(self, position: int) -> tuple[int, ...]:
        """List the positions at or below a node that have nothing below them."""
        return tuple(at for at in self.subtree(position) if not children_of(self.nodes[at]))

    def is_of_tables(self, position: int) -> bool:
        """Whether nothing but scans is read at or below a node."""
        return all(isinstance(self.nodes[at], Scan | OneRow) for at in self.leaves(position))

    def scans(self, position: int) -> tuple[int, ...]:
        """List the positions of the scans at or below a node."""
        return tuple(at for at in self.subtree(position) if isinstance(self.nodes[at], Scan))

    @property
    def scalars(self) -> tuple[int, ...]:
        """The positions where rows get the value of a subquery."""
        return tuple(
            at
            for at, node in enumerate(self.nodes)
            if isinstance(node, Join) and node.join_type is JoinType.SCALAR
        )

    def without_values(self, scalars: Iterable[int]) -> Plan:
        """See the plan as it is where the values of some subqueries come from elsewhere."""
        nodes: dict[int, PlanNode] = {}
        for position in scalars:
            rows, value = self.children(position)
            nodes |= dict.fromkeys(self.subtree(value), Opaque())
            nodes.setdefault(position, Pass(rows))
        return self.replaced(nodes) if nodes else self

    def is_filtered(self, position: int) -> bool:
        """Whether conditions leave out rows at or below a node."""
        below = (self.nodes[at] for at in self.subtree(position))
        return any(
            (isinstance(node, Filter) and node.leaves_out_rows)
            or (isinstance(node, Scan) and node.is_filtered)
            for node in below
        )

    def is_limited(self, position: int) -> bool:
        """Whether its rows are some of many: another evaluation might choose others."""
        return any(isinstance(self.nodes[at], Limit | Offset) for at in self.subtree(position))

    def attributes(self, position: int) -> frozenset[int]:
        """List the attributes that are made at or below a node and may come out of it.

        Those of what joins look for their partners in are not among them.
        """
        node = self.nodes[position]
        ends = isinstance(node, Join) and not node.join_type.gives_right
        below = self.children(position)[:1] if ends else self.children(position)
        return frozenset(_made(node)).union(*map(self.attributes, below))

    def num_read(self, position: int) -> tuple[int, int]:
        """Sum up what is read at or below a node: bytes as far as they are known, and scans."""
        read = [node for at in self.subtree(position) if isinstance(node := self.nodes[at], Scan)]
        return sum(scan.num_bytes for scan in read), len(read)

    def replaced(self, nodes: Mapping[int, PlanNode]) -> Plan:
        """See the plan with other nodes at some positions."""
        return Plan(tuple(nodes.get(at, node) for at, node in enumerate(self.nodes)))


def is_one_row(nodes: Sequence[PlanNode], position: int) -> bool:
    """Whether an operator has exactly one row: an aggregate of everything, or no table below."""
    match nodes[position]:
        case Project(child=child) | Join(join_type=JoinType.SCALAR, left=child):
            return is_one_row(nodes, child)
        case Group(keys=(), group_by=keys):
            return not keys
        case node:
            return isinstance(node, OneRow)


def is_repeatable(nodes: Sequence[PlanNode], position: int) -> bool:
    """Whether all evaluations of a subtree give the same rows: none is chosen of several alike."""
    node = nodes[position]
    if isinstance(node, Offset) or (isinstance(node, Limit) and node.is_whole):
        return False
    if isinstance(node, Window) and node.depends_on_ties:
        return False
    return all(is_repeatable(nodes, child) for child in children_of(node))


def _made(node: PlanNode) -> Iterable[int]:
    """List the attributes that a node has and its inputs do not."""
    match node:
        case Scan(columns=columns):
            return [column.id for column in columns]
        case Project(outputs=outputs) | Window(outputs=outputs) | Expand(outputs=outputs):
            return [output.id for output in outputs or ()]
        case Group(outputs=outputs, columns=columns):
            return [*(output.id for output in outputs or ()), *(new for new, _ in columns)]
        case Union(columns=columns):
            return [made for made, _ in columns]
        case Join(exists=int(exists)):
            return [exists]
    return ()


def children_of(node: PlanNode) -> tuple[int, ...]:
    """List the positions right below a node."""
    match node:
        case Scan() | OneRow():
            return ()
        case Filter() | Project() | Group() | Window() | Expand() | Limit() | Offset() | Pass():
            return (node.child,)
        case Join():
            return (node.left, node.right)
        case Union() | Opaque():
            return node.children
        case unknown:
            assert_never(unknown)
