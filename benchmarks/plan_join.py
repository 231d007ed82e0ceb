"""Planning a join of two tables of 100,000 partitions each: seconds, and the driver's memory.

The partitions stand in ``__manifest`` alone: planning opens no leaf. The plan is made up to what
Spark would run, and is not run.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import statistics
import time
from typing import TYPE_CHECKING, Any

from benchmarks.side_by_side import (
    FOLDER,
    RUNS,
    cpu_seconds_below,
    print_table,
    quiet_session,
    resident_megabytes,
    worker_peak_megabytes,
)
from tests.manifest.many_partitions import add_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = FOLDER / "plan_lake"
QUERIES = {
    "inner": "SELECT l.v, r.v AS rv FROM {0} l JOIN {1} r ON l.k = r.k",
    "full": "SELECT l.v, r.v AS rv FROM {0} l FULL JOIN {1} r ON l.k = r.k",
    "join and GROUP BY": "SELECT l.k, sum(r.v) FROM {0} l JOIN {1} r ON l.k = r.k GROUP BY l.k",
}
_MOST_COLLECTIONS = 8
SIZES = {"4 kB": 4_000, "40 MB": 40_000_000}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    count = parser.parse_args().partitions
    shutil.rmtree(LAKE, ignore_errors=True)
    LAKE.mkdir(parents=True)
    spark = quiet_session(LAKE, {"spark.sql.autoBroadcastJoinThreshold": "-1"})
    spark.sql("CREATE NAMESPACE lance.many")
    pairs = {
        size: [_table(spark, f"{side}{num_bytes}", count, num_bytes) for side in "lr"]
        for size, num_bytes in SIZES.items()
    }
    small = [_table(spark, f"small_{side}", 2, 1_000) for side in "lr"]
    _planned(spark, QUERIES["join and GROUP BY"].format(*small), runs=1)
    heap_before, worker_before = _heap_megabytes(spark), resident_megabytes()
    rows = []
    for size, pair in pairs.items():
        for execution in ("worker", "spark"):
            spark.conf.set("spark.sql.catalog.lance.execution", execution)
            for name, query in QUERIES.items():
                taken, plan = _planned(spark, query.format(*pair), runs=RUNS)
                with_plan = _heap_megabytes(spark) - heap_before
                del plan
                without = _heap_megabytes(spark) - heap_before
                worker = resident_megabytes() - worker_before
                memory = f"{with_plan} MB", f"{without} MB", f"{worker:.0f} MB"
                rows.append((name, size, execution, *taken, *memory))
    print_table(
        f"two tables of {count:,} partitions, planned to the executed plan: seconds, memory added",
        (
            *("join", "partition", "execution", "first", f"median of {RUNS}", "CPU"),
            *("heap", "heap, plan dropped", "worker"),
        ),
        rows,
    )
    print(f"\n  Before: heap {heap_before} MB, worker {worker_before:.0f} MB; ", end="")
    print(f"worker's peak: {worker_peak_megabytes():.0f} MB")
    spark.stop()


def _table(spark: SparkSession, name: str, count: int, num_bytes: int) -> str:
    spark.sql(f"CREATE TABLE lance.many.{name} (k BIGINT, v DOUBLE) PARTITIONED BY (k)")
    add_partitions(next(LAKE.glob(f"*_many${name}")), count, num_bytes=num_bytes)
    return f"lance.many.{name}"


def _planned(spark: SparkSession, query: str, *, runs: int) -> tuple[tuple[float, ...], Any]:
    """Plan a query several times.

    Returns:
        The seconds of the first time, the medians of the seconds and of the CPU seconds (of the
        JVM and the worker) of the others; and the last plan.
    """
    seconds, cpu = [], []
    plan = None
    for _ in range(runs + 1):
        used, started = cpu_seconds_below(), time.perf_counter()
        plan = spark.sql(query)._jdf.queryExecution()
        plan.executedPlan()
        seconds.append(time.perf_counter() - started)
        cpu.append(cpu_seconds_below() - used)
    return (seconds[0], statistics.median(seconds[1:]), statistics.median(cpu[1:])), plan


def _heap_megabytes(spark: SparkSession) -> int:
    """What the JVM's heap holds once everything that is not reachable is gone."""
    jvm = spark._jvm
    assert jvm is not None
    gc.collect()  # Plans of the JVM live as long as their names here,
    used = 0
    for _ in range(_MOST_COLLECTIONS):
        time.sleep(0.5)  # and py4j tells it by a thread of its own, late on a busy machine.
        jvm.System.gc()
        heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
        before, used = used, int(heap.getUsed()) // 2**20
        if abs(used - before) <= 1:
            break
    return used


if __name__ == "__main__":
    main()
