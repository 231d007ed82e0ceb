"""Upper bounds, from the manifest, of the rows and bytes of each operator of a plan.

What a filter keeps is not guessed: a part that is taken for small has to be small before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pennon.execution.batches.row_bytes import row_bytes
from pennon.plan import (
    Expand,
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    OneRow,
    Pass,
    Project,
    Scan,
    Union,
    Window,
    children_of,
)
from pennon.predicate.expressions.distributions import PERCENTILES
from pennon.pushdown.selects.join_conditions import is_hashed, null_aware_pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pennon.plan import Plan, PlanNode

MOST_PAIRS: Final = 2e8
"""So many pairs of rows a worker compares one by one in about a second."""

HASH_TABLE_EXPANSION: Final = 3
"""Rows take about so many times as much memory in a hash table as in files and in batches."""


@dataclass(frozen=True, slots=True)
class Size:
    """What is known of an operator.

    Args:
        rows: Its rows at most, joins taken for ones on keys; infinite where nothing is known.
        read_bytes: Bytes in memory of the columns that the scans below it read.
        pairs: Rows that the joins below compare without an equality to find them by.
    """

    rows: float
    read_bytes: float
    pairs: float = 0.0


def sizes_of(plan: Plan) -> tuple[Size, ...]:
    """Estimate every operator of a plan.

    How many groups an aggregate can have is asked only where joins without an equality would have
    too many pairs else: the manifest's statistics are read for it.
    """
    sizes = _sizes_of(plan, counts_groups=False)
    if any(size.pairs > MOST_PAIRS for size in sizes):
        return _sizes_of(plan, counts_groups=True)
    return sizes


def _sizes_of(plan: Plan, *, counts_groups: bool) -> tuple[Size, ...]:
    sizes: list[Size] = []
    for node in plan:
        below = [sizes[child] for child in children_of(node)]
        has_key = isinstance(node, Join) and (
            is_hashed(plan, node) or null_aware_pair(node) is not None
        )
        size = _size(node, below, has_key=has_key)
        if counts_groups and isinstance(node, Group):
            size = replace(size, rows=min(size.rows, _most_groups(plan, node)))
        sizes.append(size)
    return tuple(sizes)


def _most_groups(plan: Plan, group: Group) -> float:
    """Bound the groups of an aggregate: all combinations of its keys' values."""
    if group.keys is None:
        return math.inf
    columns = {f"c{attribute}": attribute for attribute in group.group_by}
    keys = [columns.get(key.value.column or "") for key in group.keys]
    return math.prod(
        math.inf if key is None else _most_values(plan, group.child, key) for key in keys
    )


def _most_values(plan: Plan, position: int, attribute: int) -> float:
    """Bound the values of an attribute, NULL among them, by those of the columns it comes from."""
    source: int | None
    match plan[position]:
        case Scan(columns=columns, most_values=most_values):
            names = [column.name for column in columns if column.id == attribute]
            counts = [most_values(name) for name in names]
            return min((count for count in counts if count is not None), default=math.inf)
        case Filter(child=child) | Pass(child=child) | Limit(child=child) | Window(child=child):
            source = attribute
        case Project(child=child, renamed=pairs) | Expand(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
        case Group(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
        case Join(left=left, right=right):
            return min(_most_values(plan, side, attribute) for side in (left, right))
        case Union(children=children, columns=outputs):
            sources = dict(outputs).get(attribute, ())
            below = zip(children, sources, strict=False)
            return sum(_most_values(plan, *pair) for pair in below) if sources else math.inf
        case _:
            return math.inf
    return math.inf if source is None else _most_values(plan, child, source)


def holds_rows(plan: Sequence[PlanNode], positions: Iterable[int]) -> bool:
    """Whether rows of what is read, and not groups, stay in memory: for windows, percentiles."""
    holding: set[int] = set()
    for position in sorted(positions):
        node = plan[position]
        if isinstance(node, Scan) or not holding.isdisjoint(children_of(node)):
            if isinstance(node, Window) and not node.is_limit:
                return True
            if isinstance(node, Group) and any(
                call.name in PERCENTILES for call in node.calls or ()
            ):
                return True
            if not isinstance(node, Group):
                holding.add(position)
    return False


def _size(node: PlanNode, below: Sequence[Size], *, has_key: bool) -> Size:
    if isinstance(node, Scan):
        width = row_bytes(column.type for column in node.columns)
        rows = math.inf if node.num_rows is None else float(node.num_rows)
        return Size(rows, rows * width)
    if isinstance(node, OneRow):
        return Size(1.0, 0.0)
    read = sum(size.read_bytes for size in below)
    pairs = sum(size.pairs for size in below)
    rows = max((size.rows for size in below), default=math.inf)
    match node:
        case Join(join_type=JoinType.SCALAR):
            return Size(below[0].rows, read, pairs)
        case Join():
            left, right = below
            product = 0.0 if has_key else left.rows * right.rows
            if node.join_type in (JoinType.SEMI, JoinType.ANTI, JoinType.EXISTENCE):
                rows = left.rows
            elif product:
                rows = product
            return Size(rows, read, pairs + product)
        case Group(group_by=group_by, keys=keys) if keys == () and not group_by:
            return Size(1.0, read, pairs)
        case Limit(count=int(count)):
            return Size(min(rows, float(count)), read, pairs)
        case Expand(outputs=outputs) if outputs:
            return Size(rows * len(outputs[0].values), read, pairs)
        case Union():
            return Size(sum(size.rows for size in below), read, pairs)
    return Size(rows, read, pairs)
