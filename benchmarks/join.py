"""Joins beside the same joins over Parquet, which shuffle, and over Iceberg, each in its own Spark.

Iceberg runs on the newest Spark that it supports, so Parquet is measured there too. The sides take
turns query by query; every query must give the same rows everywhere.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from benchmarks import fetched
from benchmarks.join_cases import Case, cases, tpch_tables
from benchmarks.join_tables import Measured, print_tables
from benchmarks.side_by_side import FOLDER, RUNS, SPARK_CONF, OtherLoad
from benchmarks.spark_side import Side

from pennon.demo import lake_on_disk as flights_data

PENNON, PARQUET, ICEBERG, OLDER_PARQUET = "Pennon", "Parquet", "Iceberg", "Parquet, older Spark"
CONF = SPARK_CONF | {
    "spark.driver.memory": "4g",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "8",
}
# What a user of Iceberg sets by hand for joins without a shuffle.
ICEBERG_CONF = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled": "true",
    "spark.sql.sources.v2.bucketing.allowCompatibleTransforms.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
}


def sides(folder: Path) -> list[Side]:
    """List the sides that can be had; why one cannot is printed."""
    here = Path(sys.executable)
    found = [
        Side(PENNON, here, CONF, "lance.bench.", folder / "lake"),
        Side(PARQUET, here, CONF, "", partitioned=False),
    ]
    older = fetched.virtual_environment("iceberg", fetched.ICEBERG_SPARK)
    if older is not None:
        catalog = {
            "spark.jars.packages": fetched.ICEBERG,
            "spark.jars.ivy": str(fetched.FETCHED / "ivy"),
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": str(folder / "iceberg"),
        }
        python = older / "python"
        found += [
            Side(ICEBERG, python, CONF | catalog | ICEBERG_CONF, "ice.bench."),
            Side(OLDER_PARQUET, python, CONF, "", partitioned=False),
        ]
    return found


def views(source: Path | None, csv: Path) -> list[str]:
    """Write the statements that show a session the source files."""
    statements = [table.create_view(csv) for table in flights_data.TABLES]
    if source is not None:
        statements += [
            f"CREATE OR REPLACE TEMPORARY VIEW {table} USING parquet "
            f"OPTIONS (path '{source / table}')"
            for table in ("orders", "lineitem")
        ]
    return statements


def parquet_flights(folder: Path) -> list[str]:
    """Write the statements that show the flights as Parquet."""
    return [
        f"CREATE OR REPLACE TEMPORARY VIEW {table.name} USING parquet "
        f"OPTIONS (path '{folder / 'parquet' / table.name}')"
        for table in flights_data.TABLES
    ]


def fill(side: Side, folder: Path, *, has_tpch: bool) -> None:
    """Make a side's tables, once; what was interrupted goes on with the table at which it was."""
    made = folder / f"{side.name}{' with TPC-H' if has_tpch else ''}.made"
    if made.exists():
        return
    print(f"Making the tables of {side.name} …", flush=True)
    if not side.partitioned:
        side.run(
            *(
                f"INSERT OVERWRITE DIRECTORY '{folder / 'parquet' / table.name}' USING parquet "
                f"SELECT /*+ COALESCE(2) */ * FROM {table.name}_csv"
                for table in flights_data.TABLES
            )
        )
    else:
        namespace = side.prefix.rstrip(".")
        wanted = [
            (table.name, f"{table.name}_csv", table.columns, table.partitioned_by)
            for table in flights_data.TABLES
        ]
        wanted += tpch_tables() if has_tpch else []
        using = "USING iceberg " if side.name == ICEBERG else ""
        side.run(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        for name, source, columns, partitioned_by in wanted:
            filled = folder / f"{side.name} {name}.made"
            if filled.exists():
                continue
            side.run(
                f"DROP TABLE IF EXISTS {namespace}.{name}",
                f"CREATE TABLE {namespace}.{name} ({columns}) {using}"
                f"PARTITIONED BY ({partitioned_by})",
                f"INSERT INTO {namespace}.{name} SELECT * FROM {source}",
            )
            filled.touch()
    made.touch()


def prepare(found: list[Side], scale: int, folder: Path) -> list[Side]:
    """Start the sides and give them their tables; one that cannot start is left out."""
    source = fetched.tpch(scale, folder / "source")
    csv = flights_data.unpack(FOLDER / "csv")
    started = []
    for side in found:
        answer = side.start()
        if "error" in answer:
            print(f"{side.name} cannot be had: {answer['error']}")
            side.stop()
            continue
        side.run(*views(source, csv))
        started.append(side)
        # Parquet's flights are written by the newer Spark and read by both.
        if side.name != OLDER_PARQUET:
            fill(side, folder, has_tpch=source is not None)
        side.run(*([] if side.partitioned else parquet_flights(folder)))
    return started


class Race:
    """Rounds of all queries on all sides.

    Args:
        sides: They take turns at every query.
        asked: The queries.
    """

    def __init__(self, sides: list[Side], asked: list[Case]) -> None:
        self._sides = sides
        self._asked = asked
        self._answers: dict[str, object] = {}
        self.results: dict[tuple[str, str], Measured] = {}

    def run(self, rounds: int) -> None:
        """Run one round to warm up, then those that count."""
        for number in range(rounds + 1):
            print(f"Round {number} of {rounds} …" if number else "Warming up …", flush=True)
            done: set[tuple[str, str]] = set()
            for case in self._asked:
                self.take_turns(case, done, counts=number > 0)
            self._sides = [*self._sides[1:], self._sides[0]]

    def take_turns(self, case: Case, done: set[tuple[str, str]], *, counts: bool) -> None:
        """Ask one query of every side; one without partitioning answers once for all layouts."""
        for side in self._sides:
            key = (side.name, case.title if side.partitioned else case.name)
            measured = self.results.setdefault(key, Measured())
            if key not in done and not measured.error:
                done.add(key)
                self._ask(case, side, measured, counts=counts)

    def _ask(self, case: Case, side: Side, measured: Measured, *, counts: bool) -> None:
        answer = side.ask(do="query", sql=case.text(side.prefix, partitioned=side.partitioned))
        if "error" in answer:
            measured.error = str(answer["error"])
            return
        expected = self._answers.setdefault(case.name, answer["rows"])
        if answer["rows"] != expected:
            sys.exit(f"{case.title}: {side.name} gives {answer['rows']} and not {expected}")
        if counts:
            measured.seconds.append(float(str(answer["seconds"])))
            measured.cpu_seconds.append(float(str(answer["cpu_seconds"])))
            measured.peak_megabytes = max(measured.peak_megabytes, float(str(answer["peak"])))
            measured.shuffled_bytes = int(str(answer["shuffled"]))
            measured.plan = str(answer["plan"])


def run_scale(scale: int, given: argparse.Namespace) -> None:
    """Make the tables of one scale factor, race over them, and print."""
    folder = FOLDER / f"join_sf{scale}"
    if given.again:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    started = prepare(sides(folder), scale, folder)
    if not given.fill:
        has_tpch = (folder / "source" / "made").exists()
        all_cases = [case for case in cases() if has_tpch or not case.layout]
        asked = [case for case in all_cases if given.only in case.title]
        load = OtherLoad.start()
        race = Race(started, asked)
        race.run(given.rounds)
        others = load.cores()
        title = f"TPC-H scale factor {scale} and 336,776 flights, local[2], no broadcast"
        print_tables(title, asked, started, race.results)
        print(f"\n  Other processes used {others:.1f} of {os.cpu_count()} cores meanwhile.")
    for side in started:
        side.stop()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--scale", type=int, nargs="+", default=[1], help="of TPC-H: 1 is 6 million lines"
    )
    arguments.add_argument("--rounds", type=int, default=RUNS, help="that count, after the first")
    arguments.add_argument("--only", default="", help="part of the names of the queries")
    arguments.add_argument("--again", action="store_true", help="make the tables anew")
    arguments.add_argument("--fill", action="store_true", help="make the tables and no more")
    given = arguments.parse_args()
    for scale in given.scale:
        run_scale(scale, given)


if __name__ == "__main__":
    main()
