"""Where a new stream begins: which of the versions that are left its options mean.

What a version added is told by comparison with the one before it, so that the oldest version that
is there is none to begin with.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from pennon.errors import StreamOptionRefused, StreamPositionExpired, StreamSourceRefused
from pennon.manifest.versions.manifest_history import versions_until
from pennon.streams.position_versions import opened, position_at
from pennon.streams.stream_options import LATEST, STARTING_TIMESTAMP, STARTING_VERSION
from pennon.streams.stream_position import BEGINNING, StreamPosition

if TYPE_CHECKING:
    from datetime import datetime

    from pennon.manifest import Snapshot
    from pennon.streams.stream_options import StreamOptions

__all__ = ["batch_start", "check_source"]

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
