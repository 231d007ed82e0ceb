"""The exact column statistics in the manifest that can answer aggregates: extremes, NULL counts.

They stand for the rows where they were counted of the very rows that are there, in every partition
that counts. Bounds of floats do not distinguish the zeros, nor do they tell what is beside a NaN:
a zero is no extreme, and where a column has a NaN its bounds are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.column_bounds import column_bounds
from pennon.manifest.format.column_statistics import is_counted_type
from pennon.planning.reports.leaf_statistics import with_statistics
from pennon.predicate.typed import is_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.plan import Column
    from pennon.planning import ScanPlan

__all__ = ["counted_names", "counted_values"]


def counted_names(attribute: int) -> tuple[str, str, str]:
    """Name the statistics of a column: its least value, its greatest, how many are not NULL.

    Example:
        >>> counted_names(7)
        ('least7', 'most7', 'values7')
    """
    return f"least{attribute}", f"most{attribute}", f"values{attribute}"


def counted_values(
    plan: ScanPlan, table: pa.Table, columns: Sequence[Column], ids: Mapping[str, int]
) -> dict[str, pa.ChunkedArray]:
    """Give the extremes of columns and how many values they have in each of some partitions.

    Args:
        plan: What a scan reads.
        table: Rows of its partitions, those that have rows.
        columns: Columns that the scan gives.
        ids: The ids of the table's columns by name.

    Returns:
        What ``counted_names`` names, by the columns' attributes, the extremes in their types; for
        the columns of which every partition has exact statistics. Extremes that bounds do not tell
        are left out.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema" (metadata).
    """
    types = {field.id: field.field.type for field in plan.snapshot.schema.fields}
    counted = {
        ids[column.name]: column
        for column in columns
        if column.name in ids and column.type is not None and _has_bounds(column, types, ids)
    }
    if not counted or not table.num_rows:
        return {}
    leaves = with_statistics(plan, table)
    if leaves is None:
        return {}
    answers: dict[str, pa.ChunkedArray] = {}
    for number, bounds in column_bounds(
        plan.snapshot, leaves, {number: types[number] for number in counted}
    ).items():
        if not pc.all(pc.and_(bounds.is_known, bounds.is_exact)).as_py():
            continue
        column = counted[number]
        least, most, values = counted_names(column.id)
        for name, extremes in ((least, bounds.lower), (most, bounds.upper)):
            if not bounds.has_nan and not _has_zero(extremes):
                answers[name] = pa.chunked_array([extremes.cast(column.type)])
        answers[values] = pc.subtract(table["num_rows"], bounds.null_count)
    return answers


def _has_zero(extremes: pa.Array) -> bool:
    """Whether a bound of floats is a zero, of whichever sign."""
    if not pa.types.is_floating(extremes.type):
        return False
    return bool(pc.any(pc.equal(extremes, 0.0), min_count=0).as_py())


def _has_bounds(column: Column, types: Mapping[int, pa.DataType], ids: Mapping[str, int]) -> bool:
    """Whether a column is of a type whose bounds are its values, as Spark has them, too."""
    kind = types[ids[column.name]]
    if column.type is None or not is_plain(column.type) or not is_counted_type(kind):
        return False
    is_alike = kind.equals(column.type) or pa.types.is_string(column.type)
    return is_alike and not pa.types.is_boolean(kind)
