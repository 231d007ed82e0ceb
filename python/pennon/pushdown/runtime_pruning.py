"""Prunes a divided scan by the values of a replicated side, once they are known.

A join that drops a row without a partner keeps it only where a row of its other side has the same
value. Where that side is evaluated first, its values are known before the rest is opened; a leaf
that has none of them in its partition value, by a field of its own spec, is not opened at all.
Which scans that reaches says ``partners.py``.

Of the other leaves rows are left out: where the values are few of those that the side would have
without its conditions, few rows have one of them. Lance reads the column of the key then, and of
the other columns what is left. Whether the values are few is seen when they are known, by
``execution``.

A replicated side is evaluated first in any case. Of a query that one executor computes as a whole,
the small filtered sides are that have something to rule out. Thousands of values are in all
buckets: there a side of many rows rules out nothing.

NULL rules: ``=`` is never true for NULL, so a leaf of NULLs is not opened; one whose value an
expression made NULL is, for a value of which it does so. A join by ``<=>`` prunes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.execution import NO_PRUNING_KEY, LeafPruning, RowFilter
from pennon.plan import Column, Group, Join, Limit, Scan, Side
from pennon.pushdown.partners import (
    input_of,
    other_side,
    ruled_out_by,
    ruled_out_columns,
    scan_columns,
)
from pennon.spec.partition_spec import leaf_prefix
from pennon.transforms.murmur3 import is_hashable, murmur3

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pennon.plan import Plan
    from pennon.pushdown.division import Division
    from pennon.pushdown.partners import Restriction
    from pennon.pushdown.query import FragmentQuery
    from pennon.spec.functions import SpecFunction

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
    """Leaves of a relation that the values of a replicated part rule out.

    Args:
        pruning: What tasks do, without the keys of their leaves.
        spec_version: Version of the spec that the leaves are of.
        function: The function of that spec, which each leaf has one value of.
    """

    pruning: LeafPruning
    spec_version: int
    function: SpecFunction

    def keys(self, leaves: pa.Table) -> pa.Array:
        """Compute for each leaf what it is found by: int64, NULL where its value is."""
        keys = murmur3(self.function.values(leaves)).cast(pa.int64())
        names = leaves.column("object_id").combine_chunks()
        return pc.if_else(
            pc.starts_with(names, leaf_prefix(self.spec_version)), keys, NO_PRUNING_KEY
        )


def runtime_prunings(plan: Plan, query: FragmentQuery) -> tuple[RuntimePruning, ...]:
    """List what the replicated parts of a query rule out.

    Args:
        plan: The whole query.
        query: That of a fragment.
    """
    prunings = (
        RuntimePruning(
            LeafPruning(query.scans.index(scan), number, columns, function.grouping.transform),
            version,
            function,
        )
        for number, part in enumerate(query.parts)
        for columns, scan, version, function in _of_part(
            plan, part, {other.root for other in query.parts}
        )
        # A part that restricts an aggregate stands beside other scans in the plan.
        if scan in query.scans
    )
    return tuple(dict.fromkeys(prunings))


def row_filters(
    plan: Plan, query: FragmentQuery, restriction: Restriction | None = None
) -> tuple[RowFilter, ...]:
    """List what the replicated parts of a query may leave of the rows of its scans.

    Args:
        plan: The whole query.
        query: That of a fragment.
        restriction: Which groups of its uppermost aggregate are computed.
    """
    roots = {part.root for part in query.parts}
    filters: list[RowFilter] = []
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
                and name in part.select.schema.names
                and part.select.schema.field(name).type == column.type
                and _is_filtered_by(plan, scan, column)
            ):
                relation = query.scans.index(scan)
                filters.append(RowFilter(relation, column.name, number, name, rows))
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
) -> Iterator[tuple[tuple[str, ...], int, int, SpecFunction]]:
    compared = ruled_out_by(plan, part.root, part.columns, parts)
    for attributes, scan, version, function in _functions_of(plan, compared):
        names = tuple(f"c{attribute}" for attribute in attributes)
        types = dict(zip(part.select.schema.names, part.select.schema.types, strict=True))
        if function.grouping.source_types == tuple(map(types.get, names)):
            yield names, scan, version, function


def _prunes(division: Division, join: Join, side: Side, chosen: Collection[int]) -> bool:
    """Whether what is left of the other side may have values of some leaves only."""
    rows = division.sizes[input_of(join, other_side(side))].rows
    compared = ruled_out_columns(division.plan, join, side, chosen)
    buckets = (
        function.grouping.transform.buckets
        for *_, function in _functions_of(division.plan, compared)
    )
    return any(count is None or rows <= count * _ROWS_OF_A_BUCKET for count in buckets)


def _functions_of(
    plan: Plan, compared: Iterable[tuple[int, int, Column]]
) -> Iterator[tuple[tuple[int, ...], int, int, SpecFunction]]:
    """List the functions, of which all columns are compared, that leaves have one value of.

    A row of a scan stands across one join from what it is compared with, so that all of its
    columns are compared with those of one row.

    Args:
        plan: The query.
        compared: An attribute of the other side, the position of a scan, and the column there.

    Yields:
        The attributes in the order of the function's columns, the scan, and a function of one of
        the specs that its leaves are of, with that spec's version.
    """
    by_scan: dict[int, list[tuple[int, Column]]] = {}
    for attribute, position, column in compared:
        by_scan.setdefault(position, []).append((attribute, column))
    for position, pairs in by_scan.items():
        scan = plan[position]
        if not isinstance(scan, Scan) or scan.layout is None:
            continue
        for version, function in scan.layout.spec_functions():
            grouping = function.grouping
            if not grouping.is_constant_for_spark or not is_hashable(grouping.value_type):
                continue
            sources = zip(function.source_ids, grouping.source_types, strict=True)
            choices = [
                [
                    attribute
                    for attribute, column in pairs
                    if column.type == data_type and column.id in scan.attributes.get(source, ())
                ]
                for source, data_type in sources
            ]
            for attributes in product(*choices):
                yield attributes, position, version, function


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
    """List what a part rules out that says which groups of an aggregate are needed."""
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
