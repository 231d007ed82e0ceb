"""A query of nothing: ``count(*)`` over an empty table, beside the same of Parquet.

What Pennon costs by itself shows here: loading the table, the optimizer's requests, a task. Both
are asked by turns in one session; milliseconds and the CPU of the JVM and the workers are medians.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.side_by_side import cpu_seconds_below, print_table, quiet_session

_ROUNDS = 40
_WARM = 15
# CPU is counted in hundredths of a second, so several queries are one measurement.
_AT_ONCE = 5


def main() -> int:
    """Ask."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lake").mkdir()
        spark = quiet_session(Path(folder) / "lake")
        spark.range(0).write.parquet(f"{folder}/parquet")
        spark.read.parquet(f"{folder}/parquet").createOrReplaceTempView("parquet")
        spark.sql("CREATE NAMESPACE lance.bench")
        spark.sql("CREATE TABLE lance.bench.plain (id BIGINT)")
        spark.sql("CREATE TABLE lance.bench.parts (id BIGINT) PARTITIONED BY (bucket(4, id))")
        tables = ("parquet", "lance.bench.plain", "lance.bench.parts")
        wall: dict[str, list[float]] = {table: [] for table in tables}
        cpu: dict[str, list[float]] = {table: [] for table in tables}
        for run in range(_WARM + _ROUNDS):
            for table in tables:
                started, spent = time.perf_counter(), cpu_seconds_below()
                for _ in range(_AT_ONCE):
                    rows = spark.sql(f"SELECT count(*) FROM {table}").collect()
                    assert [tuple(row) for row in rows] == [(0,)]
                if run >= _WARM:
                    wall[table].append((time.perf_counter() - started) / _AT_ONCE * 1000)
                    cpu[table].append((cpu_seconds_below() - spent) / _AT_ONCE * 1000)
        spark.stop()
    print_table(
        "count(*) over an empty table",
        ["table", "ms", "fastest", "CPU ms"],
        [
            [table, statistics.median(wall[table]), min(wall[table]), statistics.median(cpu[table])]
            for table in tables
        ],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
