"""Fetches the rows of a large leaf that have a key: the key's column first, the others of few rows.

Of a leaf where more than a few rows have one, the rest is not fetched row by row, but all is read.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.leaf.read.metadata_columns import ROW_ID
from pennon.manifest.dataset.rows_by_id import rows_by_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import lance

    from pennon.leaf.read.leaf_view import LeafView
    from pennon.leaf.read.row_keys import RowKeys

__all__ = ["keyed_column", "keyed_rows"]

_LEAST_ROWS: Final = 1 << 15
_ROWS_OF_ONE: Final = 16
_FETCHED_ROWS: Final = 1 << 14


def keyed_column(dataset: lance.LanceDataset, view: LeafView, keys: RowKeys) -> str | None:
    """Name the leaf's own column that keys are looked up in before the others are read.

    Args:
        dataset: The leaf.
        view: What is requested of it.
        keys: The keys.

    Returns:
        None where the leaf is small, has the column in another type, or has columns that are not
        fetched row by row.
    """
    if dataset.count_rows() < _LEAST_ROWS or not view.is_of_plain_columns:
        return None
    for match in view.matches:
        stored = match.stored
        if match.expected.name == keys.column and stored is not None:
            return stored.name if stored.arrow.type == match.expected.type else None
    return None


def keyed_rows(
    matching: Iterator[pa.RecordBatch],
    dataset: lance.LanceDataset,
    names: Sequence[str],
    num_rows: int,
) -> Iterator[pa.RecordBatch] | None:
    """Fetch the rows that were found to have a key.

    Args:
        matching: Their ids, of a scan that is let go of when they are too many.
        dataset: The leaf at the version to read.
        names: The columns to fetch, Lance's own among them.
        num_rows: Of how many rows they were found.

    Returns:
        None where they are more than a few.
    """
    held: list[pa.Array] = []
    num_matching = 0
    for batch in matching:
        held.append(batch.column(ROW_ID.name))
        num_matching += batch.num_rows
        if num_matching * _ROWS_OF_ONE > num_rows:
            return None
    ids = list(chain.from_iterable(array.to_pylist() for array in held))
    return _fetched(dataset, list(names), ids)


def _fetched(
    dataset: lance.LanceDataset, names: list[str], ids: list[int]
) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(ids), _FETCHED_ROWS):
        rows = rows_by_id(dataset, ids[first : first + _FETCHED_ROWS], names)
        yield from rows.combine_chunks().to_batches()
