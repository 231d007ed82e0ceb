"""``readable_metrics``: what is known of the columns of each partition, as Iceberg shows it.

A struct with a struct per column that can be counted, fields of structs by their dotted names:
``value_count`` (NULLs among them), ``null_value_count``, ``lower_bound``, ``upper_bound``.

NULL rules: a column of which nothing is known at the version that is read is NULL. Counts are NULL
where rows went since they were counted; the bounds of these still hold. Bounds of long texts are
cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.column_bounds import column_bounds
from pennon.manifest.format.column_statistics import is_counted_type

if TYPE_CHECKING:
    from pennon.manifest import Snapshot
    from pennon.manifest.statistics_texts import ColumnBounds

__all__ = ["READABLE_METRICS", "metrics_field", "readable_metrics"]

READABLE_METRICS: Final = "readable_metrics"


def metrics_field(snapshot: Snapshot) -> list[pa.Field]:
    """Give the column, or nothing where no column of the table can be counted."""
    columns = [
        pa.field(name, _of_column(kind)) for name, (_, kind) in _counted_columns(snapshot).items()
    ]
    return [pa.field(READABLE_METRICS, pa.struct(columns))] if columns else []


def readable_metrics(snapshot: Snapshot, leaves: pa.Table) -> pa.Array:
    """Give the metrics of partitions.

    Args:
        snapshot: The namespace.
        leaves: Rows of ``Snapshot.leaves``, with what ``column_bounds.BESIDE`` names.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema" (metadata).
    """
    columns = _counted_columns(snapshot)
    known = column_bounds(snapshot, leaves, dict(columns.values()))
    rows = leaves["num_rows"].combine_chunks()
    metrics = [
        _metrics(known[number], rows)
        if number in known
        else pa.nulls(leaves.num_rows, _of_column(kind))
        for number, kind in columns.values()
    ]
    fields = [pa.field(name, each.type) for name, each in zip(columns, metrics, strict=True)]
    return pa.StructArray.from_arrays(metrics, fields=fields)


def _counted_columns(snapshot: Snapshot) -> dict[str, tuple[int, pa.DataType]]:
    return {
        ".".join(each.path): (each.id, each.field.type)
        for each in snapshot.schema.fields
        if is_counted_type(each.field.type)
    }


def _of_column(kind: pa.DataType) -> pa.DataType:
    counts = {"value_count": pa.int64(), "null_value_count": pa.int64()}
    return pa.struct({**counts, "lower_bound": kind, "upper_bound": kind})


def _metrics(bounds: ColumnBounds, rows: pa.Array) -> pa.Array:
    is_counted = pc.is_valid(bounds.null_count)
    is_counted = pc.and_(is_counted, bounds.is_exact)
    nothing = pa.scalar(None, pa.int64())
    kind = _of_column(bounds.lower.type)
    return pa.StructArray.from_arrays(
        [
            rows.cast(pa.int64()),
            pc.if_else(is_counted, bounds.null_count, nothing),
            bounds.lower,
            bounds.upper,
        ],
        fields=list(kind),
        mask=pc.invert(bounds.is_known),
    )
