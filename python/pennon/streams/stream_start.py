"""Where a new stream begins: which of the versions that are left its options mean.

What a version added is told by comparison with the one before it, so that the oldest version that
is there is none to begin with.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from pennon.errors import (
    SnapshotNotFound,
    StreamOptionRefused,
    StreamPositionExpired,
    StreamSourceRefused,
    TableMadeAnew,
    TableVersionNotFound,
)
from pennon.manifest.dataset.storage import version_numbers
from pennon.manifest.table_identity import has_secret, table_id
from pennon.manifest.versions.history import committed_at, versions_until
from pennon.streams.stream_options import (
    BEGINNING,
    LATEST,
    STARTING_TIMESTAMP,
    STARTING_VERSION,
    StreamPosition,
)

if TYPE_CHECKING:
    from datetime import datetime

    from pennon.manifest import Snapshot
    from pennon.streams.stream_options import StreamOptions

__all__ = ["batch_start", "check_position", "check_source", "opened", "opened_at", "position_at"]


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


_COMPARED: Final = "the rows that a version added are told by comparison with the one before it"


def check_source(snapshot: Snapshot) -> None:
    """Refuse a table whose versions do not tell which rows a commit added.

    Raises:
        StreamSourceRefused: Its partitions are read at what is their newest version.
    """
    if not snapshot.names_leaf_versions:
        why = "it leaves open at which versions partitions are read, so that none are kept"
        raise StreamSourceRefused(table=snapshot.location, why=why)


def batch_start(newest: Snapshot, options: StreamOptions) -> StreamPosition:
    """Find where a new stream begins.

    Args:
        newest: The table as it is.
        options: The stream's.

    Raises:
        StreamSourceRefused: The table cannot be read as a stream.
        StreamOptionRefused: The versions before the first one are not there.
    """
    check_source(newest)
    first, moment = options.first_version, options.first_time
    if first == LATEST:
        return position_at(newest, newest.version)
    if isinstance(first, int):
        return _behind(newest, first)
    if moment is not None:
        return _before(newest, moment)
    return position_at(newest, BEGINNING)


def _behind(newest: Snapshot, first: int) -> StreamPosition:
    """Give the position behind the version before the first one."""
    following = newest.version + 1
    if first > following:
        why = f"its newest version is {newest.version}"
        advice = f"Write {following}, or {LATEST}, to begin with what comes"
        raise _refused(newest, STARTING_VERSION, str(first), why, advice)
    if first - 1 in (BEGINNING, newest.version):
        return position_at(newest, first - 1)
    try:
        opened(newest, first - 1)
    except StreamPositionExpired as error:
        why = f"{_COMPARED}, and version {first - 1} has expired"
        oldest = _without_gaps(versions_until(newest)["version"].to_pylist()) + 1
        raise _refused(
            newest, STARTING_VERSION, str(first), why, _advice(f"{oldest} or later")
        ) from error
    return position_at(newest, first - 1)


def _before(newest: Snapshot, moment: datetime) -> StreamPosition:
    """Give the position before the first commit at or after a time, which may be to come."""
    listed = versions_until(newest)
    times = dict(
        zip(listed["version"].to_pylist(), listed["committed_at"].to_pylist(), strict=True)
    )
    oldest = _without_gaps(list(times))
    before = max((one for one, made in times.items() if made < moment), default=BEGINNING)
    if before < oldest and (before != BEGINNING or min(times) > 1):
        why = f"{_COMPARED}, and versions of that time have expired"
        following = times.get(oldest + 1)
        known = f"{STARTING_VERSION} = {LATEST}"
        if following is not None:
            known = f"{following.isoformat(sep=' ')} or later"
        raise _refused(newest, STARTING_TIMESTAMP, moment.isoformat(), why, _advice(known))
    return position_at(newest, before, moment if before == newest.version else None)


def _without_gaps(versions: list[int]) -> int:
    """Give the oldest version from which on none has expired; one that a tag keeps is older.

    Example:
        >>> _without_gaps([2, 6, 7, 8])
        6
    """
    numbered = zip(reversed(versions), range(versions[-1], 0, -1), strict=False)
    return [version for version, _ in takewhile(lambda pair: pair[0] == pair[1], numbered)][-1]


def _advice(first: str) -> str:
    return f"Write {first}, or leave the option out to begin with the whole table"


def _refused(
    newest: Snapshot, option: str, value: str, why: str, advice: str
) -> StreamOptionRefused:
    return StreamOptionRefused(
        table=newest.location, option=option, value=value, why=why, advice=advice
    )
