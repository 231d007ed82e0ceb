"""Compaction behind commits: whoever writes many small batches never has to call it.

A commit tells here which partitions it has touched and goes on. One thread of the process looks at
those now and then, and where a partition has many small files it puts them together, by levels of
size, so that a row is rewritten a few times in its life and not by every batch. It yields to every
writer, and what fails here is logged and tried again behind a later commit.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading
from typing import TYPE_CHECKING, Final

from pennon.caching import storage_identity
from pennon.errors import PennonError
from pennon.leaf.dataset import open_leaf
from pennon.maintenance.compact import DEFAULT_TARGET_BYTES, fragments_below
from pennon.maintenance.leaf_rewrite import LeafRewrite, rewrite_leaves
from pennon.manifest import Snapshot
from pennon.settings import COMPACTION
from pennon.transaction import Committed
from pennon.transaction.leaf_state import LeafState, leaf_states

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["compact_behind", "compact_small_files", "written_leaves"]

_LOG: Final = logging.getLogger(__name__)
_LEAST_FILES: Final = 16
_LEVELS: Final = (1 << 20, 16 << 20, DEFAULT_TARGET_BYTES // 2)
_LEAVES_AT_ONCE: Final = 20
# A partition is looked at behind the first commit of the process that touches it, then again
# behind every so many.
_COMMITS_BETWEEN: Final = 8
_MOST_REMEMBERED: Final = 100_000
_PAUSE_SECONDS: Final = 0.2
_IDLE_SECONDS: Final = 10.0
_AT_EXIT_SECONDS: Final = 5.0


def written_leaves(staged: Iterable[str]) -> set[str]:
    """Give the leaves that tasks report to have written; a plain dataset has none.

    Args:
        staged: The reports as text.
    """
    told = (json.loads(text) for text in staged)
    return {each["object_id"] for each in told if "object_id" in each}


def compact_behind(location: str, leaves: Iterable[str], storage: Mapping[str, str]) -> None:
    """Have partitions looked at, later and in another thread; never fails.

    Args:
        location: The namespace.
        leaves: The object ids of those that a commit has touched.
        storage: Given to Lance.
    """
    _background.touch(location, leaves, storage)


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
    found = [each for state in states if (each := _rewrite_of(snapshot, state)) is not None]
    parts = (found[at : at + _LEAVES_AT_ONCE] for at in range(0, len(found), _LEAVES_AT_ONCE))
    return sum(_num_rewritten(snapshot, each) for each in parts)


def _is_on(properties: Mapping[str, str]) -> bool:
    return properties.get(COMPACTION.name, "true").lower() != "false"


def _num_rewritten(snapshot: Snapshot, rewrites: Sequence[LeafRewrite]) -> int:
    """Rewrite all with one commit; where another commit changes one of them, each by itself."""
    outcome, _ = rewrite_leaves(snapshot, rewrites, DEFAULT_TARGET_BYTES)
    if isinstance(outcome, Committed):
        return len(rewrites)
    return sum(_num_rewritten(snapshot, [each]) for each in rewrites) if len(rewrites) > 1 else 0


def _rewrite_of(snapshot: Snapshot, state: LeafState) -> LeafRewrite | None:
    """Choose the smallest level of which a leaf has many files."""
    is_elsewhere = state.read_branch is not None or state.read_tag is not None
    if state.read_version is None or is_elsewhere or (state.num_fragments or 0) < _LEAST_FILES:
        return None
    options = snapshot.storage_options
    dataset = open_leaf(snapshot.location, state.location, state.read_version, options)
    for level in _LEVELS:
        chosen = fragments_below(dataset, level)
        if len(chosen) >= _LEAST_FILES:
            numbers = tuple(each.fragment_id for each in chosen)
            num_rows = sum(each.count_rows() for each in chosen)
            version = state.read_version
            return LeafRewrite(state.object_id, state.location, version, numbers, num_rows)
    return None


class _Background:
    """The thread that compacts, started when there is something to look at."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: dict[tuple[str, str], tuple[Mapping[str, str], set[str]]] = {}
        self._touched: dict[tuple[str, str], int] = {}
        self._thread: threading.Thread | None = None
        self._is_ending = False

    def touch(self, location: str, leaves: Iterable[str], storage: Mapping[str, str]) -> None:
        key = location, storage_identity(storage)
        with self._changed:
            if len(self._touched) > _MOST_REMEMBERED:
                self._touched.clear()
            due = {each for each in leaves if self._is_due(location, each)}
            if not due or self._is_ending:
                return
            self._pending.setdefault(key, (storage, set()))[1].update(due)
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

    def _is_due(self, location: str, leaf: str) -> bool:
        count = self._touched.get((location, leaf), 0)
        self._touched[location, leaf] = count + 1
        return count % _COMMITS_BETWEEN == 0

    def _run(self) -> None:
        try:
            while self._is_needed():
                with self._changed:
                    self._changed.wait_for(lambda: self._is_ending, _PAUSE_SECONDS)
                    pending, self._pending = self._pending, {}
                for (location, _), (storage, leaves) in pending.items():
                    _compact_quietly(location, leaves, storage)
        finally:
            with self._changed:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _is_needed(self) -> bool:
        """Wait for something to do; False where there is nothing for long, or the process ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._is_ending, _IDLE_SECONDS)
            if not self._pending:
                self._thread = None
            return bool(self._pending)

    def end(self) -> None:
        """Look at what is due, and wait a little for it: the process ends."""
        with self._changed:
            self._is_ending, thread = True, self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(_AT_EXIT_SECONDS)


def _compact_quietly(location: str, leaves: set[str], storage: Mapping[str, str]) -> None:
    try:
        compact_small_files(location, leaves, storage)
    except (PennonError, OSError, RuntimeError, ValueError) as error:
        # What the commit has done stands whether its small files are put together or not.
        _LOG.warning("small files of %s are left as they are: %s", location, error)


_background: Final = _Background()
