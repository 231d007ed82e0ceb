"""Divides the chosen partitions of an ungrouped scan into splits.

Small leaves are read by one task one after the other, and a large leaf by several tasks, fragment
by fragment: as many tasks as there are cores to keep busy, and not one for each of a thousand
small leaves. Where a partitioning is reported, Spark puts the pieces of a key together instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.planning.scan_plan import plan_scan
from pennon.predicate.normalize import normalize
from pennon.predicate.parse import readable_predicates
from pennon.predicate.values.literals import LiteralList, to_expression

if TYPE_CHECKING:
    import numpy.typing as npt

    from pennon.leaf.read.row_keys import RowKeys
    from pennon.planning.scan_plan import ScanPlan

    Numbers = npt.NDArray[np.int64]

# Prunes a finished plan again by values that the query finds while it runs.
#
# A runtime filter may only drop partitions: what is kept stays in the order of the plan, under its
# residual filters. NULL rules are those of any predicate; a filter that prunes nothing keeps all.

# Of more values only their range decides: each costs a hash under each partition spec.
_MOST_VALUES: Final = 10_000


def filter_columns(
    plan: ScanPlan, columns: Sequence[str], *, is_row_change: bool = False
) -> tuple[str, ...]:
    """Name the columns whose values, found while the query runs, can drop partitions.

    These are the sources of all partition fields, whatever their transform: a function of several
    columns prunes when all of them are bound. Nested sources are left out, for Spark filters by
    whole columns.

    Of a scan whose rows are changed Spark collects the values that match, by a join of its own
    before the statement's. That pays for columns with few values, as those are that partitions
    have as they stand, and not for a column that partitions have the bucket or the month of. NULL
    is one of these values where a row of NULL matches, and comes as ``column IS NULL``.

    Args:
        plan: The chosen partitions; one is not worth a filter.
        columns: Top-level columns that the scan gives.
        is_row_change: Whether a statement changes the rows of the scan.

    Returns:
        Names among ``columns``, in the order of the specs.

    Spec: "Partition Pruning".
    """
    if plan.table.num_rows <= 1:
        return ()
    names = {
        field.id: field.path[0] for field in plan.snapshot.schema.fields if len(field.path) == 1
    }

    sources = [
        names[source]
        for _, spec in sorted(plan.snapshot.specs.items(), reverse=True)
        for field in spec.fields
        if not is_row_change or field.derivation.is_identity
        for source in field.source_ids
        if source in names
    ]
    given = set(columns)
    return tuple(name for name in dict.fromkeys(sources) if name in given)


def filtered(
    plan: ScanPlan, predicates: Sequence[str], keys: Sequence[RowKeys], time_zone: str
) -> ScanPlan:
    """Keep the partitions of a plan that can have a row under filters found while a query runs.

    Args:
        plan: The plan.
        predicates: Spark SQL texts: those that it was made with, and those that were found.
        keys: What else was found, each of another column.
        time_zone: That of the session.

    Returns:
        The plan with fewer partitions, in their order and with their residual filters.
    """
    conditions = [_condition(plan, one) for one in keys]
    possible = (
        plan_scan(
            plan.snapshot,
            [*readable_predicates(predicates), *(one for one in conditions if one is not None)],
            time_zone=time_zone,
            with_metadata=True,
        )
        .table["object_id"]
        .combine_chunks()
    )
    return replace(plan, table=plan.table.filter(pc.is_in(plan.table["object_id"], possible)))


def _condition(plan: ScanPlan, keys: RowKeys) -> exp.Expression | None:
    """Write that a row has one of the keys; None where they cannot be compared."""
    schema = plan.snapshot.schema.arrow
    is_own = keys.column in schema.names  # and no metadata column
    values = keys.values(schema.field(keys.column).type) if is_own else None
    if values is None:
        return None
    column = exp.column(exp.to_identifier(keys.column, quoted=True))
    condition: exp.Expression = exp.false()
    if 0 < len(values) <= _MOST_VALUES:
        condition = exp.In(this=column, field=LiteralList.of(tuple(values.unique())))
    elif len(values):
        extremes = pc.min_max(values)
        least, greatest = to_expression(extremes["min"]), to_expression(extremes["max"])
        condition = exp.Between(this=column, low=least, high=greatest)
    if keys.has_null:
        is_null = exp.Is(this=column.copy(), expression=exp.Null())
        condition = exp.Or(this=condition, expression=is_null)
    return normalize(condition)


# What opening a leaf costs, in bytes that could be read in the time.
OPEN_COST_BYTES: Final = 1 << 20


ASSIGNED: Final = pa.schema(
    {
        "scan": pa.int32(),
        "key": pa.int64(),
        "leaf": pa.int32(),
        "first_fragment": pa.int32(),
        "end_fragment": pa.int32(),
    }
)
"""What tasks read: one row per scan, key (the task) and leaf or range of a leaf's fragments.

Scan and leaf are positions, in the plan's nodes and in the scan's chosen partitions, the leaf NULL
where there is nothing to read; fragments are the first and the one after the last, by position,
NULL for the whole leaf.
"""


def assigned(
    scan: int, keys: Numbers, leaves: Numbers, fragments: pa.Table | None = None
) -> pa.Table:
    """Make rows of ``ASSIGNED``.

    Args:
        scan: Position of the scan.
        keys: The key of each row.
        leaves: The leaf of each row.
        fragments: The ``first_fragment`` and ``end_fragment`` of each row; None for whole leaves.
    """
    whole = pa.nulls(len(leaves), pa.int32())
    ends = ("first_fragment", "end_fragment")
    first, end = (whole if fragments is None else fragments[name] for name in ends)
    scans = pa.array(np.full(len(leaves), scan, np.int32))
    columns = [scans, pa.array(keys, pa.int64()), pa.array(leaves.astype(np.int32)), first, end]
    return pa.table(columns, schema=ASSIGNED)


def leaf_pieces(leaves: Numbers, sizes: Numbers, counts: Numbers, piece_bytes: int) -> pa.Table:
    """Cut leaves into ranges of fragments of about the same size.

    Args:
        leaves: Their positions.
        sizes: Bytes of each; 0 where they are not known.
        counts: Fragments of each, at least one.
        piece_bytes: What a range should have.

    Returns:
        Columns ``leaf``, ``first_fragment``, ``end_fragment`` (NULL for a whole leaf) and
        ``num_bytes``, the range's share, in the order of the leaves.

    Example:
        >>> one = leaf_pieces(*map(np.array, ([7], [200], [3])), piece_bytes=100)
        >>> one["first_fragment"].to_pylist(), one["end_fragment"].to_pylist()
        ([0, 1], [1, 3])
    """
    parts = np.maximum(1, np.minimum(counts, -(-sizes // piece_bytes)))
    at = np.repeat(np.arange(len(leaves)), parts)
    number = np.arange(len(at)) - np.repeat(np.cumsum(parts) - parts, parts)
    first, end = (
        pa.array((counts[at] * ordinal // parts[at]).astype(np.int32), mask=parts[at] == 1)
        for ordinal in (number, number + 1)
    )
    leaf, num_bytes = pa.array(leaves[at]), pa.array(sizes[at] // parts[at])
    columns = {"leaf": leaf, "first_fragment": first, "end_fragment": end, "num_bytes": num_bytes}
    return pa.table(columns)


def pack(plan: ScanPlan, num_tasks: int, max_bytes: int) -> pa.Table:
    """Pack the leaves of a plan into tasks of about the same size, in their order.

    Args:
        plan: The chosen partitions; one without statistics counts as its opening only.
        num_tasks: How many tasks can run at once.
        max_bytes: The most that one task should read.

    Returns:
        What each task reads (``ASSIGNED``), tasks numbered from 0; the scan is 0.
    """
    sizes, counts = (
        pc.fill_null(plan.table[name], unknown).to_numpy().astype(np.int64)
        for name, unknown in (("num_bytes", 0), ("num_fragments", 1))
    )
    total = int(sizes.sum()) + OPEN_COST_BYTES * len(sizes)
    # As many as run at once, or a multiple of it: the last of one more would run alone.
    at_once = max(1, num_tasks)
    num_tasks = at_once * max(1, -(-total // (at_once * max_bytes)))
    target_bytes = min(max_bytes, max(OPEN_COST_BYTES, -(-total // num_tasks)))
    pieces = leaf_pieces(np.arange(len(sizes)), sizes, np.maximum(1, counts), target_bytes)
    costs = pieces["num_bytes"].to_numpy() + OPEN_COST_BYTES
    tasks = _evenly(costs, min(num_tasks, -(-total // OPEN_COST_BYTES)))
    if np.bincount(tasks, costs).max(initial=0) > max_bytes:
        tasks = _filled(costs, target_bytes)
    return assigned(0, tasks, pieces["leaf"].to_numpy(), pieces)


def _evenly(costs: Numbers, num_tasks: int) -> Numbers:
    """Divide pieces among a number of tasks, by what is read before the middle of each."""
    share = costs.sum() / max(1, num_tasks)
    middles = np.cumsum(costs) - costs / 2
    return np.unique((middles / share).astype(np.int64), return_inverse=True)[1]


def _filled(costs: Numbers, target_bytes: int) -> Numbers:
    """Fill one task after the other."""
    tasks: list[int] = []
    task, filled = -1, target_bytes
    for cost in costs.tolist():
        if filled + cost > target_bytes:
            task, filled = task + 1, 0
        tasks.append(task)
        filled += cost
    return np.array(tasks, np.int64)
