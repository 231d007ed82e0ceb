"""Where a new stream begins: which of the versions that are left its options mean.

What a version added is told by comparison with the one before it, so that the oldest version that
is there is none to begin with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from pennon.errors import (
    MalformedMessage,
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

if TYPE_CHECKING:
    from pennon.manifest import Snapshot

__all__ = [
    "BEGINNING",
    "STREAM_OPTIONS",
    "StreamOptions",
    "StreamPosition",
    "batch_start",
    "check_position",
    "check_source",
    "opened",
    "opened_at",
    "position_at",
]

BEGINNING: Final = 0
"""Stands for the version before any row."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Up to which version the rows of a table have been read.

    Args:
        version: The last version whose rows were; ``BEGINNING`` for none.
        table_id: Which table it is a position of, so that a checkpoint is of no use for another one
            of its name; empty for a table without an id.
        identity: What tells the version from the same one of another table; empty at the
            beginning, and where ``table_id`` tells them apart.
        awaited: The time before which no commit's rows are read; None once a commit has come
            behind it.

    Example:
        >>> StreamPosition.from_json(StreamPosition(7, "ab").to_json())
        StreamPosition(version=7, table_id='ab', identity='', awaited=None)
    """

    version: int
    table_id: str
    identity: str = ""
    awaited: datetime | None = None

    def to_json(self) -> str:
        """Write the position; equal ones have equal texts, by which Spark compares them."""
        written: dict[str, object] = {"version": self.version, "table": self.table_id}
        # Left out where there is none: so the positions of checkpoints that never had one read.
        if self.identity:
            written["identity"] = self.identity
        if self.awaited is not None:
            written["awaited"] = self.awaited.isoformat()
        return json.dumps(written)

    @classmethod
    def from_json(cls, text: str) -> StreamPosition:
        """Read the position.

        Raises:
            MalformedMessage: It is that of another source.
        """
        try:
            stored = json.loads(text)
        except json.JSONDecodeError:
            stored = None
        match stored:
            case {"version": int(version), "table": str(table_id)}:
                awaited = stored.get("awaited")
                moment = None if awaited is None else datetime.fromisoformat(awaited)
                return cls(version, table_id, stored.get("identity", ""), moment)
        raise MalformedMessage(why="the stream's checkpoint is that of another source")


# The options of ``spark.readStream``: where a stream begins, and what it passes over.

LATEST: Final = "latest"
"""As the first version: the one behind the newest."""

STARTING_VERSION: Final = "startingVersion"
STARTING_TIMESTAMP: Final = "startingTimestamp"
_SKIP: Final = "skipChangeCommits"
_MOST: Final = "maxVersionsPerTrigger"
STREAM_OPTIONS: Final = (STARTING_VERSION, STARTING_TIMESTAMP, _SKIP, _MOST)
"""The options of streams alone."""
_OWN: Final = {name.lower(): name for name in STREAM_OPTIONS}
_INSTEAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ignorechanges": _SKIP,
        "ignoredeletes": _SKIP,
        "streaming-skip-delete-snapshots": _SKIP,
        "streaming-skip-overwrite-snapshots": _SKIP,
        "stream-from-timestamp": STARTING_TIMESTAMP,
        "versionasof": STARTING_VERSION,
        "timestampasof": STARTING_TIMESTAMP,
        "maxfilespertrigger": _MOST,
        "maxbytespertrigger": _MOST,
        "streaming-max-files-per-micro-batch": _MOST,
        "streaming-max-rows-per-micro-batch": _MOST,
    }
)
"""What users of Delta and Iceberg write, in lower case, and the option that does it here."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream reads.

    Args:
        first_version: The first version whose added rows are read; None for all rows of the table
            as it is, then what is added.
        first_time: As ``first_version``, by the time of its commit.
        skips_changes: Whether commits that remove or change rows are passed over.
        most_versions: How many versions one batch covers at most; None for all that there are.
    """

    first_version: int | str | None = None
    first_time: datetime | None = None
    skips_changes: bool = False
    most_versions: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], table: str, time_zone: str = "UTC") -> StreamOptions:
        """Read the options that a user gave; names in any case.

        Args:
            options: Names and values; those of no stream's source are left alone.
            table: For errors.
            time_zone: The session's, for times without one.

        Raises:
            StreamOptionRefused: A value is not one of the option's, both options of the beginning
                are given, or one is another format's: says which to write.

        Example:
            >>> StreamOptions.of({"startingversion": "7", "skipChangeCommits": "TRUE"}, "t")
            StreamOptions(first_version=7, first_time=None, skips_changes=True, most_versions=None)
        """
        stated = {}
        for name, value in options.items():
            if name.lower() in _INSTEAD:
                why = "the option is another format's and would have no effect"
                raise _refused_option(table, name, value, why, f"Write {_INSTEAD[name.lower()]}")
            if name.lower() in _OWN:
                stated[_OWN[name.lower()]] = value.strip()
        if STARTING_VERSION in stated and STARTING_TIMESTAMP in stated:
            why = f"{STARTING_VERSION} says where the stream begins, too"
            value = stated[STARTING_TIMESTAMP]
            raise _refused_option(table, STARTING_TIMESTAMP, value, why, "Leave one of them out")
        return cls(
            _first_version(stated, table),
            _first_time(stated, table, time_zone),
            _is_true(stated, table),
            _most_versions(stated, table),
        )

    @staticmethod
    def stated_in(options: Mapping[str, str]) -> str | None:
        """Give the first option that means something for a stream alone, as it is written.

        Example:
            >>> StreamOptions.stated_in({"header": "true", "startingversion": "7"})
            'startingversion'
        """
        return next((name for name in options if name.lower() in _OWN), None)


def _first_version(stated: Mapping[str, str], table: str) -> int | str | None:
    value = stated.get(STARTING_VERSION)
    if value is None or value.lower() == LATEST:
        return value and LATEST
    if not value.isdecimal() or int(value) < 1:
        why = "a version is a whole number from 1 on"
        raise _refused_option(table, STARTING_VERSION, value, why, f"Write a number, or {LATEST}")
    return int(value)


def _first_time(stated: Mapping[str, str], table: str, time_zone: str) -> datetime | None:
    value = stated.get(STARTING_TIMESTAMP)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        why = "it is no time"
        advice = "Write it as 2025-12-10 or 2025-12-10 09:15:00"
        raise _refused_option(table, STARTING_TIMESTAMP, value, why, advice) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=ZoneInfo(time_zone))


def _is_true(stated: Mapping[str, str], table: str) -> bool:
    value = stated.get(_SKIP, "false")
    if value.lower() not in ("true", "false"):
        raise _refused_option(
            table, _SKIP, value, "it is neither true nor false", "Write true or false"
        )
    return value.lower() == "true"


def _most_versions(stated: Mapping[str, str], table: str) -> int | None:
    value = stated.get(_MOST)
    if value is None:
        return None
    if not value.isdecimal() or int(value) < 1:
        why = "a batch covers one version at least"
        raise _refused_option(table, _MOST, value, why, "Write a whole number from 1 on")
    return int(value)


def _refused_option(
    table: str, option: str, value: str, why: str, advice: str
) -> StreamOptionRefused:
    return StreamOptionRefused(table=table, option=option, value=value, why=why, advice=advice)


# The versions that positions of a stream are at: opened, and known again.


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
