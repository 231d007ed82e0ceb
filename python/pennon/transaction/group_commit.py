"""Group commit: appends to one table that wait for each other become one commit.

One writer of the process commits at a time; what comes meanwhile waits, and the next one commits
all of it. Each write has a record of its own, so that each can be asked for again, or given up, by
itself. Whatever stands in the way of the group, a write that does not fit the others, one that was
made before, a failure, dissolves it, and each write is committed alone and has its own answer.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pennon.caching import storage_identity
from pennon.errors import PennonError
from pennon.manifest.table_identity import table_id
from pennon.transaction.concurrency.conflicts import check_layouts
from pennon.transaction.concurrency.outcome import Committed, Outcome
from pennon.transaction.staging.staged import Append
from pennon.transaction.strong import commit_strong, commit_together

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.leaf import StagedPartition
    from pennon.manifest import Snapshot
    from pennon.manifest.format.rows import CommitIdentity
    from pennon.transaction.staging.staged import Change

__all__ = ["commit_append", "in_turn"]

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
