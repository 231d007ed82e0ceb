"""A transaction: a base snapshot, staged changes, one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pennon.leaf import StagedPartition
    from pennon.manifest import Snapshot
    from pennon.transaction.outcome import Outcome

__all__ = ["Transaction"]


class Transaction:
    """Changes of many partitions that become visible together, or not at all."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def append(self, staged: Iterable[StagedPartition]) -> None:
        """Add rows to partitions."""
        raise NotImplementedError

    def replace(self, staged: Iterable[StagedPartition]) -> None:
        """Make each partition's content exactly the staged rows (dynamic overwrite)."""
        raise NotImplementedError

    def truncate(self, object_ids: Iterable[str]) -> None:
        """Empty partitions that exist at the base snapshot (with ``replace``: static overwrite)."""
        raise NotImplementedError

    def commit(self) -> Outcome:
        """Make all changes visible at once."""
        raise NotImplementedError

    def abort(self, staged: Iterable[StagedPartition]) -> None:
        """Remove the files of staged rows that will not be committed."""
        raise NotImplementedError
