"""Keeps writers away while the rows of a table have to stay as they are.

Whoever looks at the table behind the notice is refused. Whoever looked before is met at what he
commits: a strong writer at the manifest, a weak one at the leaf, which he opened before he looked.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from pennon.errors import PennonError, StorageFailure
from pennon.leaf.dataset import open_own_leaf
from pennon.leaf.write.main_branch import fence
from pennon.manifest.commits.mode_commit import (
    begin_change,
    end_change,
    opened_in_change,
    refuse_older,
)
from pennon.manifest.commits.waiting import wait_for_others
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.format.change_notice import ALTERED
from pennon.manifest.transaction_mode import STRONG, WEAK, change_under_way
from pennon.transaction.abandoned_change import settled

if TYPE_CHECKING:
    from collections.abc import Iterator

    import lance

    from pennon.manifest.format.change_notice import NamedAt
    from pennon.manifest.snapshot import Snapshot

__all__ = ["WriterFence", "without_writers"]

_ATTEMPTS: Final = 40
_MAX_THREADS: Final = 8


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
    with ThreadPoolExecutor(_MAX_THREADS) as pool:
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
