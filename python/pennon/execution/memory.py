"""How much memory the queries of a process may use together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pennon.settings import MEMORY, from_environment

_SHARE: Final = 4
_LEAST: Final = 64 << 20
_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def pool_bytes() -> int:
    """Give the size of the pool: ``PENNON_MEMORY``, else a quarter of what the machine has."""
    stated = from_environment(MEMORY)
    if stated is not None and stated.isdigit():
        return max(1, int(stated))
    return max(_LEAST, _machine_bytes() // _SHARE)


def _machine_bytes() -> int:
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = _LIMIT.read_text(encoding="ascii").strip()
    except OSError:
        return physical
    return min(physical, int(limit)) if limit.isdigit() else physical
