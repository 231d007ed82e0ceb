"""Rows that go into Spark, type by type: 1, 5 and 20 columns, beside Spark's own Parquet reader.

Nothing is computed, so that no part of a query runs in the workers: the rows are read, made into
Spark's own, and dropped ("noop"). The tables are made on the first run and kept in build/bench.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial

from benchmarks.side_by_side import (
    FOLDER,
    OtherLoad,
    emptied,
    in_fresh_process,
    medians,
    print_table,
    quiet_session,
)

RUNS = 9  # of a tenth of a second each
ROWS = int(os.environ.get("PENNON_BENCH_ROWS", "1000000"))
COLUMNS = 20
WIDTHS = (1, 5, COLUMNS)
PLACE = FOLDER / f"rows_{ROWS}"
LAKE, PARQUET, MADE = PLACE / "lake", PLACE / "parquet", PLACE / "made"
# A value of each type; {h} is a hash that differs from row to row and from column to column.
TYPES = {
    "boolean": "{h} % 2 = 0",
    "int": "{h}",
    "bigint": "CAST({h} AS BIGINT) * 65537",
    "float": "CAST({h} AS FLOAT)",
    "double": "CAST({h} AS DOUBLE) / 4",
    "decimal(12, 2)": "CAST({h} / 100 AS DECIMAL(12, 2))",
    "decimal(38, 2)": "CAST(CAST({h} AS DECIMAL(10, 0)) * 1000000000000 AS DECIMAL(38, 2))",
    "string, 10,000 values": "concat('name ', pmod({h}, 10000))",
    "string, all differ": "concat('a longer text of ', {h})",
    "binary": "CAST(hex({h}) AS BINARY)",
    "date": "date_add(DATE '1990-01-01', pmod({h}, 20000))",
    "timestamp": "timestamp_seconds({h})",
    "int, a third NULL": "CASE WHEN pmod({h}, 3) > 0 THEN {h} END",
}


def make() -> None:
    emptied(LAKE, PARQUET)
    spark = quiet_session(LAKE)
    spark.sql("CREATE NAMESPACE lance.bench")
    for number, value in enumerate(TYPES.values()):
        columns = (f"{value.format(h=f'hash(id, {at})')} AS c{at}" for at in range(COLUMNS))
        place = PARQUET / f"t{number}"
        rows = spark.sql(f"SELECT {', '.join(columns)} FROM range(0, {ROWS}, 1, 2)")
        rows.write.parquet(str(place))
        spark.sql(f"CREATE TABLE lance.bench.t{number} AS SELECT * FROM parquet.`{place}`")
    spark.stop()
    MADE.touch()


def measure() -> None:
    spark = quiet_session(LAKE)

    def read(table: str, width: int) -> None:
        columns = (f"c{at}" for at in range(width))
        rows = spark.sql(f"SELECT {', '.join(columns)} FROM {table}")
        rows.write.format("noop").mode("overwrite").save()

    seconds: dict[str, float] = {}
    load = OtherLoad.start()
    for number, kind in enumerate(TYPES):
        spark.read.parquet(str(PARQUET / f"t{number}")).createOrReplaceTempView(
            f"parquet_t{number}"
        )
        places = {"Pennon": f"lance.bench.t{number}", "Parquet": f"parquet_t{number}"}
        seconds |= medians(
            {
                f"{kind}; {width}:{reader}": partial(read, table, width)
                for width in WIDTHS
                for reader, table in places.items()
            },
            RUNS,
        )
    print(json.dumps({"seconds": seconds, "others": load.cores()}))
    spark.stop()


def report() -> None:
    if not MADE.exists():
        print(f"Making {len(TYPES)} tables of {ROWS:,} rows in {FOLDER} …", flush=True)
        in_fresh_process("rows_to_spark", "make")
    measured = json.loads(in_fresh_process("rows_to_spark", "measure").splitlines()[-1])
    seconds = measured["seconds"]
    rows = []
    for kind in TYPES:
        cells: list[object] = [kind]
        for width in WIDTHS:
            ours, theirs = (seconds[f"{kind}; {width}:{side}"] for side in ("Pennon", "Parquet"))
            cells += [ours, theirs, theirs / ours]
        rows.append(cells)
    heads = [head for width in WIDTHS for head in (f"{width}: Pennon", "Parquet", "times")]
    print_table(f"{ROWS:,} rows into Spark, local[2], seconds", ("columns of", *heads), rows)
    print(f"\n  Other processes used {measured['others']:.1f} of {os.cpu_count()} cores meanwhile.")


if __name__ == "__main__":
    {"make": make, "measure": measure}.get(sys.argv[-1], report)()
