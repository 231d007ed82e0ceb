"""The transaction mode of a namespace, and the refusal of writes that it changed under.

While it changes, ``pennon.transaction`` says so, and every writer looks at it between its view of
what it builds on and its commit. What was begun in one mode is not committed in the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import TransactionModeChanged
from pennon.manifest.format.properties import CHANGING, TRANSACTION

if TYPE_CHECKING:
    from pennon.manifest.snapshot import Snapshot

__all__ = ["ALTERED", "REPLACED", "STRONG", "WEAK", "check_mode", "mode_of"]

STRONG: Final = "strong"
WEAK: Final = "weak"
ALTERED: Final = "altered"
"""No mode: a column is added that every row has to have a value in, and no row may come."""
REPLACED: Final = "replaced"
"""No mode: another table is about to get the name, and nothing may be written any more."""
_WHY_NOT: Final = {
    ALTERED: "a column that is NOT NULL is being added",
    REPLACED: "another table is being put in its place",
}


def mode_of(snapshot: Snapshot) -> str | None:
    """Give the mode that a namespace is written in.

    Returns:
        ``strong`` or ``weak``; None while it changes.
    """
    if snapshot.metadata.get(TRANSACTION, STRONG).startswith(CHANGING):
        return None
    return STRONG if snapshot.is_strong else WEAK


def check_mode(newest: Snapshot, wanted: str) -> None:
    """Refuse what was begun in another mode than there is now.

    Args:
        newest: The namespace as it is at this moment.
        wanted: The mode that the write was begun in.

    Raises:
        TransactionModeChanged: It is another one, or is being changed.
    """
    mode = mode_of(newest)
    if mode == wanted:
        return
    if mode is not None:
        why = f"its transactions became {mode} after the statement had begun"
        raise TransactionModeChanged(table=newest.location, why=why, advice="Run it again")
    target = newest.metadata[TRANSACTION].removeprefix(CHANGING).partition(" ")[0]
    if target in _WHY_NOT:
        raise TransactionModeChanged(
            table=newest.location,
            why=_WHY_NOT[target],
            advice="Run it again when that has ended. Where it was interrupted, call"
            f" lance.system.set_transaction_mode('{newest.location}', '{wanted}')",
        )
    raise TransactionModeChanged(
        table=newest.location,
        why=f"its transactions are being made {target}",
        advice="Run it again when that has ended. Where it was interrupted, call"
        f" lance.system.set_transaction_mode('{newest.location}', '{target}') again",
    )
