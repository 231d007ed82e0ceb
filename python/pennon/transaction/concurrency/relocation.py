"""Finds rows by address again after compactions moved them into other files.

A row is named by its address at the version that the statement read. From the version that is there
now the way goes back, by the records of rewrites and by what each version of a leaf was built on;
then forward again, and each rewrite on it gives the new addresses. A way that another change of the
same rows crosses is a conflict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pennon.errors import LeafMissing
from pennon.leaf.changes.moved_rows import moved
from pennon.leaf.changes.row_changes import has_same_fragments
from pennon.leaf.dataset import open_leaf, open_own_leaf
from pennon.transaction.concurrency.conflicts import ROWS_CHANGED
from pennon.transaction.concurrency.outcome import Conflicted
from pennon.transaction.staging.leaf_state import partition_text
from pennon.transaction.staging.staged import ChangeRows, Rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import lance

    from pennon.leaf.changes.deleted_rows import DeletedRows
    from pennon.manifest import Snapshot
    from pennon.manifest.commits.commit_lookup import Rewrites
    from pennon.transaction.staging.leaf_state import LeafState
    from pennon.transaction.staging.staged import Change

__all__ = ["relocate"]

_MOST_STEPS: Final = 1000


def relocate(
    snapshot: Snapshot,
    changes: Mapping[str, Change],
    states: Mapping[str, LeafState],
    leaves: Iterable[str],
    rewrites: Callable[[], Rewrites],
) -> Mapping[str, Change] | Conflicted:
    """Bring changes that name rows or fragments to the versions that the leaves have now.

    Args:
        snapshot: The newest one.
        changes: One per leaf, by object id.
        states: The touched leaves in the snapshot.
        leaves: Those that have another version than before.
        rewrites: Tells which leaf version has the rows of which other one.

    Returns:
        The changes to make instead; a conflict where rows or fragments are not what they were.

    Spec: "Conflict Resolution".
    """
    relocated = dict(changes)
    for object_id in leaves:
        change, state = changes[object_id], states.get(object_id)
        if not isinstance(change, ChangeRows | Rewrite) or state is None:
            continue
        try:
            moved_change = _relocated(snapshot, change, state, rewrites)
        except LeafMissing:  # a version on the way has expired
            moved_change = None
        if moved_change is None:
            return Conflicted(partition_text(state.values), ROWS_CHANGED)
        relocated[object_id] = moved_change
    return relocated


def _relocated(
    snapshot: Snapshot,
    change: ChangeRows | Rewrite,
    state: LeafState,
    rewrites: Callable[[], Rewrites],
) -> Change | None:
    way = _Way(snapshot, state, rewrites())
    newest = way.open(state.read_version)
    if isinstance(change, Rewrite):
        if not has_same_fragments(way.open(change.version), newest, change.fragments):
            return None
        return replace(change, version=newest.version)
    rows = way.follow(change.deleted)
    return None if rows is None else replace(change, deleted=rows)


class _Way:
    """The versions of one leaf between the one that a statement read and the present one."""

    def __init__(self, snapshot: Snapshot, state: LeafState, rewrites: Rewrites) -> None:
        self._snapshot = snapshot
        self._state = state
        self._rewrites = rewrites

    def open(self, version: int | None) -> lance.LanceDataset:
        snapshot = self._snapshot
        options = snapshot.storage_options
        return open_leaf(snapshot.location, self._state.location, version, options)

    def _own(self, version: int) -> lance.LanceDataset:
        snapshot = self._snapshot
        options = snapshot.storage_options
        return open_own_leaf(snapshot.location, self._state.location, version, options)

    def follow(self, rows: DeletedRows) -> DeletedRows | None:
        """Give the rows at the present version; None where one of them was changed."""
        crossed = self._rewrites_since(rows)
        if crossed is None:
            return None
        at = self.open(rows.version)
        for before, after in crossed:
            old, new = self.open(before), self.open(after)
            if not has_same_fragments(at, old, rows.by_fragment()):
                return None
            moved_rows = moved(old, new, rows, self._snapshot.storage_options)
            if moved_rows is None:
                return None
            rows, at = moved_rows, new
        newest = self.open(self._state.read_version)
        if not has_same_fragments(at, newest, rows.by_fragment()):
            return None
        return replace(rows, version=newest.version)

    def _rewrites_since(self, rows: DeletedRows) -> list[tuple[int, int]] | None:
        """List the rewrites after a version, oldest first, as version before and after.

        Returns:
            None where the present version was not built on that one.
        """
        read = self.open(rows.version)
        crossed: list[tuple[int, int]] = []
        version = self._state.read_version
        for _ in range(_MOST_STEPS):
            dataset = self.open(version)
            if has_same_fragments(read, dataset, rows.by_fragment()):
                return crossed[::-1]
            before = self._rewrites.get((self._state.object_id, dataset.version))
            if before is not None:
                crossed.append((before, dataset.version))
                version = before
                continue
            made_by = self._own(dataset.version).read_transaction(dataset.version)
            if made_by is None or dataset.version == rows.version:
                return None
            version = made_by.read_version
        return None
