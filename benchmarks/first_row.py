"""The first row of a small table in a new session, beside plain Spark over Parquet.

Measured from the start of a fresh Python process to the row on its screen.
"""

from __future__ import annotations

import shutil
import sys
from statistics import median

from benchmarks.side_by_side import (
    FOLDER,
    RUNS,
    SPARK_CONF,
    first_line_of_fresh_process,
    in_fresh_process,
    print_table,
)

LAKE, PARQUET = FOLDER / "first_lake", FOLDER / "first_parquet"
ROWS = "SELECT id, concat('name ', id) AS name FROM range(1000)"


def with_pennon():
    import pennon

    return pennon.spark(root=LAKE)


def plain():
    from pyspark.sql import SparkSession

    return SparkSession.builder


def session(builder):
    return builder.master("local[2]").config(map=SPARK_CONF).getOrCreate()


def make() -> None:
    for folder in (LAKE, PARQUET):
        shutil.rmtree(folder, ignore_errors=True)
    LAKE.mkdir(parents=True)
    spark = session(with_pennon())
    spark.sql(ROWS).write.parquet(str(PARQUET))
    spark.sql("CREATE NAMESPACE lance.bench")
    spark.sql("CREATE TABLE lance.bench.t (id BIGINT, name STRING) PARTITIONED BY (bucket(4, id))")
    spark.sql(f"INSERT INTO lance.bench.t {ROWS}")
    spark.stop()


def read_pennon() -> None:
    print(session(with_pennon()).table("lance.bench.t").where("id = 7").collect(), flush=True)


def read_parquet() -> None:
    print(session(plain()).read.parquet(str(PARQUET)).where("id = 7").collect(), flush=True)


def report() -> None:
    in_fresh_process("first_row", "make")
    seconds: dict[str, list[float]] = {"pennon": [], "parquet": []}
    rows = set()
    for run in range(RUNS + 1):
        for reader, taken in seconds.items():
            row, elapsed = first_line_of_fresh_process("first_row", reader)
            rows.add(row)
            if run > 0:
                taken.append(elapsed)
    assert len(rows) == 1, rows
    ours, plain_spark = median(seconds["pennon"]), median(seconds["parquet"])
    print_table(
        "First row in a new session, seconds (medians, by turns)",
        ("Pennon", "plain Spark", "more"),
        [(ours, plain_spark, ours - plain_spark)],
    )


if __name__ == "__main__":
    {"make": make, "pennon": read_pennon, "parquet": read_parquet}.get(sys.argv[-1], report)()
