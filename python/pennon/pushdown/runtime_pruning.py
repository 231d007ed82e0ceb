"""Prunes a divided scan by the values of a replicated side, once they are known.

A join that drops a row without a partner keeps it only where a row of its other side has the same
value. Where that side is evaluated first, its values are known before the rest is opened; a leaf
that has none of them in its partition value is not opened at all. Which scans that reaches says
``partners.py``.

Of the other leaves rows are left out: where the values are few of those that the side would have
without its conditions, few rows have one of them. Lance reads the column of the key then, and of
the other columns what is left. Whether the values are few is seen when they are known, by
``execution``.

A replicated side is evaluated first in any case. Of a query that one executor computes as a whole,
the small filtered sides are that have something to rule out. Thousands of values are in all
buckets: there a side of many rows rules out nothing.

NULL rules: ``=`` is never true for NULL, and only NULL has the partition value NULL, so a leaf of
NULLs is not opened. A join by ``<=>`` prunes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.plan import Column, Group, Join, Limit, Scan, Side
from pennon.pushdown.partners import (
    input_of,
    other_side,
    ruled_out_by,
    ruled_out_columns,
    scan_columns,
)
from pennon.transforms.bucket import Bucket
from pennon.transforms.evaluation.murmur3 import murmur3
from pennon.transforms.expression import Expression

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pennon.plan import Plan
    from pennon.pushdown.division import Division
    from pennon.pushdown.partners import Restriction
    from pennon.pushdown.query import FragmentQuery
    from pennon.spec.functions.partition_layout import LayoutFunction

# A side is evaluated first where it reads less than this share of what it may rule out, or so few
# bytes that it takes no time.
_LARGEST_SHARE: Final = 0.125
_NO_BYTES: Final = 64 << 10
# A condition that leaves out buckets keeps at most one row in so many.
_ROWS_OF_A_BUCKET: Final = 1000
# A scan of fewer rows takes no longer than its filter; of more rows few conditions leave a list.
_LEAST_FILTERED: Final = 1 << 18
_MOST_CHOSEN_FROM: Final = 1 << 20


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


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Rows of a scan that the values of a replicated part rule out.

    Args:
        scan: Position of the scan.
        name: Name of its column.
        part: Number of the part.
        column: Name of the part's column.
        chosen_from: Rows of the table that the values come from.
    """

    scan: int
    name: str
    part: int
    column: str
    chosen_from: int


def runtime_prunings(plan: Plan, query: FragmentQuery) -> tuple[RuntimePruning, ...]:
    """List what the replicated parts of a query rule out.

    Args:
        plan: The whole query.
        query: That of a fragment.
    """
    prunings = (
        RuntimePruning(scan, function, number, column)
        for number, part in enumerate(query.parts)
        for column, scan, function in _of_part(plan, part, {other.root for other in query.parts})
        # A part that restricts an aggregate stands beside other scans in the plan.
        if scan in query.scans
    )
    return tuple(dict.fromkeys(prunings))


def key_filters(
    plan: Plan, query: FragmentQuery, restriction: Restriction | None = None
) -> tuple[KeyFilter, ...]:
    """List what the replicated parts of a query may leave of the rows of its scans.

    Args:
        plan: The whole query.
        query: That of a fragment.
        restriction: Which groups of its uppermost aggregate are computed.
    """
    roots = {part.root for part in query.parts}
    filters: list[KeyFilter] = []
    for number, part in enumerate(query.parts):
        for attribute, scan, column in (
            *ruled_out_by(plan, part.root, part.columns, roots),
            *_restricted(plan, query, part, restriction),
        ):
            rows = _chosen_from(plan, part.root, attribute)
            name = f"c{attribute}"
            if (
                scan in query.scans
                and rows is not None
                and name in part.schema.names
                and part.schema.field(name).type == column.type
                and _is_filtered_by(plan, scan, column)
            ):
                filters.append(KeyFilter(scan, column.name, number, name, rows))
    return tuple(dict.fromkeys(filters))


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
                and (_prunes(division, join, side, chosen) or _can_filter(plan, join, side, chosen))
                and division.sizes[part].read_bytes <= division.replicated_bytes
            ):
                chosen.add(part)
                inside.update(plan.subtree(part))
    return frozenset(chosen)


def _of_part(
    plan: Plan, part: FragmentQuery, parts: Collection[int]
) -> Iterator[tuple[str, int, LayoutFunction]]:
    for attribute, scan, column in ruled_out_by(plan, part.root, part.columns, parts):
        for function in _functions(plan, scan, column):
            name = f"c{attribute}"
            if name in part.schema.names and function.grouping.source_types == (
                part.schema.field(name).type,
            ):
                yield name, scan, function


def _pruned_by(
    plan: Plan, join: Join, side: Side, parts: Collection[int]
) -> Iterator[tuple[int, int, LayoutFunction]]:
    """List what the other side rules out of one: by which attribute, of which scan, by what."""
    for attribute, scan, column in ruled_out_columns(plan, join, side, parts):
        for function in _functions(plan, scan, column):
            yield attribute, scan, function


def _prunes(division: Division, join: Join, side: Side, chosen: Collection[int]) -> bool:
    """Whether what is left of the other side may have values of some leaves only."""
    rows = division.sizes[input_of(join, other_side(side))].rows
    transforms = (
        function.grouping.transform
        for _, _, function in _pruned_by(division.plan, join, side, chosen)
    )
    return any(
        not isinstance(transform, Bucket) or rows <= transform.num_buckets * _ROWS_OF_A_BUCKET
        for transform in transforms
    )


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


def _can_filter(plan: Plan, join: Join, side: Side, parts: Collection[int]) -> bool:
    """Whether the values of the other side may leave few rows of a large scan of this one."""
    other = input_of(join, other_side(side))
    return any(
        _is_filtered_by(plan, scan, column) and _chosen_from(plan, other, attribute) is not None
        for attribute, scan, column in ruled_out_columns(plan, join, side, parts)
    )


def _restricted(
    plan: Plan, query: FragmentQuery, part: FragmentQuery, restriction: Restriction | None
) -> Iterator[tuple[int, int, Column]]:
    """List what a part rules out that says which groups of an aggregate are wanted."""
    if restriction is None or restriction.part != part.root:
        return
    top = plan[query.root]
    group = plan[top.child] if isinstance(top, Limit) else top
    if isinstance(group, Group):
        for scan, column in scan_columns(plan, group.child, restriction.key):
            yield restriction.column, scan, column


def _chosen_from(plan: Plan, position: int, attribute: int) -> int | None:
    """Count the rows that conditions choose an attribute's values from; None for too many."""
    rows = 0
    for at, _ in scan_columns(plan, position, attribute):
        scan = plan[at]
        if not isinstance(scan, Scan) or scan.num_rows is None:
            return None
        rows += scan.num_rows
    return rows if 0 < rows <= _MOST_CHOSEN_FROM else None


def _is_filtered_by(plan: Plan, position: int, column: Column) -> bool:
    scan = plan[position]
    return (
        isinstance(scan, Scan)
        and scan.num_rows is not None
        and scan.num_rows >= _LEAST_FILTERED
        and column.name in scan.names.values()
        and column.type is not None
        and (
            pa.types.is_integer(column.type)
            or pa.types.is_date32(column.type)
            or pa.types.is_decimal(column.type)
            or pa.types.is_string(column.type)
        )
    )
