"""The table properties ``write.delete.mode``, ``write.update.mode`` and ``write.merge.mode``.

They are Iceberg's. By ``merge-on-read``, the default, rows that go are marked as gone in their
fragments; by ``copy-on-write`` their fragments are written anew without them, so that no reader
has to leave rows out. New rows are written beside them either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import RowChangeModeRefused
from pennon.settings import ROW_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_row_change_modes", "is_copy_on_write"]

_MERGE_ON_READ: Final = "merge-on-read"
_COPY_ON_WRITE: Final = "copy-on-write"


def is_copy_on_write(properties: Mapping[str, str], command: str | None) -> bool:
    """Whether fragments are copied without the rows that go.

    Args:
        properties: The table's properties.
        command: ``delete``, ``update`` or ``merge``; None where no statement of its own asks.

    Raises:
        RowChangeModeRefused: The property has a value that it cannot have.

    Example:
        >>> is_copy_on_write({"write.merge.mode": "Copy-On-Write"}, "merge")
        True
        >>> is_copy_on_write({"write.merge.mode": "copy-on-write"}, "delete")
        False
    """
    name = f"write.{command}.mode"
    value = properties.get(name, _MERGE_ON_READ)
    if command not in ROW_COMMANDS or value.lower() == _MERGE_ON_READ:
        return False
    if value.lower() == _COPY_ON_WRITE:
        return True
    raise RowChangeModeRefused(property=name, value=value)


def check_row_change_modes(properties: Mapping[str, str]) -> None:
    """Check how DELETE, UPDATE and MERGE are to change rows, where properties are set.

    Args:
        properties: The table's properties, as they are to be.

    Raises:
        RowChangeModeRefused: A property has a value that it cannot have.

    Example:
        >>> check_row_change_modes({"write.delete.mode": "Merge-On-Read"})
    """
    for command in ROW_COMMANDS:
        is_copy_on_write(properties, command)
