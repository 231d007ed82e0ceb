"""Ends a change that keeps writers away and whose process is gone; then the table is written again.

A column that was to be added, and a name that was to move, leave the rows as they were. A change of
the mode is turned back: it may have gone half of its way, and both ways have the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import TransactionModeChanged
from pennon.manifest.commits.mode_commit import end_change
from pennon.manifest.commits.waiting import wait_for_others
from pennon.manifest.format.change_notice import ALTERED, REPLACED
from pennon.manifest.format.properties import TRANSACTION
from pennon.manifest.registered_location import is_registered
from pennon.manifest.snapshot import Snapshot
from pennon.manifest.transaction_mode import change_under_way, check_mode
from pennon.transaction.mode_change import set_transaction_mode

if TYPE_CHECKING:
    from pennon.manifest.format.change_notice import ChangeNotice

__all__ = ["settled"]

_ATTEMPTS: Final = 5


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
    for attempt in range(_ATTEMPTS):
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
