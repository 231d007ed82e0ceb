"""Lance's own memory of files, one per storage identity: manifests, schemas, indexes.

A dataset that is opened with a session of its own reads anew what the last one has read, and costs
five times as much to open. What Lance remembers of a version goes by the tag of its file, too: a
dataset made anew at the place of another one is not taken for it.
"""

from __future__ import annotations

import json
import logging
import time
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import lance
import lance_namespace as upstream
from lance_namespace import errors as upstream_errors

from pennon.caching.cache import Cache, TableKey, storage_identity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "forget_sessions",
    "lance_options",
    "lance_session",
    "limit_sessions",
    "opening",
    "vended",
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
    return {"namespace_client": _Renewing(uri, dict(storage_options or {})), "table_id": [uri]}


class _Renewing(upstream.LanceNamespace):  # type: ignore[misc]
    """One dataset, as Lance asks for it before its credentials expire."""

    def __init__(self, uri: str, storage_options: Mapping[str, str]) -> None:
        self._uri, self._storage_options = uri, storage_options

    def namespace_id(self) -> str:
        """Name it and whose credentials it has: what Lance knows of a store goes by this."""
        return f"pennon {self._uri} {storage_identity(self._storage_options)}"

    def describe_table(self, request: Any) -> Any:
        """Give the address and the credentials."""
        del request
        options = lance_options(self._storage_options)
        return upstream.DescribeTableResponse(location=self._uri, storage_options=options)


class _VendedTable:
    """A table of a service, and the credentials that it gave last. Threads may share it."""

    def __init__(self, text: str) -> None:
        asked = json.loads(text)
        self._table = asked["table"]
        self._connect = partial(upstream.connect, asked["implementation"], asked["options"])
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
        request = upstream.DescribeTableRequest(id=self._table, vend_credentials=True)
        try:
            self._client = self._client or self._connect()
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


@cache
def _table_of(text: str) -> _VendedTable:
    return _VendedTable(text)
