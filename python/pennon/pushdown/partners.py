"""The side of a join whose rows without a partner do not appear in its result.

NULL rules: ``=`` finds no partner for NULL. What is compared by ``<=>``, or under a cast, is not
among the pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pennon.execution.batches import row_bytes
from pennon.plan import (
    Column,
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
    Side,
    Union,
    Window,
    children_of,
)
from pennon.predicate.expressions.aggregates import PERCENTILES
from pennon.pushdown.selects.joined import is_hashed, null_aware_pair

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pennon.plan import Plan, PlanNode

# Upper bounds, from the manifest, of the rows and bytes of each operator of a plan.
#
# What a filter keeps is not guessed: a part that is taken for small has to be small before it.

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
