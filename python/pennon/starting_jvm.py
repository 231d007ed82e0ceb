"""The JVM that started this process, as it describes itself, and the memory that both have.

The library alone has none. Everything that depends on it asks here: whose the commits of a worker
are, and how much memory its queries may take, in which language Spark changes the case of letters,
and which Spark it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["StartingJvm", "limit_bytes", "started_by", "starting_jvm"]


@dataclass(frozen=True, slots=True)
class StartingJvm:
    """What a JVM says of itself.

    Args:
        is_driver: Whether it is the driver's.
        cores: Processors of the machine, or of its container.
        heap_bytes: Largest size of its heap.
        settings: ``spark.master``, the application's id, and what Spark's settings say of memory
            and cores.
        retired: The ids of its earlier workers that still worked when this one was started.
        user: Who runs the application; empty where that is not known.
        language: The language of its locale, as ``en``; empty where it has none.
        spark: Its version of Spark; empty where that is not known.
    """

    is_driver: bool
    cores: int
    heap_bytes: int
    settings: Mapping[str, str] = field(default_factory=dict)
    retired: tuple[int, ...] = ()
    user: str = ""
    language: str = ""
    spark: str = ""

    @property
    def master(self) -> str:
        """Where the application runs, as ``spark.master`` says it."""
        return self.settings.get("spark.master", "local")

    @property
    def application(self) -> str:
        """Spark's id of the application."""
        return self.settings.get("spark.app.id", "")


class _Started:
    """What holds for this process."""

    jvm: StartingJvm | None = None


_NO_JVM: Final = StartingJvm(is_driver=True, cores=os.cpu_count() or 1, heap_bytes=0)


def started_by(jvm: StartingJvm | None) -> None:
    """Say which JVM this process works beside; None for none."""
    _Started.jvm = jvm


def starting_jvm() -> StartingJvm:
    """Give that JVM; where there is none, one without a heap that leaves the whole machine."""
    return _Started.jvm or _NO_JVM


_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN_CGROUPS: Final = Path("/proc/self/cgroup")


def limit_bytes() -> int:
    """Give the memory of the machine, or of the cgroup around this process where it has less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_cgroup_limits()])


def _cgroup_limits() -> list[int]:
    """The limits of the process's own cgroup and of those around it, of both versions."""
    try:
        lines = _OWN_CGROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    files = [_CGROUPS / "memory.max", _CGROUPS / "memory" / "memory.limit_in_bytes"]
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        folder = Path(path.lstrip("/"))
        for part in (folder, *folder.parents):
            if not controllers:
                files.append(_CGROUPS / part / "memory.max")
            elif "memory" in controllers.split(","):
                files.append(_CGROUPS / "memory" / part / "memory.limit_in_bytes")
    limits = (_limit(file) for file in dict.fromkeys(files))
    return [limit for limit in limits if limit is not None]


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) > 0 else None
