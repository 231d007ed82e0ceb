"""Filters by the values of a join's other side, which Spark puts below the join.

Where the workers compute the join together with them, they leave out nothing that it would not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pennon.plan import Filter, Join, JoinType, Plan, PlanNode, Scan
from pennon.predicate.spark_expression import UNWRITTEN

if TYPE_CHECKING:
    from pennon.worker.messages.plan_messages import PruningMessage


def with_implied_prunings(plan: Plan, prunings: Mapping[int, Sequence[PruningMessage]]) -> Plan:
    """See each filter with the prunings that a join implies, and that join with them.

    A filter with another one has an unwritten condition: Spark evaluates it.

    Args:
        plan: The query; its filters' conditions are without prunings.
        prunings: The position of a filter → its prunings.
    """
    nodes: dict[int, PlanNode] = {}
    for position, of_filter in prunings.items():
        condition = plan[position]
        if not isinstance(condition, Filter):
            continue
        for pruning in of_filter:
            implying = _implying_join(plan, position, pruning)
            if implying is None:
                condition = replace(condition, condition=UNWRITTEN)
                continue
            join = nodes.get(implying, plan[implying])
            # Spark itself drops those that are for broadcasts only where the join is none.
            if isinstance(join, Join) and (join.broadcast or not pruning.in_broadcast):
                nodes[implying] = replace(join, implied=join.implied | {pruning.id})
                condition = replace(condition, prunings=condition.prunings | {pruning.id})
        nodes[position] = condition
    return plan.replaced(nodes) if nodes else plan


def _implying_join(plan: Plan, position: int, pruning: PruningMessage) -> int | None:
    """Find the next join above whose other side has the pruning's values."""
    below = position
    while (above := plan.parents.get(below)) is not None:
        join = plan[above]
        if isinstance(join, Join) and join.join_type is not JoinType.SCALAR:
            partner = join.right if below == join.left else join.left
            if not _scanned(plan, partner).isdisjoint(pruning.columns):
                return above
        below = above
    return None


def _scanned(plan: Plan, position: int) -> frozenset[int]:
    """List what the scans at or below a node give: attributes are unique in a query."""
    scans = (plan[at] for at in plan.scans(position))
    return frozenset(
        column.id for scan in scans if isinstance(scan, Scan) for column in scan.columns
    )
