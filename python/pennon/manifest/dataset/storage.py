"""Opening the Lance table ``__manifest``: paths, versions, times, and what each failure means."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import lance
from lance.dataset import Version

from pennon.caching import storage_identity, version_time
from pennon.caching.lance_sessions import (
    copied_versions,
    lance_session,
    newest_seen,
    opening,
    saw_newest,
)
from pennon.errors import (
    InternalError,
    NamespaceHasNoManifest,
    PennonError,
    SnapshotNotFound,
    StorageFailure,
    StorageFull,
    TableNotFound,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = [
    "MANIFEST",
    "StorageOptions",
    "VersionTimes",
    "address",
    "first_kept",
    "held_versions",
    "is_conflict",
    "is_damaged",
    "is_mark",
    "is_not_found",
    "is_of_storage",
    "listed_tags",
    "listed_versions",
    "manifest_uri",
    "mark_expired",
    "open_manifest",
    "present_numbers",
    "present_versions",
    "reading_failure",
    "storage_failure",
    "storage_problem",
    "version_numbers",
]

# Recognises Lance's errors that mean a concurrent commit won.

_CONFLICT_WORDS = ("too many concurrent writers", "commit conflict", "incompatible transaction")


def is_conflict(error: Exception) -> bool:
    """Whether Lance's error means that a concurrent commit came first.

    Lance has one class for some of these errors and OSError for the others.
    """
    message = str(error).lower()
    return any(words in message for words in _CONFLICT_WORDS)


# Versions of ``__manifest`` that have expired, and stay on the disk for Lance to compare with.
#
# Lance tells whether a commit meets others by the transactions of the versions between its base and
# the newest one. Where these were removed it finds nothing and rebases blind: a deletion hits a row
# that has moved on, and the new row stands beside it. And where the number of a version is free
# again, a writer that has stood still just before its last step writes that old number, and its
# commit is lost behind newer ones. So a version that expires is first only *marked*: nobody reads
# it any more, and what it alone needed of leaves goes at once. Its own files, a few kilobytes, go
# when no commit can have begun before the next version was there: see ``WRITER_GRACE``.
#
# The mark is a tag of the oldest version that stays. All before it have expired but those that
# another tag holds. A mark is never moved: an expiry makes a new one and drops those of older
# versions, so that of two at once the later one counts. Who tags a version looks for the mark
# behind that, and who marks looks for tags behind that: one sees the other, however long either
# stands still.

_MARK: Final = re.compile(r"expired-[0-9a-f]{16}")
# What an expiry says of itself while it runs, as ``tags`` makes such a name: it holds nothing.
_NOTICE: Final = re.compile(r"expire-[0-9a-f]{16}(-[0-9a-f-]+)?")
_TAG_LISTINGS: Final = 9

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
    attempts = _TAG_LISTINGS
    while True:
        try:
            listed: _Tags = dict(dataset.tags.list())
        except (OSError, ValueError) as error:
            attempts -= 1
            if not attempts or "not found" not in str(error).lower():
                raise
        else:
            return listed


# Which version a table had at a time, as far as the versions that are left show it.
#
# Versions are numbered without gaps, so that a number which is missing is of a version that has
# expired. A tag keeps an old version alone: what came behind it is gone, and the tagged version is
# not what the table had until the next one that is there.

_MOST_RANGES: Final = 5


@dataclass(frozen=True, slots=True)
class VersionTimes:
    """The versions that are left, at least one of them.

    Args:
        committed_at: When each was committed, zoned.
    """

    committed_at: Mapping[int, datetime]

    @staticmethod
    def of(versions: Iterable[Version]) -> VersionTimes:
        """Take what Lance lists."""
        return VersionTimes(
            {int(version["version"]): version_time(version) for version in versions}
        )

    def at(self, asked: datetime) -> int | None:
        """Find the newest version at a time; None where it has expired, or there was none yet.

        Args:
            asked: The time; without a zone in UTC.

        Example:
            >>> from datetime import datetime
            >>> days = {at: datetime(2024, 1, at, tzinfo=UTC) for at in (1, 4, 5)}
            >>> [VersionTimes(days).at(datetime(2024, 1, at)) for at in (1, 2, 4, 9)]
            [1, None, 4, 5]
        """
        asked = _zoned(asked)
        past = [version for version, made in self.committed_at.items() if made <= asked]
        if not past or (self._after_gap(max(past)) and self.committed_at[max(past)] != asked):
            return None
        return max(past)

    def _after_gap(self, version: int) -> int | None:
        """Give the next version that is there; None where none between has expired."""
        later = [existing for existing in self.committed_at if existing > version]
        return min(later) if later and min(later) > version + 1 else None

    def why_none(self, asked: datetime) -> str:
        """Say why no version is known for a time, as a clause."""
        asked = _zoned(asked)
        past = [version for version, made in self.committed_at.items() if made <= asked]
        if not past:
            first = min(self.committed_at.values())
            return f"its first version is of {first.isoformat()}"
        kept, following = max(past), self._after_gap(max(past))
        between = [kept] if following is None else [kept, following]
        nearest = " and ".join(
            f"{version} of {self.committed_at[version].isoformat()}" for version in between
        )
        return f"the versions of that time have expired, those around them are {nearest}"

    def existing(self, version: int) -> str:
        """Say which versions there are, for one that is not among them, as a clause.

        Example:
            >>> from datetime import datetime
            >>> kept = VersionTimes(dict.fromkeys((2, 6, 7, 8), datetime(2024, 1, 1)))
            >>> kept.existing(3)
            'it has expired, and its versions are 2 and 6 to 8'
            >>> kept.existing(9)
            'its versions are 2 and 6 to 8'
        """
        versions = sorted(self.committed_at)
        starts = [
            versions[0],
            *(after for before, after in pairwise(versions) if after > before + 1),
        ]
        ends = [
            *(before for before, after in pairwise(versions) if after > before + 1),
            versions[-1],
        ]
        ranges = [
            str(first) if first == last else f"{first} to {last}"
            for first, last in zip(starts, ends, strict=True)
        ]
        more = ["…"] if len(ranges) > _MOST_RANGES else []
        *before, last = [*more, *ranges[-_MOST_RANGES:]]
        listed = f"{', '.join(before)} and {last}" if before else last
        is_expired = 0 < version < versions[-1]
        return f"{'it has expired, and ' if is_expired else ''}its versions are {listed}"


def _zoned(asked: datetime) -> datetime:
    return asked if asked.tzinfo is not None else asked.replace(tzinfo=UTC)


MANIFEST: Final = "__manifest"

# The folder of a table whose name has digits that Pennon drew for it: no other one gets it.
_DRAWN: Final = re.compile(r"/[0-9a-f]{8}_[^/$]+[$][^/]+$")
_LISTINGS: Final = 8
_OF_VERSION: Final = ".manifest"
_LISTED_AGAIN_SECONDS: Final = 0.1

StorageOptions = Mapping[str, str]

_POSITION: Final = re.compile(r"(, (location: )?\S*/\S+\.rs:\d+:\d+)+")

# What stands before Lance's own message: the names of its callers.
_CALLERS: Final = re.compile(r"^.*?(?=LanceError\()")

# What an object store's client prints of itself, before and behind what happened.
_TRIES: Final = re.compile(
    r"( in [\d.]+[a-zµ]+)?(, after \d+ retries, max_retries: \d+, retry_timeout: \w+)?\s+- "
)
_DETAILS: Final = re.compile(
    r"(, after \d+ retries|,? source:|, \w+ \{|: <\?xml|: \w+\(\w+ \{"
    r"|(?<=error sending request)\W).*"
)
_QUOTED: Final = re.compile(r'\w \{ source: "((?:[^"\\]|\\.)+)"')
# An object store's answer: it may name the key, so no more of it is shown.
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_STATUS: Final = re.compile(r"\bstatus(?: code)?: ([45]\d\d)\b")
_MESSAGE: Final = re.compile(r"<Message>\s*([^<\r\n]*[^<\s.])")
_ADDRESS: Final = re.compile(r"\w+://\S+")
_LONGEST_PROBLEM: Final = 300
_OF_DAMAGE: Final = (
    "sufficient data",
    "file size is too small",
    "footer",
    "corrupt",
    "magic",
    "checksum",
    "protobuf",
)
_ADVICE: Final = (
    (
        ("object store provider", "unable to parse url"),
        "Check the address and its scheme, as in s3://, gs:// or az://",
    ),
    (
        ("expiredtoken", "token has expired", "tokenrefreshrequired"),
        "Renew the credentials, which have expired",
    ),
    (
        ("requesttimetooskewed", "clock"),
        "Set the clock of this machine, which is not that of the store",
    ),
    (
        ("signaturedoesnotmatch", "invalidaccesskeyid", "authenticationfailed", "invalidtoken"),
        "Check the access key and its secret",
    ),
    (
        ("failed to get aws credentials", "401 unauthorized"),
        "State credentials: as storage options, in the environment or by the machine's role",
    ),
    (
        ("nosuchbucket", "containernotfound", "permanentredirect", "301 moved"),
        "Check the name of the bucket and its region: it has to be there, nobody makes it",
    ),
    (
        ("slowdown", "serverbusy", "toomanyrequests", "503 ", "429 "),
        "The store is overloaded: run it again later, or with a smaller PENNON_STORE_LEAVES",
    ),
    (
        ("accessdenied", "authorizationpermissionmismatch", "403 "),
        "Give these credentials the right to list, read, write and delete there",
    ),
    (
        ("builder error",),
        "Check the endpoint; one of http:// needs the storage option allow_http = true",
    ),
    (
        (*_OF_DAMAGE, "invalid", "decode"),
        "A file there is damaged: restore it from a copy, or drop the table",
    ),
    (
        ("dns", "connect", "timed out", "timeout", "error sending request", "unreachable"),
        "Check the address, the network and the storage options",
    ),
)


_HADOOPS_S3: Final = re.compile(r"s3[an]://", re.IGNORECASE)


def address(place: str) -> str:
    """Give a path or URL as Lance takes it: Hadoop's names of S3 are s3.

    Example:
        >>> address("s3a://bucket/lake"), address("/data/lake")
        ('s3://bucket/lake', '/data/lake')
    """
    return _HADOOPS_S3.sub("s3://", place, count=1) if _HADOOPS_S3.match(place) else place


def manifest_uri(location: str) -> str:
    """Give the address of a namespace's ``__manifest``.

    Example:
        >>> manifest_uri("/data/lake/orders/")
        '/data/lake/orders/__manifest'
    """
    return f"{location.rstrip('/')}/{MANIFEST}"


def open_manifest(
    location: str,
    version: int | None = None,
    timestamp: datetime | None = None,
    storage_options: StorageOptions | None = None,
    *,
    is_read_only: bool = False,
    is_expired_too: bool = False,
    is_kept: bool = False,
) -> lance.LanceDataset:
    """Open ``__manifest`` at a version, as of a time, or at its latest version.

    Args:
        location: Path or URL of the namespace.
        version: Version of ``__manifest``, or None.
        timestamp: The last version committed at or before this time; zone-less means UTC.
        storage_options: Given to Lance.
        is_read_only: Whether nothing is committed on top of it. Lance then remembers what it has
            read; of the transactions behind a commit it would remember the numbers alone, which
            a table made anew at this place has as well.
        is_expired_too: Whether to open a version that has expired, too, as long as it is there.
        is_kept: Whether nobody makes another namespace at the location, as at a catalog's root.

    Raises:
        NamespaceHasNoManifest: There is no ``__manifest`` at the location.
        SnapshotNotFound: There is no such version, or the one of that time has expired.
        StorageFailure: The storage refused; the options are not part of the error.
    """
    if version is None and timestamp is None and is_read_only:
        return _newest(location, storage_options, is_kept=is_kept)
    if version is None or timestamp is not None:
        dataset = _open(location, None, storage_options, is_read_only=is_read_only)
        if timestamp is not None:
            version = _version_as_of(dataset, location, timestamp)
        if version is None or version == dataset.version:
            return dataset
    elif is_read_only and "://" not in location:
        # Mostly it is the latest, which Lance finds on a disk in a quarter of the time; a store
        # would be waited for twice. What is wrong with the latest need not be with this one.
        with contextlib.suppress(PennonError):
            dataset = _open(location, None, storage_options, is_read_only=True)
            if dataset.version == version:
                return dataset
    try:
        dataset = _open(location, version, storage_options, is_read_only=is_read_only)
    except (NamespaceHasNoManifest, OverflowError) as error:
        dataset = _open(location, None, storage_options, is_read_only=is_read_only)
        raise _not_found(dataset, location, version or 0) from error
    try:
        is_gone = not is_expired_too and is_expired(dataset, int(dataset.version))
    except (OSError, ValueError) as error:
        raise storage_failure("list the tags of", location, error) from error
    if is_gone:
        raise _not_found(dataset, location, int(dataset.version))
    return dataset


def _newest(
    location: str, storage_options: StorageOptions | None, *, is_kept: bool
) -> lance.LanceDataset:
    """Open the newest version to read it; on a store mostly without a listing."""
    if "://" not in location:
        return _open(location, None, storage_options, is_read_only=True)
    uri, asked_at = manifest_uri(location), time.monotonic()
    is_drawn = _DRAWN.search(location.rstrip("/")) is not None
    seen = newest_seen(uri, storage_options, is_made_anew=not (is_kept or is_drawn))
    if seen is not None:
        return seen
    dataset = _open(location, None, storage_options, is_read_only=True)
    saw_newest(uri, storage_options, dataset, asked_at)
    return dataset


def _not_found(dataset: lance.LanceDataset, location: str, version: int) -> SnapshotNotFound:
    return SnapshotNotFound(
        location=location,
        asked=f"at version {version}",
        existing=VersionTimes.of(listed_versions(dataset)).existing(version),
    )


def _open(
    location: str,
    version: int | None,
    storage_options: StorageOptions | None,
    *,
    is_read_only: bool,
) -> lance.LanceDataset:
    session = lance_session(storage_identity(storage_options)) if is_read_only else None
    for attempt in range(_LISTINGS):
        try:
            return lance.dataset(
                **opening(manifest_uri(location), storage_options), version=version, session=session
            )
        except (OSError, ValueError) as error:
            # Lance lists the versions and reads the newest, which may expire in between.
            is_of_version = version is None and _OF_VERSION in str(error)
            if is_not_found(error) and is_of_version and attempt < _LISTINGS - 1:
                continue
            if isinstance(error, ValueError) and is_not_found(error):
                raise NamespaceHasNoManifest(location=location) from error
            raise storage_failure("open", location, error) from error
    raise InternalError(what="no version is opened")


def listed_versions(manifest: lance.LanceDataset) -> Sequence[Version]:
    """List the versions of ``__manifest`` that have not expired, with their times.

    Args:
        manifest: The table at any version; or a plain dataset.

    Raises:
        StorageFailure: The storage refused.
    """
    present = present_versions(manifest)  # and then the tags: who drops one does not bring back
    first, held = _first_and_held(manifest)
    return [entry for entry in present if (v := int(entry["version"])) >= first or v in held]


def _first_and_held(manifest: lance.LanceDataset) -> tuple[int, set[int]]:
    """Give the version before which all have expired, and those before it that tags hold."""
    try:
        tags = _listed(manifest)
    except (OSError, ValueError) as error:
        raise storage_failure("list the tags of", str(manifest.uri), error) from error
    first = max(_marks(tags).values(), default=0)
    return first, _held(tags) if first else set()


def present_versions(manifest: lance.LanceDataset) -> Sequence[Version]:
    """List the versions of ``__manifest`` that are on the disk, those that have expired among them.

    Lance lists their files and then reads each; one that is removed in between makes it fail, and
    is not listed the next time.

    Args:
        manifest: The table at any version; or a plain dataset.

    Raises:
        StorageFailure: The storage refused.
    """
    for attempt in range(_LISTINGS):
        try:
            if "://" in str(manifest.uri):  # Lance reads one after the other
                numbers = present_numbers(manifest)
                options = manifest.initial_storage_options or {}
                copied = copied_versions(manifest, numbers, options, with_rows=False)
                if len(copied) == len(numbers):
                    return [copied[number].get_version() for number in sorted(numbers)]
            return list(manifest.versions())
        except (OSError, ValueError) as error:
            if not is_not_found(error) or attempt == _LISTINGS - 1:
                raise storage_failure("list the versions of", manifest.uri, error) from error
        time.sleep(_LISTED_AGAIN_SECONDS * attempt)
    raise InternalError(what="no versions are listed")


def present_numbers(manifest: lance.LanceDataset) -> set[int]:
    """List the numbers of ``present_versions``, which none of them is read for."""
    try:
        return {int(entry["version"]) for entry in manifest.version_refs()}
    except (OSError, ValueError) as error:
        raise storage_failure("list the versions of", manifest.uri, error) from error


def version_numbers(manifest: lance.LanceDataset) -> list[int]:
    """List the numbers of the versions of ``__manifest``, ascending; as ``listed_versions``."""
    present = present_numbers(manifest)
    first, held = _first_and_held(manifest)
    return sorted(version for version in present if version >= first or version in held)


def _version_as_of(dataset: lance.LanceDataset, location: str, timestamp: datetime) -> int:
    times = VersionTimes.of(listed_versions(dataset))
    version = times.at(timestamp)
    if version is None:
        asked = timestamp if timestamp.tzinfo is not None else timestamp.replace(tzinfo=UTC)
        raise SnapshotNotFound(
            location=location,
            asked=f"as of {asked.astimezone(UTC).isoformat()}",
            existing=times.why_none(timestamp),
        )
    return version


def is_of_storage(error: Exception) -> bool:
    """Whether an error is the storage's: Lance has several classes for those of files beside data.

    Example:
        >>> is_of_storage(RuntimeError("LanceError(IO): no answer")), is_of_storage(RuntimeError())
        (True, False)
    """
    words = ("LanceError(IO)", "External error: Not found", "RetryError(")
    return isinstance(error, OSError) or any(word in str(error) for word in words)


def is_not_found(error: Exception) -> bool:
    """Whether an error tells that a file or a version is gone, as others remove it meanwhile."""
    text = str(error).lower()
    return "not found" in text and "nosuchbucket" not in text


def is_damaged(error: Exception) -> bool:
    """Whether an error tells of what stands in a file, not of a storage that does not answer.

    Example:
        >>> is_damaged(OSError("LanceError(IO): file size is too small"))
        True
    """
    text = str(error).lower()
    return any(word in text for word in _OF_DAMAGE)


def reading_failure(manifest: lance.LanceDataset, error: Exception) -> PennonError:
    """Make the error of a version of ``__manifest`` that cannot be read.

    Args:
        manifest: The version, which may have expired since it was opened.
        error: Lance's.
    """
    version = int(manifest.version)
    if is_not_found(error):
        with contextlib.suppress(StorageFailure):
            listed = listed_versions(manifest)
            location = str(manifest.uri).rstrip("/").removesuffix(f"/{MANIFEST}")
            if not listed:
                return TableNotFound(table=location, near="it was dropped meanwhile")
            if version not in {int(entry["version"]) for entry in listed}:
                return SnapshotNotFound(
                    location=location,
                    asked=f"at version {version}",
                    existing=VersionTimes.of(listed).existing(version),
                )
    return storage_failure("read", manifest.uri, error)


def storage_failure(verb: str, location: str, error: Exception) -> StorageFailure:
    """Make the error of a storage that refused: Lance's message without its source positions."""
    if "no space left" in str(error).lower():
        return StorageFull(verb=verb, location=location)
    if "file name too long" in str(error).lower():
        return StorageFailure(
            verb=verb,
            location=location,
            problem="a name in it is longer than the file system takes",
            advice="Choose a shorter one, of 255 bytes or less",
        )
    problem = storage_problem(error)
    lowered = _ADDRESS.sub("", problem).lower()
    advice = next(
        (text for words, text in _ADVICE if any(word in lowered for word in words)),
        "Check the path, the permissions and the storage options",
    )
    return StorageFailure(verb=verb, location=location, problem=problem, advice=advice)


def storage_problem(error: Exception) -> str:
    """Give what Lance says of a failure, in one line and without the places in its sources.

    Example:
        >>> storage_problem(OSError("External error: LanceError(IO): no answer, /lance/io.rs:1:2"))
        'LanceError(IO): no answer'
        >>> storage_problem(OSError("403: <Error><Code>AccessDenied</Code></Error>"))
        'the store answers AccessDenied'
    """
    text = str(error).strip()
    code, message = _CODE.search(text), _MESSAGE.search(text)
    if code is not None:
        said = "" if message is None else f" ({message[1]})"
        status = _STATUS.search(text)
        number = "" if status is None else f"{status[1]} "
        return f"the store answers {number}{code[1]}{said}"[:_LONGEST_PROBLEM]
    quoted = _QUOTED.search(text)
    if quoted is not None:
        text = quoted[1].partition("\\n")[0]
    first_line = _TRIES.sub(": ", _CALLERS.sub("", text.partition("\n")[0]))
    return _DETAILS.sub("", _POSITION.sub("", first_line))[:_LONGEST_PROBLEM].rstrip(". ")
