"""Columns and a filter of one leaf as a stream of Arrow batches of exactly the wanted schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import lance
    import pyarrow as pa

__all__ = ["DEFAULT_BATCH_SIZE", "scan_leaf"]

DEFAULT_BATCH_SIZE = 16_384


def scan_leaf(
    dataset: lance.LanceDataset,
    schema: pa.Schema,
    filter_sql: str | None = None,
    *,
    namespace_schema: pa.Schema | None = None,
    batch_size: int = DEFAULT_BATCH_SIZE,
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a leaf in the wanted schema (``schema`` may have no column: row counts only).

    ``namespace_schema`` is needed only where the filter names columns that ``schema`` does not have.
    """
    raise NotImplementedError
