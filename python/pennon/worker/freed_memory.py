"""Bounds what the C library keeps of the memory that a process has freed.

glibc gives each thread an arena of its own, up to eight for each processor, and memory that was
freed in one stays with it. Lance and DataFusion allocate in threads that change from query to
query, so a worker held its pool twice; with few arenas it gives back what a query no longer needs.
Small pieces come from a cache of each thread, so threads seldom wait for an arena.

What an arena gives back the system empties before it gives it again: for rows of twenty decimals
that took a third of the worker's processor time. So a process keeps some of what it freed while
queries run, and nothing when it is idle.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import Final

__all__ = ["give_back", "keep_some", "limit_arenas"]

# M_TRIM_THRESHOLD, M_MMAP_THRESHOLD and M_ARENA_MAX of glibc's malloc.h.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
_ARENAS_STATED: Final = "MALLOC_ARENA_MAX"
_THRESHOLDS_STATED: Final = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
_LEAST: Final = 2
# Measured: what an arena holds beside what is in use, with a pool of half a GB.
_BYTES_OF_ARENA: Final = 256 << 20
# The most that is kept at the end of each arena: a quarter of the pool in all.
_KEPT_SHARE: Final = 4
_MOST_KEPT_BYTES: Final = _BYTES_OF_ARENA // _KEPT_SHARE
# A page of a column in Lance's files has 8 MB; 32 MB is the most that glibc takes here.
_MAPPED_BYTES: Final = 32 << 20


def limit_arenas(pool_bytes: int) -> int | None:
    """Bound the arenas by the memory that queries may take.

    To be called before the process has many threads: an arena that is there stays. What a user set
    by ``MALLOC_ARENA_MAX`` holds.

    Args:
        pool_bytes: The size of the pool in bytes.

    Returns:
        The number of arenas; None where it is left as it was: by a user, or another C library.

    Example:
        >>> limit_arenas(8 << 30) in (32, None)
        True
    """
    if _ARENAS_STATED in os.environ:
        return None
    arenas = _arenas(pool_bytes)
    return arenas if _set(_ARENA_MAX, arenas) else None


def keep_some(pool_bytes: int) -> int | None:
    """Have each arena keep some of what was freed last, for the next who asks.

    What a user set by ``MALLOC_TRIM_THRESHOLD_`` or ``MALLOC_MMAP_THRESHOLD_`` holds.

    Args:
        pool_bytes: The size of the pool in bytes.

    Returns:
        The most bytes of an arena; None where it is left as it was: by a user, or another C
        library.

    Example:
        >>> keep_some(8 << 30) in (64 << 20, None)
        True
    """
    if any(name in os.environ for name in _THRESHOLDS_STATED):
        return None
    kept = min(_MOST_KEPT_BYTES, pool_bytes // _KEPT_SHARE // _arenas(pool_bytes))
    is_set = _set(_TRIM_THRESHOLD, kept) and _set(_MMAP_THRESHOLD, _MAPPED_BYTES)
    return kept if is_set else None


def give_back() -> None:
    """Give the system what was freed, of all arenas; nothing where the C library is another."""
    with suppress(AttributeError, OSError):  # no glibc: musl, macOS
        ctypes.CDLL(None).malloc_trim(0)


def _arenas(pool_bytes: int) -> int:
    return max(_LEAST, pool_bytes // _BYTES_OF_ARENA)


def _set(parameter: int, value: int) -> bool:
    try:
        return bool(ctypes.CDLL(None).mallopt(parameter, value))
    except (AttributeError, OSError):  # no glibc: musl, macOS
        return False
