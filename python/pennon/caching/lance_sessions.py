"""Lance's own memory of files, one per storage identity: manifests, schemas, indexes.

A dataset that is opened with a session of its own reads anew what the last one has read, and costs
five times as much to open. What Lance remembers of a version goes by the tag of its file, too: a
dataset made anew at the place of another one is not taken for it.
"""

from __future__ import annotations

from typing import Final

import lance

from pennon.caching.cache import Cache, TableKey

__all__ = ["forget_sessions", "lance_session", "limit_sessions"]

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
