"""The identity of a table: DROP and CREATE at one path make another, with equal version numbers.

A namespace draws a secret when it is made and keeps it over all of its versions, so the secret
tells tables apart; one version of ``__manifest`` is told from another by its commit's time and
files as well, also where another writer has made it without a secret.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pennon.caching import version_identity
from pennon.errors import TableMadeAnew
from pennon.manifest.dataset.storage import open_manifest
from pennon.manifest.format.properties import SALT

if TYPE_CHECKING:
    import lance

    from pennon.manifest.snapshot import Snapshot

__all__ = ["check_same_table", "has_secret", "open_commit_base", "table_id"]


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
