"""The versions that positions of a stream are at: opened, and known again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.errors import (
    SnapshotNotFound,
    StreamPositionExpired,
    TableMadeAnew,
    TableVersionNotFound,
)
from pennon.manifest.dataset.storage import version_numbers
from pennon.manifest.table_identity import has_secret, table_id
from pennon.manifest.versions.manifest_history import committed_at
from pennon.streams.stream_position import BEGINNING, StreamPosition

if TYPE_CHECKING:
    from datetime import datetime

    from pennon.manifest import Snapshot

__all__ = ["check_position", "opened", "opened_at", "position_at"]


def position_at(newest: Snapshot, version: int, awaited: datetime | None = None) -> StreamPosition:
    """Give the position behind the rows of a version.

    Args:
        newest: The table as it is.
        version: The version.
        awaited: The time before which no commit's rows are read, where the stream has one.

    Raises:
        StreamPositionExpired: The version has expired.
    """
    table = _id_of(newest)
    if version == BEGINNING or (awaited is None and has_secret(newest)):
        return StreamPosition(version, table)
    own = newest if version == newest.version else opened(newest, version)
    if awaited is not None and committed_at(own) >= awaited:
        awaited = None
    return StreamPosition(version, table, "" if has_secret(own) else own.identity, awaited)


def check_position(newest: Snapshot, position: StreamPosition) -> None:
    """Refuse to go on with another table than the one that a stream has read.

    Args:
        newest: The table as it is.
        position: How far it was read.

    Raises:
        TableMadeAnew: It is another one, or lacks versions that were read.
        StreamPositionExpired: The version that tells it has expired.
    """
    if position.identity or newest.version < position.version:
        opened_at(newest, position)
    else:
        _check_table(newest, position)


def opened_at(began: Snapshot, position: StreamPosition) -> Snapshot:
    """Open the version of a position.

    Args:
        began: The table at any version.
        position: How far it was read, not the beginning.

    Raises:
        TableMadeAnew: Another table stands there by now.
        StreamPositionExpired: The version has expired.
    """
    _check_table(began, position)
    version = opened(began, position.version)
    if position.identity and position.identity != version.identity:
        raise TableMadeAnew(table=began.location, location=began.location)
    return version


def opened(began: Snapshot, version: int) -> Snapshot:
    """Open a version that a stream reads, or has read.

    Args:
        began: The table at any version.
        version: The version.

    Raises:
        StreamPositionExpired: It has expired.
        TableMadeAnew: The table has not come so far: it is not the one that was read.
    """
    try:
        return began.at_version(version)
    except (SnapshotNotFound, TableVersionNotFound) as error:
        if version > max(version_numbers(began.manifest), default=version):
            raise TableMadeAnew(table=began.location, location=began.location) from error
        why = f"version {version} has expired"
        raise StreamPositionExpired(table=began.location, version=version, why=why) from error


def _check_table(snapshot: Snapshot, position: StreamPosition) -> None:
    # Not check_same_table: a plain dataset may have become a namespace, which has an id.
    if _id_of(snapshot) != position.table_id:
        raise TableMadeAnew(table=snapshot.location, location=snapshot.location)


def _id_of(snapshot: Snapshot) -> str:
    return table_id(snapshot) if snapshot.layout.records_commits else ""
