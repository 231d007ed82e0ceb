"""The transaction mode of a namespace, and the refusal of writes that it changed under.

While it changes, ``pennon.transaction`` says so, and every writer looks at it between its view of
what it builds on and its commit. What was begun in one mode is not committed in the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import TransactionModeChanged
from pennon.manifest.format.change_notice import ALTERED, REPLACED, ChangeNotice
from pennon.manifest.format.properties import MODES, STRONG, TRANSACTION, WEAK

if TYPE_CHECKING:
    from pennon.manifest.snapshot import Snapshot

__all__ = ["MODES", "STRONG", "WEAK", "change_under_way", "check_mode", "mode_of"]

_WHY_NOT: Final = {
    ALTERED: "a column that is NOT NULL is being added",
    REPLACED: "another table is being put in its place",
}


def change_under_way(snapshot: Snapshot) -> ChangeNotice | None:
    """Tell whose change keeps writers away; None where none does."""
    return ChangeNotice.read(snapshot.metadata.get(TRANSACTION, STRONG))


def mode_of(snapshot: Snapshot) -> str | None:
    """Give the mode that a namespace is written in.

    Returns:
        ``strong`` or ``weak``; None while it changes.
    """
    if change_under_way(snapshot) is not None:
        return None
    return STRONG if snapshot.is_strong else WEAK


def check_mode(newest: Snapshot, expected: str) -> None:
    """Refuse what was begun in another mode than there is now.

    Args:
        newest: The namespace as it is at this moment.
        expected: The mode that the write was begun in.

    Raises:
        TransactionModeChanged: It is another one, or is being changed.
    """
    notice = change_under_way(newest)
    if notice is not None:
        raise TransactionModeChanged(
            table=newest.location,
            why=_WHY_NOT.get(notice.target, f"its transactions are being made {notice.target}"),
            advice="Run it again when that has ended; a change whose process is gone is ended by"
            " the next writer, on another machine after ten minutes, or at once by CALL"
            f" lance.system.set_transaction_mode('{newest.location}', '{expected}')",
        )
    mode = mode_of(newest)
    if mode != expected:
        why = f"its transactions became {mode} after the statement had begun"
        raise TransactionModeChanged(table=newest.location, why=why, advice="Run it again")
