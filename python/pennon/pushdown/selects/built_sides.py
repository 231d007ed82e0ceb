"""Which input of a join the workers build a hash table of: the one of fewer rows.

DataFusion would estimate it, but takes each column for a key: behind a join of a large table with
five warehouses it expects five rows, and builds the next table of the large one's. A plan of Spark
is one such join above the other.

Nobody knows here whether each row of the larger side has one partner, or each of the smaller one,
so there are two estimates. A table of few rows is built in no time, whatever the other side is;
between large ones the joins below are hoped to have left few rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.plan import Filter, Group, Join, JoinType, Limit, OneRow, Scan, Union, children_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.plan import PlanNode

# What a condition leaves of rows, and grouping: nobody knows; so guesses DataFusion.
_SHARE: Final = 0.2
_FEW_ROWS: Final = 1 << 19


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
