"""``readable_metrics``: column statistics of a partition or file, as Iceberg shows them.

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

__all__ = ["READABLE_METRICS", "metrics_field", "metrics_of_parts", "readable_metrics"]

READABLE_METRICS: Final = "readable_metrics"


def metrics_field(snapshot: Snapshot) -> list[pa.Field]:
    """Give the column, or nothing where no column of the table can be counted."""
    columns = [
        pa.field(name, _of_column(kind)) for name, (_, kind) in _counted_columns(snapshot).items()
    ]
    return [pa.field(READABLE_METRICS, pa.struct(columns))] if columns else []


def readable_metrics(snapshot: Snapshot, leaves: pa.Table) -> pa.StructArray:
    """Give the metrics of partitions.

    Args:
        snapshot: The namespace.
        leaves: Rows of ``Snapshot.leaves``, with what ``column_bounds.BESIDE`` names.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema" (metadata).
    """
    columns = _counted_columns(snapshot)
    bounds = column_bounds(snapshot, leaves, dict(columns.values()))
    rows = leaves["num_rows"].combine_chunks()
    metrics = [
        _metrics(bounds[number], rows)
        if number in bounds
        else pa.nulls(leaves.num_rows, _of_column(kind))
        for number, kind in columns.values()
    ]
    fields = [pa.field(name, metric.type) for name, metric in zip(columns, metrics, strict=True)]
    return pa.StructArray.from_arrays(metrics, fields=fields)


def metrics_of_parts(
    metrics: pa.StructArray, num_rows: pa.ChunkedArray, is_whole: pa.Array
) -> pa.StructArray:
    """Give the metrics of parts of leaves by those of the leaves.

    Args:
        metrics: Of the leaf that each part is of.
        num_rows: Rows of each part, where they are known.
        is_whole: Whether the part is all of its leaf; else its NULLs are not known, and its bounds
            are those of the leaf.

    Example:
        >>> kind = _of_column(pa.int32())
        >>> one = {"value_count": 9, "null_value_count": 2, "lower_bound": 1, "upper_bound": 5}
        >>> leaves = pa.array([{"n": one}], pa.struct({"n": kind}))
        >>> metrics_of_parts(leaves, pa.chunked_array([[4]]), pa.array([False]))[0]["n"].as_py()
        {'value_count': 4, 'null_value_count': None, 'lower_bound': 1, 'upper_bound': 5}
    """
    rows = num_rows.combine_chunks().cast(pa.int64())
    nothing = pa.scalar(None, pa.int64())
    columns = []
    for field in metrics.type:
        column = metrics.field(field.name)
        nulls = pc.if_else(is_whole, column.field("null_value_count"), nothing)
        parts = [rows, nulls, column.field("lower_bound"), column.field("upper_bound")]
        columns.append(
            pa.StructArray.from_arrays(parts, fields=list(field.type), mask=pc.is_null(column))
        )
    return pa.StructArray.from_arrays(columns, fields=list(metrics.type))


def _counted_columns(snapshot: Snapshot) -> dict[str, tuple[int, pa.DataType]]:
    return {
        ".".join(field.path): (field.id, field.field.type)
        for field in snapshot.schema.fields
        if is_counted_type(field.field.type)
    }


def _of_column(data_type: pa.DataType) -> pa.DataType:
    counts = {"value_count": pa.int64(), "null_value_count": pa.int64()}
    return pa.struct({**counts, "lower_bound": data_type, "upper_bound": data_type})


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
