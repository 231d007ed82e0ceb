"""Measuring: cases by turns in one run, medians, one table printed."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
FOLDER = Path(os.environ.get("PENNON_BENCH_FOLDER", ROOT / "build" / "bench"))
RUNS = int(os.environ.get("PENNON_BENCH_RUNS", "5"))
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
SPARK_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "3g",
}


def quiet_session(root: Path, conf: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """Start Spark on two cores, over the tables of a folder, with some more settings."""
    import pennon  # here, because sides without Pennon read this module, too

    builder = pennon.spark(root=root).master("local[2]")
    return builder.config(map={**SPARK_CONF, **conf}).getOrCreate()


def emptied(*folders: Path) -> None:
    """Make folders anew."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)


def medians(cases: Mapping[str, Callable[[], object]], runs: int = RUNS) -> dict[str, float]:
    """Run all cases once to warm up, then ``runs`` times by turns.

    Returns:
        Seconds per case, the median. All runs of all cases that share a prefix up to the first
        ``:`` of their names must return the same value.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    answers: dict[str, object] = {}
    for run in range(runs + 1):
        for name, case in cases.items():
            started = time.perf_counter()
            answer = case()
            elapsed = time.perf_counter() - started
            if run > 0:
                seconds[name].append(elapsed)
            question = name.split(":", maxsplit=1)[0]
            assert answers.setdefault(question, answer) == answer, (name, answers[question], answer)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    texts = [
        [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    print(f"\n{title}")
    for row in (header, ["-" * width for width in widths], *texts):
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def in_fresh_process(module: str, *arguments: str) -> str:
    """Run a benchmark again in a process of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(done.stderr[-4000:])
    return done.stdout


def first_line_of_fresh_process(module: str, *arguments: str) -> tuple[str, float]:
    """Run a benchmark in a process of its own until it prints its first line.

    Returns:
        The line, and the seconds from the start of the process to it.
    """
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    started = time.perf_counter()
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - started
        process.stdout.read()
    assert process.returncode == 0, command
    return line, seconds


@dataclass(frozen=True, slots=True)
class OtherLoad:
    """What other processes do while something is measured: seconds of all cores, of ours."""

    at: float
    all_cores: float
    ours: float

    @classmethod
    def start(cls) -> OtherLoad:
        """Begin; what this process and those below it do is ours."""
        pid = os.getpid()
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        idle = int(fields[3]) + int(fields[4])
        busy = sum(map(int, fields[:8])) - idle
        ours = sum(cpu_seconds(process) for process in {pid, *descendants(pid)})
        return cls(time.perf_counter(), busy / _TICKS_PER_SECOND, ours)

    def cores(self) -> float:
        """How many cores the others have used on average since the start."""
        now = OtherLoad.start()
        others = (now.all_cores - self.all_cores) - (now.ours - self.ours)
        return max(0.0, others / (now.at - self.at))


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and of its children that have ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / _TICKS_PER_SECOND


def cpu_seconds_below() -> float:
    """CPU time of all processes below this one."""
    return sum(map(cpu_seconds, descendants(os.getpid())))


def worker_peak_megabytes() -> float:
    """The highest resident memory so far of the workers below this process."""
    return max(map(peak_megabytes, _workers()), default=0.0)


def resident_megabytes() -> float:
    """The resident memory of the workers below this process, as of now."""
    return sum(_status_megabytes(pid, "VmRSS:") for pid in _workers())


def _workers() -> list[int]:
    return [pid for pid in descendants(os.getpid()) if is_worker(pid)]


def descendants(parent: int) -> set[int]:
    """List the processes below one, at any depth."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, open_ = set(), [parent]
    while open_:
        below = children.get(open_.pop(), [])
        found.update(below)
        open_ += below
    return found


def is_worker(pid: int) -> bool:
    """Whether a process is a worker of Pennon, and no JVM with a setting of that name."""
    try:
        return b"pennon.worker" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def peak_megabytes(pid: int) -> float:
    """The highest resident memory of a process; 0 where the system does not tell."""
    return _status_megabytes(pid, "VmHWM:")


def _status_megabytes(pid: int, name: str) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    line = next((line for line in status if line.startswith(name)), f"{name} 0 kB")
    return int(line.split()[1]) / 1024
