"""Random joins over random tables, each against the same query without any partitioning.

Run it with ``make torture-joins N=1000``; a failure prints the command that repeats it. The tables
are small and their settings make planning and starting a query cheap, for it is queries that
find mistakes, not rows. Odd seeds run without ANSI. At the end stands how many shuffled less, and
why the others did not.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.joins.joined_rows import ROWS
from tests.strategies.random_tables import random_tables
from tests.torture.join_cases import FAST, Sessions, case_of, check
from tests.torture_session import torture_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession
    from tests.strategies.random_tables import Table
    from tests.torture.join_cases import Case, Outcome

TABLES = 30
DEPS = ("'a', 'b', NULL", "'b', 'c', NULL")
STEPS = (3, 5)
# Most rows under one key, as customers are.
SKEWED = """
SELECT IF(v % 10 < 7, 3, id) AS id, IF(v % 10 < 7, 2, a) AS a, IF(v % 10 < 7, 'b1', b) AS b,
  region, dep, IF(v % 10 < 7, 'éx1', s) AS s, IF(v % 10 < 7, ts, ts) AS ts, tsn,
  IF(v % 10 < 7, DATE'2019-12-30', d) AS d, i8, i16, i32, dec, bin, flag, v
FROM ({rows})
"""


def make_tables(spark: SparkSession, folder: Path, tables: Sequence[Table]) -> None:
    """Make the tables, and plain copies of them as views that every session sees.

    A folder in which all of them were made is used as it is.
    """
    is_made = (folder / "made").exists()
    if not is_made:
        spark.sql("CREATE NAMESPACE lance.torture")
    for table in tables:
        path = str(folder / f"plain{table.number}")
        if not is_made:
            side = table.number % 2
            rows = ROWS.format(step=STEPS[side], deps=DEPS[side], rows=table.rows)
            frame = spark.sql(SKEWED.format(rows=rows) if table.is_skewed else rows)
            frame.coalesce(2).write.parquet(path)
        view = f"plain{table.number}"
        spark.read.parquet(path).createGlobalTempView(view)
        spark.table(f"global_temp.{view}").coalesce(1).createGlobalTempView(f"whole{table.number}")
        for name in (view, f"whole{table.number}"):
            spark.catalog.cacheTable(f"global_temp.{name}")
        name = f"lance.torture.t{table.number}"
        if is_made or table.is_parquet:
            continue
        for statement in table.statements(name, f"global_temp.{view}"):
            spark.sql(statement)
    (folder / "made").touch()


def outcomes(
    spark: SparkSession, cases: Iterator[Case], threads: int, tables: Sequence[Table]
) -> Iterator[Outcome]:
    """Check cases on several threads, in order, a batch at a time."""
    sessions = Sessions(spark, tables)
    with ThreadPoolExecutor(threads) as pool:
        for batch in iter(lambda: [case for _, case in zip(range(50), cases, strict=False)], []):
            yield from pool.map(lambda case: check(sessions, case), batch)


@dataclass(slots=True)
class Tally:
    """What came out of many queries."""

    started: float = field(default_factory=time.monotonic)
    done: int = 0
    failed: int = 0
    fragments: int = 0
    free: int = 0
    shuffles: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.done += 1
        self.failed += outcome.problem is not None
        self.fragments += outcome.is_fragment
        self.free += outcome.case.least == 0
        self.shuffles[outcome.shuffles] += 1
        if outcome.reasons:
            name = " | ".join(outcome.reasons)
            self.reasons[name] += 1
            self.examples.setdefault(name, outcome.case.number)

    def __str__(self) -> str:
        pace = self.done / (time.monotonic() - self.started)
        shares = ", ".join(f"{name} {count}" for name, count in sorted(self.shuffles.items()))
        return (
            f"{self.done} queries, {self.failed} failed; shuffles: {shares}; {self.free} could do "
            f"without; {self.fragments} by workers, {sum(self.reasons.values())} more than needed; "
            f"{pace:.2f}/s"
        )


def run(spark: SparkSession, folder: Path, options: argparse.Namespace) -> int:
    tables = random_tables(options.seed, TABLES)
    make_tables(spark, folder, tables)
    first = options.first
    numbers = range(first, first + options.queries) if options.only is None else [options.only]
    cases = (case_of(options.seed, number, tables) for number in numbers)
    tally = Tally()
    for outcome in outcomes(spark, cases, options.threads, tables):
        tally.add(outcome)
        if outcome.problem:
            only = f"--seed {options.seed} --only {outcome.case.number}"
            again = f"make torture-joins N=1 ARGS='{only}'"
            print(f"query {outcome.case.number} failed: {outcome.problem}", flush=True)
            print(f"{outcome.case.query.sql}\nagain: {again}", flush=True)
        if options.only is not None:
            print(outcome.case.query.sql, outcome.case.least, outcome.shuffles, outcome.reasons)
        if tally.done % 100 == 0:
            print(tally, flush=True)
    for reason, count in tally.reasons.most_common():
        print(f"{count} shuffled more than needed (query {tally.examples[reason]}): {reason}")
    print(f"seed {options.seed}: {tally}", flush=True)
    return tally.failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture-joins", description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help="number of the first query")
    parser.add_argument("--only", type=int, help="run just the query of this number")
    parser.add_argument("--threads", type=int, default=2, help="queries at the same time")
    parser.add_argument("--folder", type=Path, help="keep the tables of the seed here")
    parser.add_argument("--master", default="local[2]", help="Spark's, as local-cluster[2,1,1024]")
    options = parser.parse_args()
    ansi = {"spark.sql.ansi.enabled": str(options.seed % 2 == 0).lower()}
    own = torture_session({**FAST, **ansi}, folder=options.folder, master=options.master)
    with own as (spark, folder):
        failed = run(spark, folder, options)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
