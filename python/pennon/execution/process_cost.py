"""CPU time and peak memory of the tasks of a process.

Lance and DataFusion compute in threads of their own, so the time of a task is its share of the
process's: what was used while ``n`` tasks ran is a ``n``-th of each. The tasks of a query sum up to
what it really took. Memory is that of the process at its peak since it last had nothing to do.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

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
