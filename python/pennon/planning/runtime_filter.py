"""Prunes a finished plan again by values that the query finds while it runs.

A runtime filter may only drop partitions: what is kept stays in the order of the plan, under its
residual filters. NULL rules are those of any predicate; a filter that prunes nothing keeps all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc
from sqlglot import exp

from pennon.planning.scan_plan import plan_scan
from pennon.predicate.normalize import normalize
from pennon.predicate.parse import readable_predicates
from pennon.predicate.values.literal_list import LiteralList
from pennon.predicate.values.literals import to_expression

if TYPE_CHECKING:
    from pennon.leaf.read.row_keys import RowKeys
    from pennon.planning.scan_plan import ScanPlan

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
