"""Metadata columns: what tells one row of a table from all others, beside the table's own columns.

A row is named by its leaf, the leaf's version, and its address there (fragment and offset). The
name holds for that version alone: a compaction gives a row another address. A column of the table
that has such a name hides the metadata column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    import lance

__all__ = [
    "LEAF",
    "LEAF_VERSION",
    "METADATA_COLUMNS",
    "ROW_ADDRESS",
    "ROW_ID_COLUMNS",
    "is_metadata_column",
    "metadata_array",
]

_MARK: Final = b"pennon:metadata_column"


def _column(name: str, data_type: pa.DataType, comment: str) -> pa.Field:
    return pa.field(
        name, data_type, nullable=False, metadata={_MARK: b"true", b"comment": comment.encode()}
    )


LEAF: Final = _column("_leaf", pa.utf8(), "The location of the leaf that the row is in.")
LEAF_VERSION: Final = _column("_leaf_version", pa.int64(), "The Lance version of the leaf.")
ROW_ADDRESS: Final = _column("_rowaddr", pa.int64(), "The row's fragment and offset in the leaf.")
ROW_ID: Final = _column("_rowid", pa.int64(), "Lance's id of the row; stable where the leaf's are.")
METADATA_COLUMNS: Final = (LEAF, LEAF_VERSION, ROW_ADDRESS, ROW_ID)
# These together name one row of a table.
ROW_ID_COLUMNS: Final = (LEAF.name, LEAF_VERSION.name, ROW_ADDRESS.name)
_OF_LANCE: Final = (ROW_ADDRESS.name, ROW_ID.name)


def is_metadata_column(column: pa.Field) -> bool:
    """Whether a wanted column is one of these, and not one of the table's.

    Example:
        >>> is_metadata_column(LEAF), is_metadata_column(pa.field("_leaf", pa.utf8()))
        (True, False)
    """
    return _MARK in (column.metadata or {})


def is_read_by_name(column: pa.Field) -> bool:
    """Whether Lance gives the metadata column when it is asked for it by its name."""
    return column.name in _OF_LANCE


def metadata_array(
    column: pa.Field, batch: pa.RecordBatch, dataset: lance.LanceDataset, location: str
) -> pa.Array:
    """Give a metadata column of the rows of a batch.

    Args:
        column: Which one.
        batch: Rows as Lance gives them, with those columns that it gives by name.
        dataset: The leaf.
        location: The leaf's location in its table.
    """
    if is_read_by_name(column):
        return batch.column(column.name).cast(column.type)
    if column.name == LEAF.name:
        return pa.repeat(pa.scalar(location, column.type), batch.num_rows)
    # Detached versions have the highest bit: the same 64 bits, read with a sign.
    signed = dataset.version - (1 << 64) if dataset.version >= 1 << 63 else dataset.version
    return pa.repeat(pa.scalar(signed, column.type), batch.num_rows)
