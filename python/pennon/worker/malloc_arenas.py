"""Bounds what the C library keeps of the memory that a process has freed.

glibc gives each thread an arena of its own, up to eight for each processor, and memory that was
freed in one stays with it. Lance and DataFusion allocate in threads that change from query to
query, so a worker held its pool twice; with few arenas it gives back what a query no longer needs.
Small pieces come from a cache of each thread, so threads seldom wait for an arena.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

__all__ = ["limit_arenas"]

# M_ARENA_MAX of glibc's malloc.h.
_ARENA_MAX: Final = -8
_STATED: Final = "MALLOC_ARENA_MAX"
_LEAST: Final = 2
# Measured: what an arena holds beside what is in use, with a pool of half a GB.
_BYTES_OF_ARENA: Final = 256 << 20


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
    if _STATED in os.environ:
        return None
    arenas = max(_LEAST, pool_bytes // _BYTES_OF_ARENA)
    try:
        is_set = ctypes.CDLL(None).mallopt(_ARENA_MAX, arenas)
    except (AttributeError, OSError):  # no glibc: musl, macOS
        return None
    return arenas if is_set else None
