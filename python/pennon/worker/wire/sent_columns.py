"""Columns as they go to Spark: without metadata, and short decimals as their unscaled BIGINT.

Arrow holds sixteen bytes of any decimal; Spark holds eight of one of up to 18 digits, as Parquet
does. Those eight are the lower half of Arrow's, and the upper half need not pass the socket.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.spec.schema import children_of, with_children
from pennon.transforms.evaluation.source_array import INT64_DIGITS, low_halves


def sent_schema(schema: pa.Schema) -> pa.Schema:
    """Give the schema in which rows of ``schema`` are sent to a task.

    Example:
        >>> sent_schema(pa.schema([("a", pa.decimal128(12, 2)), ("b", pa.decimal128(19, 2))])).types
        [DataType(int64), Decimal128Type(decimal128(19, 2))]
    """
    return pa.schema(
        [field.with_type(_sent_type(field.type)).remove_metadata() for field in schema]
    )


def sent_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give rows as a schema has them: their own, or that of :func:`sent_schema`."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        _sent(column, data_type)
        for column, data_type in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def in_nanoseconds(data_type: pa.DataType) -> pa.DataType:
    """Give the only unit in which Spark takes times, whatever their precision, for those of a type.

    Example:
        >>> in_nanoseconds(pa.list_(pa.time32("s")))
        ListType(list<item: time64[ns]>)
    """
    if pa.types.is_time(data_type):
        return pa.time64("ns")
    children = children_of(data_type)
    moved = [child.with_type(in_nanoseconds(child.type)) for child in children]
    return data_type if moved == children else with_children(data_type, moved)


def _sent_type(data_type: pa.DataType) -> pa.DataType:
    return pa.int64() if _is_short(data_type) else in_nanoseconds(data_type)


def _sent(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    if _is_short(column.type) and column.type != data_type:
        return _unscaled(column)
    is_same = column.type == data_type or in_nanoseconds(column.type) == column.type
    return column if is_same else column.cast(data_type)


def _is_short(data_type: pa.DataType) -> bool:
    return pa.types.is_decimal128(data_type) and data_type.precision <= INT64_DIGITS


def _unscaled(column: pa.Array) -> pa.Array:
    if not len(column):  # may have no buffers
        return pa.array([], pa.int64())
    validity = column.buffers()[0]
    first, more = divmod(column.offset, 8)  # bits of validity begin at any row, their bytes do not
    return pa.Array.from_buffers(
        pa.int64(),
        len(column),
        [
            None if validity is None else validity.slice(first),
            pa.py_buffer(np.ascontiguousarray(low_halves(column, more))),
        ],
        column.null_count,
        more,
    )
