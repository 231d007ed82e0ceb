"""Random joins over partitioned tables, each against the same query without any partitioning.

Run it with ``make torture-joins N=1000``; a failure prints the command that repeats it. The tables
are small and their settings make planning and starting a query cheap, for it is queries that
find mistakes, not rows.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import RUN_CONF
from tests.spark.assert_join import EXECUTION, Executed, execute
from tests.spark.joined_rows import ROWS
from tests.torture.random_queries import random_query

from pennon import session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

LAYOUTS: list[tuple[list[str], str | None]] = [
    (["bucket(8, id)"], None),
    (["bucket(6, id)"], "REPLACE PARTITION FIELD bucket(6, id) WITH bucket(4, id)"),
    (["bucket(4, id)", "days(ts)"], None),
    (["months(ts)"], "ADD PARTITION FIELD days(ts)"),
    (["region", "bucket(4, id)"], None),
    (["bucket(2, id)", "region"], None),
    (["multi_bucket(8, a, b)"], None),
    (["a", "b"], None),
    (["truncate(2, s)"], None),
    (["truncate(8, id)"], "ADD PARTITION FIELD region"),
    (["d"], None),
    (["years(tsn)", "bucket(4, s)"], None),
    (["expression('lower(col0)', region)"], None),
    ([], "ADD PARTITION FIELD bucket(8, id)"),
    ([], None),
]
ROW_COUNTS = {"left": (3, "'a', 'b', NULL", 75), "right": (5, "'b', 'c', NULL", 55)}
# A query of a few rows is planned and compiled longer than it runs: compile every tenth.
FAST = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
# With the second ones few rows are much: groups are divided, or left to a shuffle.
USUAL = {"spark.sql.files.maxPartitionBytes": "128mb", "spark.sql.leafNodeDefaultParallelism": "2"}
MUCH = {"spark.sql.files.maxPartitionBytes": "1kb", "spark.sql.leafNodeDefaultParallelism": "4"}
OFF = {"spark.sql.adaptive.enabled": "false", "spark.sql.sources.v2.bucketing.enabled": "false"}


@dataclass(frozen=True, slots=True)
class Case:
    """One random query: over the tables of Pennon, and over their plain copies."""

    number: int
    sql: str
    plain_sql: str
    settings: dict[str, str]

    @property
    def is_adaptive(self) -> bool:
        """Whether its plan changes while it runs, and its shuffles with it."""
        return self.settings["spark.sql.adaptive.enabled"] == "true"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out: what is wrong, if anything, how the shuffles compare, who executed it."""

    case: Case
    shuffles: str
    problem: str | None = None
    is_fragment: bool = False


def make_tables(spark: SparkSession, folder: Path) -> tuple[list[str], list[str]]:
    """Make one table per layout, and its plain copy as a view that every session sees."""
    spark.sql("CREATE NAMESPACE lance.torture")
    names: list[str] = []
    plain: list[str] = []
    for number, (layout, change) in enumerate(LAYOUTS):
        path = str(folder / f"plain{number}")
        step, deps, rows = ROW_COUNTS["right" if number % 2 else "left"]
        spark.sql(ROWS.format(step=step, deps=deps, rows=rows)).coalesce(2).write.parquet(path)
        copy = f"global_temp.plain{number}"
        spark.read.parquet(path).createGlobalTempView(f"plain{number}")
        spark.catalog.cacheTable(copy)
        name = f"lance.torture.t{number}"
        by = f"PARTITIONED BY ({', '.join(layout)})" if layout else ""
        where = "v % 2 = 0" if change else "TRUE"
        spark.sql(f"CREATE TABLE {name} {by} AS SELECT * FROM {copy} WHERE {where}")
        if change:
            spark.sql(f"ALTER TABLE {name} {change}")
            spark.sql(f"INSERT INTO {name} SELECT * FROM {copy} WHERE v % 2 <> 0")
        names.append(name)
        plain.append(copy)
    return names, plain


def case_of(seed: int, number: int, tables: Sequence[str], plain: Sequence[str]) -> Case:
    rng = random.Random(f"{seed}/{number}")  # noqa: S311 - it has to repeat
    beginning = rng.getstate()
    sql = random_query(rng, tables)
    rng.setstate(beginning)
    plain_sql = random_query(rng, plain)
    settings = {"spark.sql.adaptive.enabled": str(number % 2 == 0).lower()}
    settings |= MUCH if number % 3 == 1 else USUAL
    return Case(number, sql, plain_sql, settings | (COMPILED if number % 10 == 5 else FAST))


class Sessions(threading.local):
    """Two sessions per thread: settings of one do not reach into the queries of another."""

    def __init__(self, spark: SparkSession) -> None:
        self.partitioned = spark.newSession()
        self.plain = spark.newSession()


def check(sessions: Sessions, case: Case) -> Outcome:
    """Run a query shuffled, joined partition by partition in Spark, and in the workers."""
    for one, settings in (
        (sessions.plain, case.settings | OFF),
        (sessions.partitioned, case.settings),
    ):
        for key, value in settings.items():
            one.conf.set(key, value)
    expected = execute(sessions.plain, case.plain_sql)
    outcome = Outcome(case, "none")
    fewest = expected.shuffles
    for execution in ("spark", "worker"):
        sessions.partitioned.conf.set(EXECUTION, execution)
        try:
            actual = execute(sessions.partitioned, case.sql)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            problem = f"execution {execution}, {type(error).__name__}: {str(error)[:2000]}"
            return Outcome(case, "error", problem)
        outcome = judged(case, execution, actual, expected)
        if not case.is_adaptive and actual.shuffles > fewest and not outcome.problem:
            more = f"execution {execution}, {actual.shuffles} shuffles, not {fewest}\n{actual.plan}"
            outcome = replace(outcome, problem=more)
        if outcome.problem:
            break
        fewest = actual.shuffles
    return outcome


def judged(case: Case, execution: str, actual: Executed, expected: Executed) -> Outcome:
    is_fragment = "fragment: " in actual.plan
    if actual.rows != expected.rows:
        missing, extra = expected.rows - actual.rows, actual.rows - expected.rows
        problem = f"execution {execution}, {missing.total()} rows missing, {extra.total()} too many"
        return Outcome(case, "wrong", f"{problem}\n{actual.plan}", is_fragment)
    if actual.shuffles == 0:
        return Outcome(case, "none", None, is_fragment)
    saved = "fewer" if actual.shuffles < expected.shuffles else "same"
    return Outcome(case, saved, None, is_fragment)


def outcomes(spark: SparkSession, cases: Iterator[Case], threads: int) -> Iterator[Outcome]:
    """Check cases on several threads, in order, a batch at a time."""
    sessions = Sessions(spark)
    with ThreadPoolExecutor(threads) as pool:
        for batch in iter(lambda: [case for _, case in zip(range(50), cases, strict=False)], []):
            yield from pool.map(lambda case: check(sessions, case), batch)


def run(spark: SparkSession, folder: Path, options: argparse.Namespace) -> int:
    tables, plain = make_tables(spark, folder)
    numbers = range(options.queries) if options.only is None else [options.only]
    cases = (case_of(options.seed, number, tables, plain) for number in numbers)
    failed = 0
    fragments = 0
    shuffles: Counter[str] = Counter()
    started = time.monotonic()
    for done, outcome in enumerate(outcomes(spark, cases, options.threads), start=1):
        shuffles[outcome.shuffles] += 1
        fragments += outcome.is_fragment
        if outcome.problem:
            failed += 1
            only = f"--seed {options.seed} --only {outcome.case.number}"
            again = f"make torture-joins N=1 ARGS='{only}'"
            print(f"query {outcome.case.number} failed: {outcome.problem}", flush=True)
            print(f"{outcome.case.sql}\nagain: {again}", flush=True)
        if done % 100 == 0:
            pace = done / (time.monotonic() - started)
            summary = f"{failed} failed, {dict(shuffles)}, {fragments} by workers, {pace:.2f}/s"
            print(f"{done} queries, {summary}", flush=True)
    share = fragments / max(len(numbers), 1)
    summary = f"{failed} failed, shuffles {dict(shuffles)}, {share:.0%} executed by workers"
    print(f"{len(numbers)} queries, seed {options.seed}: {summary}")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture-joins", description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", type=int, help="run just the query of this number")
    parser.add_argument("--threads", type=int, default=2, help="queries at the same time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        builder = session.spark(root=Path(folder) / "lake").master("local[2]")
        for key, value in (RUN_CONF | FAST | {"spark.ui.showConsoleProgress": "false"}).items():
            builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        failed = run(spark, Path(folder), options)
        spark.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
