"""Resolves which scans of a query share a derived key, and which operators it serves.

For people: docs/joins.md.

A fold over the plan: what is known at a node follows from the node and from what is known at its
children. A join whose equated attributes carry a common reduction of both sides' expressions
satisfies what it requires, and offers the two sides' partitionings as one; each further join,
aggregate or window can only narrow it, and every member follows. A join that is not satisfied ends
the partitionings below it: its shuffle loses them.

NULL rules: the key is never NULL (NULL is hashed as a value of its own), so ``=`` and ``<=>``
are served alike; the real conjuncts stay in the join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from pennon.grouping.resolve.key_group import DerivedKeys, ReportedGroup
from pennon.grouping.resolve.resolved_join import not_equated, resolved_join
from pennon.grouping.resolve.resolved_node import (
    ResolvedNode,
    carried,
    ended,
    grouped,
    scanned,
)
from pennon.grouping.resolve.settled_groups import KeyedGroup, MovedScans
from pennon.plan import (
    Expand,
    Filter,
    Group,
    Join,
    Limit,
    Offset,
    OneRow,
    Opaque,
    Pass,
    Plan,
    PlanNode,
    Project,
    Scan,
    Union,
    Window,
)


def derive_keys(nodes: Sequence[PlanNode]) -> DerivedKeys:
    """Find the scans that get a derived key, and the operators that use it.

    Args:
        nodes: The plan in post-order.

    Spec: "Storage Partitioned Join".
    """
    plan = nodes if isinstance(nodes, Plan) else Plan(tuple(nodes))
    resolved = _resolved(plan, {})
    for position, stays_left in resolved.stays_left.items():
        # The side with fewer bytes may be the one that the joins above can use.
        other = _resolved(plan, {**resolved.stays_left, position: not stays_left})
        if other.num_shuffled_bytes < resolved.num_shuffled_bytes:
            resolved = other
    keyed = [group for group in resolved.settled if isinstance(group, KeyedGroup)]
    return DerivedKeys(
        {scan: functions for group in keyed for scan, functions in group.scans.items()},
        frozenset(position for keys in keyed for position in keys.group.operators),
        {join: functions for group in keyed for join, functions in group.computed.items()},
        resolved.verdicts,
        tuple(keys.group for keys in keyed),
        tuple(group for group in resolved.settled if isinstance(group, ReportedGroup)),
        frozenset(
            scan
            for moved in resolved.settled
            if isinstance(moved, MovedScans)
            for scan in moved.scans
        ),
    )


def _resolved(plan: Plan, stays_left: Mapping[int, bool]) -> ResolvedNode:
    """Fold the plan.

    Args:
        plan: The plan.
        stays_left: For joins of which one side is shuffled onto the other, whether the left one
            stays; where nothing is said, the one that reads more bytes does.
    """
    resolved: list[ResolvedNode] = []
    for position, node in enumerate(plan):
        children = [resolved[child] for child in plan.children(position)]
        resolved.append(_at_node(plan, position, node, children, stays_left))
    roots = [resolved[position] for position in range(len(plan)) if position not in plan.parents]
    return ended(plan, roots)


def _at_node(
    plan: Plan,
    position: int,
    node: PlanNode,
    children: Sequence[ResolvedNode],
    stays_left: Mapping[int, bool],
) -> ResolvedNode:
    match node:
        case Scan():
            return scanned(position, node)
        case Project():
            (child,) = children
            above = child.offered and child.offered.above_projection(node.renamed)
            return replace(child, offered=above)
        case Pass(equal=equal) if equal:
            (child,) = children
            return replace(child, offered=child.offered and child.offered.beside(equal))
        case Filter() | Pass() | Limit(order=(), is_whole=False):
            (child,) = children
            return child
        case Join(streamed=int(streamed)):
            # The other side is sent to where these rows are.
            rows = children[0 if streamed == node.left else 1]
            return ended(plan, children, keeping=rows)
        case Join(equated=()):
            return not_equated(plan, position, node, children)
        case Join():
            left, right = children
            prefers_left = stays_left.get(position)
            return resolved_join(plan, position, node, left, right, prefers_left=prefers_left)
        case Union(is_keyed=True):
            columns = [
                tuple((new, old[at]) for new, old in node.columns) for at in range(len(children))
            ]
            return carried(plan, position, children, columns)
        case Expand():
            return carried(plan, position, children, [node.columns])
        case Group(keys=()) | Limit() | Offset() | Union() | OneRow() | Opaque():
            return ended(plan, children)
        case Group():
            (child,) = children
            return grouped(plan, position, child, node.group_by, node.columns)
        case Window() if not node.keys:
            return ended(plan, children)
        case Window():
            (child,) = children
            return grouped(plan, position, child, node.keys, None)
        case unknown:
            assert_never(unknown)
