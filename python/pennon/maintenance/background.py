"""Background maintenance after commits: compacts small files and expires old versions.

A commit registers the partitions that it has touched and goes on. The thread looks at those now and
then, and at the versions of the table where its properties say how long they are kept. What fails
is logged, is never the writer's, and is tried again behind a later commit.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pennon.caching import storage_identity
from pennon.errors import NamespaceHasNoManifest, PennonError
from pennon.maintenance.compact import (
    DEFAULT_TARGET_BYTES,
    LeafRewrite,
    fragments_below,
    reindexed,
    rewrite_leaves,
)
from pennon.maintenance.expire import expirable_versions, expire
from pennon.manifest import Snapshot
from pennon.manifest.dataset.storage import listed_versions, open_manifest
from pennon.manifest.format.properties import has_specs, retention_of, user_properties
from pennon.search import turn_to_build
from pennon.settings import COMPACTION
from pennon.transaction import Committed
from pennon.transaction.staging.staged import LeafState, leaf_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["compact_small_files", "expire_old_versions", "keep_behind", "written_leaves"]

# Expires the versions of a table after the time that its properties state.

# Each expiry reads what the versions that stay name, however few go: so many at least, and one for
# so many that stay. As long as fewer were made since the last look there is none.
_LEAST: Final = 32
_KEPT_FOR_ONE: Final = 4
_MOST_LOOKED_AT: Final = 10_000


def expire_old_versions(location: str, storage: Mapping[str, str]) -> int:
    """Expire versions by the properties of a table; none where they say nothing of an age.

    Args:
        location: The namespace.
        storage: Given to Lance.

    Returns:
        How many have expired; none where few could for those that stay.

    Raises:
        PennonError: A property is no number that it can be, or the storage refused.

    Example:
        >>> expire_old_versions("/data/lake/orders", {})  # doctest: +SKIP
        64
    """
    manifest = open_manifest(location, storage_options=storage)
    is_automatic = retention_of(user_properties(manifest.metadata)).is_automatic
    if not is_automatic or not has_specs(manifest.metadata):
        return 0
    version = int(manifest.version)
    seen, num_kept = _looked_at.get(location, (0, 0))
    if 0 <= version - seen < _least(num_kept):
        return 0
    num_listed = len(listed_versions(manifest))
    num_old = len(expirable_versions(manifest))
    if len(_looked_at) >= _MOST_LOOKED_AT:
        _looked_at.clear()
    _looked_at[location] = version, num_listed - num_old
    if num_old < _least(num_listed - num_old):
        return 0
    return len(expire(location, storage).versions)


def _least(num_kept: int) -> int:
    return max(_LEAST, num_kept // _KEPT_FOR_ONE)


# What was found last: the version of each table, and how many versions had to stay.
_looked_at: Final[dict[str, tuple[int, int]]] = {}


# Compacts partitions with many small files in the background.
#
# Where a partition has many of them they are put together, by levels of size, so that a row is
# rewritten a few times in its life and not by every batch. It yields to every writer.

_LEAST_FILES: Final = 8
_LEVELS: Final = (1 << 20, 16 << 20, DEFAULT_TARGET_BYTES // 2)
_LEAVES_AT_ONCE: Final = 20
# Of so many rows a search looks at each without taking much longer.
_LEAST_SHARE: Final = 0.1


def compact_small_files(location: str, leaves: Iterable[str], storage: Mapping[str, str]) -> int:
    """Put the small files of some partitions together where they are many.

    Args:
        location: The namespace.
        leaves: Their object ids.
        storage: Given to Lance.

    Returns:
        How many partitions were rewritten.

    Raises:
        PennonError: The table cannot be read or written.
    """
    snapshot = Snapshot.open(location, storage_options=storage)
    if not snapshot.is_strong or not _is_on(snapshot.properties):
        return 0
    states = leaf_states(snapshot, leaves).values()
    rewrites = [
        rewrite for state in states if (rewrite := _rewrite_of(snapshot, state)) is not None
    ]
    parts = (rewrites[at : at + _LEAVES_AT_ONCE] for at in range(0, len(rewrites), _LEAVES_AT_ONCE))
    num_rewritten = sum(_num_rewritten(snapshot, part) for part in parts)
    # What was rewritten is in no index any more, nor is what was appended. An index that is being
    # made is defined already: it would be built twice.
    turn = turn_to_build(location)
    if turn.acquire(blocking=False):
        try:
            reindexed(location, storage, {state.object_id for state in states}, _LEAST_SHARE)
        finally:
            turn.release()
    return num_rewritten


def _is_on(properties: Mapping[str, str]) -> bool:
    return properties.get(COMPACTION.name, "true").lower() != "false"


def _num_rewritten(snapshot: Snapshot, rewrites: Sequence[LeafRewrite]) -> int:
    """Rewrite all with one commit; where another commit changes one of them, each by itself."""
    outcome, _ = rewrite_leaves(snapshot, rewrites, DEFAULT_TARGET_BYTES)
    if isinstance(outcome, Committed):
        return len(rewrites)
    return (
        sum(_num_rewritten(snapshot, [rewrite]) for rewrite in rewrites) if len(rewrites) > 1 else 0
    )


def _rewrite_of(snapshot: Snapshot, state: LeafState) -> LeafRewrite | None:
    """Choose the smallest level of which a leaf has many files."""
    if state.read_version is None or state.is_elsewhere:
        return None
    if (state.num_fragments or 0) < _LEAST_FILES:
        return None
    dataset = state.opened(snapshot)
    for level in _LEVELS:
        chosen = fragments_below(dataset, level)
        if len(chosen) >= _LEAST_FILES:
            return LeafRewrite.of(state, state.read_version, chosen)
    return None


_LOG: Final = logging.getLogger(__name__)
# A partition is looked at behind the first commit of the process that touches it, then again
# behind every so many; the versions of a table likewise.
_COMMITS_BETWEEN: Final = 8
_COMMITS_BETWEEN_EXPIRIES: Final = 64
_MOST_REMEMBERED: Final = 100_000
_PAUSE_SECONDS: Final = 0.2
_IDLE_SECONDS: Final = 10.0
_AT_EXIT_SECONDS: Final = 5.0


def written_leaves(staged: Iterable[str]) -> set[str]:
    """Give the leaves that tasks report to have written; a plain dataset has none.

    Args:
        staged: The reports as text.
    """
    tokens = (json.loads(text) for text in staged)
    return {leaf["object_id"] for leaf in tokens if "object_id" in leaf}


def keep_behind(location: str, leaves: Iterable[str], storage: Mapping[str, str]) -> None:
    """Have a table looked at, later and in another thread; never fails.

    Args:
        location: The namespace.
        leaves: The object ids of those that a commit has touched.
        storage: Given to Lance.
    """
    _background.touch(location, leaves, storage)


@dataclass(slots=True)
class _Due:
    """What is to be looked at of one table."""

    storage: Mapping[str, str]
    leaves: set[str] = field(default_factory=set)
    has_old_versions: bool = False


class _Background:
    """The thread that compacts, started when there is something to look at."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: dict[tuple[str, str], _Due] = {}
        self._touched: dict[tuple[str, str | None], int] = {}  # by leaf, and by table
        self._thread: threading.Thread | None = None
        self._is_ending = False

    def touch(self, location: str, leaves: Iterable[str], storage: Mapping[str, str]) -> None:
        key = location, storage_identity(storage)
        with self._changed:
            if len(self._touched) > _MOST_REMEMBERED:
                self._touched.clear()
            touched = set(leaves)
            due = {leaf for leaf in touched if self._is_due(location, leaf, _COMMITS_BETWEEN)}
            has_old = bool(touched) and self._is_due(location, None, _COMMITS_BETWEEN_EXPIRIES)
            if self._is_ending or not (due or has_old):
                return
            pending = self._pending.setdefault(key, _Due(storage))
            pending.leaves |= due
            pending.has_old_versions |= has_old
            if self._thread is None or not self._thread.is_alive():  # as in a forked process
                thread = threading.Thread(target=self._run, name="compaction", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads: the process ends, or the system refuses
                    return
                self._thread = thread
                atexit.unregister(self.end)
                atexit.register(self.end)
            self._changed.notify_all()

    def _is_due(self, location: str, leaf: str | None, every: int) -> bool:
        count = self._touched.get((location, leaf), 0)
        self._touched[location, leaf] = count + 1
        return count % every == 0

    def _run(self) -> None:
        try:
            while self._is_needed():
                with self._changed:
                    self._changed.wait_for(lambda: self._is_ending, _PAUSE_SECONDS)
                    pending, self._pending = self._pending, {}
                for (location, _), due in pending.items():
                    self._look_at(location, due)
        finally:
            with self._changed:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _look_at(self, location: str, due: _Due) -> None:
        if due.leaves:
            _quietly(lambda: compact_small_files(location, due.leaves, due.storage), location)
        if due.has_old_versions and not self._is_ending:
            _quietly(lambda: expire_old_versions(location, due.storage), location)

    def _is_needed(self) -> bool:
        """Wait for something to do; False where there is nothing for long, or the process ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._is_ending, _IDLE_SECONDS)
            if not self._pending:
                self._thread = None
            return bool(self._pending)

    def end(self) -> None:
        """Look at the small files that are due, and wait a little for it: the process ends."""
        with self._changed:
            self._is_ending, thread = True, self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(_AT_EXIT_SECONDS)


def _quietly(work: Callable[[], int], location: str) -> None:
    try:
        work()
    except NamespaceHasNoManifest:
        _LOG.debug("%s is gone: it was dropped, or replaced, before its upkeep", location)
    except (PennonError, OSError, RuntimeError, ValueError) as error:
        # What the commit has done stands whatever becomes of the upkeep behind it.
        _LOG.warning("upkeep of %s is left to a later commit: %s", location, error)


_background: Final = _Background()
