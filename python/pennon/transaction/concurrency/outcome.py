"""The outcomes of a commit, as types to be matched exhaustively.

The table property ``write.isolation``: serializable or snapshot.

``write.delete.isolation-level``, ``write.update.isolation-level`` and
``write.merge.isolation-level``, as Iceberg has them, hold for one statement, and before it.

* ``serializable``: it stands only where no other commit changed anything that its statement read,
  so it is as if it had run alone.
* ``snapshot``: it stands where no other commit changed the rows that it replaces. Rows that others
  append meanwhile are not looked at, so two statements may both insert a key that both missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pennon.errors import RowChangeModeRefused, SnapshotNotFound, UnknownIsolation
from pennon.manifest import Snapshot
from pennon.settings import ISOLATION, ROW_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "SERIALIZABLE",
    "Committed",
    "Conflicted",
    "Outcome",
    "Retryable",
    "check_isolation",
    "check_row_change_modes",
    "is_copy_on_write",
    "isolation",
]

SERIALIZABLE: Final = "serializable"
SNAPSHOT: Final = "snapshot"


def isolation(properties: Mapping[str, str], command: str | None = None) -> str:
    """Read the isolation of a table's row-level changes.

    Args:
        properties: The table's properties.
        command: ``delete``, ``update`` or ``merge``; None where no statement of its own asks.

    Raises:
        UnknownIsolation: The property has another value.

    Example:
        >>> isolation({}), isolation({"write.isolation": "SNAPSHOT"})
        ('serializable', 'snapshot')
        >>> isolation({"write.merge.isolation-level": "snapshot"}, "merge")
        'snapshot'
    """
    own = f"write.{command}.isolation-level"
    name = own if own in properties else ISOLATION.name
    value = properties.get(name, SERIALIZABLE).lower()
    if value not in (SERIALIZABLE, SNAPSHOT):
        raise UnknownIsolation(property=name, value=value)
    return value


def check_isolation(properties: Mapping[str, str]) -> None:
    """Check the isolation of all statements, where properties are set.

    Raises:
        UnknownIsolation: A property has another value.
    """
    for command in (None, *ROW_COMMANDS):
        isolation(properties, command)


# The table properties ``write.delete.mode``, ``write.update.mode`` and ``write.merge.mode``.
#
# They are Iceberg's. By ``merge-on-read``, the default, rows that go are marked as gone in their
# fragments; by ``copy-on-write`` their fragments are written anew without them, so that no reader
# has to leave rows out. New rows are written beside them either way.

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


@dataclass(frozen=True, slots=True)
class Committed:
    """The changes are visible from a version on.

    Nothing is read after the commit: what fails then would report a success as a failure.

    Args:
        version: The version of ``__manifest`` that has the changes.
        base: The snapshot that they were made against.
    """

    version: int
    base: Snapshot = field(repr=False)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot with the changes, opened when asked for.

        Where its version has expired meanwhile it is the newest one, which was made on top of it.
        """
        location, options = self.base.location, self.base.storage_options
        try:
            return Snapshot.open(location, self.version, storage_options=options)
        except SnapshotNotFound:
            return Snapshot.open(location, storage_options=options)


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Another commit changed what these changes depend on; nothing of them is visible.

    Args:
        partition: The partition in conflict, as its values: ``region=eu, day=3``.
        reason: Which changes do not commute.
    """

    partition: str
    reason: str


@dataclass(frozen=True, slots=True)
class Retryable:
    """Other commits came first each time: nothing is visible, the same commit may be tried again.

    Args:
        attempts: How often it was tried.
    """

    attempts: int


Outcome = Committed | Conflicted | Retryable
