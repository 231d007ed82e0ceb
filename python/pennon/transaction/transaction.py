"""A transaction: a base snapshot, staged changes of many partitions, one commit."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pennon.errors import InternalError, LeafMissing
from pennon.leaf.dataset import leaf_uri, open_leaf
from pennon.leaf.write.partition_writer import delete_fragment_files
from pennon.manifest import Snapshot
from pennon.transaction.leaf_state import leaf_states
from pennon.transaction.outcome import Committed
from pennon.transaction.staged import Append, Drop, Replace, Truncate, by_leaf
from pennon.transaction.strong import commit_strong
from pennon.transaction.weak import commit_weak

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pennon.leaf import StagedPartition
    from pennon.transaction.leaf_state import LeafState
    from pennon.transaction.outcome import Outcome
    from pennon.transaction.staged import Change

__all__ = ["Transaction"]


class Transaction:
    """Changes of many partitions that become visible together, or not at all.

    In a namespace of weak mode they become visible one partition after the other.

    Args:
        snapshot: The snapshot that the changes are made against.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from pennon.leaf import WriteTarget, write_partitions
        >>> from pennon.manifest import create
        >>> from pennon.spec import NamespaceSchema, PartitionSpec
        >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.int64()}))
        >>> snapshot = create(tempfile.mkdtemp() + "/orders", schema, PartitionSpec(1, ()))
        >>> target = WriteTarget(snapshot.location, snapshot.version, 1)
        >>> transaction = Transaction(snapshot)
        >>> transaction.append(write_partitions([pa.record_batch({"a": [1, 2]})], target))
        >>> transaction.commit().snapshot.leaves().table["num_rows"].to_pylist()
        [2]

    Spec: "Transaction".
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._changes: dict[str, Change] = {}

    def append(self, staged: Iterable[StagedPartition]) -> None:
        """Add rows to partitions.

        Args:
            staged: The reports of all tasks; several may name the same partition.
        """
        for object_id, parts in by_leaf(staged).items():
            known = self._changes.get(object_id)
            before = known.staged if isinstance(known, Append) else ()
            self._add(object_id, Append((*before, *parts)))

    def replace(self, staged: Iterable[StagedPartition]) -> None:
        """Make each named partition's content exactly the staged rows (dynamic overwrite).

        Args:
            staged: The reports of all tasks; several may name the same partition.
        """
        for object_id, parts in by_leaf(staged).items():
            known = self._changes.get(object_id)
            before = known.staged if isinstance(known, Replace) else ()
            self._add(object_id, Replace((*before, *parts)))

    def truncate(self, object_ids: Iterable[str]) -> None:
        """Empty partitions of the base snapshot; those that are replaced as well keep their rows.

        Args:
            object_ids: The leaves' ids in the manifest.
        """
        for object_id in object_ids:
            if not isinstance(self._changes.get(object_id), Replace):
                self._add(object_id, Truncate())

    def drop(self, object_ids: Iterable[str]) -> None:
        """Take partitions of the base snapshot out of the manifest.

        Args:
            object_ids: The leaves' ids in the manifest.
        """
        for object_id in object_ids:
            self._add(object_id, Drop())

    def commit(self) -> Outcome:
        """Make all changes visible.

        Returns:
            ``Committed`` with the new snapshot, ``Conflicted`` with the partition in conflict, or
            ``Retryable``. In the last two cases nothing is visible.

        Raises:
            LeafSchemaMismatch: A leaf cannot take the rows.
            LeafMissing: A leaf's files are gone.
            StorageFailure: The storage refused.

        Spec: "Transaction", "Commit Behavior".
        """
        if not self._changes:
            return Committed(self.snapshot)
        if self.snapshot.is_strong:
            return commit_strong(self.snapshot, self._changes)
        return commit_weak(self.snapshot, self._changes)

    def abort(self, staged: Iterable[StagedPartition]) -> None:
        """Remove the files of staged rows that will not be committed.

        Files that a commit made visible after all are kept. The directory of a new partition goes
        when nothing else is in it.

        Args:
            staged: The reports of all tasks, committed by none.
        """
        parts = by_leaf(staged)
        options = self.snapshot.storage_options
        latest = Snapshot.open(self.snapshot.location, storage_options=options)
        states = leaf_states(latest, parts)
        for object_id, reports in parts.items():
            location = reports[0].location
            used = self._used_files(states.get(object_id))
            unused = [
                fragment
                for report in reports
                for fragment in report.fragments
                if not used & {file["path"] for file in json.loads(fragment)["files"]}
            ]
            delete_fragment_files(self.snapshot.location, location, unused, options)
            _remove_if_empty(leaf_uri(self.snapshot.location, location))

    def _add(self, object_id: str, change: Change) -> None:
        known = self._changes.get(object_id)
        if known is not None and type(known) is not type(change) and not _covers(change, known):
            raise InternalError(what=f"one transaction changes {object_id} in two ways")
        self._changes[object_id] = change

    def _used_files(self, state: LeafState | None) -> set[str]:
        if state is None:
            return set()
        try:
            leaf = open_leaf(
                self.snapshot.location,
                state.location,
                state.read_version,
                self.snapshot.storage_options,
            )
        except LeafMissing:
            return set()
        return {file.path for fragment in leaf.get_fragments() for file in fragment.metadata.files}


def _covers(change: Change, known: Change) -> bool:
    return isinstance(change, Replace) and isinstance(known, Truncate)


def _remove_if_empty(uri: str) -> None:
    """Remove the directories of a leaf that was never committed; object stores have none."""
    if "://" in uri:
        return
    for directory in (Path(uri) / "data", Path(uri)):
        with contextlib.suppress(OSError):
            directory.rmdir()
