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

from tests.manifest.many_partitions import add_partitions

import pennon
from side_by_side import FOLDER, RUNS, SPARK_CONF, print_table, worker_peak_megabytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = FOLDER / "plan_lake"
QUERIES = {
    "inner": "SELECT l.v, r.v AS rv FROM {0} l JOIN {1} r ON l.k = r.k",
    "full": "SELECT l.v, r.v AS rv FROM {0} l FULL JOIN {1} r ON l.k = r.k",
    "join and GROUP BY": "SELECT l.k, sum(r.v) FROM {0} l JOIN {1} r ON l.k = r.k GROUP BY l.k",
}
SIZES = {"4 kB": 4_000, "40 MB": 40_000_000}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    count = parser.parse_args().partitions
    shutil.rmtree(LAKE, ignore_errors=True)
    LAKE.mkdir(parents=True)
    builder = pennon.spark(root=LAKE).master("local[2]")
    for key, value in SPARK_CONF.items():
        builder.config(key, value)
    builder.config("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark = builder.getOrCreate()
    spark.sql("CREATE NAMESPACE lance.many")
    pairs = {
        size: [_table(spark, f"{side}{num_bytes}", count, num_bytes) for side in "lr"]
        for size, num_bytes in SIZES.items()
    }
    small = [_table(spark, f"small_{side}", 2, 1_000) for side in "lr"]
    _planned(spark, QUERIES["join and GROUP BY"].format(*small))
    before = _heap_megabytes(spark)
    rows = []
    kept: list[Any] = []
    for size, pair in pairs.items():
        for execution in ("worker", "spark"):
            spark.conf.set("spark.sql.catalog.lance.execution", execution)
            for name, query in QUERIES.items():
                first, again, plan = _planned(spark, query.format(*pair))
                kept = [plan]
                added = _heap_megabytes(spark) - before
                rows.append((name, size, execution, first, again, f"{added} MB"))
    del kept
    print_table(
        f"two tables of {count:,} partitions, planned up to the executed plan, seconds",
        ("join", "partition", "execution", "first", f"median of {RUNS}", "heap added"),
        rows,
    )
    print(f"\n  worker's peak: {worker_peak_megabytes():.0f} MB")
    spark.stop()


def _table(spark: SparkSession, name: str, count: int, num_bytes: int) -> str:
    spark.sql(f"CREATE TABLE lance.many.{name} (k BIGINT, v DOUBLE) PARTITIONED BY (k)")
    add_partitions(next(LAKE.glob(f"*_many${name}")), count, num_bytes=num_bytes)
    return f"lance.many.{name}"


def _planned(spark: SparkSession, query: str) -> tuple[float, float, Any]:
    seconds = []
    plan = None
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        plan = spark.sql(query)._jdf.queryExecution()
        plan.executedPlan()
        seconds.append(time.perf_counter() - started)
    return seconds[0], statistics.median(seconds[1:]), plan


def _heap_megabytes(spark: SparkSession) -> int:
    gc.collect()  # Plans of the JVM live as long as their names here.
    jvm = spark._jvm
    assert jvm is not None
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory()) // 2**20


if __name__ == "__main__":
    main()
