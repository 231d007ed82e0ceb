"""MERGE of one row in a hundred, beside Iceberg's merge on read, each in its own Spark.

    make bench-merge ROWS=20000000

Both tables are partitioned by a bucket of the key and get the same statements, whose source is a
view of new values for rows all over the table and some new keys. All rows are compared after each.
Iceberg writes deletion vectors (format version 3) and runs on the newest Spark that it supports.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path

from benchmarks import fetched
from benchmarks.join import ICEBERG_CONF
from benchmarks.side_by_side import FOLDER, SPARK_CONF, OtherLoad, print_table
from benchmarks.spark_side import Side

PENNON, ICEBERG = "Pennon", "Iceberg"
BUCKETS = 16
COLUMNS = "id BIGINT, kind INT, day DATE, amount DECIMAL(12, 2), note STRING"
MERGE_ON_READ = ", ".join(
    f"'write.{action}.mode' = 'merge-on-read'" for action in ("delete", "update", "merge")
)
ROW_SUMS = (
    "SELECT count(*), sum(id), sum(kind), sum(datediff(day, DATE '2020-01-01')), sum(amount),"
    " sum(length(note)), sum(id * amount), sum(id * kind) FROM {table}"
)


def sides(folder: Path) -> list[Side]:
    """List the sides that can be had; why one cannot is printed."""
    found = [Side(PENNON, Path(sys.executable), SPARK_CONF, "lance.bench.", folder / "lake")]
    older = fetched.virtual_environment("iceberg", fetched.ICEBERG_SPARK)
    if older is not None:
        catalog = {
            "spark.jars.packages": fetched.ICEBERG,
            "spark.jars.ivy": str(fetched.FETCHED / "ivy"),
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": str(folder / "iceberg"),
        }
        conf = SPARK_CONF | catalog | ICEBERG_CONF
        found.append(Side(ICEBERG, older / "python", conf, "ice.bench."))
    return found


def row_query(ids: str, salt: int) -> str:
    """Write a query of rows, whose values follow from their ids and a salt."""
    return (
        f"SELECT id, CAST(pmod(id * 7 + {salt}, 97) AS INT) AS kind,"
        f" date_add(DATE '2020-01-01', CAST(pmod(id + {salt}, 1500) AS INT)) AS day,"
        f" CAST(pmod(id * 31 + {salt}, 100000) / 100 AS DECIMAL(12, 2)) AS amount,"
        f" concat('note ', id, ' of {salt}') AS note FROM {ids}"
    )


def changed_rows(rows: int, number: int) -> str:
    """Write the source of a merge: a hundredth of the rows, and a tenth of that in new keys."""
    there = f"SELECT id * 100 + {number} AS id FROM range({rows // 100})"
    new = f"SELECT id + {rows + number * rows // 1000} AS id FROM range({rows // 1000})"
    return row_query(f"({there} UNION ALL {new})", number + 1)


def statement(side: Side, rows: int, number: int) -> str:
    """Write a merge."""
    return (
        f"MERGE INTO {side.prefix}events t USING ({changed_rows(rows, number)}) s ON t.id = s.id"
        " WHEN MATCHED AND s.kind = 3 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET amount = s.amount, note = s.note"
        " WHEN NOT MATCHED THEN INSERT *"
    )


def fill(side: Side, rows: int) -> None:
    """Make a side's table."""
    namespace = side.prefix.rstrip(".")
    using = "USING iceberg " if side.name == ICEBERG else ""
    version = ", 'format-version' = '3'" if side.name == ICEBERG else ""
    side.run(
        f"CREATE NAMESPACE IF NOT EXISTS {namespace}",
        f"DROP TABLE IF EXISTS {namespace}.events",
        f"CREATE TABLE {namespace}.events ({COLUMNS}) {using}"
        f"PARTITIONED BY (bucket({BUCKETS}, id)) TBLPROPERTIES ({MERGE_ON_READ}{version})",
        f"INSERT INTO {namespace}.events {row_query(f'range({rows})', 0)}",
    )


def ask(side: Side, sql: str) -> dict[str, object]:
    """Ask a side; an error ends the benchmark."""
    answer = side.ask(do="query", sql=sql)
    if "error" in answer:
        sys.exit(f"{side.name}: {answer['error']}")
    return answer


def race(started: list[Side], rows: int, rounds: int) -> list[list[object]]:
    """Merge by turns, compare all rows after each merge, and sum up the merges that count."""
    taken: dict[str, list[dict[str, object]]] = {side.name: [] for side in started}
    read: dict[str, list[float]] = {side.name: [] for side in started}
    for number in range(rounds + 1):
        print(f"Merge {number} of {rounds} …" if number else "Warming up …", flush=True)
        sums: dict[str, object] = {}
        for side in started if number % 2 else started[::-1]:
            answer = ask(side, statement(side, rows, number))
            after = ask(side, ROW_SUMS.format(table=f"{side.prefix}events"))
            sums[side.name] = after["rows"]
            if number:
                taken[side.name].append(answer)
                read[side.name].append(float(str(after["seconds"])))
        if any(other != sums[PENNON] for other in sums.values()):
            sys.exit(f"The rows differ after merge {number}: {sums}")
    return [
        [
            name,
            statistics.median(float(str(answer["seconds"])) for answer in answers),
            statistics.median(float(str(answer["cpu_seconds"])) for answer in answers),
            max(float(str(answer["peak"])) for answer in answers),
            max(int(str(answer["shuffled"])) for answer in answers) / 1e6,
            statistics.median(read[name]),
        ]
        for name, answers in taken.items()
    ]


def main() -> None:
    """Make the tables, race, and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=20_000_000)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    folder = FOLDER / "merge"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started = []
    for side in sides(folder):
        answer = side.start()
        if "error" in answer:
            print(f"{side.name} cannot be had: {answer['error']}")
            side.stop()
            continue
        started.append(side)
        print(f"Making the table of {side.name} …", flush=True)
        fill(side, given.rows)
    load = OtherLoad.start()
    found = race(started, given.rows, given.rounds)
    header = ("", "seconds", "CPU seconds", "peak MB", "shuffled MB", "read after, s")
    print_table(f"MERGE of 1 % and 0.1 % new keys into {given.rows:,} rows", header, found)
    print(f"\n  Other processes used {load.cores():.1f} of {os.cpu_count()} cores meanwhile.")
    for side in started:
        side.stop()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
