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

import contextlib
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pennon.errors import PennonError, StorageFailure, TransactionModeChanged
from pennon.leaf.dataset import check_is_main, leaves_at_once, open_own_leaf
from pennon.leaf.write.leaf_commit import LeafCommit, fence, publish, stop_auto_cleanup
from pennon.manifest import LeafChange, ManifestCommitted, Snapshot, commit_leaves
from pennon.manifest.commits.manifest_commit import ConcurrentChange, wait_for_others
from pennon.manifest.commits.mode_commit import (
    add_read_versions,
    begin_change,
    end_change,
    forget_read_versions,
    opened_in_change,
    refuse_older,
    renew_change,
)
from pennon.manifest.commits.root_change import schema_id
from pennon.manifest.dataset.storage import (
    StorageOptions,
    is_conflict,
    is_of_storage,
    storage_failure,
)
from pennon.manifest.format.properties import ALTERED, REPLACED, TRANSACTION, ChangeNotice
from pennon.manifest.format.rows import CommitIdentity, CommitRecord
from pennon.manifest.registered_location import is_registered
from pennon.manifest.table_identity import STRONG, WEAK, change_under_way, check_mode, mode_of
from pennon.transaction.staging.staged import LeafState, leaf_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import lance

    from pennon.manifest.format.properties import NamedAt

__all__ = ["ChangedMode", "set_transaction_mode", "settled", "without_writers"]

_LOG = logging.getLogger(__name__)
# Renews the notice of a change while its process works on it, so that it may take any time.
#
# A process that is killed, or that a failure has left without an end, renews nothing: soon the next
# writer may end what it began.

# So many times in the time that it lasts: a store that fails once is asked again before it is over.
_TIMES: Final = 4


@contextlib.contextmanager
def renewed(location: str, change: str, storage_options: StorageOptions) -> Iterator[None]:
    """Renew a change now and then while the context is open.

    Args:
        location: The namespace.
        change: The name of the change.
        storage_options: Given to Lance.
    """
    notice = ChangeNotice.read(change)
    pause = 0.0 if notice is None else notice.lasts_seconds / _TIMES
    is_over = threading.Event()

    def renew() -> None:
        while not is_over.wait(pause):
            try:
                renew_change(location, change, storage_options)
            except TransactionModeChanged:  # the next look of the one that works tells him
                return
            except PennonError as error:
                _LOG.warning("the change of %s is not renewed: %s", location, error)

    thread = threading.Thread(target=renew, name="pennon-renewal", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


_ATTEMPTS: Final = 40
# Keeps writers away while the rows of a table have to stay as they are.
#
# Whoever looks at the table behind the notice is refused. Whoever looked before is met at what he
# commits: a strong writer at the manifest, a weak one at the leaf, which he opened before he
# looked.

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
        most = leaves_at_once(self.location, on_disk=_MAX_THREADS)
        with ThreadPoolExecutor(most) as pool:
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


# Ends a change that keeps writers away and whose process is gone; then the table is written again.
#
# A column that was to be added, and a name that was to move, leave the rows as they were. A change
# of the mode is turned back: it may have gone half of its way, and both ways have the same rows.

_ATTEMPTS_TO_END: Final = 5


def settled(newest: Snapshot, mode: str) -> Snapshot:
    """Give a table in which no change is under way, after having ended an abandoned one.

    Args:
        newest: The table as it is at this moment.
        mode: The mode that it is to be written in.

    Returns:
        The newest version.

    Raises:
        TransactionModeChanged: It has another mode, or another process changes it.
        StorageFailure: The storage refused.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    for attempt in range(_ATTEMPTS_TO_END):
        notice = change_under_way(newest)
        if notice is None or not notice.is_abandoned():
            break
        _check_name(newest, notice, mode)
        try:
            _end(newest, notice, mode)
        except TransactionModeChanged:  # another writer ends it, too
            wait_for_others(attempt)
        newest = Snapshot.open(newest.location, storage_options=newest.storage_options)
    check_mode(newest, mode)
    return newest


def _check_name(newest: Snapshot, notice: ChangeNotice, mode: str) -> None:
    """Refuse to write to a table that has lost its name already, or may have."""
    if notice.target != REPLACED:
        return
    at = notice.named_at
    if at is None:
        check_mode(newest, mode)
    elif not is_registered(at.root, at.name, at.location, newest.storage_options):
        raise TransactionModeChanged(
            table=newest.location,
            why="another table was put in its place",
            advice="Run the statement again, on that one",
        )


def _end(newest: Snapshot, notice: ChangeNotice, mode: str) -> None:
    location, options = newest.location, newest.storage_options
    if notice.target in (ALTERED, REPLACED):
        end_change(location, newest.metadata[TRANSACTION], mode, options)
    else:
        set_transaction_mode(location, mode, options)


class WriterFence:
    """A table whose writers are kept away.

    Args:
        change: The notice that says so.
        snapshot: The version whose rows are the last.
    """

    def __init__(self, change: str, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._change = change

    def check(self) -> None:
        """See that nobody has ended it, and that nobody will soon.

        Raises:
            TransactionModeChanged: Another process changes the transactions by now.
            StorageFailure: What was done behind the fence has taken too long.
        """
        location = self.snapshot.location
        notice = change_under_way(
            opened_in_change(location, self._change, self.snapshot.storage_options)
        )
        if notice is not None and notice.is_nearly_over():
            raise StorageFailure(
                verb="change",
                location=location,
                problem="the store answers so slowly that others may write again",
                advice="Run the statement again",
            )


@contextlib.contextmanager
def without_writers(
    snapshot: Snapshot, why: str, named_at: NamedAt | None = None
) -> Iterator[WriterFence]:
    """Keep the rows of a namespace as they are while the context is open.

    Args:
        snapshot: The newest one.
        why: ``ALTERED``, after which writers go on, or ``REPLACED``, after which they do so only
            where something went wrong.
        named_at: The name that another table is about to get.

    Raises:
        StorageFailure: The storage refused.
        TransactionModeChanged: Others change the transactions, or came first each time.
    """
    mode = STRONG if snapshot.is_strong else WEAK
    snapshot = settled(snapshot, mode)
    change = begin_change(snapshot, why, named_at)
    location, options = snapshot.location, snapshot.storage_options

    def end() -> None:
        with contextlib.suppress(PennonError):  # ended with the change, or what went wrong is told
            end_change(location, change, mode, options)

    def opened() -> Snapshot:
        return opened_in_change(location, change, options)

    with contextlib.ExitStack() as undo:
        undo.callback(end)
        if mode == WEAK:
            _fence_leaves(opened())
        yield WriterFence(change, refuse_older(opened))
        if why != ALTERED:
            undo.pop_all()


def _fence_leaves(snapshot: Snapshot) -> None:
    """Refuse every commit to a leaf that was opened before."""
    places = snapshot.leaves().table["location"].to_pylist()
    most = leaves_at_once(snapshot.location, on_disk=_MAX_THREADS)
    with ThreadPoolExecutor(most) as pool:
        list(pool.map(lambda place: _fence(snapshot, place), places))


def _fence(snapshot: Snapshot, place: str) -> lance.LanceDataset:
    options = snapshot.storage_options
    for attempt in range(_ATTEMPTS):
        try:
            return fence(open_own_leaf(snapshot.location, place, None, options))
        except OSError as error:
            if not is_conflict(error):
                raise
            wait_for_others(attempt)
    raise StorageFailure(
        verb="change",
        location=snapshot.location,
        problem="other writers came first each time",
        advice="Run it again",
    )
