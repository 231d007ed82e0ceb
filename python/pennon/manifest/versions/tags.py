"""Tags: names of versions, which keep them and all that they read while the tag is there.

They are Lance's own tags, of ``__manifest`` or of a plain dataset: every Lance client sees them,
and Lance's clean-up keeps their versions. In strong mode a version of ``__manifest`` names the
version of each leaf, so that one tag holds the whole table.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import lance

from pennon.errors import TagNotFound
from pennon.manifest.dataset.expired_versions import listed_tags
from pennon.manifest.dataset.storage import storage_failure
from pennon.manifest.format.running_process import RunningProcess

if TYPE_CHECKING:
    from lance.dataset import Tags

__all__ = [
    "HELD",
    "MAIN",
    "Tag",
    "drop_tag",
    "drop_unchanged",
    "expiring_name",
    "holding_name",
    "listed_names",
    "stated_retention",
    "tagged_versions",
    "tags_of",
    "tags_to_change",
]

_RETAINED: Final = "pennon.max-ref-age-ms"
# What Lance and Iceberg call the line of versions itself; it names the newest of them.
MAIN: Final = "main"
_MILLISECOND: Final = timedelta(milliseconds=1)
# A tag that only holds a version while something reads it. Lance makes a tag before it can be told
# how long it is to hold, so its name says that, too, for whoever is killed between the two.
HELD: Final = timedelta(days=1)
_HOLDING: Final = re.compile(r"rollback-[0-9a-f]{16}")
# A tag that tells that versions before its own are being removed, as ``expiry_notice`` has it. Its
# name says by whom, too: nobody ends it where that process was killed.
_EXPIRING: Final = re.compile(
    r"expire-[0-9a-f]{16}(-(?P<machine>[0-9a-f]{16})-(?P<process>[0-9]+-[0-9]+))?"
)
_EXPIRING_LASTS: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Tag:
    """A name of a version.

    Args:
        name: Its name.
        version: The version that it names.
        set_at: When it was made or last moved, in UTC.
        retain: How long after ``set_at`` it holds; then ``expire_snapshots`` drops it. None is for
            ever.
    """

    name: str
    version: int
    set_at: datetime
    retain: timedelta | None = None

    def is_over(self, now: datetime) -> bool:
        """Tell whether it need not be kept any more."""
        notice = _EXPIRING.fullmatch(self.name)
        if notice is not None and notice["machine"]:
            by = RunningProcess(notice["machine"], notice["process"].replace("-", "@"))
            if by.is_gone():
                return True
        return self.retain is not None and now - self.set_at > self.retain

    @property
    def is_of_expiry(self) -> bool:
        """Whether it tells that versions before its own are being removed."""
        return _EXPIRING.fullmatch(self.name) is not None


def holding_name() -> str:
    """Give the name of a tag that holds a version for a rollback, and nobody's else.

    Example:
        >>> holding_name()  # doctest: +SKIP
        'rollback-3f0c95d1a2b47e68'
    """
    return f"rollback-{secrets.token_hex(8)}"


def expiring_name() -> str:
    """Give the name of a tag by which this process tells that it removes versions.

    Example:
        >>> expiring_name()  # doctest: +SKIP
        'expire-3f0c95d1a2b47e68-91f5c07b2a6dd843-4711-1093822'
    """
    by = RunningProcess.of_this_one()
    process = f"-{by.machine}-{by.process.replace('@', '-')}" if by.machine and by.process else ""
    return f"expire-{secrets.token_hex(8)}{process}"


def stated_retention(retain: timedelta) -> dict[str, str]:
    """Give what a tag's metadata says of how long it holds."""
    return {_RETAINED: str(retain // _MILLISECOND)}


def tags_of(dataset: lance.LanceDataset) -> dict[str, Tag]:
    """Give the tags of the main line of versions, by name.

    Args:
        dataset: ``__manifest``, or a plain dataset, at any version.

    Raises:
        StorageFailure: The storage refused.
    """
    try:
        listed = listed_tags(dataset)
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("list the tags of", str(dataset.uri), error) from error
    return {name: _tag(name, tag) for name, tag in sorted(listed.items()) if tag["branch"] is None}


def tagged_versions(dataset: lance.LanceDataset, ignored: Collection[str] = ()) -> set[int]:
    """Give the versions that tags hold, those of branches among them.

    Args:
        dataset: ``__manifest``, a plain dataset or a leaf.
        ignored: Tags that hold nothing any more.

    Raises:
        OSError: The storage refused.
    """
    tags = listed_tags(dataset)
    return {int(tag["version"]) for name, tag in tags.items() if name not in ignored}


def tags_to_change(dataset: lance.LanceDataset) -> Tags:
    """Give the tags by an object that no other thread has, for Lance borrows it to change one."""
    return dataset.checkout_version(dataset.version).tags


def drop_tag(dataset: lance.LanceDataset, name: str, *, table: str) -> None:
    """Remove a tag; its version goes when versions of its age expire.

    Args:
        dataset: ``__manifest``, or a plain dataset.
        name: The tag.
        table: The table's name, for errors.

    Raises:
        TagNotFound: There is none.
        StorageFailure: The storage refused.
    """
    existing = tags_of(dataset)
    if name not in existing:
        raise TagNotFound(verb="drop", tag=name, table=table, known=listed_names(existing))
    try:
        tags_to_change(dataset).delete(name)
    except (OSError, RuntimeError, ValueError) as error:
        if name in tags_of(dataset):
            raise storage_failure("drop a tag of", table, error) from error


def drop_unchanged(dataset: lance.LanceDataset, tag: Tag, *, table: str) -> bool:
    """Remove a tag that is as it was listed; whether it was, and is gone by this.

    Lance drops a tag by its name alone. Who moves it behind this look has to look again behind an
    expiry that is announced.

    Args:
        dataset: ``__manifest``, or a plain dataset.
        tag: The tag, as it was listed.
        table: The table's name, for errors.

    Raises:
        StorageFailure: The storage refused.
    """
    if tags_of(dataset).get(tag.name) != tag:
        return False
    try:
        drop_tag(dataset, tag.name, table=table)
    except TagNotFound:  # another expiry drops it, too
        return False
    return True


def listed_names(tags: Mapping[str, Tag]) -> str:
    """Tell the names in an error.

    Example:
        >>> listed_names({})
        'it has no tags'
    """
    return f"its tags are {', '.join(sorted(tags))}" if tags else "it has no tags"


def _tag(name: str, listed: Mapping[str, object]) -> Tag:
    moment = listed["updated_at"] or listed["created_at"]
    metadata = listed["metadata"]
    text = metadata.get(_RETAINED, "") if isinstance(metadata, Mapping) else ""
    retain = int(text) * _MILLISECOND if text.isdecimal() else None
    if retain is None and _HOLDING.fullmatch(name):
        retain = HELD
    if retain is None and _EXPIRING.fullmatch(name):
        retain = _EXPIRING_LASTS
    # A tag of an older Lance says no time: as old as can be, and without a limit of Pennon's.
    set_at = moment if isinstance(moment, datetime) else datetime.fromtimestamp(0, UTC)
    return Tag(name, int(str(listed["version"])), set_at, retain)
