"""Reading 5,000 small partitions, beside the same rows as Parquet in 5,000 directories.

Both sides are Spark at ``local[2]``, each in a process of its own; they take turns, and every query
has to give the same rows. Parquet's directories are listed before. A round takes half a minute: one
counts where nothing else is said.

python -m benchmarks.small_partitions
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from statistics import mean, median
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from benchmarks.join import PARQUET, PENNON
from benchmarks.plan_peers import FEWER_LISTING_TASKS
from benchmarks.side_by_side import FOLDER, SPARK_CONF, OtherLoad, print_table
from benchmarks.spark_side import Side

import pennon

LAKE: Final = FOLDER / "small_partitions"
ROWS: Final = 200
QUERIES: Final = {
    "sum of one column": "SELECT count(*), sum(v) FROM {table}",
    "sums of three columns": "SELECT sum(v), sum(length(name)), max(at) FROM {table}",
    "GROUP BY the partition": (
        "SELECT count(*), sum(s) FROM (SELECT k, sum(v) AS s FROM {table} GROUP BY k)"
    ),
    "filter on a column": "SELECT count(*), sum(v) FROM {table} WHERE name LIKE '%77'",
    # The checksum is a function that only Spark knows: every row reaches Spark.
    "all rows to Spark": "SELECT sum(xxhash64(k, v, name, at) % 1000003) FROM {table}",
}


def rows(count: int) -> pa.Table:
    """Make the rows of all partitions."""
    number = np.arange(count * ROWS, dtype=np.int64)
    moments = pa.array(number * 1_000_000 + 1_600_000_000_000_000)
    return pa.table(
        {
            "k": pa.array((number // ROWS).astype(np.int32)),
            "v": pa.array(number * 7 % 1_000),
            "name": pa.array([f"name {at % 10_000}" for at in number.tolist()]),
            "at": moments.cast(pa.timestamp("us", "UTC")),
        }
    )


def make(count: int) -> None:
    """Write the partitions of both sides, once."""
    made = LAKE / f"{count}.made"
    if made.exists():
        return
    print(f"Making {count:,} partitions of {ROWS} rows, twice …", flush=True)
    shutil.rmtree(LAKE, ignore_errors=True)
    (LAKE / "pennon").mkdir(parents=True)
    table = rows(count)
    properties = {"write.compaction.enabled": "false"}
    pennon.create(LAKE / "pennon" / "t", table.schema, ["k"], properties=properties).append(table)
    ds.write_dataset(
        table,
        LAKE / "parquet",
        format="parquet",
        partitioning=ds.partitioning(pa.schema({"k": pa.int32()}), flavor="hive"),
        max_partitions=count,
        max_open_files=500,
    )
    made.touch()


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--partitions", type=int, default=5_000)
    arguments.add_argument("--rounds", type=int, default=1)
    asked = arguments.parse_args()
    count = asked.partitions
    make(count)
    here = Path(sys.executable)
    sides = {
        f"lance.`{LAKE / 'pennon' / 't'}`": Side(PENNON, here, SPARK_CONF, "", LAKE / "pennon"),
        "small_partitions": Side(PARQUET, here, SPARK_CONF | FEWER_LISTING_TASKS, ""),
    }
    for side in sides.values():
        side.start()
    sides["small_partitions"].run(
        "CREATE TEMPORARY VIEW small_partitions (v BIGINT, name STRING, at TIMESTAMP, k INT)"
        f" USING parquet OPTIONS (path '{LAKE / 'parquet'}')"
    )
    load = OtherLoad.start()
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for run in range(asked.rounds + 1):
        print(f"Round {run} of {asked.rounds} …", flush=True)
        for name, query in QUERIES.items():
            answers = []
            for table, side in sides.items():
                answer = side.ask(do="query", sql=query.format(table=table))
                assert "error" not in answer, (side.name, answer)
                answers.append(answer["rows"])
                times = float(str(answer["seconds"])), float(str(answer["cpu_seconds"]))
                if run:
                    taken.setdefault((name, side.name), []).append(times)
            assert answers[0] == answers[1], (name, answers)
    printed = []
    for name in QUERIES:
        ours, theirs = taken[name, PENNON], taken[name, PARQUET]
        wall = [median(seconds for seconds, _ in runs) for runs in (ours, theirs)]
        cpu = [mean(seconds for _, seconds in runs) for runs in (ours, theirs)]
        factors = f"{wall[1] / wall[0]:.1f}", f"{cpu[1] / cpu[0]:.1f}"
        printed.append((name, *wall, factors[0], *cpu, factors[1]))
    print_table(
        f"{count:,} partitions of {ROWS} rows: seconds, and CPU seconds of JVM and workers",
        ("query", PENNON, PARQUET, "times", f"{PENNON}, CPU", f"{PARQUET}, CPU", "times"),
        printed,
    )
    print(f"\n  Other processes used {load.cores():.1f} of {os.cpu_count()} cores meanwhile.")
    for side in sides.values():
        side.stop()


if __name__ == "__main__":
    main()
