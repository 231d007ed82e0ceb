"""Opening the Lance table ``__manifest``: paths, versions, times, and what each failure means."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import lance
from lance.dataset import Version

from pennon.caching import storage_identity
from pennon.caching.lance_sessions import lance_session
from pennon.errors import (
    InternalError,
    NamespaceHasNoManifest,
    PennonError,
    SnapshotNotFound,
    StorageFailure,
    StorageFull,
    TableNotFound,
)
from pennon.manifest.dataset.expired_versions import first_kept, held_versions, is_expired
from pennon.manifest.dataset.version_times import VersionTimes

__all__ = [
    "MANIFEST",
    "StorageOptions",
    "is_damaged",
    "is_not_found",
    "is_of_storage",
    "listed_versions",
    "manifest_uri",
    "open_manifest",
    "present_versions",
    "reading_failure",
    "storage_failure",
    "storage_problem",
    "version_numbers",
]

MANIFEST: Final = "__manifest"

_LISTINGS: Final = 8
_OF_VERSION: Final = ".manifest"
_LISTED_AGAIN_SECONDS: Final = 0.1

StorageOptions = Mapping[str, str]

_POSITION: Final = re.compile(r"(, (location: )?\S*/\S+\.rs:\d+:\d+)+")

# What stands before Lance's own message: the names of its callers.
_CALLERS: Final = re.compile(r"^.*?(?=LanceError\()")

# What an object store's client prints of itself behind what happened.
_DETAILS: Final = re.compile(
    r"(, after \d+ retries|,? source:|, \w+ \{|(?<=error sending request)\W).*"
)
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
        (*_OF_DAMAGE, "invalid", "decode"),
        "A file there is damaged: restore it from a copy, or drop the table",
    ),
    (
        ("dns", "connect", "timed out", "timeout", "error sending request", "unreachable"),
        "Check the address, the network and the storage options",
    ),
)


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

    Raises:
        NamespaceHasNoManifest: There is no ``__manifest`` at the location.
        SnapshotNotFound: There is no such version, or the one of that time has expired.
        StorageFailure: The storage refused; the options are not part of the error.
    """
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
                manifest_uri(location),
                version=version,
                storage_options=dict(storage_options or {}),
                session=session,
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
    try:
        first = first_kept(manifest)
        held = held_versions(manifest) if first else set()
    except (OSError, ValueError) as error:
        raise storage_failure("list the tags of", str(manifest.uri), error) from error
    return [entry for entry in present if (v := int(entry["version"])) >= first or v in held]


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
            return list(manifest.versions())
        except (OSError, ValueError) as error:
            if not is_not_found(error) or attempt == _LISTINGS - 1:
                raise storage_failure("list the versions of", manifest.uri, error) from error
        time.sleep(_LISTED_AGAIN_SECONDS * attempt)
    raise InternalError(what="no versions are listed")


def version_numbers(manifest: lance.LanceDataset) -> list[int]:
    """List the numbers of the versions of ``__manifest``, ascending; as ``listed_versions``."""
    return sorted(int(entry["version"]) for entry in listed_versions(manifest))


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
    words = ("LanceError(IO)", "External error: Not found")
    return isinstance(error, OSError) or any(word in str(error) for word in words)


def is_not_found(error: Exception) -> bool:
    """Whether an error tells that a file or a version is gone, as others remove it meanwhile."""
    return "not found" in str(error).lower()


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
    lowered = problem.lower()
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
    """
    first_line = _CALLERS.sub("", str(error).strip().partition("\n")[0])
    return _DETAILS.sub("", _POSITION.sub("", first_line))[:_LONGEST_PROBLEM].rstrip(". ")
