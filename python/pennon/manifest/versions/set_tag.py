"""Makes tags, and lets them name other versions, beside expiries that remove both."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import lance

from pennon.errors import TagAlreadyExists, TagNotFound, TagRefused
from pennon.manifest.dataset.expired_versions import first_kept, held_versions, is_mark
from pennon.manifest.dataset.storage import storage_failure
from pennon.manifest.versions.expiry_notice import wait_for_expiry
from pennon.manifest.versions.tags import (
    MAIN,
    Tag,
    listed_names,
    stated_retention,
    tags_of,
    tags_to_change,
)

__all__ = ["set_tag"]

# Lance lists no tags at all any more where one has a letter beyond ASCII in its name.
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_ATTEMPTS: Final = 5
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
        tags.create(name, version)
    else:
        try:
            tags.update(name, version)
        except (OSError, RuntimeError, ValueError):
            if name in tags_of(dataset):
                raise
            tags.create(name, version)  # an expiry has dropped it
    if retain is None:
        return
    listed = tags.list().get(name)
    if listed is None:
        return
    stated = {**listed["metadata"], **stated_retention(retain)}
    if stated != listed["metadata"]:
        tags.replace_metadata(name, stated)


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
