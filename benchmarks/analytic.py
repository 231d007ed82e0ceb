"""Whole queries at Spark's own defaults: TPC-H, TPC-DS, a star, and queries over TPC-H that Spark
computes most of itself, beside the same over Parquet.

Pennon and Parquet run on the same Spark, each in a process of its own, and take turns query by
query; rows must be equal. DuckDB and plain DataFusion over Parquet are marks from outside.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks import fetched, tpcds
from benchmarks.query_files import named_queries, star_tables
from benchmarks.query_profile import COLUMNS
from benchmarks.side_by_side import FOLDER, ROOT, OtherLoad, print_table
from benchmarks.spark_side import Side

PENNON, PARQUET, DUCKDB, DATAFUSION = "Pennon", "Parquet", "DuckDB", "DataFusion"
# Spark's defaults for all that decides on plans; the rest keeps the terminal quiet.
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "4g",
}
TPCH_PARTITIONS = {
    "lineitem": "bucket(16, l_orderkey)",
    "orders": "bucket(16, o_orderkey)",
    "customer": "bucket(4, c_custkey)",
    "part": "bucket(4, p_partkey)",
    "partsupp": "bucket(4, ps_partkey)",
    "supplier": "",
    "nation": "",
    "region": "",
}


@dataclass(slots=True)
class Timed:
    """What the rounds gave for one query on one side."""

    seconds: list[float] = field(default_factory=list)
    profiles: list[list[float]] = field(default_factory=list)
    plan: str = ""
    error: str = ""

    @property
    def middle(self) -> float | None:
        return median(self.seconds) if self.seconds else None


class Engine:
    """An engine that is no Spark, over the same Parquet files, in a process of its own."""

    def __init__(self, name: str, python: Path) -> None:
        self.name = name
        self.python = python
        self.process: subprocess.Popen[str] | None = None

    def start(self, tables: dict[str, Path]) -> None:
        self.process = subprocess.Popen(
            [
                str(self.python),
                "-m",
                "benchmarks.engine_side",
                self.name,
                json.dumps({k: str(v) for k, v in tables.items()}),
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *, do: str, sql: str) -> dict[str, object]:
        assert do == "query"
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(sql), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def stop(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait(timeout=60)


def tpch_sources(scale: float, folder: Path) -> dict[str, Path]:
    made = fetched.tpch(scale, folder / "source", tables=tuple(TPCH_PARTITIONS), parts=1)
    if made is None:
        sys.exit("The data of TPC-H cannot be made.")
    return {table: made / f"{table}.parquet" for table in TPCH_PARTITIONS}


def fill(side: Side, sources: dict[str, Path], partitions: dict[str, str]) -> None:
    """Make Pennon's tables out of the Parquet files."""
    side.run("CREATE NAMESPACE IF NOT EXISTS lance.bench")
    for table, source in sources.items():
        partitioned_by = partitions.get(table)
        clause = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
        select = f"SELECT * FROM parquet.`{source}`"
        side.run(
            f"DROP TABLE IF EXISTS lance.bench.{table}",
            f"CREATE TABLE lance.bench.{table} {clause} AS {select}",
        )


def fill_star(pennon: Side, parquet: Side, sources: dict[str, Path], rows: int) -> None:
    """Make the star's tables once for each side, Parquet's partitioned by month as well."""
    pennon.run("CREATE NAMESPACE IF NOT EXISTS lance.bench")
    for name, partitioned_by, select in star_tables(rows):
        clause = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
        pennon.run(
            f"DROP TABLE IF EXISTS lance.bench.{name}",
            f"CREATE TABLE lance.bench.{name} {clause} AS {select}",
        )
        parquet.run(
            f"INSERT OVERWRITE DIRECTORY '{sources[name]}' USING parquet "
            f"SELECT /*+ COALESCE(2) */ * FROM ({select})"
        )


def views(sources: dict[str, Path]) -> list[str]:
    return [
        f"CREATE OR REPLACE TEMPORARY VIEW {table} USING parquet OPTIONS (path '{path}')"
        for table, path in sources.items()
    ]


def race(
    sides: list[Side | Engine], queries: dict[str, str], rounds: int, *, profiled: bool = False
) -> dict[tuple[str, str], Timed]:
    """Ask every query of every side by turns; the first round warms up."""
    results: dict[tuple[str, str], Timed] = {}
    answers: dict[str, object] = {}
    for number in range(rounds + 1):
        print(f"Round {number} of {rounds} …" if number else "Warming up …", flush=True)
        for name, sql in queries.items():
            for side in sides:
                timed = results.setdefault((side.name, name), Timed())
                if timed.error:
                    continue
                asked = {"profiled": True} if profiled and isinstance(side, Side) else {}
                answer = side.ask(do="query", sql=sql, **asked)
                if "error" in answer:
                    timed.error = str(answer["error"])
                    continue
                if isinstance(side, Side):
                    rows = comparable(answer["rows"])
                    if answers.setdefault(name, rows) != rows:
                        timed.error = "OTHER ROWS"
                        print(f"  {name}: {side.name} gives other rows", flush=True)
                    timed.plan = str(answer["plan"])
                if number:
                    timed.seconds.append(float(str(answer["seconds"])))
                    profile = answer.get("profile")
                    timed.profiles += [profile] if isinstance(profile, list) else []
        sides = [*sides[1:], sides[0]]
    return results


def comparable(rows: object) -> list[str]:
    """Rows as a multiset: ties of an ORDER BY stand in any order."""
    assert isinstance(rows, list)
    return sorted(json.dumps(row) for row in rows)


def show(
    title: str, names: list[str], queries: dict[str, str], results: dict[tuple[str, str], Timed]
) -> None:
    rows, factors = [], []
    for query in queries:
        timed = {name: results[name, query] for name in names}
        ours, theirs = timed[PENNON].middle, timed[PARQUET].middle
        factor = theirs / ours if ours and theirs else None
        factors += [factor] if factor else []
        seconds = [
            f"{run.middle:.2f} ({min(run.seconds):.2f})" if run.middle else run.error[:40] or "-"
            for run in timed.values()
        ]
        plan = timed[PENNON].plan
        shape = f"{plan.count('fragment')}; {plan.count('Exchange')}"
        rows.append((query, *seconds, f"{factor:.2f}" if factor else "-", shape))
    print_table(
        f"{title}: seconds, median (fastest)",
        ("query", *names, "x Parquet", "fragments; exchanges"),
        rows,
    )
    if factors:
        mean = math.exp(sum(map(math.log, factors)) / len(factors))
        slower = sum(factor < 1 for factor in factors)
        sums = {
            name: sum(results[name, query].middle or 0.0 for query in queries) for name in names
        }
        print(f"\n  Geometric mean {mean:.2f} times Parquet; {slower} of {len(factors)} slower.")
        print("  Sums: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in sums.items()))


def show_profiles(
    side: str, queries: dict[str, str], results: dict[tuple[str, str], Timed]
) -> None:
    """Print where the time of each query went: the medians of the rounds."""
    rows: list[tuple[object, ...]] = []
    for query in queries:
        timed = results[side, query]
        if not timed.profiles:
            continue
        columns = [median(samples) for samples in zip(*timed.profiles, strict=True)]
        rows.append(
            (query, timed.middle, *(f"{count:.2f}".removesuffix(".00") for count in columns))
        )
    print_table(f"{side}: where the time goes", ("query", "s", *COLUMNS), rows)


def outside_engines(given: argparse.Namespace) -> list[Engine]:
    if not given.marks:
        return []
    duck = fetched.virtual_environment("duckdb", "duckdb")
    engines = [Engine(DATAFUSION, Path(sys.executable))]
    return engines if duck is None else [Engine(DUCKDB, duck / "python"), *engines]


def tables_and_queries(
    given: argparse.Namespace, folder: Path, pennon: Side, parquet: Side
) -> tuple[dict[str, Path], dict[str, str]]:
    """Make the tables, once: the Parquet files by table, and the queries by name."""
    made, source = folder / "made", folder / "source"
    is_made = made.exists()
    match given.suite:
        case "tpch" | "in_spark" as suite:
            sources, queries = tpch_sources(given.scale, folder), named_queries(suite)
            if not is_made:
                fill(pennon, sources, TPCH_PARTITIONS)
        case "tpcds":
            sources, queries = tpcds.sources(given.scale, source), tpcds.queries(source)
            if not is_made:
                fill(pennon, sources, tpcds.PARTITIONS)
        case _:
            sources = {name: folder / "parquet" / name for name, _, _ in star_tables(given.rows)}
            queries = named_queries("star")
            if not is_made:
                fill_star(pennon, parquet, sources, given.rows)
    made.touch()
    return sources, queries


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("suite", choices=("tpch", "in_spark", "tpcds", "star"))
    arguments.add_argument("--scale", type=float, default=1, help="of TPC-H and TPC-DS")
    arguments.add_argument("--rows", type=int, default=6_000_000, help="of the star's sales")
    arguments.add_argument("--rounds", type=int, default=3, help="that count, after the first")
    arguments.add_argument("--only", default="", help="names of queries, with commas")
    arguments.add_argument("--again", action="store_true", help="make the tables anew")
    arguments.add_argument("--marks", action="store_true", help="DuckDB and DataFusion, too")
    arguments.add_argument("--profile", action="store_true", help="where the time goes, too")
    arguments.add_argument("--master", default="local[2]", help="of Spark, for both")
    arguments.add_argument(
        "--conf", action="append", default=[], help="KEY=VALUE of Spark, for both"
    )
    given = arguments.parse_args()
    size = f"{given.rows}" if given.suite == "star" else f"sf{given.scale:g}"
    tables = "tpch" if given.suite == "in_spark" else given.suite
    folder = FOLDER / f"{tables}_{size}"
    if given.again:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    conf = CONF | {"spark.master": given.master} | dict(pair.split("=", 1) for pair in given.conf)
    here = Path(sys.executable)
    pennon = Side(PENNON, here, conf, "", folder / "lake")
    parquet = Side(PARQUET, here, conf, "", partitioned=False)
    for side in (pennon, parquet):
        side.start()
    sources, stated = tables_and_queries(given, folder, pennon, parquet)
    pennon.run("USE lance.bench")
    parquet.run(*views(sources))
    engines = outside_engines(given)
    for engine in engines:
        engine.start(sources)
    wanted = [name for name in given.only.split(",") if name]
    queries = {name: sql for name, sql in stated.items() if not wanted or name in wanted}
    load = OtherLoad.start()
    sides: list[Side | Engine] = [pennon, parquet, *engines]
    results = race(sides, queries, given.rounds, profiled=given.profile)
    others = load.cores()
    show(
        f"{given.suite} {size}, {given.master}, Spark's defaults",
        [s.name for s in sides],
        queries,
        results,
    )
    for name in (PENNON, PARQUET) if given.profile else ():
        show_profiles(name, queries, results)
    for (name, query), timed in results.items():
        if timed.error:
            print(f"  {query}, {name}: {timed.error}")
    print(f"  Other processes used {others:.1f} of {os.cpu_count()} cores meanwhile.")
    for started in sides:
        started.stop()


if __name__ == "__main__":
    main()
