"""Planning beside Iceberg and Parquet directories: seconds from the text of a query to its tasks.

The three sides have the same partitions: a thousand keys to a day. Parquet has a directory for
each, with the same file of 100 rows in it, and Iceberg has these files added to a table with
identity partitions. Each query is planned until Spark knows its tasks; "first" is the first plan
over a table in a session that has planned over a small table of its kind. All sides have to read
the same partitions.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks import fetched
from benchmarks.join import ICEBERG, PARQUET, PENNON
from benchmarks.partitions_in_bulk import FIRST_DAY, PER_DAY, ROWS_PER_LEAF, make_namespace
from benchmarks.plan_scan import LONG_LIST, questions
from benchmarks.side_by_side import FOLDER, ROOT, RUNS, SPARK_CONF, OtherLoad, print_table
from benchmarks.spark_side import Side

from pennon.manifest import Snapshot
from pennon.planning import plan_scan

LAKE = FOLDER / "plan_peers"
SIZES = (10_000, 100_000)
_SMALL = 1_000
_WARM_UPS = 10
# As Spark ships, directories are listed by 10,000 tasks: 75 s of CPU for 10,000 directories.
FEWER_LISTING_TASKS = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "8"}
# A file system has as many names of a file, and not many more.
_LINKS = 50_000
_COLUMNS = "v DOUBLE, day DATE, k BIGINT"


def partitions(count: int) -> Iterator[str]:
    """List the partitions as the directories that Parquet has for them."""
    for k in range(count):
        yield f"day={FIRST_DAY + k // PER_DAY}/k={k}"


def one_file() -> Path:
    """Give the file of all partitions."""
    path = LAKE / "one.parquet"
    if not path.exists():
        pq.write_table(pa.table({"v": pa.repeat(1.0, ROWS_PER_LEAF)}), path)
    return path


def make_parquet(count: int) -> None:
    """Make a directory for each partition; they share one file by hard links."""
    folder = LAKE / "parquet" / str(count)
    shutil.rmtree(folder, ignore_errors=True)
    shared = one_file()
    for at, partition in enumerate(partitions(count)):
        file = folder / partition / "part-0.parquet"
        file.parent.mkdir(parents=True)
        if at % _LINKS:
            file.hardlink_to(shared)
        else:
            shared = Path(shutil.copy(shared, file))


def make_iceberg(side: Side, count: int) -> None:
    """Make an Iceberg table of the files of Parquet's directories."""
    order = {
        "conf": side.conf,
        "table": table(side, count),
        "columns": _COLUMNS,
        "folder": str(LAKE / "parquet" / str(count)),
        "partitions": list(partitions(count)),
        "num_bytes": one_file().stat().st_size,
        "num_rows": ROWS_PER_LEAF,
    }
    subprocess.run(
        [str(side.python), "-m", "benchmarks.iceberg_append"],
        input=json.dumps(order),
        cwd=ROOT,
        text=True,
        check=True,
        stderr=subprocess.DEVNULL,
    )


def make_pennon(count: int) -> None:
    """Make a namespace whose partitions share a few leaves."""
    location = LAKE / "pennon" / str(count)
    shutil.rmtree(location, ignore_errors=True)
    location.mkdir(parents=True)
    make_namespace(location, count)


def sides() -> list[Side]:
    """List the sides; Iceberg's needs the network once."""
    here = Path(sys.executable)
    conf = SPARK_CONF | {"spark.driver.memory": "4g"}
    found = [
        Side(PENNON, here, conf, "lance.", LAKE / "pennon"),
        Side(PARQUET, here, conf | FEWER_LISTING_TASKS, ""),
    ]
    older = fetched.virtual_environment("iceberg", fetched.ICEBERG_SPARK)
    if older is not None:
        catalog = {
            "spark.jars.packages": fetched.ICEBERG,
            "spark.jars.ivy": str(fetched.FETCHED / "ivy"),
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": str(LAKE / "iceberg"),
        }
        found.append(Side(ICEBERG, older / "python", conf | catalog, "ice.bench."))
    return found


def table(side: Side, count: int) -> str:
    """Give the name of a side's table of so many partitions."""
    if side.name == PENNON:
        return f"lance.`{LAKE / 'pennon' / str(count)}`"
    return f"{side.prefix}p{count}"


def prepare(side: Side, count: int) -> None:
    """Make a table of a side, once."""
    made = LAKE / f"{side.name} {count}.made"
    if made.exists():
        return
    print(f"Making {count:,} partitions of {side.name} …", flush=True)
    if side.name == PENNON:
        make_pennon(count)
    elif side.name == PARQUET:
        make_parquet(count)
    else:
        make_iceberg(side, count)
    made.touch()


def first_planned(side: Side, count: int, predicate: str) -> tuple[float, float]:
    """Plan a query on a table that the session has not seen; Parquet lists its directories."""
    if side.name != PARQUET:
        return planned(side, count, predicate)
    view = (
        f"CREATE OR REPLACE TEMPORARY VIEW {table(side, count)} ({_COLUMNS}) USING parquet"
        f" OPTIONS (path '{LAKE / 'parquet' / str(count)}')"
    )
    return planned(side, count, predicate, view)


def without_table(side: Side) -> tuple[float, float]:
    """Plan a query of the same shape without a table: what Spark needs of every plan."""
    sql = "SELECT v FROM VALUES (1, 2.0), (2, 3.0) AS t(k, v) WHERE k = 1"
    return _timed(_answer(side, do="plan", sql=sql))


def planned(side: Side, count: int, predicate: str, before: str = "") -> tuple[float, float]:
    """Plan a query, behind a statement where one is given: seconds and CPU seconds."""
    sql = f"SELECT v FROM {table(side, count)} WHERE {predicate}"
    return _timed(_answer(side, do="plan", sql=sql, before=before))


def _timed(answer: dict[str, object]) -> tuple[float, float]:
    return float(str(answer["seconds"])), float(str(answer["cpu_seconds"]))


def _answer(side: Side, **order: object) -> dict[str, object]:
    answer = side.ask(**order)
    if "error" in answer:
        sys.exit(f"{side.name}: {answer['error']}")
    return answer


def partitions_read(side: Side, count: int, predicate: str) -> int:
    """Tell how many partitions a query reads: those planned, or by the rows that it gives.

    Pennon's partitions share leaves whose rows are of other keys, so that no query has them all.
    """
    if side.name == PENNON:
        location = str(LAKE / "pennon" / str(count))
        return int(plan_scan(Snapshot.open(location), predicate).table.num_rows)
    sql = f"SELECT count(v) FROM {table(side, count)} WHERE {predicate}"
    [[rows]] = cast("list[list[int]]", _answer(side, do="query", sql=sql)["rows"])
    return rows // ROWS_PER_LEAF


def compare(found: list[Side], count: int) -> list[tuple[object, ...]]:
    """Plan every query on all sides by turns, and run each once."""
    rows: list[tuple[object, ...]] = []
    for name, question in questions(count).items():
        if name == LONG_LIST:  # Spark's own work for it takes seconds on every side
            continue
        times: dict[str, list[tuple[float, float]]] = {side.name: [] for side in found}
        for run in range(RUNS + 1):
            for side in found:
                predicate = question.by_time if side.name == PENNON else question.by_day
                plan = first_planned if run == 0 and name == "point" else planned
                times[side.name].append(plan(side, count, predicate))
        needed = question.partitions
        for side in found:
            predicate = question.by_time if side.name == PENNON else question.by_day
            assert partitions_read(side, count, predicate) == needed, (side.name, name)
        if name == "point":
            rows.append(
                (f"{count:,}", f"{name}, first", *_cells([times[s.name][:1] for s in found]))
            )
        rows.append((f"{count:,}", name, *_cells([times[s.name][1:] for s in found])))
    return rows


def _cells(times: list[list[tuple[float, float]]]) -> list[str]:
    """Print wall and CPU milliseconds of each side, and how many times more CPU the others take."""
    wall = [1000 * median(seconds for seconds, _ in runs) for runs in times]
    # A clock tick is 10 ms: the mean of the runs tells more than their median.
    cpu = [1000 * mean(cpu for _, cpu in runs) for runs in times]
    cells = [f"{w:,.0f} / {c:,.0f}" for w, c in zip(wall, cpu, strict=True)]
    return cells + [
        f"{w / wall[0]:.1f} / {c / cpu[0]:.1f}" for w, c in zip(wall[1:], cpu[1:], strict=True)
    ]


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--partitions", type=int, nargs="*", default=SIZES)
    arguments.add_argument("--sides", nargs="*", default=[PENNON, PARQUET, ICEBERG])
    given = arguments.parse_args()
    counts = given.partitions
    LAKE.mkdir(parents=True, exist_ok=True)
    found: list[Side] = []
    for side in sides():
        if side.name not in given.sides:
            continue
        for count in (_SMALL, *counts):
            prepare(side, count)
        answer = side.start()
        if "error" in answer:
            print(f"{side.name} cannot be had: {answer['error']}")
            continue
        found.append(side)
        for at in range(_WARM_UPS):
            plan = planned if at else first_planned
            plan(side, _SMALL, "k = 50")
    load = OtherLoad.start()
    rows: list[tuple[object, ...]] = []
    for count in counts:
        rows += compare(found, count)
        own = [[without_table(side) for _ in range(_WARM_UPS)] for side in found]
        rows.append((f"{count:,}", "no table", *_cells(own)))
    names = [side.name for side in found]
    header = ("partitions", "query", *names, *(f"x {name}" for name in names[1:]))
    print_table("planned until the tasks are known: milliseconds wall / CPU", header, rows)
    print(f"\n  Other processes used {load.cores():.1f} of {os.cpu_count()} cores meanwhile.")
    for side in found:
        side.stop()


if __name__ == "__main__":
    main()
