"""The identity of a table: DROP and CREATE at one path make another, with equal version numbers.

A namespace draws a secret when it is made and keeps it over all of its versions, so the secret
tells tables apart; one version of ``__manifest`` is told from another by its commit's time and
files as well, also where another writer has made it without a secret.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from pennon.caching import version_identity
from pennon.errors import TableMadeAnew, TransactionModeChanged
from pennon.manifest.dataset.storage import open_manifest
from pennon.manifest.format.properties import (
    ALTERED,
    MODES,
    REPLACED,
    SALT,
    STRONG,
    TRANSACTION,
    WEAK,
    ChangeNotice,
)

if TYPE_CHECKING:
    import lance

    from pennon.manifest.snapshot import Snapshot

__all__ = [
    "MODES",
    "STRONG",
    "WEAK",
    "change_under_way",
    "check_mode",
    "check_same_table",
    "has_secret",
    "mode_of",
    "open_commit_base",
    "table_id",
]

# The transaction mode of a namespace, and the refusal of writes that it changed under.
#
# While it changes, ``pennon.transaction`` says so, and every writer looks at it between its view of
# what it builds on and its commit. What was begun in one mode is not committed in the other.

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


def table_id(snapshot: Snapshot) -> str:
    """Give what all versions of a table have in common and no other table has.

    It reveals nothing about the secret that it is made of.

    Args:
        snapshot: Any version.
    """
    return hashlib.blake2b(snapshot.salt, digest_size=8).hexdigest()


def has_secret(snapshot: Snapshot) -> bool:
    """Whether the ``table_id`` is the table's alone.

    That of a plain dataset is not, nor that of a namespace of another writer: one that is made
    with the same first spec has it as well.

    Args:
        snapshot: Any version.
    """
    return SALT in snapshot.metadata


def check_same_table(snapshot: Snapshot, identity: str) -> None:
    """Refuse to go on with another table than the one that was seen before.

    Args:
        snapshot: What is at the location now.
        identity: The ``table_id`` of what was there; empty where nobody kept it.

    Raises:
        TableMadeAnew: It is another one.
    """
    if identity and table_id(snapshot) != identity:
        raise TableMadeAnew(table=snapshot.location, location=snapshot.location)


def open_commit_base(snapshot: Snapshot) -> lance.LanceDataset:
    """Open the version of ``__manifest`` that a change was made against, to commit the change.

    Args:
        snapshot: The version.

    Raises:
        SnapshotNotFound: It has expired.
        TableMadeAnew: Another table with a version of that number stands there by now.
        StorageFailure: The storage refused.

    Spec: "Commit Behavior".
    """
    location, options = snapshot.location, snapshot.storage_options
    # A commit on an expired version is compared with those behind it as long as it is there.
    base = open_manifest(location, snapshot.version, storage_options=options, is_expired_too=True)
    if version_identity(base) != snapshot.identity:
        raise TableMadeAnew(table=location, location=location)
    return base
