"""Which leaves of a divided scan the values of a replicated side rule out, once they are known.

A join that drops a row without a partner keeps it only where a row of its other side has the same
value. Where that side is evaluated first, its values are known before the rest is opened; a leaf
that has none of them in its partition value is not opened at all. Between the join and the scan
stands only what the row leaves no trace in when it is dropped: filters, projections, unions, joins
whose rows it would come out of, and aggregates by the value.

A replicated side is evaluated first in any case. Of a query that one executor computes as a whole,
the small filtered sides are that have something to rule out.

NULL rules: ``=`` is never true for NULL, and only NULL has the partition value NULL, so a leaf of
NULLs is not opened. A join by ``<=>`` prunes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.plan import Column, Expand, Filter, Group, Join, Project, Scan, Side, Union
from pennon.pushdown.partners import PASSES, WANTS_PARTNERS, equal_pairs, input_of, other_side
from pennon.transforms.expression import Expression
from pennon.transforms.murmur3 import murmur3

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pennon.grouping.functions.partition_layout import LayoutFunction
    from pennon.plan import Plan
    from pennon.pushdown.division import Division
    from pennon.pushdown.query import FragmentQuery

# A side is evaluated first where it reads less than this share of what it may rule out, or so few
# bytes that it takes no time.
_LARGEST_SHARE: Final = 0.125
_NO_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class RuntimePruning:
    """Leaves of a scan that the values of a replicated part rule out.

    Args:
        scan: Position of the scan.
        function: The function that each leaf has one value of.
        part: Number of the part.
        column: Name of its column.
    """

    scan: int
    function: LayoutFunction
    part: int
    column: str

    def keys(self, plan: Plan, leaves: pa.Table) -> pa.Array:
        """Compute for each leaf what its values are found by: int32, NULL for a leaf of NULLs."""
        scan = plan[self.scan]
        if not isinstance(scan, Scan) or scan.layout is None:
            return pa.nulls(leaves.num_rows, pa.int32())
        return murmur3(scan.layout.values(self.function, leaves))


def runtime_prunings(plan: Plan, query: FragmentQuery) -> tuple[RuntimePruning, ...]:
    """List what the replicated parts of a query rule out.

    Args:
        plan: The whole query.
        query: That of a fragment.
    """
    return tuple(
        RuntimePruning(scan, function, number, column)
        for number, part in enumerate(query.parts)
        for column, scan, function in _of_part(plan, part, {each.root for each in query.parts})
        # A part that restricts an aggregate stands beside other scans in the plan.
        if scan in query.scans
    )


def pruning_sides(division: Division, root: int) -> frozenset[int]:
    """Choose the sides of joins that are evaluated before the rest, for what they may rule out.

    All of the query is computed in one place, so any side can be.

    Args:
        division: The query.
        root: Position of the operator that is computed.

    Returns:
        Positions of small filtered sides, none below another.
    """
    plan = division.plan
    chosen: set[int] = set()
    inside: set[int] = set()
    for position in reversed(plan.subtree(root)):
        join = plan[position]
        if position in inside or not isinstance(join, Join):
            continue
        for side in Side:
            part = input_of(join, other_side(side))
            share = _LARGEST_SHARE * division.sizes[input_of(join, side)].read_bytes
            if (
                division.sizes[part].read_bytes <= max(share, _NO_BYTES)
                and plan.is_filtered(part)
                and not plan.is_limited(part)
                and any(_pruned_by(plan, join, side, chosen))
                and division.sizes[part].read_bytes <= division.replicated_bytes
            ):
                chosen.add(part)
                inside.update(plan.subtree(part))
    return frozenset(chosen)


def _of_part(
    plan: Plan, part: FragmentQuery, parts: Collection[int]
) -> Iterator[tuple[str, int, LayoutFunction]]:
    position = plan.parents.get(part.root)
    join = None if position is None else plan[position]
    if not isinstance(join, Join):
        return
    side = Side.LEFT if join.right == part.root else Side.RIGHT
    for attribute, scan, function in _pruned_by(plan, join, side, parts):
        name = f"c{attribute}"
        if name in part.schema.names and function.grouping.source_types == (
            part.schema.field(name).type,
        ):
            yield name, scan, function


def _pruned_by(
    plan: Plan, join: Join, side: Side, parts: Collection[int]
) -> Iterator[tuple[int, int, LayoutFunction]]:
    """List what the other side rules out of one: by which attribute, of which scan, by what."""
    if join.join_type not in WANTS_PARTNERS[side]:
        return
    for pruned, attribute in equal_pairs(join, side):
        for scan, column in _columns_of(plan, input_of(join, side), pruned, parts):
            for function in _functions(plan, scan, column):
                yield attribute, scan, function


def _functions(plan: Plan, position: int, column: Column) -> Sequence[LayoutFunction]:
    """List the functions of one column that every leaf of a scan has one value of."""
    scan = plan[position]
    if not isinstance(scan, Scan) or scan.layout is None:
        return ()
    return [
        function
        for function in scan.layout.functions
        if function.grouping.source_types == (column.type,)
        and function.grouping.is_constant_for_spark
        and not isinstance(function.grouping.transform, Expression)
        and column.id in scan.attributes.get(function.source_ids[0], ())
    ]


def _columns_of(
    plan: Plan, position: int, attribute: int, parts: Collection[int]
) -> Iterator[tuple[int, Column]]:
    """Find the scans whose rows may be chosen by an attribute, and its column there."""
    if position in parts:
        return
    match plan[position]:
        case Scan() as scan:
            columns = (column for column in scan.columns if column.id == attribute)
            yield from ((position, column) for column in columns)
        case Filter(child=child):
            yield from _columns_of(plan, child, attribute, parts)
        case Project(child=child, renamed=pairs) | Expand(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
            if source is not None:
                yield from _columns_of(plan, child, source, parts)
        case Group(child=child, columns=pairs, group_by=keys):
            source = dict(pairs).get(attribute)
            if source is not None and source in keys:
                yield from _columns_of(plan, child, source, parts)
        case Union(children=children, columns=outputs):
            sources = dict(outputs).get(attribute, ())
            for child, source in zip(children, sources, strict=False):
                yield from _columns_of(plan, child, source, parts)
        case Join() as join:
            for side in Side:
                if join.join_type in PASSES[side]:
                    yield from _columns_of(plan, input_of(join, side), attribute, parts)
