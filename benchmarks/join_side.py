"""One side of the join benchmark: a Spark session in a process of its own, told what to do.

It reads a JSON object per line and answers with one; it needs pyspark alone, so that it runs in the
virtual environment of another Spark, and pennon where the settings ask for it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.query_profile import QueryProfile
from benchmarks.side_by_side import cpu_seconds, descendants, peak_megabytes
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

ANSWER = "answer: "


def start(order: dict[str, Any]):
    builder = SparkSession.builder
    if order["root"] is not None:
        import pennon

        builder = pennon.configure(builder, order["root"])
    return builder.master("local[2]").config(map=order["conf"]).getOrCreate()


class Side:
    """A session and what is measured of it."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._spark = start(order)
        self._self = os.getpid()

    def run(self, statements: list[str]) -> dict[str, Any]:
        """Run statements that prepare something."""
        for statement in statements:
            self._spark.sql(statement)
        return {"spark": self._spark.version}

    def query(self, sql: str, *, profiled: bool = False) -> dict[str, Any]:
        """Run a query.

        Returns:
            Its rows and executed plan, seconds, and of the JVM and the workers together: CPU
            seconds, shuffled bytes and the peak of the memory; and its profile (``query_profile``).
        """
        self._spark._jvm.System.gc()
        for pid in descendants(self._self):
            forget_peak(pid)
        shuffled = self._shuffled_bytes()
        used = self._cpu_seconds()
        profile = QueryProfile.begin(self._spark) if profiled else None
        started = time.perf_counter()
        frame = self._spark.sql(sql)
        rows = frame.collect()
        seconds = time.perf_counter() - started
        return {
            "seconds": seconds,
            "cpu_seconds": self._cpu_seconds() - used,
            "rows": [[plain(value) for value in row] for row in rows],
            "peak": sum(map(peak_megabytes, descendants(self._self))),
            "shuffled": self._shuffled_bytes() - shuffled,
            "profile": None if profile is None else profile.of(frame),
            "plan": frame._jdf.queryExecution().executedPlan().toString(),
        }

    def plan(self, sql: str, before: str = "") -> dict[str, Any]:
        """Plan a query until its tasks are known; the statement before it counts, too."""
        used = self._cpu_seconds()
        started = time.perf_counter()
        if before:
            self._spark.sql(before)
        tasks = self._spark.sql(sql)._jdf.queryExecution().toRdd().getNumPartitions()
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "cpu_seconds": self._cpu_seconds() - used, "tasks": tasks}

    def _cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, descendants(self._self)))

    def _shuffled_bytes(self) -> int:
        context = self._spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        executors = context.statusStore().executorList(False)
        return sum(executors.apply(n).totalShuffleWrite() for n in range(executors.size()))


def plain(value: object) -> object:
    """Make a value the same text for every engine; sums of doubles differ in their last digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return value if value is None or isinstance(value, int | str) else str(value)


def forget_peak(pid: int) -> None:
    """Let the peak of a process's memory begin anew, where the kernel and the user may."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return


def main() -> None:
    side: Any = None
    for line in sys.stdin:
        order = json.loads(line)
        try:
            match order.pop("do"):
                case "start":
                    side = Side(order)
                    answer: dict[str, Any] = {}
                case "run":
                    answer = side.run(**order)
                case "query":
                    answer = side.query(**order)
                case "plan":
                    answer = side.plan(**order)
        except (PySparkException, Py4JError) as error:
            answer = {"error": str(error).strip().splitlines()[0]}
            print(error, file=sys.stderr, flush=True)
        print(ANSWER + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
