"""The JVM that started this process, as it describes itself; none for the library alone.

Everything that depends on it asks here: whose the commits of a worker are, and how much memory its
queries may take, in which language Spark changes the case of letters, and which Spark it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["StartingJvm", "started_by", "starting_jvm"]


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
