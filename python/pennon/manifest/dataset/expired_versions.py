"""Versions of ``__manifest`` that have expired, and stay on the disk for Lance to compare with.

Lance tells whether a commit meets others by the transactions of the versions between its base and
the newest one. Where these were removed it finds nothing and rebases blind: a deletion hits a row
that has moved on, and the new row stands beside it. And where the number of a version is free
again, a writer that has stood still just before its last step writes that old number, and its
commit is lost behind newer ones. So a version that expires is first only *marked*: nobody reads it
any more, and what it alone needed of leaves goes at once. Its own files, a few kilobytes, go when
no commit can have begun before the next version was there: see ``WRITER_GRACE``.

The mark is a tag of the oldest version that stays. All before it have expired but those that
another tag holds. A mark is never moved: an expiry makes a new one and drops those of older
versions, so that of two at once the later one counts. Who tags a version looks for the mark behind
that, and who marks looks for tags behind that: one sees the other, however long either stands
still.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from typing import TYPE_CHECKING, Any, Final

from pennon.errors import PennonError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import lance

__all__ = ["first_kept", "held_versions", "is_expired", "is_mark", "listed_tags", "mark_expired"]

_MARK: Final = re.compile(r"expired-[0-9a-f]{16}")
# What an expiry says of itself while it runs, as ``tags`` makes such a name: it holds nothing.
_NOTICE: Final = re.compile(r"expire-[0-9a-f]{16}(-[0-9a-f-]+)?")
_LISTINGS: Final = 9

_Tags = dict[str, "Mapping[str, Any]"]


def listed_tags(dataset: lance.LanceDataset) -> _Tags:
    """List the tags that hold versions, as Lance tells of them: all but the marks.

    Args:
        dataset: ``__manifest``, a plain dataset or a leaf.

    Raises:
        OSError: The storage refused.
    """
    return {name: tag for name, tag in _listed(dataset).items() if not is_mark(name)}


def is_mark(name: str) -> bool:
    """Whether a tag marks what has expired, and holds nothing for anyone.

    Example:
        >>> is_mark("expired-3f0c95d1a2b47e68"), is_mark("expired")
        (True, False)
    """
    return _MARK.fullmatch(name) is not None


def held_versions(dataset: lance.LanceDataset, ignored: Collection[str] = ()) -> set[int]:
    """Give the versions that tags hold, however old they are.

    Args:
        dataset: ``__manifest``.
        ignored: Tags that are not asked.

    Raises:
        OSError: The storage refused.
    """
    return _held(_listed(dataset), ignored)


def first_kept(dataset: lance.LanceDataset) -> int:
    """Give the version before which all have expired that no tag holds; 0 where none has.

    Raises:
        OSError: The storage refused.
    """
    return max(_marks(_listed(dataset)).values(), default=0)


def is_expired(dataset: lance.LanceDataset, version: int) -> bool:
    """Whether a version has expired, be its files still there or not.

    Raises:
        OSError: The storage refused.
    """
    tags = _listed(dataset)
    return version < max(_marks(tags).values(), default=0) and version not in _held(tags)


def mark_expired(dataset: lance.LanceDataset, version: int) -> None:
    """Let all versions before one expire that no tag holds.

    Args:
        dataset: ``__manifest``.
        version: One that is there, and that stays.

    Raises:
        OSError: The storage refused.
    """
    if first_kept(dataset) >= version:
        return
    try:
        _tags_to_change(dataset).create(f"expired-{secrets.token_hex(8)}", version)
    except (OSError, ValueError):
        if first_kept(dataset) < version:  # else another expiry is further than this one
            raise
    marks = _marks(_listed(dataset))
    for name, marked in marks.items():
        if marked < max(marks.values()):
            with contextlib.suppress(PennonError, OSError, ValueError):  # dropped by another
                _tags_to_change(dataset).delete(name)


def _held(tags: _Tags, ignored: Collection[str] = ()) -> set[int]:
    return {
        int(tag["version"])
        for name, tag in tags.items()
        if name not in ignored and not is_mark(name) and not _NOTICE.fullmatch(name)
    }


def _marks(tags: _Tags) -> dict[str, int]:
    return {name: int(tag["version"]) for name, tag in tags.items() if is_mark(name)}


def _tags_to_change(dataset: lance.LanceDataset) -> Any:
    """Give the tags by an object that no other thread has, for Lance borrows it to change one."""
    return dataset.checkout_version(dataset.version).tags


def _listed(dataset: lance.LanceDataset) -> _Tags:
    """List the tags; again where one was dropped between its listing and its reading."""
    attempts = _LISTINGS
    while True:
        try:
            listed: _Tags = dict(dataset.tags.list())
        except (OSError, ValueError) as error:
            attempts -= 1
            if not attempts or "not found" not in str(error).lower():
                raise
        else:
            return listed
