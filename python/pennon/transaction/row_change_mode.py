"""The table properties ``write.delete.mode``, ``write.update.mode`` and ``write.merge.mode``.

They are Iceberg's. Rows are changed by merge on read: marked as gone in their fragments, and
written anew beside them. ``copy-on-write`` is refused where it is set, as a table that took it
would be merged on read all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import RowChangeModeRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_row_change_modes"]

_MERGE_ON_READ: Final = "merge-on-read"
_COPY_ON_WRITE: Final = "copy-on-write"
_COMMANDS: Final = ("delete", "update", "merge")


def check_row_change_modes(properties: Mapping[str, str]) -> None:
    """Check how DELETE, UPDATE and MERGE are to change rows, where properties are set.

    Args:
        properties: The table's properties, as they are to be.

    Raises:
        RowChangeModeRefused: A property has another value than ``merge-on-read``.

    Example:
        >>> check_row_change_modes({"write.delete.mode": "Merge-On-Read"})
    """
    for command in _COMMANDS:
        name = f"write.{command}.mode"
        value = properties.get(name, _MERGE_ON_READ)
        if value.lower() == _MERGE_ON_READ:
            continue
        why = f"it is neither '{_MERGE_ON_READ}' nor '{_COPY_ON_WRITE}'"
        if value.lower() == _COPY_ON_WRITE:
            why = "rows that go are marked in their files, which are never copied without them"
        raise RowChangeModeRefused(property=name, value=value, why=why)
