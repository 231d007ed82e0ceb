"""The modes of a write: append, overwrite, delete, update, merge."""

from __future__ import annotations

from collections.abc import Sequence
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

    def described(self, table: str, predicates: Sequence[str]) -> str:
        """What EXPLAIN says of a write.

        Example:
            >>> WriteMode.OVERWRITE.described("lance.shop.orders", ["id = 1"])
            'overwrite lance.shop.orders where id = 1'
        """
        match self:
            case WriteMode.APPEND:
                return f"append to {table}"
            case WriteMode.OVERWRITE:
                return f"overwrite {table} where {' AND '.join(predicates)}"
            case WriteMode.OVERWRITE_PARTITIONS:
                return f"overwrite partitions of {table}"
        return f"{self} rows of {table}"
