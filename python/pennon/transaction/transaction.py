"""A transaction: a base snapshot, staged changes of many partitions, one commit.

Appends of one process to one table that wait for each other become one commit, a group. One writer
of the process commits at a time; what comes meanwhile waits, and the next one commits all of it.
Each write has a record of its own, so that each can be asked for again, or given up, by itself.
Whatever stands in the way of the group, a write that does not fit the others, one that was made
before, a failure, dissolves it, and each write is committed alone and has its own answer.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pennon.caching import storage_identity
from pennon.errors import InternalError, PennonError
from pennon.manifest.dataset.storage import is_of_storage, storage_failure
from pennon.manifest.format.rows import CommitIdentity
from pennon.manifest.table_identity import table_id
from pennon.spec.write_properties import SERIALIZABLE, is_copy_on_write, isolation
from pennon.transaction.concurrency.conflicts import check_layouts
from pennon.transaction.concurrency.outcome import Committed, Outcome
from pennon.transaction.concurrency.read_set import (
    CoveredSet,
    DefinedSet,
    OverlappedSet,
    ReadSet,
    ReadSets,
)
from pennon.transaction.staging.leaf_preparation import abandon
from pennon.transaction.staging.staged import (
    Append,
    ChangeRows,
    Drop,
    Reindex,
    Replace,
    Rewrite,
    by_leaf,
)
from pennon.transaction.strong import commit_strong, commit_together
from pennon.transaction.weak import commit_weak

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lance.dataset import Index

    from pennon.leaf import StagedPartition
    from pennon.leaf.changes.deleted_rows import DeletedRows
    from pennon.leaf.write.leaf_commit import FragmentFiles
    from pennon.manifest import Snapshot
    from pennon.manifest.format.properties import IndexDefinition
    from pennon.transaction.staging.staged import Change

__all__ = ["Transaction"]

_MOST_TOGETHER: Final = 200


@dataclass(slots=True)
class _Waiting:
    base: Snapshot
    changes: Mapping[str, Change]
    identity: CommitIdentity
    outcome: Outcome | None = None
    is_alone: bool = False
    was_tried: bool = False


@dataclass(slots=True)
class _Queue:
    """The appends to one table that wait, and the lock of the one who commits."""

    # Of one thread again and again: what runs inside of a commit may commit as well.
    committing: threading.RLock = field(default_factory=threading.RLock)
    changing: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[_Waiting] = field(default_factory=list)
    users: int = 0

    def take(self) -> list[_Waiting]:
        with self.changing:
            some, self.waiting = self.waiting[:_MOST_TOGETHER], self.waiting[_MOST_TOGETHER:]
            return some


_queues: Final[defaultdict[tuple[str, str], _Queue]] = defaultdict(_Queue)
_lock: Final = threading.Lock()


def commit_append(
    base: Snapshot, changes: Mapping[str, Change], identity: CommitIdentity
) -> Outcome:
    """Commit an append, together with those that wait beside it.

    Args:
        base: The snapshot that the rows were written for.
        changes: One ``Append`` per leaf, by object id.
        identity: Which commit it is, the same at every try.

    Raises:
        PennonError: As of a commit by itself.

    Spec: "Multi-Partition Transaction (Strong)", "Commit Behavior".
    """
    # Where this thread is interrupted while it waits, the others must not make what it gave up.
    mine = _Waiting(base, changes, identity.tried())
    with _queue_of(base) as queue:
        with queue.changing:
            queue.waiting.append(mine)
        with queue.committing:
            while mine.outcome is None and not mine.is_alone:
                _commit(queue.take())
            if mine.outcome is None:
                own = mine.identity if mine.was_tried else identity
                mine.outcome = commit_strong(base, changes, own)
    return mine.outcome


@contextlib.contextmanager
def in_turn(base: Snapshot) -> Iterator[None]:
    """Let no append of this process to the same table be committed while the context is open.

    Args:
        base: A snapshot of the table.
    """
    with _queue_of(base) as queue, queue.committing:
        yield


@contextlib.contextmanager
def _queue_of(base: Snapshot) -> Iterator[_Queue]:
    key = base.location, storage_identity(base.storage_options)
    with _lock:
        queue = _queues[key]
        queue.users += 1
    try:
        yield queue
    finally:
        with _lock:
            queue.users -= 1
            if not queue.users:
                _queues.pop(key, None)


def _commit(group: Sequence[_Waiting]) -> None:
    """Commit what fits together; the others are marked as alone."""
    base = max((commit.base for commit in group), key=lambda base: base.version)
    together: list[_Waiting] = []
    ids: set[str] = set()
    places: dict[str, str] = {}
    for commit in group:
        commit.is_alone = True  # until the commit of the group has answered
        if _fits(commit, base, ids, places):
            together.append(commit)
    if together == together[:1]:
        return
    changes = {
        object_id: Append(_staged(together, object_id))
        for object_id in dict.fromkeys(name for commit in together for name in commit.changes)
    }
    members = [(commit.changes, commit.identity) for commit in together]
    for commit in together:
        commit.was_tried = True
    try:
        outcome = commit_together(base, changes, members)
    except PennonError:
        return  # each finds out by itself whether it is the cause
    if isinstance(outcome, Committed):
        for commit in together:
            commit.outcome, commit.is_alone = Committed(outcome.version, commit.base), False


def _fits(one: _Waiting, base: Snapshot, ids: set[str], places: dict[str, str]) -> bool:
    """Whether a write can be made with the others, whose ids and leaves are given."""
    own = {name: part.location for name in one.changes for part in _of(one, name)}
    is_elsewhere = any(places.get(name, place) != place for name, place in own.items())
    if one.identity.id in ids or is_elsewhere or table_id(one.base) != table_id(base):
        return False
    if check_layouts(one.changes, base.schema.arrow, base.specs) is not None:
        return False
    ids.add(one.identity.id)
    places.update(own)
    return True


def _of(one: _Waiting, object_id: str) -> tuple[StagedPartition, ...]:
    change = one.changes.get(object_id)
    return change.staged if isinstance(change, Append) else ()


def _staged(group: Sequence[_Waiting], object_id: str) -> tuple[StagedPartition, ...]:
    return tuple(part for commit in group for part in _of(commit, object_id))


class Transaction:
    """Changes of many partitions that become visible together, or not at all.

    In a namespace of weak mode they become visible one partition after the other.

    Args:
        snapshot: The snapshot that the changes are made against.
        identity: Which commit it is, the same at every try; None for a new one. A commit that
            was made already is not made again.
        operation: What the user calls it, for the history; None to name it after the changes.

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

    def __init__(
        self,
        snapshot: Snapshot,
        identity: CommitIdentity | None = None,
        operation: str | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.identity = identity or CommitIdentity.fresh()
        self._operation = operation
        self._is_sent = False
        self._changes: dict[str, Change] = {}
        self._reads: tuple[CoveredSet | DefinedSet | OverlappedSet | ReadSet, ...] = ()

    def append(self, staged: Iterable[StagedPartition]) -> None:
        """Add rows to partitions.

        Args:
            staged: The reports of all tasks; several may name the same partition.
        """
        for object_id, parts in by_leaf(staged).items():
            earlier = self._changes.get(object_id)
            before = earlier.staged if isinstance(earlier, Append) else ()
            self._add(object_id, Append((*before, *parts)))

    def replace(self, staged: Iterable[StagedPartition]) -> None:
        """Make each named partition's content exactly the staged rows (dynamic overwrite).

        Args:
            staged: The reports of all tasks; several may name the same partition.
        """
        for object_id, parts in by_leaf(staged).items():
            earlier = self._changes.get(object_id)
            before = earlier.staged if isinstance(earlier, Replace) else ()
            self._add(object_id, Replace((*before, *parts)))

    def rewrite(
        self, staged: Iterable[StagedPartition], fragments: Iterable[int], version: int
    ) -> None:
        """Put the rows of some fragments of a partition into other files.

        Args:
            staged: Exactly their rows, for one partition. Where another commit changes one of
                these fragments it is a conflict.
            fragments: The fragments' numbers.
            version: The leaf's Lance version that they were read at.
        """
        for object_id, parts in by_leaf(staged).items():
            self._add(object_id, Rewrite(parts, tuple(fragments), version))

    def reindex(
        self,
        object_id: str,
        built: Iterable[Index],
        removed: Iterable[str],
        files: Mapping[int, FragmentFiles],
    ) -> None:
        """Give a partition's rows indexes, or take these from them.

        Args:
            object_id: The leaf's id in the manifest.
            built: Segments whose files are there. Rows that others move or change meanwhile are
                not in them any more.
            removed: The ids of segments that go.
            files: The leaf's files, by fragment, that they were built of.
        """
        self._add(object_id, Reindex(tuple(built), frozenset(removed), files))

    def rely_on(self, definition: IndexDefinition) -> None:
        """Say which definition segments were built by: it must not have changed.

        Args:
            definition: The index.
        """
        self._reads += (DefinedSet(definition),)

    def drop(self, object_ids: Iterable[str]) -> None:
        """Take partitions of the base snapshot out of the manifest.

        Args:
            object_ids: The leaves' ids in the manifest.
        """
        for object_id in object_ids:
            self._add(object_id, Drop())

    def cover(self, predicates: Iterable[str], command: str | None = None) -> None:
        """Say which rows an overwrite, or a DELETE of whole partitions, takes out.

        Args:
            predicates: Spark SQL texts that all have to hold; none for every row.
            command: Whose isolation the table may set by itself: ``delete``.

        Raises:
            UnknownIsolation: The table's property has another value than it can have.
        """
        if isolation(self.snapshot.properties, command) == SERIALIZABLE:
            self._reads += (CoveredSet(self.snapshot, tuple(predicates)),)

    def cover_partitions(self, staged: Iterable[StagedPartition]) -> None:
        """Say that an overwrite replaces the partitions of its rows, by whatever spec they are.

        Args:
            staged: The reports of all tasks.

        Raises:
            UnknownIsolation: The table's property has another value than it can have.
        """
        parts = tuple(staged)
        if parts and isolation(self.snapshot.properties) == SERIALIZABLE:
            self._reads += (OverlappedSet(self.snapshot, parts),)

    def read(self, scans: Iterable[Sequence[str]]) -> None:
        """Say which rows of the table new ones were made of.

        Rows that others append meanwhile come behind them; no other change of what was read may.

        Args:
            scans: The predicates of each scan, Spark SQL texts.

        Raises:
            UnknownIsolation: The table's property has another value than it can have.
        """
        read = tuple(tuple(predicates) for predicates in scans)
        if read and isolation(self.snapshot.properties) == SERIALIZABLE:
            self._reads += (ReadSet(self.snapshot, read, is_before_appends=True),)

    def change_rows(
        self,
        deleted: Iterable[DeletedRows],
        staged: Iterable[StagedPartition],
        read: Iterable[Sequence[str]] = (),
    ) -> None:
        """Take single rows out, and add others: DELETE, UPDATE and MERGE.

        Args:
            deleted: What tasks report of the rows that go.
            staged: The reports of all tasks of new rows.
            read: The predicates of each scan that the changes were made of, Spark SQL texts.

        Raises:
            InternalError: A row belongs to no leaf of the base snapshot.
            RowChangeModeRefused: The table's property has no value that it can have.
            UnknownIsolation: So it is with another one.
        """
        gone = self._by_object_id(deleted)
        new = by_leaf(staged)
        copies = is_copy_on_write(self.snapshot.properties, self._operation)
        for object_id, rows in gone.items():
            self._add(object_id, ChangeRows(rows, new.get(object_id, ()), copies))
        self.append(part for key, parts in new.items() if key not in gone for part in parts)
        if isolation(self.snapshot.properties, self._operation) == SERIALIZABLE:
            scans = tuple(tuple(predicates) for predicates in read)
            self._reads += (ReadSet(self.snapshot, scans),) if scans else ()

    def commit(self) -> Outcome:
        """Make all changes visible.

        Returns:
            ``Committed`` with the new snapshot, ``Conflicted`` with the partition in conflict, or
            ``Retryable``. In the last two cases nothing is visible.

        Raises:
            LeafSchemaMismatch: A leaf cannot take the rows.
            LeafMissing: A leaf's files are gone.
            CommitGivenUp: It was aborted meanwhile.
            StorageFailure: The storage refused.

        Spec: "Transaction", "Commit Behavior".
        """
        if not self._changes:
            return Committed(self.snapshot.version, self.snapshot)
        self._is_sent = True
        identity, self.identity = self.identity, self.identity.tried()
        try:
            outcome = self._sent(identity)
        except (OSError, RuntimeError) as error:  # Lance's, of a leaf
            if not is_of_storage(error):
                raise
            raise storage_failure("commit to", self.snapshot.location, error) from error
        self._is_sent = isinstance(outcome, Committed)  # after a refusal nothing is open
        return outcome

    def _sent(self, identity: CommitIdentity) -> Outcome:
        is_free = self._operation is None and not self._reads and self._is_append()
        if self.snapshot.is_strong and is_free:  # rows that depend on nothing that was read
            return commit_append(self.snapshot, self._changes, identity)
        if self.snapshot.is_strong:
            with in_turn(self.snapshot) if self._is_rewrite() else contextlib.nullcontext():
                read = ReadSets(self._reads) if self._reads else None
                return commit_strong(self.snapshot, self._changes, identity, self._operation, read)
        return commit_weak(self.snapshot, self._changes)

    @contextlib.contextmanager
    def removing_on_failure(self, staged: Sequence[StagedPartition]) -> Iterator[None]:
        """Remove the files of staged rows where anything goes wrong before they are committed.

        Args:
            staged: May grow while the context is open. Files that cannot be removed are left to
                vacuum, and what went wrong before is raised.
        """
        with contextlib.ExitStack() as undo:
            undo.callback(self._remove, staged)
            yield
            undo.pop_all()

    def abort(self, staged: Iterable[StagedPartition]) -> bool:
        """Remove the files of staged rows that will not be committed.

        Files that a commit made visible after all are kept. The directory of a new partition goes
        when nothing else is in it.

        Args:
            staged: The reports of all tasks, committed by none.

        Returns:
            Whether the write is undone; False where its commit was made after all.
        """
        location, options = self.snapshot.location, self.snapshot.storage_options
        return abandon(location, staged, options, self.identity if self._is_sent else None)

    def _remove(self, staged: Sequence[StagedPartition]) -> None:
        with contextlib.suppress(PennonError, OSError):
            self.abort(staged)

    def _is_append(self) -> bool:
        return all(isinstance(change, Append) for change in self._changes.values())

    def _is_rewrite(self) -> bool:
        return all(isinstance(change, Rewrite) for change in self._changes.values())

    def _by_object_id(self, deleted: Iterable[DeletedRows]) -> dict[str, DeletedRows]:
        reports: dict[tuple[str, int], list[DeletedRows]] = {}
        for rows in deleted:
            reports.setdefault((rows.location, rows.version), []).append(rows)
        if not reports:
            return {}
        leaves = self.snapshot.leaves().table
        ids = dict(
            zip(leaves["location"].to_pylist(), leaves["object_id"].to_pylist(), strict=True)
        )
        by_object_id: dict[str, DeletedRows] = {}
        for (location, version), parts in reports.items():
            object_id = ids.get(location)
            if object_id is None or object_id in by_object_id:
                raise InternalError(what=f"rows of {location} at version {version} are to go")
            by_object_id[object_id] = parts[0].merged(parts[1:])
        return by_object_id

    def _add(self, object_id: str, change: Change) -> None:
        earlier = self._changes.get(object_id)
        if earlier is not None and type(earlier) is not type(change):
            raise InternalError(what=f"one transaction changes {object_id} in two ways")
        self._changes[object_id] = change
