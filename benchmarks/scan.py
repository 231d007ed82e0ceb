"""Sums of one and of four columns over 20 million rows, beside Spark's own Parquet reader.

The rows are an int64, a float64, a string and a date; unpartitioned, and in 64 partitions. The
tables are made on the first run and kept in build/bench.
"""

from __future__ import annotations

import json
import os
import sys

from benchmarks.side_by_side import (
    FOLDER,
    emptied,
    in_fresh_process,
    medians,
    print_table,
    quiet_session,
    worker_peak_megabytes,
)

ROWS = int(os.environ.get("PENNON_BENCH_ROWS", "20000000"))
LAKE, PARQUET, MADE = FOLDER / "scan_lake", FOLDER / "scan_parquet", FOLDER / f"scan_{ROWS}.made"
QUERIES = {
    "sum of 1 column": "SELECT round(sum(x)) FROM {table}",
    "sum of 4 columns": (
        "SELECT sum(id), round(sum(x)), sum(length(s)), "
        "sum(datediff(d, DATE '1970-01-01')) FROM {table}"
    ),
}
LAYOUTS = {"unpartitioned": "plain", "64 partitions": "parts"}


def make() -> None:
    emptied(LAKE, PARQUET)
    spark = quiet_session(LAKE)
    rows = f"""SELECT id, CAST(hash(id) % 1000000 AS DOUBLE) / 4 AS x,
        concat('name ', hash(id, 1) % 10000) AS s,
        date_add(DATE '2020-01-01', CAST(id % 2000 AS INT)) AS d
        FROM range(0, {ROWS}, 1, 8)"""
    spark.sql(rows).write.parquet(str(PARQUET / "plain"))
    plain = spark.read.parquet(str(PARQUET / "plain"))
    plain.selectExpr("*", "pmod(hash(id), 64) AS part").repartition(2, "part").write.partitionBy(
        "part"
    ).parquet(str(PARQUET / "parts"))
    spark.sql("CREATE NAMESPACE lance.bench")
    columns = "(id BIGINT, x DOUBLE, s STRING, d DATE)"
    spark.sql(f"CREATE TABLE lance.bench.plain {columns}")
    spark.sql(f"CREATE TABLE lance.bench.parts {columns} PARTITIONED BY (bucket(64, id))")
    plain.createOrReplaceTempView("source")
    for table in LAYOUTS.values():
        spark.sql(f"INSERT INTO lance.bench.{table} SELECT * FROM source")
    spark.stop()
    MADE.touch()


def measure() -> None:
    spark = quiet_session(LAKE)
    for table in LAYOUTS.values():
        spark.read.parquet(str(PARQUET / table)).createOrReplaceTempView(f"parquet_{table}")
    cases = {}
    for query, sql in QUERIES.items():
        for layout, table in LAYOUTS.items():
            for reader, name in (
                ("Pennon", f"lance.bench.{table}"),
                ("Parquet", f"parquet_{table}"),
            ):
                text = sql.format(table=name)
                cases[f"{query}, {layout}:{reader}"] = lambda text=text: tuple(
                    spark.sql(text).collect()[0]
                )
    print(json.dumps({"seconds": medians(cases), "peak": worker_peak_megabytes()}))
    spark.stop()


def report() -> None:
    if not MADE.exists():
        print(f"Making {ROWS:,} rows in {FOLDER} …", flush=True)
        in_fresh_process("scan", "make")
    measured = json.loads(in_fresh_process("scan", "measure").splitlines()[-1])
    seconds = measured["seconds"]
    questions = dict.fromkeys(name.split(":")[0] for name in seconds)
    rows = [
        (
            question,
            seconds[f"{question}:Pennon"],
            seconds[f"{question}:Parquet"],
            f"{seconds[f'{question}:Parquet'] / seconds[f'{question}:Pennon']:.1f} x",
        )
        for question in questions
    ]
    print_table(
        f"{ROWS:,} rows, local[2], seconds (medians, by turns)",
        ("query", "Pennon", "Parquet", "faster"),
        rows,
    )
    print(f"\n  peak memory of a worker while streaming: {measured['peak']:.0f} MB")


if __name__ == "__main__":
    {"make": make, "measure": measure}.get(sys.argv[-1], report)()
