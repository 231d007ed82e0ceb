"""Lance's own memory of files and its clients of stores, one per storage identity.

A dataset that is opened with a session of its own reads anew what the last one has read, and costs
five times as much to open. What Lance remembers of a version goes by the tag of its file, too: a
dataset made anew at the place of another one is not taken for it.
"""

from __future__ import annotations

import json
import logging
import math
import struct
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import lance
from lance.file import LanceFileSession

from pennon.caching.cache import Cache, TableKey, storage_identity, version_identity

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FIRST_DETACHED",
    "copied_versions",
    "file_session",
    "forget_newest",
    "forget_sessions",
    "lance_options",
    "lance_session",
    "limit_sessions",
    "manifest_in",
    "near",
    "newest_seen",
    "opening",
    "saw_newest",
    "vended",
    "version_path",
]

_LOG = logging.getLogger(__name__)

_SESSIONS: Final = 4
# Beside a pool of queries, what Lance remembers is a part of it at most.
_SHARE_OF_POOL: Final = 4


class _Remembered:
    """What a session of Lance remembers of files and of their indexes, in bytes."""

    metadata_bytes = 256 << 20
    index_bytes = 512 << 20


# What Lance remembers of files is no secret of one session to another one with its credentials.
_sessions: Final[Cache[lance.Session]] = Cache(
    "Lance sessions", max_bytes=_SESSIONS, weigh=lambda _: 1
)


def limit_sessions(pool_bytes: int) -> None:
    """Bound what Lance remembers of files by the memory that queries may take.

    Args:
        pool_bytes: The size of the pool in bytes. Sessions that are there keep their bounds.

    Example:
        >>> limit_sessions(8 << 30)
    """
    most = pool_bytes // _SHARE_OF_POOL
    _Remembered.metadata_bytes = min(_Remembered.metadata_bytes, most)
    _Remembered.index_bytes = min(_Remembered.index_bytes, most)


def lance_session(storage: str) -> lance.Session:
    """Give the session of a storage identity, which all threads of the process share.

    Args:
        storage: As ``storage_identity`` gives it.

    Example:
        >>> from pennon.caching import storage_identity
        >>> lance_session(storage_identity(None)) is lance_session(storage_identity({}))
        True
    """
    return _sessions.find(
        TableKey("", 0, "", storage),
        lambda: lance.Session(
            metadata_cache_size_bytes=_Remembered.metadata_bytes,
            index_cache_size_bytes=_Remembered.index_bytes,
        ),
    )


# The client of a store is dear to make, and each has connections of its own.
_clients: Final[Cache[LanceFileSession]] = Cache("stores", max_bytes=64, weigh=lambda _: 1)


def file_session(place: str, storage_options: Mapping[str, str] | None = None) -> LanceFileSession:
    """Give the client by which all threads of the process ask for files below a place.

    Args:
        place: Path or URL.
        storage_options: Given to Lance.
    """
    options = lance_options(storage_options)  # which it does not renew
    key = TableKey(place.rstrip("/"), 0, "", storage_identity(options))
    return _clients.find(key, lambda: LanceFileSession(place, storage_options=options))


def forget_sessions() -> None:
    """Drop what Lance remembers, for all storage identities."""
    _sessions.forget(lambda _: True)


# Credentials that a service gives for one table, and for a time.
#
# Which table, and where to ask, stands among the storage options themselves, under one key: so it
# goes wherever they go, into plans and tasks, and stays the same while the credentials change. What
# Lance is given is asked for when it is given; a dataset that is open asks by itself before they
# expire.

VENDED: Final = "pennon.vended"
_EXPIRES: Final = "expires_at_millis"
# Before they expire, or of others after which time they are asked for again.
_MARGIN_SECONDS: Final = 60
_KEPT_SECONDS: Final = 300
_SHARE_OF_LIFE: Final = 10
# Each has a client of its service.
_TABLES: Final = 1024


def vended(
    storage_options: Mapping[str, str],
    implementation: str,
    options: Mapping[str, str],
    table: Sequence[str],
) -> dict[str, str]:
    """Give the storage options of a table whose credentials its namespace may give.

    Args:
        storage_options: Of the catalog; what is given for the table comes before them.
        implementation: Of ``lance_namespace``.
        options: What it is connected with.
        table: The table's name there.
    """
    asked = {"implementation": implementation, "options": dict(options), "table": list(table)}
    return {**storage_options, VENDED: json.dumps(asked, sort_keys=True)}


def lance_options(storage_options: Mapping[str, str] | None) -> dict[str, str] | None:
    """Give storage options as Lance takes them, with the credentials that are valid now.

    Example:
        >>> lance_options({"aws_region": "eu-west-1"}), lance_options({})
        ({'aws_region': 'eu-west-1'}, None)
    """
    if not storage_options or VENDED not in storage_options:
        return dict(storage_options or {}) or None
    own = {key: value for key, value in storage_options.items() if key != VENDED}
    return {**own, **_table_of(storage_options[VENDED]).credentials()} or None


def opening(uri: str, storage_options: Mapping[str, str] | None) -> dict[str, Any]:
    """Give the arguments by which ``lance.dataset`` opens an address.

    Args:
        uri: The dataset.
        storage_options: Its own, or those of a table whose namespace gives credentials.
    """
    options = lance_options(storage_options)
    if options is None or VENDED not in (storage_options or {}) or _EXPIRES not in options:
        return {"uri": uri, "storage_options": options}
    return {"namespace_client": _renewing(uri, dict(storage_options or {})), "table_id": [uri]}


def _renewing(uri: str, storage_options: Mapping[str, str]) -> object:
    """Give a dataset as Lance asks for it before its credentials expire."""
    # Workers that meet no such options do without the client of services.
    import lance_namespace as upstream  # noqa: PLC0415

    class Renewing(upstream.LanceNamespace):  # type: ignore[misc]
        def namespace_id(self) -> str:
            """Name it and whose credentials it has: what Lance knows of a store goes by this."""
            return f"pennon {uri} {storage_identity(storage_options)}"

        def describe_table(self, request: Any) -> Any:
            """Give the address and the credentials."""
            del request
            options = lance_options(storage_options)
            return upstream.DescribeTableResponse(location=uri, storage_options=options)

    return Renewing()


class _VendedTable:
    """A table of a service, and the credentials that it gave last. Threads may share it."""

    def __init__(self, text: str) -> None:
        asked = json.loads(text)
        self._table = asked["table"]
        self._service = asked["implementation"], asked["options"]
        self._client: Any = None
        self._given: dict[str, str] = {}
        self._renewed_at = 0.0
        self._lock = Lock()

    def credentials(self) -> dict[str, str]:
        """Give what is valid for a while; nothing where the service gives none."""
        with self._lock:
            if time.time() >= self._renewed_at:
                self._renew()
            return self._given

    def _renew(self) -> None:
        import lance_namespace as upstream  # noqa: PLC0415 - as above
        from lance_namespace import errors as upstream_errors  # noqa: PLC0415

        request = upstream.DescribeTableRequest(id=self._table, vend_credentials=True)
        try:
            self._client = self._client or upstream.connect(*self._service)
            given = self._client.describe_table(request).storage_options
        except (upstream_errors.LanceNamespaceError, ValueError, OSError, RuntimeError) as error:
            # A table that it only names, or a service that is away: what was given counts on.
            _LOG.info("no credentials are given for %s: %s", ".".join(self._table), error)
            given = self._given
        self._given = {str(key): str(value) for key, value in (given or {}).items()}
        now = time.time()
        self._renewed_at = now + _KEPT_SECONDS
        if _EXPIRES in self._given:
            left = int(self._given[_EXPIRES]) / 1000 - now
            self._renewed_at = now + max(
                left - max(_MARGIN_SECONDS, left / _SHARE_OF_LIFE), left / 2
            )


# One that goes is asked for anew when its table is read again.
@lru_cache(maxsize=_TABLES)
def _table_of(text: str) -> _VendedTable:
    return _VendedTable(text)


# Copies of the files of ``__manifest`` on a store, from which its rows are read.
#
# Lance asks for each part of each file, and again for each query. The files of a version are small
# and never change, so that one request each brings them, side by side, and the next version needs
# those that are new.

_MOST_COPIED: Final = 8 << 20
_MOST_IN_FOLDER: Final = 64 << 20
_AT_ONCE: Final = 32
_LAST_VERSION: Final = (1 << 64) - 1
# The end of a manifest's file: where the manifest begins, the format's version, and who wrote it.
_FOOTER: Final = struct.Struct("<QHH4s")
_LENGTH: Final = struct.Struct("<I")
_MAGIC: Final = b"LANC"


def manifest_in(content: bytes) -> bytes | None:
    """Give the manifest in a file of one; None where the file is not as Lance writes it."""
    if len(content) < _FOOTER.size:
        return None
    start, _, _, magic = _FOOTER.unpack_from(content, len(content) - _FOOTER.size)
    if magic != _MAGIC or start + _LENGTH.size > len(content):
        return None
    (length,) = _LENGTH.unpack_from(content, start)
    manifest = content[start + _LENGTH.size :][:length]
    return manifest if len(manifest) == length else None


class _Copies:
    """A folder of copies of a dataset's files; it goes when nobody reads it any more."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pennon-")
        self._place = Path(self._folder.name)
        self._uri, self._options = uri, options
        self._lock = Lock()
        self._brought: dict[str, Future[int]] = {}
        self.num_bytes = 0
        for name in ("data", "_deletions", "_versions"):
            (self._place / name).mkdir()

    def bring(self, paths: Sequence[str]) -> set[str]:
        """Copy the files that are not here yet; give those that could not be had."""
        with ThreadPoolExecutor(_AT_ONCE) as pool, self._lock:
            missing = [path for path in dict.fromkeys(paths) if path not in self._brought]
            for path in missing:
                self._brought[path] = pool.submit(self._copied, path)
        asked = {path: self._brought.get(path) for path in paths}
        lost = {path for path, copy in asked.items() if copy is None or copy.exception()}
        with self._lock:
            for path in lost:
                self._brought.pop(path, None)
            self.num_bytes += sum(
                self._brought[path].result() for path in missing if path not in lost
            )
        return lost

    def _copied(self, path: str) -> int:
        copy = self._place / path
        file_session(self._uri, self._options).download_file(path, str(copy))
        return copy.stat().st_size

    def opened(self, version: int, manifest: bytes | None = None) -> lance.LanceDataset | None:
        """Open a version of which all files are here; without a manifest that of its file."""
        file = self._place / version_path(version)
        if manifest is None:
            manifest = manifest_in(file.read_bytes())
            if manifest is None:
                return None
        else:
            file.touch()  # Lance looks whether it is there
        dataset = lance.LanceDataset(
            str(self._place), version, serialized_manifest=manifest, session=lance_session("")
        )
        dataset._copies = self  # type: ignore[attr-defined]  # noqa: SLF001 - keeps the folder
        return dataset


_COPIES: Final[Cache[_Copies]] = Cache("copies of manifests", max_bytes=16, weigh=lambda _: 1)
_NEAR: Final[Cache[lance.LanceDataset]] = Cache("copied versions", max_bytes=64, weigh=lambda _: 1)


def near(
    manifest: lance.LanceDataset, key: TableKey, options: Mapping[str, str]
) -> lance.LanceDataset:
    """Give a version of ``__manifest`` to read rows of: on a store copies of small files.

    Args:
        manifest: The version.
        key: The namespace at that version.
        options: The storage options.
    """
    if "://" not in key.location:
        return manifest
    kept = _NEAR.peek(key)
    if kept is not None:
        return kept
    if manifest.has_stable_row_ids or manifest.describe_indices():
        return manifest
    num_bytes = _bytes_of(manifest)
    if num_bytes is None or num_bytes > _MOST_COPIED:
        return manifest
    uri, place = str(manifest.uri), TableKey(key.location, 0, "", key.storage)
    try:
        copies = _COPIES.find(place, lambda: _Copies(uri, options))
        if copies.num_bytes > _MOST_IN_FOLDER:
            copies = _Copies(uri, options)
            _COPIES.keep(place, copies)
        is_here = not copies.bring(_files_of(manifest))
        stated = manifest._ds.serialized_manifest()  # noqa: SLF001
        copied = copies.opened(int(manifest.version), stated) if is_here else None
    except (OSError, RuntimeError, ValueError):  # Lance reads it where it is, or says why not
        return manifest
    if copied is not None:
        _NEAR.keep(key, copied)
    return manifest if copied is None else copied


def copied_versions(
    manifest: lance.LanceDataset,
    versions: Iterable[int],
    options: Mapping[str, str],
    *,
    with_rows: bool,
) -> dict[int, lance.LanceDataset]:
    """Open versions of a dataset on a store as copies, which are brought side by side.

    Args:
        manifest: The dataset at any version.
        versions: Which.
        options: The storage options.
        with_rows: Whether the files of their rows are brought, too.

    Returns:
        Those that could be had; none where they are many megabytes.
    """
    if "://" not in str(manifest.uri):
        return {}
    asked = list(versions)
    opened: dict[int, lance.LanceDataset] = {}
    try:
        copies = _Copies(str(manifest.uri), options)
        lost = copies.bring([version_path(version) for version in asked])
        for version in asked:
            dataset = None if version_path(version) in lost else copies.opened(version)
            if dataset is not None:
                opened[version] = dataset
        if not with_rows:
            return opened
        sizes = [_bytes_of(dataset) for dataset in opened.values()]
        if None in sizes or max(map(int, filter(None, sizes)), default=0) > _MOST_COPIED:
            return {}
        gone = copies.bring([path for dataset in opened.values() for path in _files_of(dataset)])
    except (OSError, RuntimeError, ValueError):  # as it is without copies
        return {}
    return {v: dataset for v, dataset in opened.items() if gone.isdisjoint(_files_of(dataset))}


FIRST_DETACHED: Final = 1 << 63
"""Lance draws the numbers of detached versions at random, all with the highest bit."""


def version_path(version: int) -> str:
    """Give the path of a version's file below its dataset.

    Example:
        >>> version_path(7), version_path(FIRST_DETACHED + 1)
        ('_versions/18446744073709551608.manifest', '_versions/d9223372036854775809.manifest')
    """
    name = f"d{version}" if version >= FIRST_DETACHED else str(_LAST_VERSION - version)
    return f"_versions/{name}.manifest"


def _files_of(dataset: lance.LanceDataset) -> list[str]:
    return [
        path
        for fragment in dataset.get_fragments()
        for path in (
            *(f"data/{file.path}" for file in fragment.metadata.files),
            *filter(None, [fragment.deletion_file()]),
        )
    ]


def _bytes_of(dataset: lance.LanceDataset) -> int | None:
    """The bytes of a version's data files; None where they are not told, or are elsewhere."""
    files = [file for part in dataset.get_fragments() for file in part.metadata.files]
    sizes = [file.file_size_bytes for file in files if file.base_id is None]
    known = [int(size) for size in sizes if size is not None]
    return sum(known) if len(known) == len(files) else None


# Which version of a ``__manifest`` on a store is the newest, asked for without a listing.
#
# To list the versions is the dearest request of a store. They are numbered without gaps, and one
# that expires leaves its file for an hour, so behind a version that was the newest a little ago it
# is enough to ask for the file of the next one. What that does not tell is whether another dataset
# was made in the same place: so the file of the version itself is compared, too, where that was not
# done within the minute, or where tables may be made anew in one place.

_MOST_STEPS: Final = 8
# The table property (``pennon.settings``) by which expired versions go sooner than others.
_WRITER_GRACE: Final = "history.expire.writer-grace-ms"
_LISTED_SECONDS: Final = 900
_COMPARED_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class _Newest:
    """A version that was the newest one.

    Args:
        dataset: The version.
        asked_at: Before the last question that it answered, by the monotonic clock.
        compared_at: Before its file was last found to be the same; -inf where it never was.
    """

    dataset: lance.LanceDataset
    asked_at: float
    compared_at: float = -math.inf


_NEWEST: Final[Cache[_Newest]] = Cache("newest versions", max_bytes=256, weigh=lambda _: 1)


def saw_newest(
    uri: str,
    storage_options: Mapping[str, str] | None,
    dataset: lance.LanceDataset,
    asked_at: float,
    *,
    is_own: bool = False,
) -> None:
    """Remember the newest version of a dataset on a store.

    Args:
        uri: The dataset.
        storage_options: Given to Lance.
        dataset: The version, which nobody commits on top of.
        asked_at: Before it was asked for, or committed, by the monotonic clock.
        is_own: Whether this process has committed it.
    """
    # Where a service beside the store keeps the versions, the store need not know of the newest.
    scheme, is_url, _ = uri.partition("://")
    is_kept = not any(key.endswith(_WRITER_GRACE) for key in dataset.metadata)
    if is_url and "+" not in scheme and VENDED not in (storage_options or {}) and is_kept:
        compared_at = asked_at if is_own else -math.inf
        _NEWEST.keep(_newest_key(uri, storage_options), _Newest(dataset, asked_at, compared_at))


def forget_newest(uri: str) -> None:
    """Forget the newest version of a dataset that may be gone: the versions are listed then."""
    _NEWEST.forget(lambda key: key.location == uri)


def newest_seen(
    uri: str, storage_options: Mapping[str, str] | None, *, is_made_anew: bool
) -> lance.LanceDataset | None:
    """Give the newest version of a dataset on a store, where the last one seen leads to it.

    Args:
        uri: The dataset.
        storage_options: Given to Lance.
        is_made_anew: Whether others may make another dataset there at any time.

    Returns:
        None where the versions have to be listed.
    """
    key, now = _newest_key(uri, storage_options), time.monotonic()
    seen = _NEWEST.peek(key)
    if seen is None or now - seen.asked_at > _LISTED_SECONDS:
        return None
    is_compared = is_made_anew or now - seen.compared_at > _COMPARED_SECONDS
    version, dataset = int(seen.dataset.version), seen.dataset
    with ThreadPoolExecutor(1) as pool:
        own = pool.submit(_at, uri, storage_options, version) if is_compared else None
        try:
            for following in range(version + 1, version + 1 + _MOST_STEPS):
                later = _at(uri, storage_options, following)
                if later is None:
                    break
                dataset = later
            else:
                return None
            if own is not None:
                same = own.result()
                if same is None or version_identity(same) != version_identity(seen.dataset):
                    return None
        except (OSError, ValueError):  # Lance says what is wrong when it lists them
            return None
    compared_at = now if is_compared else seen.compared_at
    _NEWEST.keep(key, _Newest(dataset, now, compared_at))
    return dataset


def _newest_key(uri: str, storage_options: Mapping[str, str] | None) -> TableKey:
    return TableKey(uri, 0, "", storage_identity(storage_options))


def _at(
    uri: str, storage_options: Mapping[str, str] | None, version: int
) -> lance.LanceDataset | None:
    """Open a version by one request; None where there is no file of that version."""
    place, _, name = uri.rpartition("/")
    options = lance_options(storage_options)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "manifest")
        try:
            path = f"{name}/{version_path(version)}"
            file_session(place, storage_options).download_file(path, str(copy))
        except (OSError, ValueError) as error:
            if "not found" in str(error).lower() and "NoSuchBucket" not in str(error):
                return None
            raise
        manifest = manifest_in(copy.read_bytes())
    if manifest is None:
        raise OSError(version)
    session = lance_session(storage_identity(storage_options))
    return lance.LanceDataset(
        uri, version, storage_options=options, serialized_manifest=manifest, session=session
    )
