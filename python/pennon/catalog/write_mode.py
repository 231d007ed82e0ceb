"""The modes of a write: append, overwrite, delete, update, merge."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["WriteMode"]


class WriteMode(StrEnum):
    """What a write does with the rows that are there."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    """Rows that satisfy the write's condition go; without one, all."""
    OVERWRITE_PARTITIONS = "overwrite_partitions"
    """The partitions go into which the write has rows."""
    DELETE = "delete"
    """Single rows go."""
    UPDATE = "update"
    """Single rows go, and others come for them."""
    MERGE = "merge"
    """Single rows go, and others come."""

    @property
    def is_row_level(self) -> bool:
        """Whether single rows go, named by their ids."""
        return self in (WriteMode.DELETE, WriteMode.UPDATE, WriteMode.MERGE)
