"""Announces that versions are being removed, so that nobody relies on a new tag of one of them.

Whoever removes versions says so by a tag, of the oldest one that stays, before Lance looks which
versions have tags; whoever makes a tag looks for such a one behind that. So one sees the other. The
notice of a process that was killed is dropped by whoever meets it, on the same machine at once and
elsewhere when its time is over.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import lance

from pennon.errors import PennonError, TagNotFound
from pennon.manifest.dataset.storage import is_not_found, storage_failure
from pennon.manifest.versions.tags import Tag, drop_tag, expiring_name, tags_of, tags_to_change

__all__ = ["expiring", "wait_for_expiry"]

_ATTEMPTS: Final = 5
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
                tags_to_change(dataset).create(name, oldest_kept)
            else:
                newest = dataset.checkout_version(dataset.latest_version)
                newest.tags.create(name, newest.version)
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
