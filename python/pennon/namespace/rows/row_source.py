"""Converts what a caller passes as rows into batches: a table, a reader, batches, a data frame.

Lance takes decimals at addresses that are multiples of 16 alone, and ends in a panic at others.
Arrow streams, as ``DataFrame.toArrow()`` of Spark reads one, place them at multiples of 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from pennon.errors import RowsNotUnderstood
from pennon.namespace.rows.row_scan import Scan
from pennon.namespace.rows.rows_of_dicts import table_of
from pennon.namespace.rows.rows_of_pandas import table_of_frame
from pennon.spec.schema import NamespaceSchema

__all__ = ["batches_of"]

_ALIGNMENT: Final = 16


def batches_of(rows: object, columns: NamespaceSchema | None = None) -> Iterator[pa.RecordBatch]:
    """Give rows as record batches, one at a time.

    Args:
        rows: A ``pyarrow`` table, record batch, reader or dataset; a data frame of pandas or
            Polars, a relation of DuckDB, or whatever else speaks Arrow's C stream interface; a
            list of dicts; or an iterable of tables and record batches.
        columns: Those of the table that the rows are for: where they are known, a dict within
            a row can be a map; it is a struct else.

    Raises:
        RowsNotUnderstood: It is none of these.
        ValuesNotUnderstood: Values of a key of the dicts, or of a column of pandas, are of no one
            type.

    Example:
        >>> [batch.num_rows for batch in batches_of([{"id": 1}, {"id": 2}])]
        [2]
    """
    return map(_aligned, _given(rows, columns))


def _given(rows: object, columns: NamespaceSchema | None) -> Iterator[pa.RecordBatch]:
    if isinstance(rows, pa.RecordBatch):
        return iter([rows])
    if isinstance(rows, pa.Table):
        return iter(rows.to_batches())
    if isinstance(rows, pa.RecordBatchReader):
        return iter(rows)
    if _is_pandas(rows):
        return iter(table_of_frame(rows, columns).to_batches())
    if isinstance(rows, Scan):  # whose failures come through a stream of Arrow as texts alone
        return rows.to_batches()
    if hasattr(rows, "__arrow_c_stream__"):
        return iter(pa.RecordBatchReader.from_stream(rows))
    if hasattr(rows, "to_batches"):  # a dataset or a scanner of pyarrow, a dataset of Lance
        return iter(rows.to_batches())
    if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise _refused(rows)
    if isinstance(rows, Sequence) and rows and all(isinstance(row, Mapping) for row in rows):
        return iter(table_of(rows, columns).to_batches())
    return _several(rows, columns)


def _several(parts: Iterable[object], columns: NamespaceSchema | None) -> Iterator[pa.RecordBatch]:
    for part in parts:
        if not isinstance(part, pa.RecordBatch | pa.Table):
            raise _refused(part)
        yield from _given(part, columns)


def _aligned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Copy a batch whose decimals are not at addresses that Lance takes."""
    if not any(map(_is_unaligned, batch.columns)):
        return batch
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    options = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
    return pa.ipc.open_stream(sink.getvalue(), options=options).read_next_batch()


def _is_unaligned(column: pa.Array) -> bool:
    return _has_decimals(column.type) and any(
        buffer is not None and buffer.address % _ALIGNMENT for buffer in column.buffers()
    )


def _has_decimals(data_type: pa.DataType) -> bool:
    return pa.types.is_decimal(data_type) or any(
        _has_decimals(data_type.field(at).type) for at in range(data_type.num_fields)
    )


def _is_pandas(rows: Any) -> bool:
    kind = type(rows)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _refused(rows: object) -> RowsNotUnderstood:
    kind = type(rows)
    return RowsNotUnderstood(type=f"{kind.__module__}.{kind.__qualname__}")
