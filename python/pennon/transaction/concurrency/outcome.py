"""The outcomes of a commit, as types to be matched exhaustively."""

from __future__ import annotations

from dataclasses import dataclass, field

from pennon.errors import SnapshotNotFound
from pennon.manifest import Snapshot

__all__ = ["Committed", "Conflicted", "Outcome", "Retryable"]


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
