"""Sort-merge joins and windows in Spark with and without a write order: the sorts that are gone.

Two pairs of tables have the same rows in the same partitions; one pair is written in the order of
its key. Spark executes the queries, for a worker joins by hash. ``--rows`` per table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.side_by_side import (
    FOLDER,
    RUNS,
    OtherLoad,
    cpu_seconds_below,
    print_table,
    quiet_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = FOLDER / "sorted_lake"
LAYOUTS = {"as it comes": "plain", "WRITE ORDERED BY id": "sorted"}
QUERIES = {
    "join": "SELECT count(*), sum(l.x), sum(r.x) FROM {0}_l l JOIN {0}_r r ON l.id = r.id",
    "full join": "SELECT count(*), sum(l.x), sum(r.x) FROM {0}_l l FULL JOIN {0}_r r USING (id)",
    "window": (
        "SELECT count(*), sum(x), sum(n) FROM "
        "(SELECT x, count(*) OVER (PARTITION BY id) AS n FROM {0}_l)"
    ),
}


def main() -> None:
    """Make the tables, run the queries by turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    count = parser.parse_args().rows
    spark = _session()
    _make(spark, count)
    spark.conf.set("spark.sql.catalog.lance.execution", "spark")
    load = OtherLoad.start()
    rows = [row for name in QUERIES for row in _race(spark, name)]
    print_table(
        f"two tables of {count:,} rows in 16 buckets, sort-merge in Spark, local[2]",
        ("query", "rows written", "sorts", f"seconds, median of {RUNS}", "CPU", "least CPU"),
        rows,
    )
    print(f"\n  Other processes used {load.cores():.1f} of {os.cpu_count()} cores meanwhile.")
    spark.stop()


def _session() -> SparkSession:
    shutil.rmtree(LAKE, ignore_errors=True)
    LAKE.mkdir(parents=True)
    return quiet_session(LAKE, {"spark.sql.autoBroadcastJoinThreshold": "-1"})


def _make(spark: SparkSession, count: int) -> None:
    spark.sql("CREATE NAMESPACE lance.bench")
    for layout in LAYOUTS.values():
        for side, seed in (("l", 1), ("r", 2)):
            table = f"lance.bench.{layout}_{side}"
            spark.sql(f"CREATE TABLE {table} (id BIGINT, x BIGINT) PARTITIONED BY (bucket(16, id))")
            if layout == "sorted":
                spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY id")
            # Hashes come in no order, and those of both sides meet in two thirds of the numbers.
            number = f"pmod(xxhash64(id, {seed}), {count})"
            spark.sql(f"INSERT INTO {table} SELECT {number}, id FROM range(0, {count}, 1, 4)")


def _race(spark: SparkSession, name: str) -> list[tuple[object, ...]]:
    """Run one query over both layouts by turns; the first round warms up."""
    taken: dict[str, list[tuple[float, float]]] = {layout: [] for layout in LAYOUTS}
    sorts: dict[str, int] = {}
    answers = set()
    for number in range(RUNS + 1):
        for layout, prefix in LAYOUTS.items():
            used, started = cpu_seconds_below(), time.perf_counter()
            frame = spark.sql(QUERIES[name].format(f"lance.bench.{prefix}"))
            answers.add(tuple(frame.collect()[0]))
            seconds, cpu = time.perf_counter() - started, cpu_seconds_below() - used
            sorts[layout] = _sorts(frame._jdf.queryExecution().executedPlan().toString())
            if number > 0:
                taken[layout].append((seconds, cpu))
    assert len(answers) == 1, answers
    return [
        (
            name,
            layout,
            sorts[layout],
            statistics.median(seconds for seconds, _ in taken[layout]),
            statistics.median(cpu for _, cpu in taken[layout]),
            min(cpu for _, cpu in taken[layout]),
        )
        for layout in LAYOUTS
    ]


def _sorts(plan: str) -> int:
    final = plan.partition("== Initial Plan ==")[0]
    return sum(" Sort [" in line for line in final.splitlines())


if __name__ == "__main__":
    main()
