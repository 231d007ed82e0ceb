"""Which join of several comes first, and which input of one the workers build a hash table of.

The order is Spark's, but for joins with a small filtered side. Such a side is a condition on its
key, and is asked where a condition would be: below the joins of the rows that it leaves out, which
may find many partners for each of them. Spark's generated code passes such rows on one by one;
DataFusion copies all of their columns from join to join, and between its threads.

NULL rules: only equalities of columns go down. They cannot fail, so it is no matter of how many
rows they are asked; what stands above them is asked of fewer, as behind the values of a replicated
side (``runtime_pruning.py``).

A hash table is built of the side of fewer rows. DataFusion would estimate it, but takes each column
for a key: behind a join of a large table with five warehouses it expects five rows, and builds the
next table of the large one's. A plan of Spark is one such join above the other.

Nobody knows here whether each row of the larger side has one partner, or each of the smaller one,
so there are two estimates. A table of few rows is built in no time, whatever the other side is;
between large ones the joins below are hoped to have left few rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from pennon.plan import (
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    Offset,
    OneRow,
    Output,
    Plan,
    Project,
    Scan,
    Side,
    Union,
    children_of,
)
from pennon.pushdown.partners import PASSES, equal_pairs, input_of, other_side
from pennon.pushdown.selects.joined import conjuncts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pennon.plan import PlanNode

# What a condition leaves of rows, and grouping: nobody knows; so guesses DataFusion.
_SHARE: Final = 0.2
_FEW_ROWS: Final = 1 << 19
_OF_BOTH_SIDES: Final = (JoinType.INNER, JoinType.LEFT, JoinType.RIGHT, JoinType.FULL)


@dataclass(frozen=True, slots=True)
class _Rows:
    """About how many rows an operator gives: where joins leave few, and where they leave many."""

    low: float
    high: float

    def __mul__(self, share: float) -> _Rows:
        return _Rows(self.low * share, self.high * share)


class BuiltSides:
    """The sides of the joins of a plan.

    Args:
        nodes: The plan.
    """

    def __init__(self, nodes: Sequence[PlanNode]) -> None:
        self._nodes = nodes
        self._known: dict[int, _Rows] = {}

    def is_right(self, join: Join) -> bool:
        """Whether it is the right input that a hash table is built of."""
        left, right = self._rows(join.left), self._rows(join.right)
        if min(left.high, right.high) <= _FEW_ROWS:
            return right.high < left.high
        return right.low < left.low

    def is_few(self, position: int) -> bool:
        """Whether it takes no time to build a hash table of an operator's rows."""
        return self._rows(position).high <= _FEW_ROWS

    def is_smaller(self, position: int, other: int) -> bool:
        """Whether an operator has no more rows than another one, as far as that is known."""
        return self._rows(position).high <= self._rows(other).high

    def _rows(self, position: int) -> _Rows:
        known = self._known.get(position)
        if known is None:
            node = self._nodes[position]
            known = self._of(node, [self._rows(child) for child in children_of(node)])
            self._known[position] = known
        return known

    def _of(self, node: PlanNode, below: Sequence[_Rows]) -> _Rows:
        match node:
            case Scan(num_rows=num_rows):
                rows = math.inf if num_rows is None else float(num_rows)
                return _Rows(rows, rows) * (_SHARE if node.is_filtered else 1.0)
            case OneRow():
                return _Rows(1.0, 1.0)
            case Join():
                return self._joined(node, *below)
            case Union():
                return _Rows(sum(rows.low for rows in below), sum(rows.high for rows in below))
            case Filter() if node.leaves_out_rows:
                return below[0] * _SHARE
            case Group(keys=()):
                return _Rows(1.0, 1.0)
            case Group():
                return _Rows(below[0].low * _SHARE, below[0].high)
            case Limit(count=int(count)):
                return _Rows(min(below[0].low, count), min(below[0].high, count))
        return below[0]

    @staticmethod
    def _joined(join: Join, left: _Rows, right: _Rows) -> _Rows:
        low, high = min(left.low, right.low), max(left.high, right.high)
        match join.join_type:
            case JoinType.ANTI | JoinType.EXISTENCE | JoinType.SCALAR:
                return left
            case JoinType.SEMI:
                return _Rows(low, left.high)
        if not join.equated:
            return _Rows(left.low * right.low, left.high * right.high)
        match join.join_type:
            case JoinType.LEFT:
                low = left.low
            case JoinType.RIGHT:
                low = right.low
            case JoinType.FULL:
                low = max(left.low, right.low)
        return _Rows(low, high)


def filters_first(
    nodes: Sequence[PlanNode], root: int, replicated: Collection[int] = ()
) -> Sequence[PlanNode]:
    """Join small filtered sides before what else the rows are joined with.

    Args:
        nodes: The plan.
        root: The uppermost node of what is computed together.
        replicated: Operators whose rows are computed elsewhere: they stay what they are.

    Returns:
        A plan that gives the same rows at the root and at those operators. A node may stand behind
        one above it.
    """
    plan = Plan(tuple(nodes))
    # Where one has gone down, a join above it may have become one with a filtered side.
    while (moved := _Sinking(plan, replicated).first(root)) is not None:
        plan = moved
    return plan


def columns_in_order(nodes: Sequence[PlanNode], position: int) -> list[int] | None:
    """List the columns that come out of an operator, as Spark expects them; None where unknown.

    Args:
        nodes: The plan, whose joins stand as Spark has them.
        position: The operator.
    """
    match nodes[position]:
        case Scan(columns=columns):
            return [column.id for column in columns]
        case Project(outputs=outputs) | Group(outputs=outputs) if outputs is not None:
            return [output.id for output in outputs]
        case Filter(child=child) | Limit(child=child) | Offset(child=child):
            return columns_in_order(nodes, child)
        case Join(join_type=JoinType.SEMI | JoinType.ANTI, left=left):
            return columns_in_order(nodes, left)
        case Join(join_type=kind, left=left, right=right) if kind in _OF_BOTH_SIDES:
            of_left, of_right = columns_in_order(nodes, left), columns_in_order(nodes, right)
            return None if of_left is None or of_right is None else [*of_left, *of_right]
    return None


class _Sinking:
    """Moves a join with a small filtered side down.

    Args:
        plan: The plan.
        replicated: Operators that stay what they are.
    """

    def __init__(self, plan: Plan, replicated: Collection[int]) -> None:
        self._plan = plan
        self._replicated = replicated
        self._sizes = BuiltSides(plan)

    def first(self, root: int) -> Plan | None:
        """Move the first join that goes down; None where all stay."""
        nodes = ((at, self._plan[at]) for at in self._plan.subtree(root))
        joins = [(at, node) for at, node in nodes if isinstance(node, Join)]
        if len(joins) == 1:
            return None
        moved = (self._sunk(at, join) for at, join in joins if _is_of_columns(join))
        return next((plan for plan in moved if plan is not None), None)

    def _sunk(self, position: int, join: Join) -> Plan | None:
        """Move one join below others; None where it stays."""
        for side in Side:
            small = input_of(join, other_side(side))
            columns = _columns(self._plan, small) if self._is_filter(small) else None
            if columns is None:
                continue
            keys = {attribute for attribute, _ in equal_pairs(join, side)}
            others = {column.id for column in columns}
            passed, below = self._passed(input_of(join, side), keys, others)
            if passed and self._sizes.is_smaller(small, below):
                nodes = self._one_further_up([position, *passed], below, columns)
                nodes[passed[-1]] = _with_input(join, input_of(join, side), below)
                return self._plan.replaced(nodes)
        return None

    def _is_filter(self, position: int) -> bool:
        return self._plan.is_filtered(position) and self._sizes.is_few(position)

    def _passed(
        self, at: int, keys: Collection[int], others: Collection[int]
    ) -> tuple[list[int], int]:
        """List what a join goes below, and what is below that.

        Args:
            at: What is below the join.
            keys: The attributes there that it compares.
            others: Those of its small side.

        Returns:
            Positions from above; the last one is that of a join.
        """
        passed: list[int] = []
        result: tuple[list[int], int] = ([], at)
        while at not in self._replicated:
            match self._plan[at]:
                case Filter(child=child):
                    below = child
                case Project(child=child, outputs=outputs) if _are_kept(keys, outputs):
                    below = child
                case Join() as join:
                    sides = (side for side in Side if self._has(join, side, keys, others))
                    chosen = next(sides, None)
                    if chosen is None or self._is_filter(input_of(join, other_side(chosen))):
                        break
                    below = input_of(join, chosen)
                    result = ([*passed, at], below)
                case _:
                    break
            passed.append(at)
            at = below
        return result

    def _has(self, join: Join, side: Side, keys: Collection[int], others: Collection[int]) -> bool:
        """Whether a side of a join has all the keys, and the other one no attribute of theirs."""
        made, across = (
            self._plan.attributes(input_of(join, one)) for one in (side, other_side(side))
        )
        return (
            join.join_type in PASSES[side]
            and made.issuperset(keys)
            and across.isdisjoint({*keys, *others})
        )

    def _one_further_up(
        self, places: Sequence[int], below: int, columns: Sequence[Output]
    ) -> dict[int, PlanNode]:
        """Let nodes that stand above each other stand one place further up, without the first."""
        inputs = [*places[2:], below]
        return {
            place: _with_input(self._plan[at], old, at, columns)
            for (place, at), old in zip(pairwise(places), inputs, strict=True)
        }


def _is_of_columns(join: Join) -> bool:
    """Whether an inner join compares columns by ``=``, and nothing else."""
    return (
        join.join_type is JoinType.INNER
        and bool(join.equated)
        and len(equal_pairs(join, Side.LEFT)) == len(conjuncts_of(join.condition))
        and all(
            isinstance(part, exp.EQ)
            and isinstance(part.this, exp.Column)
            and isinstance(part.expression, exp.Column)
            for part in conjuncts_of(join.condition)
        )
    )


def _are_kept(attributes: Collection[int], outputs: Sequence[Output] | None) -> bool:
    compared = [output for output in outputs or () if output.id in attributes]
    kept = {output.id for output in compared if output.value.column == f"c{output.id}"}
    return kept == set(attributes)


def _columns(plan: Plan, position: int) -> list[Output] | None:
    """List the columns of a side as they are; None where it is no table, or one of several."""
    match plan[position]:
        case Scan(columns=columns):
            return [Output.of_attribute(column.id, column.type) for column in columns]
        case Project(outputs=outputs) | Group(outputs=outputs) if outputs is not None:
            return [Output.of_attribute(output.id, output.type) for output in outputs]
        case Filter(child=child):
            return _columns(plan, child)
        case Join(join_type=JoinType.INNER, left=left, right=right):
            of_left, of_right = _columns(plan, left), _columns(plan, right)
            return None if of_left is None or of_right is None else [*of_left, *of_right]
    return None


def _with_input(node: PlanNode, old: int, new: int, columns: Sequence[Output] = ()) -> PlanNode:
    """Give a node another input, which has some more columns than the one that it had."""
    match node:
        case Filter():
            return replace(node, child=new)
        case Project(outputs=outputs, renamed=renamed):
            kept = tuple((column.id, column.id) for column in columns)
            written = (*(outputs or ()), *columns)
            return replace(node, child=new, outputs=written, renamed=(*renamed, *kept))
        case Join(left=left) if left == old:
            return replace(node, left=new)
        case Join():
            return replace(node, right=new)
    return node
