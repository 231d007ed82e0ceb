"""More groups than the workers' memory holds: the aggregate spills, and says the same.

    make bench-groups                                    # 50 million groups, a pool of 256 MB
    make bench-groups ARGS="--groups 5000000 --pool 64m"

Six rows for every five groups lie in one unpartitioned table, in no order, so that one executor
computes all groups. What comes out is counted and added up there, and is known beforehand. The
table is made once, in batches, and stays in ``build/bench``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from benchmarks.join_side import forget_peak
from benchmarks.side_by_side import (
    FOLDER,
    OtherLoad,
    cpu_seconds,
    descendants,
    is_worker,
    quiet_session,
    worker_peak_megabytes,
)

# Any number without a factor in common with the groups scatters them.
_STRIDE = 7_368_787
_ROWS_AT_ONCE = 10_000_000


def main() -> int:
    """Make the table if it is not there, and group it."""
    parser = argparse.ArgumentParser(prog="make bench-groups ARGS=…")
    parser.add_argument("--groups", type=int, default=50_000_000)
    parser.add_argument("--pool", default="256m")
    parser.add_argument("--fill", action="store_true", help="make the table and no more")
    options = parser.parse_args()
    (FOLDER / "groups_lake").mkdir(parents=True, exist_ok=True)
    spark = quiet_session(FOLDER / "groups_lake", {"spark.pennon.worker.memory": options.pool})
    table, rows = f"lance.bench.groups{options.groups}", options.groups * 6 // 5
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.bench")
    made = f"{table.rsplit('.', maxsplit=1)[-1]}_of_{rows}_rows"
    if not (FOLDER / made).exists():
        spark.sql(f"DROP TABLE IF EXISTS {table}")
        spark.sql(f"CREATE TABLE {table} (k BIGINT, v BIGINT)")
        for first in range(0, rows, _ROWS_AT_ONCE):
            last = min(rows, first + _ROWS_AT_ONCE)
            select = f"SELECT (id * {_STRIDE}) % {options.groups}, id % 100"
            spark.sql(f"INSERT INTO {table} {select} FROM RANGE({first}, {last}, 1, 2)")
        (FOLDER / made).touch()
    if options.fill:
        return 0
    spark.sql(f"SELECT count(v) FROM {table} WHERE k = 7").collect()
    for pid in filter(is_worker, descendants(os.getpid())):
        forget_peak(pid)
    load, begun, cpu = OtherLoad.start(), time.perf_counter(), _cpu()
    frame = spark.sql(
        "SELECT count(*), sum(n), sum(s), max(n) FROM"
        f" (SELECT k, count(*) AS n, sum(v) AS s FROM {table} GROUP BY k)"
    )
    (found,) = frame.collect()
    seconds, spent = time.perf_counter() - begun, _cpu() - cpu
    expected = (options.groups, rows, sum(range(100)) * rows // 100, 2)
    print(
        f"{options.groups:,} groups of {rows:,} rows, pool {options.pool}: {seconds:.1f} s,"
        f" {spent:.1f} s of CPU in the workers, at most {worker_peak_megabytes():.0f} MB"
        f" in one of them; other processes used {load.cores():.1f} cores"
    )
    is_right = tuple(found) == expected
    if not is_right:
        print(f"{tuple(found)} instead of {expected}")
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    if "fragment: " not in plan:
        print(f"Spark grouped them itself:\n{plan}")
    spark.stop()
    return 0 if is_right else 1


def _cpu() -> float:
    return sum(cpu_seconds(pid) for pid in descendants(os.getpid()) if is_worker(pid))


if __name__ == "__main__":
    sys.exit(main())
