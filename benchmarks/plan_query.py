"""Planning a join of five tables of TPC-H, by turns with the same join of Parquet files.

A query is planned until Spark has its executed plan. Sessions plan faster the longer they last, so
the first half of the rounds does not count.
"""

from __future__ import annotations

import argparse
import os
import time
from statistics import median

from benchmarks.analytic import TPCH_PARTITIONS, tpch_sources, views
from benchmarks.side_by_side import (
    FOLDER,
    OtherLoad,
    cpu_seconds,
    descendants,
    print_table,
    quiet_session,
)

_TABLES = ("customer", "orders", "lineitem", "supplier", "nation")
_QUERY = """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM {0}customer JOIN {0}orders ON c_custkey = o_custkey
JOIN {0}lineitem ON l_orderkey = o_orderkey
JOIN {0}supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
JOIN {0}nation ON s_nationkey = n_nationkey
WHERE o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name ORDER BY revenue DESC"""
_PREFIXES = {"Pennon": "lance.bench.", "Parquet": ""}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=250)
    rounds = parser.parse_args().rounds
    folder = FOLDER / "tpch_sf1"
    (folder / "lake").mkdir(parents=True, exist_ok=True)
    sources = tpch_sources(1.0, folder)
    spark = quiet_session(folder / "lake")
    for view in views(sources):
        spark.sql(view)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.bench")
    for table in _TABLES:
        by = TPCH_PARTITIONS[table]
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS lance.bench.{table}"
            f" {f'PARTITIONED BY ({by})' if by else ''} AS SELECT * FROM {table}"
        )
    seconds: dict[str, list[float]] = {side: [] for side in _PREFIXES}
    cpu: dict[str, list[float]] = {side: [] for side in _PREFIXES}
    load = OtherLoad.start()
    for _ in range(rounds):
        for side, prefix in _PREFIXES.items():
            started, spent = time.perf_counter(), _cpu()
            planned = spark.sql(_QUERY.format(prefix))
            planned._jdf.queryExecution().executedPlan()
            seconds[side].append(time.perf_counter() - started)
            cpu[side].append(_cpu() - spent)
    counted = rounds - rounds // 2
    rows = [
        (
            side,
            *(f"{1000 * value(seconds[side][-counted:]):.0f}" for value in (median, min)),
            f"{1000 * sum(cpu[side][-counted:]) / counted:.0f}",
        )
        for side in _PREFIXES
    ]
    print_table(
        f"Planning a join of five tables, local[2], the later {counted} of {rounds} rounds: ms",
        ("side", "median", "least", "CPU, mean"),
        rows,
    )
    print(f"\n  Other processes used {load.cores():.1f} of {os.cpu_count()} cores meanwhile.")
    spark.stop()


def _cpu() -> float:
    return sum(map(cpu_seconds, [os.getpid(), *descendants(os.getpid())]))


if __name__ == "__main__":
    main()
