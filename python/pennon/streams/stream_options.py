"""The options of ``spark.readStream``: where a stream begins, and what it passes over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

from pennon.errors import MalformedMessage, StreamOptionRefused

__all__ = [
    "BEGINNING",
    "LATEST",
    "STARTING_TIMESTAMP",
    "STARTING_VERSION",
    "STREAM_OPTIONS",
    "StreamOptions",
    "StreamPosition",
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
