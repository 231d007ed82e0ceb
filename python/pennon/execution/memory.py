"""The size of the memory pool that all queries of a process share.

The worker is a process beside its JVM, so its memory is what that JVM leaves. In a container (YARN,
Kubernetes) that is the overhead of the executor, which Spark asks for beside the heap: half of what
an idle worker leaves of it, for Lance, Arrow and the allocators stand beside the pool. Elsewhere it
is what the machine, or its cgroup, has besides the heaps of all JVMs on it, and a part of that
only: pages of files want a place, too. One setting overrides it: ``spark.pennon.worker.memory``, or
``PENNON_MEMORY`` in the environment.

A worker that retired (``worker/server.py``) still holds memory while the next one works:
the next one has what that leaves of it.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pennon.errors import MemorySettingInvalid
from pennon.settings import MEMORY, WORKER_MEMORY, amount_of_bytes, from_environment
from pennon.starting_jvm import StartingJvm, limit_bytes, starting_jvm

# CPU time and peak memory of the tasks of a process.
#
# Lance and DataFusion compute in threads of their own, so the time of a task is its share of the
# process's: what was used while ``n`` tasks ran is a ``n``-th of each. The tasks of a query sum up
# to what it really took. Memory is that of the process at its peak since it last had nothing to do.

_STATUS: Final = Path("/proc/self/status")
_CLEAR: Final = Path("/proc/self/clear_refs")
_PEAK: Final = re.compile(r"^VmHWM:\s*(\d+) kB$", re.MULTILINE)
_RESET_PEAK: Final = "5"


class TaskCost:
    """The processor time of one task so far, in seconds."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0


class ProcessCost:
    """Divides what the process uses among the tasks that run.

    Args:
        clock: Gives the processor time of the process, in seconds.

    Example:
        >>> seconds = iter([1.0, 3.0, 7.0, 8.0])
        >>> process = ProcessCost(lambda: next(seconds))
        >>> with process.task() as one:
        ...     with process.task() as other:
        ...         pass
        >>> one.cpu_seconds, other.cpu_seconds
        (5.0, 2.0)
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._running: list[TaskCost] = []
        self._last = 0.0

    @contextmanager
    def task(self) -> Iterator[TaskCost]:
        """Count the time of a task while it runs."""
        cost = TaskCost()
        with self._lock:
            if not self._running:
                _forget_peak()
            self._divide()
            self._running.append(cost)
        try:
            yield cost
        finally:
            with self._lock:
                self._divide()
                self._running.remove(cost)

    def seconds_of(self, cost: TaskCost) -> float:
        """Give the time of a task that still runs."""
        with self._lock:
            self._divide()
            return cost.cpu_seconds

    def _divide(self) -> None:
        now = self._clock()
        for cost in self._running:
            cost.cpu_seconds += (now - self._last) / len(self._running)
        self._last = now


def peak_bytes() -> int:
    """Give the most memory that the process has had; 0 where the system does not report it."""
    try:
        match = _PEAK.search(_STATUS.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return 0
    return int(match[1]) << 10 if match else 0


def _forget_peak() -> None:
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        # A container may forbid it: then it is the peak since the start.
        return


_SHARE: Final = 4
_CONTAINER_SHARE: Final = 2
# Libraries and modules, before the first row: much of what a small container has.
_IDLE: Final = 256 << 20
_LEAST: Final = 64 << 20
_PROCESSES: Final = Path("/proc")
_CONTAINERS: Final = ("yarn", "k8s")

_MEBI: Final = 20

# Spark's own defaults.
_HEAP: Final = "1g"
_OVERHEAD_FACTOR: Final = "0.1"
_LEAST_OVERHEAD: Final = "384m"


def pool_bytes() -> int:
    """Give the size of this process's pool, less what retired workers of its JVM hold now.

    What a retired worker holds beside its queries, about 130 MB of libraries, counts as held.

    Returns:
        Bytes; at least 64 MiB, or what is stated where that is less.

    Raises:
        MemorySettingInvalid: A setting is no amount of memory.
    """
    whole = _whole_pool_bytes()
    held = sum(resident_bytes(pid) for pid in starting_jvm().retired)
    return max(min(whole, _LEAST), whole - held)


def _whole_pool_bytes() -> int:
    jvm = starting_jvm()
    return _pool(jvm, "driver" if jvm.is_driver else "executor", jvm.heap_bytes)


def resident_bytes(pid: int) -> int:
    """Give the memory of a worker's process.

    Args:
        pid: Its id.

    Returns:
        Bytes; 0 where it has ended, or where the system does not report it.

    Example:
        >>> resident_bytes(1 << 30)
        0
    """
    process = _PROCESSES / str(pid)
    try:
        # Another process may have the id of one that has ended.
        if b"pennon.worker" not in (process / "cmdline").read_bytes():
            return 0
        pages = (process / "statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def executor_pool_bytes() -> int:
    """Give the size of the pool of the processes that run tasks, for who plans what they do.

    Returns:
        Bytes. Where nothing limits an executor, its machine is taken to be like this one.

    Raises:
        MemorySettingInvalid: A setting is no amount of memory.
    """
    jvm = starting_jvm()
    if not jvm.is_driver or re.fullmatch(r"local(\[.*\])?", jvm.master):
        return _whole_pool_bytes()
    return _pool(jvm, "executor", _executor_heap_bytes(jvm))


def _pool(jvm: StartingJvm, role: str, heap_bytes: int) -> int:
    stated = stated_bytes(jvm.settings)
    if stated is not None:
        return stated
    limit = limit_bytes()
    # In a container somebody ends a process that takes more than it has asked for.
    if jvm.master.startswith(_CONTAINERS):
        free = min(_overhead_bytes(jvm.settings, role, heap_bytes), max(0, limit - heap_bytes))
        return max(_LEAST, (free - _IDLE) // _CONTAINER_SHARE)
    count = _jvms_of_host(jvm)
    free = max(0, limit - count * heap_bytes)
    return max(_LEAST, free // (count * _SHARE))


def _overhead_bytes(settings: Mapping[str, str], role: str, heap_bytes: int) -> int:
    """Give what a process, ``driver`` or ``executor``, has besides its heap."""
    stated = settings.get(f"spark.{role}.memoryOverhead")
    if stated is not None:
        overhead = parse_bytes(stated, f"spark.{role}.memoryOverhead", unit=_MEBI)
    else:
        factor = settings.get(f"spark.{role}.memoryOverheadFactor", _OVERHEAD_FACTOR)
        least = settings.get(f"spark.{role}.minMemoryOverhead", _LEAST_OVERHEAD)
        minimum = parse_bytes(least, f"spark.{role}.minMemoryOverhead", unit=_MEBI)
        overhead = max(int(heap_bytes * float(factor)), minimum)
    python = settings.get(f"spark.{role}.pyspark.memory")
    if python is None:
        return overhead
    return overhead + parse_bytes(python, f"spark.{role}.pyspark.memory", unit=_MEBI)


def _executor_heap_bytes(jvm: StartingJvm) -> int:
    stated = jvm.settings.get("spark.executor.memory", _HEAP)
    return parse_bytes(stated, "spark.executor.memory", unit=_MEBI)


def _jvms_of_host(jvm: StartingJvm) -> int:
    """Count the JVMs of the application that share a machine, as far as that can be known."""
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,.*\]", jvm.master)
    if cluster is not None:
        return int(cluster[1]) + 1
    cores = jvm.settings.get("spark.executor.cores", "")
    if jvm.master.startswith("spark") and cores.isdigit() and int(cores) > 0:
        # A standalone worker starts as many executors as its cores allow.
        return max(1, jvm.cores // int(cores))
    return 1


def stated_bytes(settings: Mapping[str, str]) -> int | None:
    """Give what the user has set.

    Args:
        settings: Spark's settings; ``PENNON_MEMORY`` is read from the environment.

    Raises:
        MemorySettingInvalid: It is no amount of memory.
    """
    name = WORKER_MEMORY.name
    if settings.get(name):
        return parse_bytes(settings[name], name)
    stated = from_environment(MEMORY)
    return None if stated is None else parse_bytes(stated, MEMORY.name)


def parse_bytes(text: str, setting: str, *, unit: int = 0) -> int:
    """Read an amount of memory as Spark writes it.

    Args:
        text: A number, with or without a unit.
        setting: Where it stands, for the error.
        unit: Power of two that a number without a unit is multiplied with.

    Raises:
        MemorySettingInvalid: It is none, or zero.

    Example:
        >>> parse_bytes("8g", "PENNON_MEMORY"), parse_bytes("512MiB", "PENNON_MEMORY")
        (8589934592, 536870912)
    """
    amount = amount_of_bytes(text, unit=unit)
    if not amount:
        raise MemorySettingInvalid(setting=setting, value=text)
    return amount
