"""Tags: names of versions, which keep them and all that they read while the tag is there.

They are Lance's own tags, of ``__manifest`` or of a plain dataset: every Lance client sees them,
and Lance's clean-up keeps their versions. In strong mode a version of ``__manifest`` names the
version of each leaf, so that one tag holds the whole table.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import lance

from pennon.errors import PennonError, TagAlreadyExists, TagNotFound, TagRefused
from pennon.manifest.dataset.storage import (
    first_kept,
    held_versions,
    is_mark,
    is_not_found,
    listed_tags,
    storage_failure,
)
from pennon.manifest.format.properties import RunningProcess

if TYPE_CHECKING:
    from lance.dataset import Tags

__all__ = [
    "HELD",
    "MAIN",
    "Tag",
    "drop_tag",
    "drop_unchanged",
    "expiring",
    "holding_name",
    "listed_names",
    "set_tag",
    "tagged_versions",
    "tags_of",
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


def _create(dataset: lance.LanceDataset, name: str, version: int) -> None:
    """Make a tag; where a store's answer is lost, Lance asks again, and meets the tag it made."""
    try:
        tags_to_change(dataset).create(name, version)
    except (OSError, RuntimeError, ValueError) as error:
        made = tags_of(dataset).get(name) if "already exists" in str(error) else None
        if made is None or made.version != version:
            raise


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


_ATTEMPTS: Final = 5
# Announces that versions are being removed, so that nobody relies on a new tag of one of them.
#
# Whoever removes versions says so by a tag, of the oldest one that stays, before Lance looks which
# versions have tags; whoever makes a tag looks for such a one behind that. So one sees the other.
# The notice of a process that was killed is dropped by whoever meets it, on the same machine at
# once and elsewhere when its time is over.

_WAITS_SECONDS: Final = 30.0
_LOOKS_EACH_SECONDS: Final = 0.1


@contextlib.contextmanager
def expiring(dataset: lance.LanceDataset, oldest_kept: int, *, table: str) -> Iterator[str]:
    """Let nobody rely on a new tag of an older version while the context is open.

    Args:
        dataset: ``__manifest``, or a plain dataset.
        oldest_kept: The oldest version behind all that are to go; where another expiry has removed
            it, the newest says so of more versions.
        table: The table's name, for errors.

    Returns:
        The name of the tag that says so.

    Raises:
        StorageFailure: The storage refused.
    """
    name = expiring_name()
    for attempt in range(_ATTEMPTS):
        try:
            if attempt == 0:
                _create(dataset, name, oldest_kept)
            else:
                newest = dataset.checkout_version(dataset.latest_version)
                _create(newest, name, newest.version)
        except (OSError, RuntimeError, ValueError) as error:
            if not is_not_found(error) or attempt == _ATTEMPTS - 1:
                raise storage_failure("expire versions of", table, error) from error
        else:
            break
    try:
        yield name
    finally:
        with contextlib.suppress(PennonError):  # it goes with the next expiry after its time
            drop_tag(dataset, name, table=table)


def wait_for_expiry(dataset: lance.LanceDataset, version: int | None, *, table: str) -> Tag | None:
    """Wait while versions as old as one are removed.

    Args:
        dataset: ``__manifest``, or a plain dataset.
        version: The version; None for any.
        table: The table's name, for errors.

    Returns:
        The notice of an expiry that has not ended in time; None where there is none any more.

    Raises:
        StorageFailure: The storage refused.
    """
    deadline = time.monotonic() + _WAITS_SECONDS
    while True:
        notice = _notice(dataset, version, table)
        if notice is None or time.monotonic() > deadline:
            return notice
        time.sleep(_LOOKS_EACH_SECONDS)


def _notice(dataset: lance.LanceDataset, version: int | None, table: str) -> Tag | None:
    """Give a notice of an expiry that is under way, and drop those that nobody ends any more."""
    now = datetime.now(UTC)
    for tag in tags_of(dataset).values():
        if not tag.is_of_expiry or not (version is None or version < tag.version):
            continue
        if not tag.is_over(now):
            return tag
        with contextlib.suppress(TagNotFound):
            drop_tag(dataset, tag.name, table=table)
    return None


# Makes tags, and lets them name other versions, beside expiries that remove both.

# Lance lists no tags at all any more where one has a letter beyond ASCII in its name.
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_CLOCKS_DIFFER: Final = timedelta(minutes=5)


def set_tag(
    dataset: lance.LanceDataset,
    name: str,
    version: int,
    retain: timedelta | None = None,
    *,
    table: str,
    create: bool = True,
    replace: bool = False,
) -> Tag:
    """Make a tag, or let one name another version.

    Args:
        dataset: ``__manifest``, or a plain dataset.
        name: Letters, digits, ``.``, ``_`` and ``-``; not digits alone, which are a version.
        version: A version that is there.
        retain: How long it holds; None is for ever, and as before for a tag that is moved.
        table: The table's name, for errors.
        create: Whether there need be no such tag.
        replace: Whether there may be such a tag.

    Raises:
        TagRefused: No tag can have this name, or the version is gone.
        TagAlreadyExists: There is one, and it is not to be replaced.
        TagNotFound: There is none, and it is not to be created.
        StorageFailure: The storage refused.
    """
    check_name(name, table)
    existing = tags_of(dataset)
    current = existing.get(name)
    if current is not None and not replace:
        raise TagAlreadyExists(tag=name, table=table, version=current.version)
    if current is None and not create:
        raise TagNotFound(verb="replace", tag=name, table=table, known=listed_names(existing))
    if retain is None and current is not None:
        retain = current.retain
    for _ in range(_ATTEMPTS):
        try:
            _write(dataset, name, version, retain, is_new=current is None)
            if current is not None and current.is_over(datetime.now(UTC) + _CLOCKS_DIFFER):
                # An expiry that saw the tag just before may still drop it, whatever it names now.
                wait_for_expiry(dataset, None, table=table)
            # One that listed the tags just before may still remove the version, or has done so.
            notice = wait_for_expiry(dataset, version, table=table)
            _check_is_there(dataset, version)
            if _is_held_by_this_alone(dataset, name, version, current):
                _take_back(dataset, name, current)
                raise _gone(name, version, table)
        except (OSError, RuntimeError, ValueError) as error:
            refused = _failure(dataset, name, version, table, error)
            if isinstance(refused, TagRefused):
                _take_back(dataset, name, current)
            raise refused from error
        if notice is not None:
            _take_back(dataset, name, current)
            raise _expiring_meanwhile(name, notice, table)
        made = tags_of(dataset).get(name)
        if made is not None:
            return made
    why = "another process drops it each time"
    raise TagRefused(tag=name, table=table, why=why, advice="Try again when that has ended")


def _write(
    dataset: lance.LanceDataset, name: str, version: int, retain: timedelta | None, *, is_new: bool
) -> None:
    tags = tags_to_change(dataset)
    if is_new:
        _create(dataset, name, version)
    else:
        try:
            tags.update(name, version)
        except (OSError, RuntimeError, ValueError):
            if name in tags_of(dataset):
                raise
            _create(dataset, name, version)  # an expiry has dropped it
    if retain is None:
        return
    listed = tags.list().get(name)
    if listed is None:
        return
    stated = {**listed["metadata"], **stated_retention(retain)}
    if stated == listed["metadata"]:
        return
    try:
        tags.replace_metadata(name, stated)
    except (OSError, RuntimeError, ValueError):
        if name in tags_of(dataset):  # else an expiry has dropped it, which the caller sees
            raise


def _check_is_there(dataset: lance.LanceDataset, version: int) -> None:
    """Raise Lance's error where a version is gone; a dataset at that version does not look."""
    newest = dataset.checkout_version(dataset.latest_version)
    if newest.version != version:
        newest.checkout_version(version)


def _is_held_by_this_alone(
    dataset: lance.LanceDataset, name: str, version: int, before: Tag | None
) -> bool:
    """Whether a version had expired when it got the tag: no other one holds it, nor did this."""
    if version >= first_kept(dataset) or (before is not None and before.version == version):
        return False
    return version not in held_versions(dataset, ignored=[name])


def _take_back(dataset: lance.LanceDataset, name: str, before: Tag | None) -> None:
    """Leave a tag as it was, so that none names what is gone."""
    if name not in tags_of(dataset):
        return
    tags = tags_to_change(dataset)
    if before is None:
        tags.delete(name)
    else:
        tags.update(name, before.version)


def _expiring_meanwhile(name: str, notice: Tag, table: str) -> TagRefused:
    """Refuse a tag that an expiry may have missed."""
    began = notice.set_at.isoformat(timespec="seconds")
    why = (
        f"versions before {notice.version} are being expired at this moment, as its tag"
        f" {notice.name} says since {began}"
    )
    advice = "Try again when that has ended; drop that tag if its process was killed"
    return TagRefused(tag=name, table=table, why=why, advice=advice)


def check_name(name: str, table: str) -> None:
    """Refuse a name that no tag can have.

    Raises:
        TagRefused: Says why.
    """
    advice = "Use letters, digits, '.', '_' and '-', as in release-2026.1"
    if name.isdecimal():
        why = "VERSION AS OF would read a name of digits as a version"
    elif is_mark(name):
        why = "a tag of such a name says which versions have expired"
    elif name.lower() == MAIN:
        why = f"{MAIN} is the line of versions itself"
    elif not _NAME.fullmatch(name):
        why = "a name has at most 128 of a few characters, the first of them no '.'"
    elif ".." in name or name.endswith((".", ".lock")):
        why = "a name holds no '..', and ends neither with '.' nor with '.lock'"
    else:
        return
    raise TagRefused(tag=repr(name), table=table, why=why, advice=advice)


def _failure(
    dataset: lance.LanceDataset, name: str, version: int, table: str, error: Exception
) -> Exception:
    """Say what a refused tag means."""
    if version in {int(entry["version"]) for entry in dataset.versions()}:
        return storage_failure("make a tag of", table, error)
    return _gone(name, version, table)


def _gone(name: str, version: int, table: str) -> TagRefused:
    why = f"its version {version} is gone"
    advice = "Choose one of the versions that its metadata table snapshots lists"
    return TagRefused(tag=name, table=table, why=why, advice=advice)
