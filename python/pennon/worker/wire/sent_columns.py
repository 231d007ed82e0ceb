"""Columns as they go to Spark: without metadata, and short decimals as their unscaled BIGINT.

Arrow holds sixteen bytes of any decimal; Spark holds eight of one of up to 18 digits, as Parquet
does. Those eight are the lower half of Arrow's, and the upper half need not pass the socket.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.transforms.evaluation.source_array import INT64_DIGITS, low_halves


def sent_schema(schema: pa.Schema) -> pa.Schema:
    """Give the schema in which rows of ``schema`` are sent to a task.

    Example:
        >>> sent_schema(pa.schema([("a", pa.decimal128(12, 2)), ("b", pa.decimal128(19, 2))])).types
        [DataType(int64), Decimal128Type(decimal128(19, 2))]
    """
    return pa.schema(
        [
            field.with_type(pa.int64() if _is_short(field.type) else field.type).remove_metadata()
            for field in schema
        ]
    )


def sent_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give rows as a schema has them: their own, or that of :func:`sent_schema`."""
    shortened = [
        _is_short(kind) and sent != kind
        for kind, sent in zip(batch.schema.types, schema.types, strict=True)
    ]
    if not any(shortened):
        same = batch.schema.equals(schema)
        return batch if same else pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    columns = [
        _unscaled(column) if is_shortened else column
        for column, is_shortened in zip(batch.columns, shortened, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


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
