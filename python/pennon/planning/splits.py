"""Divides the chosen partitions of an ungrouped scan into splits.

Small leaves are read by one task one after the other, and a large leaf by several tasks, fragment
by fragment: as many tasks as there are cores to keep busy, and not one for each of a thousand
small leaves. Where a partitioning is reported, Spark puts the pieces of a key together instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc
from sqlglot import exp

from pennon.planning.scan_plan import plan_scan
from pennon.predicate.normalize import normalize
from pennon.predicate.parse import readable_predicates
from pennon.predicate.values.literals import LiteralList, to_expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pennon.leaf.read.row_keys import RowKeys
    from pennon.planning.scan_plan import ScanPlan

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


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of the fragments of one leaf.

    Args:
        leaf: Row of the leaf in the plan's table.
        fragments: First fragment and the one after the last, by position; None for all.
        num_bytes: Their share of the leaf's bytes, and what opening it costs.
    """

    leaf: int
    fragments: tuple[int, int] | None
    num_bytes: int


def pack(plan: ScanPlan, num_tasks: int, max_bytes: int) -> list[list[Piece]]:
    """Pack the leaves of a plan into pieces of work of about the same size, in their order.

    Args:
        plan: The chosen partitions; one without statistics counts as its opening only.
        num_tasks: How many tasks can run at once.
        max_bytes: The most that one task should read.
    """
    leaves = plan.table
    sizes = [size or 0 for size in leaves["num_bytes"].to_pylist()]
    total = sum(sizes) + OPEN_COST_BYTES * len(sizes)
    # As many as run at once, or a multiple of it: the last of one more would run alone.
    at_once = max(1, num_tasks)
    num_tasks = at_once * max(1, -(-total // (at_once * max_bytes)))
    target_bytes = min(max_bytes, max(OPEN_COST_BYTES, -(-total // num_tasks)))
    pieces = list(_pieces(leaves, sizes, target_bytes))
    even = _evenly(pieces, min(num_tasks, -(-total // OPEN_COST_BYTES)))
    if all(sum(piece.num_bytes for piece in task) <= max_bytes for task in even):
        return even
    return _filled(pieces, target_bytes)


def _evenly(pieces: Sequence[Piece], num_tasks: int) -> list[list[Piece]]:
    """Divide pieces among a number of tasks, by what is read before the middle of each."""
    share = sum(piece.num_bytes for piece in pieces) / max(1, num_tasks)
    packed: dict[int, list[Piece]] = {}
    read = 0
    for piece in pieces:
        task = int((read + piece.num_bytes / 2) / share)
        packed.setdefault(task, []).append(piece)
        read += piece.num_bytes
    return list(packed.values())


def _filled(pieces: Sequence[Piece], target_bytes: int) -> list[list[Piece]]:
    """Fill one task after the other."""
    packed: list[list[Piece]] = []
    filled = target_bytes
    for piece in pieces:
        if filled + piece.num_bytes > target_bytes:
            packed.append([])
            filled = 0
        packed[-1].append(piece)
        filled += piece.num_bytes
    return packed


def _pieces(leaves: pa.Table, sizes: list[int], target_bytes: int) -> Iterator[Piece]:
    for leaf, (size, count) in enumerate(
        zip(sizes, leaves["num_fragments"].to_pylist(), strict=True)
    ):
        parts = min(count or 1, -(-size // target_bytes)) if size else 1
        if parts <= 1:
            yield Piece(leaf, None, size + OPEN_COST_BYTES)
            continue
        for part in range(parts):
            first, end = count * part // parts, count * (part + 1) // parts
            yield Piece(leaf, (first, end), size // parts + OPEN_COST_BYTES)
