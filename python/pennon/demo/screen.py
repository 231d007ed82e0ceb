"""What the demo writes on a person's terminal: headings, SQL, tables, and progress."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BOLD, _DIM, _GREEN, _PLAIN = "\033[1m", "\033[2m", "\033[32m", "\033[0m"


def is_terminal() -> bool:
    """Tell whether a person looks on, so that colour and moving progress make sense."""
    return sys.stdout.isatty()


def _styled(text: str, style: str) -> str:
    return f"{style}{text}{_PLAIN}" if is_terminal() else text


def heading(text: str) -> None:
    """Print the title of a step."""
    print(f"\n{_styled(text, _BOLD)}\n{'─' * len(text)}")


def statement(sql: str) -> None:
    """Print a SQL statement, set in."""
    for line in sql.splitlines():
        for part in _folded(line):
            print(_styled(f"    {part}", _DIM))


def say(text: str) -> None:
    """Print a sentence."""
    print(f"  {text}")


def done(text: str) -> None:
    """Print a sentence about something that was checked and holds."""
    print(f"  {_styled('✓', _GREEN)} {text}")


def table(names: Sequence[str], rows: Sequence[Sequence[object]], width: int = 44) -> None:
    """Print rows under their column names, each cell cut to a width."""
    texts = [[_cell(value, width) for value in row] for row in rows]
    widths = [
        max(len(name), *(len(row[place]) for row in texts)) if texts else len(name)
        for place, name in enumerate(names)
    ]
    print("    " + "  ".join(name.ljust(size) for name, size in zip(names, widths, strict=True)))
    for row in texts:
        line = "  ".join(text.ljust(size) for text, size in zip(row, widths, strict=True))
        print("    " + line.rstrip())


@contextlib.contextmanager
def progress(label: str, spark: SparkSession | None = None) -> Iterator[None]:
    """Show that something is going on, and at the end how long it took.

    Args:
        label: What is going on.
        spark: When given, the tasks of its running stages are counted.
    """
    started = time.monotonic()
    stop = threading.Event()
    shower = threading.Thread(target=_show, args=(label, spark, started, stop), daemon=True)
    if is_terminal():
        shower.start()
    try:
        yield
    finally:
        stop.set()
        if is_terminal():
            shower.join()
            print("\r\033[K", end="")
    print(f"  {label}: {time.monotonic() - started:.1f} s")


def _show(label: str, spark: SparkSession | None, started: float, stop: threading.Event) -> None:
    while not stop.wait(0.2):
        elapsed = time.monotonic() - started
        print(f"\r\033[K  {label} … {elapsed:.0f} s{_tasks(spark)}", end="", flush=True)


def _tasks(spark: SparkSession | None) -> str:
    if spark is None:
        return ""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    finished = sum(stage.numCompletedTasks for stage in stages if stage is not None)
    total = sum(stage.numTasks for stage in stages if stage is not None)
    return f", {finished} of {total} tasks" if total else ""


def _cell(value: object, width: int) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= width else text[: width - 1] + "…"


def _folded(line: str, width: int = 96) -> Iterator[str]:
    """Break a long line between words."""
    indent = ""
    while len(line) > width:
        cut = line.rfind(" ", len(indent) + 1, width)
        if cut < 0:
            break
        yield line[:cut]
        indent = "    "
        line = indent + line[cut + 1 :]
    yield line
