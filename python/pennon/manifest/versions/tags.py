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
from typing import TYPE_CHECKING, Any, Final

import lance

from pennon.errors import PennonError, TagAlreadyExists, TagNotFound, TagRefused
from pennon.manifest.dataset.storage import storage_failure

if TYPE_CHECKING:
    from lance.dataset import Tags

__all__ = [
    "HELD",
    "MAIN",
    "Tag",
    "drop_tag",
    "expiring",
    "holding_name",
    "listed_names",
    "set_tag",
    "tagged_versions",
    "tags_of",
]

# Lance lists no tags at all any more where one has a letter beyond ASCII in its name.
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_RETAINED: Final = "pennon.max-ref-age-ms"
# What Lance and Iceberg call the line of versions itself; it names the newest of them.
MAIN: Final = "main"
_LISTINGS: Final = 9
_MILLISECOND: Final = timedelta(milliseconds=1)
# A tag that only holds a version while something reads it. Lance makes a tag before it can be told
# how long it is to hold, so its name says that, too, for whoever is killed between the two.
HELD: Final = timedelta(days=1)
_HOLDING: Final = re.compile(r"rollback-[0-9a-f]{16}")
# Whoever removes versions says so by a tag, of the oldest one that stays, before Lance looks which
# versions have tags; whoever makes a tag looks for such a one behind that. So one sees the other.
_EXPIRING: Final = re.compile(r"expire-[0-9a-f]{16}")
_EXPIRING_LASTS: Final = timedelta(hours=1)
_WAITS_SECONDS: Final = 30.0
_LOOKS_EACH_SECONDS: Final = 0.1


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
        return self.retain is not None and now - self.set_at > self.retain


def holding_name() -> str:
    """Give the name of a tag that holds a version for a rollback, and nobody's else.

    Example:
        >>> holding_name()  # doctest: +SKIP
        'rollback-3f0c95d1a2b47e68'
    """
    return f"rollback-{secrets.token_hex(8)}"


def tags_of(dataset: lance.LanceDataset) -> dict[str, Tag]:
    """Give the tags of the main line of versions, by name.

    Args:
        dataset: ``__manifest``, or a plain dataset, at any version.

    Raises:
        StorageFailure: The storage refused.
    """
    try:
        listed = _listed(dataset)
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
    tags = _listed(dataset)
    return {int(tag["version"]) for name, tag in tags.items() if name not in ignored}


def _listed(dataset: lance.LanceDataset) -> Mapping[str, Mapping[str, Any]]:
    """List the tags; again where one was dropped between its listing and its reading."""
    attempts = _LISTINGS
    while True:
        try:
            listed: Mapping[str, Mapping[str, Any]] = dataset.tags.list()
        except (OSError, ValueError) as error:
            attempts -= 1
            if not attempts or "not found" not in str(error).lower():
                raise
        else:
            return listed


def _tags_to_change(dataset: lance.LanceDataset) -> Tags:
    """Give the tags by an object that no other thread has, for Lance borrows it to change one."""
    return dataset.checkout_version(dataset.version).tags


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
    try:
        tags = _tags_to_change(dataset)
        if current is None:
            tags.create(name, version)
        else:
            tags.update(name, version)
        if retain is not None:
            stated = {_RETAINED: str(retain // _MILLISECOND)}
            tags.replace_metadata(name, {**tags.list()[name]["metadata"], **stated})
        # A clean-up that listed the tags just before may still remove the version, or has done so.
        is_sure = _wait_for_expiry(dataset, version)
        _check_is_there(dataset, version)
    except (OSError, RuntimeError, ValueError) as error:
        refused = _failure(dataset, name, version, table, error)
        if isinstance(refused, TagRefused):
            _take_back(dataset, name, current)
        raise refused from error
    if not is_sure:
        _take_back(dataset, name, current)
        why = f"versions before {version + 1} are being expired at this moment"
        advice = "Try again when that has ended, or tag a newer version"
        raise TagRefused(tag=name, table=table, why=why, advice=advice)
    return tags_of(dataset)[name]


@contextlib.contextmanager
def expiring(dataset: lance.LanceDataset, oldest_kept: int, *, table: str) -> Iterator[None]:
    """Let nobody rely on a new tag of an older version while the context is open.

    Args:
        dataset: ``__manifest``.
        oldest_kept: The oldest version behind all that are to go.
        table: The table's name, for errors.

    Raises:
        StorageFailure: The storage refused.
    """
    name = f"expire-{secrets.token_hex(8)}"
    try:
        _tags_to_change(dataset).create(name, oldest_kept)
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("expire versions of", table, error) from error
    try:
        yield
    finally:
        with contextlib.suppress(PennonError):  # it goes with the next expiry after its time
            drop_tag(dataset, name, table=table)


def _wait_for_expiry(dataset: lance.LanceDataset, version: int) -> bool:
    """Wait while versions as old as one are removed; whether that came to its end."""
    deadline = time.monotonic() + _WAITS_SECONDS
    while True:
        now = datetime.now(UTC)
        if not any(
            _EXPIRING.fullmatch(tag.name) and version < tag.version and not tag.is_over(now)
            for tag in tags_of(dataset).values()
        ):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOKS_EACH_SECONDS)


def _check_is_there(dataset: lance.LanceDataset, version: int) -> None:
    """Raise Lance's error where a version is gone; a dataset at that version does not look."""
    newest = dataset.checkout_version(dataset.latest_version)
    if newest.version != version:
        newest.checkout_version(version)


def _take_back(dataset: lance.LanceDataset, name: str, before: Tag | None) -> None:
    """Leave a tag as it was, so that none names what is gone."""
    if name not in tags_of(dataset):
        return
    tags = _tags_to_change(dataset)
    if before is None:
        tags.delete(name)
    else:
        tags.update(name, before.version)


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
        _tags_to_change(dataset).delete(name)
    except (OSError, RuntimeError, ValueError) as error:
        if name in tags_of(dataset):
            raise storage_failure("drop a tag of", table, error) from error


def check_name(name: str, table: str) -> None:
    """Refuse a name that no tag can have.

    Raises:
        TagRefused: Says why.
    """
    advice = "Use letters, digits, '.', '_' and '-', as in release-2026.1"
    if name.isdecimal():
        why = "VERSION AS OF would read a name of digits as a version"
    elif name.lower() == MAIN:
        why = f"{MAIN} is the line of versions itself"
    elif not _NAME.fullmatch(name):
        why = "a name has at most 128 of a few characters, the first of them no '.'"
    elif ".." in name or name.endswith((".", ".lock")):
        why = "a name holds no '..', and ends neither with '.' nor with '.lock'"
    else:
        return
    raise TagRefused(tag=repr(name), table=table, why=why, advice=advice)


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


def _failure(
    dataset: lance.LanceDataset, name: str, version: int, table: str, error: Exception
) -> Exception:
    """Say what a refused tag means."""
    if version in {int(entry["version"]) for entry in dataset.versions()}:
        return storage_failure("make a tag of", table, error)
    why = f"its version {version} is gone"
    advice = "Choose one of the versions that its metadata table snapshots lists"
    return TagRefused(tag=name, table=table, why=why, advice=advice)
