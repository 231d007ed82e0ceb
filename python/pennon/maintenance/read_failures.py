"""Tells a read's failure by its cause where what it reads went while it was read.

Files of a dropped table, or of an expired version, go one by one, so that any of many errors may
come first, and each would send its reader to look for lost files. Python knows the version that it
reads; a task knows the places of tables and of leaves alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pennon.catalog.layouts.plain_snapshot import open_plain
from pennon.catalog.layouts.stored_tables import open_location
from pennon.errors import (
    LeafMissing,
    NamespaceHasNoManifest,
    PennonError,
    SnapshotExpired,
    StorageFailure,
    TableNotFound,
)
from pennon.execution.engine_failures import VALUE_FAILURES
from pennon.leaf.dataset import FIRST_DETACHED
from pennon.maintenance.expire import named_versions
from pennon.manifest.dataset.storage import open_manifest, version_numbers
from pennon.manifest.table_identity import check_same_table, table_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.execution import Relation
    from pennon.manifest import Snapshot

__all__ = ["naming_causes", "naming_causes_at"]

_DROPPED: Final = "it was dropped or replaced while it was read"


@contextmanager
def naming_causes(relations: Sequence[Relation]) -> Iterator[None]:
    """Raise failures of the statements within as that of a table, or a version, that went.

    Args:
        relations: What the task reads.

    Raises:
        TableNotFound: Nothing is at the place of one of the tables.
        SnapshotExpired: No version of one of the tables reads a missing leaf at this version.
    """
    try:
        yield
    except (ConnectionError, *VALUE_FAILURES):  # it is the asking side that went
        raise
    except (PennonError, OSError, ValueError) as error:
        for relation in relations:
            if not _is_there(relation):
                raise TableNotFound(table=relation.namespace, near=_DROPPED) from error
            if isinstance(error, LeafMissing) and _has_expired(relation):
                raise SnapshotExpired(table=relation.namespace) from error
        raise


@contextmanager
def naming_causes_at(snapshot: Snapshot) -> Iterator[None]:
    """Raise failures of the statements within as that of a table, or a version, that went.

    Args:
        snapshot: What is read.

    Raises:
        TableNotFound: Nothing is at its place any more.
        TableMadeAnew: Another table is.
        SnapshotExpired: The version is gone, and with it what it alone read.

    Example:
        >>> with naming_causes_at(snapshot):  # doctest: +SKIP
        ...     open_leaf(snapshot.location, leaf)
        Traceback (most recent call last):
        pennon.errors.SnapshotExpired: [SNAPSHOT_EXPIRED] Cannot read /data/lake/orders: …
    """
    try:
        yield
    except (LeafMissing, StorageFailure, OSError) as error:
        location, storage = snapshot.location, snapshot.storage_options
        try:
            newest = open_location(location, None, None, storage)
        except (PennonError, OSError):  # it does not say: so the first failure is told
            raise error from error.__cause__
        if newest is None:
            raise TableNotFound(table=location, near=_DROPPED) from error
        check_same_table(newest, table_id(snapshot))
        # Where leaves are read at their newest versions, nothing of them goes with a version.
        if snapshot.names_leaf_versions and snapshot.version not in _versions_of(newest):
            raise SnapshotExpired(table=location) from error
        raise


def _versions_of(newest: Snapshot) -> list[int]:
    try:
        return version_numbers(newest.manifest)
    except (PennonError, OSError):
        return [newest.version]


def _is_there(relation: Relation) -> bool:
    """Whether a table is at its place; so it is where the storage does not say."""
    place, storage_options = relation.namespace, relation.storage_options
    try:
        open_manifest(place, None, None, storage_options)
    except NamespaceHasNoManifest:
        try:
            return open_plain(place, None, None, storage_options) is not None
        except (PennonError, OSError):
            return True
    except (PennonError, OSError):
        return True
    return True


def _has_expired(relation: Relation) -> bool:
    """Whether leaves are read at versions that the table does not name any more.

    A detached version is read by those versions of the table alone that name it.
    """
    place, storage_options = relation.namespace, relation.storage_options
    try:
        versions = version_numbers(open_manifest(place, None, None, storage_options))
        named = named_versions(place, versions, storage_options)
    except (PennonError, OSError):
        return False
    return any(
        leaf.version is not None
        and leaf.version >= FIRST_DETACHED
        and (leaf.location, leaf.version) not in named
        for leaf in relation.leaves
    )
