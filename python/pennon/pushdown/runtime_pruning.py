"""Which leaves of a divided scan the values of a replicated side rule out, once they are known.

An inner or semi join keeps a row only where a row of its other side has the same value. Where that
side is replicated, its values are known before the divided one is opened; a leaf that has none of
them in its partition value is not opened at all. Between the join and the scan stands only what the
row leaves no trace in when it is dropped: filters, projections, unions, joins whose rows it would
come out of, and aggregates by the value.

NULL rules: ``=`` is never true for NULL, and only NULL has the partition value NULL, so a leaf of
NULLs is not opened. A join by ``<=>`` prunes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.plan import Column, Expand, Filter, Group, Join, JoinType, Project, Scan, Union
from pennon.transforms.expression import Expression
from pennon.transforms.murmur3 import murmur3

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pennon.grouping.functions.partition_layout import LayoutFunction
    from pennon.plan import Plan
    from pennon.pushdown.query import FragmentQuery

_DROPS_LONELY: Final = frozenset({JoinType.INNER, JoinType.SEMI})
_LEFT_STAYS: Final = frozenset(
    {
        JoinType.INNER,
        JoinType.LEFT,
        JoinType.SEMI,
        JoinType.ANTI,
        JoinType.EXISTENCE,
        JoinType.SCALAR,
    }
)
_RIGHT_STAYS: Final = frozenset({JoinType.INNER, JoinType.RIGHT})


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


def _of_part(
    plan: Plan, part: FragmentQuery, parts: Collection[int]
) -> Iterator[tuple[str, int, LayoutFunction]]:
    position = plan.parents.get(part.root)
    join = None if position is None else plan[position]
    if (
        not isinstance(join, Join)
        or join.join_type not in _DROPS_LONELY
        or join.is_null_safe
        or join.has_casts
    ):
        return
    is_right = join.right == part.root
    for left, right in join.equated:
        mine, theirs = (right, left) if is_right else (left, right)
        name = f"c{mine}"
        if (left, right) in join.dates or name not in part.schema.names:
            continue
        kind = part.schema.field(name).type
        other = join.left if is_right else join.right
        for scan, column in _columns_of(plan, other, theirs, parts):
            if kind == column.type:
                yield from ((name, scan, each) for each in _functions(plan, scan, column.id, kind))


def _functions(
    plan: Plan, position: int, attribute: int, kind: pa.DataType
) -> Sequence[LayoutFunction]:
    """List the functions of one column that every leaf of a scan has one value of."""
    scan = plan[position]
    if not isinstance(scan, Scan) or scan.layout is None:
        return ()
    return [
        function
        for function in scan.layout.functions
        if function.grouping.source_types == (kind,)
        and function.grouping.is_constant_for_spark
        and not isinstance(function.grouping.transform, Expression)
        and attribute in scan.attributes.get(function.source_ids[0], ())
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
            left = join.left if join.join_type in _LEFT_STAYS else None
            right = join.right if join.join_type in _RIGHT_STAYS else None
            for side in (left, right):
                if side is not None:
                    yield from _columns_of(plan, side, attribute, parts)
