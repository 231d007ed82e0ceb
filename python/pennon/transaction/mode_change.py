"""Makes the transactions of a table strong or weak; the rows stay where they are.

The manifest says first that the mode changes: writers that look behind that are refused until it
has ended. Whoever looked before is met at what he commits:

* a strong one at the manifest, whose rows change by a commit that stands alone;
* a weak one at the leaf, which he opened before he looked: it gets a version of the same rows that
  Lance lets no other commit be rebased over.

So no acknowledged row is lost, and none becomes visible by half. Readers go on: in between a leaf
is read by what its row says, a version or the newest, and both have the same rows. What is killed
leaves a table that is read; the next writer sees that the process is gone, and turns it back. The
procedure itself can be called again, in either direction. Writers of other clients in weak mode
know nothing of it and have to be stopped.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pennon.errors import StorageFailure
from pennon.leaf.dataset import check_is_main, open_own_leaf
from pennon.leaf.write.leaf_commit import LeafCommit
from pennon.leaf.write.main_branch import fence, publish, stop_auto_cleanup
from pennon.manifest import LeafChange, ManifestCommitted, Snapshot, commit_leaves
from pennon.manifest.commits.manifest_outcome import ConcurrentChange
from pennon.manifest.commits.mode_commit import (
    add_read_versions,
    begin_change,
    end_change,
    forget_read_versions,
    opened_in_change,
    refuse_older,
)
from pennon.manifest.commits.stated_commit import schema_id
from pennon.manifest.commits.waiting import wait_for_others
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import StorageOptions, is_of_storage, storage_failure
from pennon.manifest.format.commit_record import CommitIdentity, CommitRecord
from pennon.manifest.transaction_mode import WEAK, mode_of
from pennon.transaction.renewed_change import renewed
from pennon.transaction.staging.leaf_state import LeafState, leaf_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["ChangedMode", "set_transaction_mode"]

_ATTEMPTS: Final = 40
_MAX_THREADS: Final = 8
_LEAVES_AT_ONCE: Final = 1000


@dataclass(slots=True)
class ChangedMode:
    """What was done.

    Args:
        mode: The mode that the transactions have now.
        version: The version of the manifest that says so.
        leaves: How many leaves got a version of their main branch.
        notes: What was left alone, and why.
    """

    mode: str
    version: int
    leaves: int = 0
    notes: list[str] = field(default_factory=list)


def set_transaction_mode(
    location: str,
    mode: str,
    storage_options: StorageOptions | None = None,
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> ChangedMode:
    """Make the transactions of a table strong or weak.

    Args:
        location: The namespace.
        mode: ``strong`` or ``weak``.
        storage_options: Given to Lance.
        progress: Told what is done, how many of it are done, and how many there are.

    Raises:
        NotPartitionedNamespace: It is none.
        LeafReadAtReference: A partition is read at a branch or a tag of its own.
        TransactionModeChanged: Another process changes the mode, too, and has taken over.
        StorageFailure: The storage refused; the procedure can be called again.

    Example:
        >>> set_transaction_mode("/data/lake/orders", "weak").mode  # doctest: +SKIP
        'weak'

    Spec: "Multi-Partition Transaction (Weak)", "Multi-Partition Transaction (Strong)".
    """
    options = dict(storage_options or {})
    snapshot = Snapshot.open(location, storage_options=options)
    done = ChangedMode(mode, snapshot.version)
    if mode_of(snapshot) == mode:
        done.notes.append(f"its transactions are {mode} already")
        return done
    _check_leaves(snapshot)
    is_taken_over = mode_of(snapshot) is None
    change = begin_change(snapshot, mode)
    work = _Change(location, change, options, done, progress)
    try:
        with renewed(location, change, options):
            if is_taken_over:  # who made it before may have looked, and not committed yet
                refuse_older(lambda: opened_in_change(location, change, options))
            if mode == WEAK:
                work.make_weak()
            else:
                work.make_strong()
    except (OSError, RuntimeError) as error:  # Lance's, of a leaf
        if not is_of_storage(error):
            raise
        raise storage_failure("change the transactions of", location, error) from error
    done.version = end_change(location, change, mode, options)
    return done


def _check_leaves(snapshot: Snapshot) -> None:
    for state in _states(snapshot):
        check_is_main(snapshot.location, state.location, state.read_branch, state.read_tag)


def _states(snapshot: Snapshot) -> list[LeafState]:
    object_ids = snapshot.leaves().table["object_id"].to_pylist()
    return list(leaf_states(snapshot, object_ids).values())


def _with_read_versions(snapshot: Snapshot) -> ManifestCommitted | ConcurrentChange:
    if snapshot.has_read_version_column:
        return ManifestCommitted(snapshot.version)
    return add_read_versions(snapshot)


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of the mode, under way."""

    location: str
    change: str
    options: StorageOptions
    done: ChangedMode
    progress: Callable[[str, int, int], None] | None

    def make_weak(self) -> None:
        """Bring each leaf's rows to its main branch, then let it be read there."""
        published: dict[str, tuple[str, int]] = {}

        def do(state: LeafState) -> None:
            if state.read_version is not None:
                self._look()
                publish(self.location, state.location, state.read_version, self.options)
                published[state.object_id] = state.location, state.read_version

        def change(snapshot: Snapshot) -> ManifestCommitted | ConcurrentChange:
            if not snapshot.has_read_version_column:
                return ManifestCommitted(snapshot.version)
            states = _states(snapshot)
            self._for_all(
                do,
                [
                    state
                    for state in states
                    if published.get(state.object_id) != (state.location, state.read_version)
                ],
            )
            return forget_read_versions(snapshot, self._record(snapshot, len(states)))

        self._until_made(change)
        self.done.leaves = len(published)

    def make_strong(self) -> None:
        """Fence the main branch of each leaf, then name the version that it has there."""
        fenced: dict[str, LeafChange] = {}

        def do(state: LeafState) -> None:
            fenced_before = fenced.get(state.object_id)
            fenced[state.object_id] = self._fenced(state, fenced_before)

        def change(snapshot: Snapshot) -> ManifestCommitted | ConcurrentChange:
            states = [state for state in _states(snapshot) if state.read_version is None]
            self._for_all(do, states)
            changes = [fenced[state.object_id] for state in states]
            records = [self._record(snapshot, len(changes))]
            return commit_leaves(snapshot, changes, records=records, is_exclusive=True)

        self._until_made(_with_read_versions)
        self._until_made(change)
        self.done.leaves = len(fenced)

    def _fenced(self, state: LeafState, fenced: LeafChange | None) -> LeafChange:
        for attempt in range(_ATTEMPTS):
            dataset = open_own_leaf(self.location, state.location, None, self.options)
            if fenced is not None and int(dataset.version) == fenced.read_version:
                return fenced
            self._look()
            stop_auto_cleanup(dataset)
            try:
                counted = LeafCommit.of(fence(dataset))
            except OSError as error:
                if not is_conflict(error):
                    raise
                wait_for_others(attempt)
                continue
            return LeafChange(
                state.object_id,
                state.location,
                state.values,
                counted.version,
                counted.num_rows,
                counted.num_bytes,
                counted.num_fragments,
            )
        raise self._late()

    def _until_made(
        self, change: Callable[[Snapshot], ManifestCommitted | ConcurrentChange]
    ) -> None:
        for attempt in range(_ATTEMPTS):
            outcome = change(opened_in_change(self.location, self.change, self.options))
            if isinstance(outcome, ManifestCommitted):
                return
            wait_for_others(attempt)
        raise self._late()

    def _for_all(self, do: Callable[[LeafState], None], states: Iterable[LeafState]) -> None:
        some = list(states)
        with ThreadPoolExecutor(_MAX_THREADS) as pool:
            for at, _ in enumerate(pool.map(do, some), 1):
                is_told = at % _LEAVES_AT_ONCE == 0 or at == len(some)
                if self.progress is not None and is_told:
                    self.progress("leaves brought over", at, len(some))

    def _look(self) -> None:
        """See that no other change has taken over, and made the leaves its own."""
        opened_in_change(self.location, self.change, self.options)

    def _record(self, snapshot: Snapshot, num_leaves: int) -> CommitRecord:
        return CommitRecord(
            CommitIdentity.fresh(),
            "alter",
            base_version=snapshot.version,
            spec_version=snapshot.current_spec.spec_version,
            schema_id=schema_id(snapshot.metadata),
            partitions=num_leaves,
            added_rows=0,
            removed_rows=0,
            made_at=int(time.time()),
        )

    def _late(self) -> StorageFailure:
        return StorageFailure(
            verb="change the transactions of",
            location=self.location,
            problem="other writers came first each time",
            advice="Run it again",
        )
