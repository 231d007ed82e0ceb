"""Rows as a user hands them over: a table, a reader, batches, a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pennon.errors import RowsNotUnderstood

__all__ = ["batches_of"]


def batches_of(rows: object) -> Iterator[pa.RecordBatch]:
    """Give rows as record batches, one at a time.

    Args:
        rows: A ``pyarrow`` table, record batch, reader or dataset; a data frame of pandas or
            Polars, a relation of DuckDB, or whatever else speaks Arrow's C stream interface; a
            list of dicts; or an iterable of tables and record batches.

    Raises:
        RowsNotUnderstood: It is none of these.

    Example:
        >>> [batch.num_rows for batch in batches_of([{"id": 1}, {"id": 2}])]
        [2]
    """
    if isinstance(rows, pa.RecordBatch):
        return iter([rows])
    if isinstance(rows, pa.Table):
        return iter(rows.to_batches())
    if isinstance(rows, pa.RecordBatchReader):
        return iter(rows)
    if _is_pandas(rows):
        return iter(pa.Table.from_pandas(rows, preserve_index=False).to_batches())
    if hasattr(rows, "__arrow_c_stream__"):
        return iter(pa.RecordBatchReader.from_stream(rows))
    if hasattr(rows, "to_batches"):  # a dataset or a scanner of pyarrow, a dataset of Lance
        return iter(rows.to_batches())
    if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise _refused(rows)
    if isinstance(rows, Sequence) and rows and all(isinstance(row, Mapping) for row in rows):
        return iter(pa.Table.from_pylist(list(rows)).to_batches())
    return _several(rows)


def _several(parts: Iterable[object]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        if not isinstance(part, pa.RecordBatch | pa.Table):
            raise _refused(part)
        yield from batches_of(part)


def _is_pandas(rows: Any) -> bool:
    kind = type(rows)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _refused(rows: object) -> RowsNotUnderstood:
    kind = type(rows)
    return RowsNotUnderstood(type=f"{kind.__module__}.{kind.__qualname__}")
