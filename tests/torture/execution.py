"""Random queries of several tables, computed in the workers, against plain Parquet in Spark.

Run it with ``make torture-execution N=1000``; a failure prints the seed that repeats it. Each query
runs twice: as one task, and divided. At the end stands which share of the queries left Spark no
join and no aggregate over more than fragments, and what the others kept there.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import RUN_CONF
from tests.torture.joins import ENGINE
from tests.torture.star_queries import TABLES, StarQueries

from pennon import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LIMITS = "spark.sql.catalog.lance.execution"
MODES = {
    "one task": {f"{_LIMITS}.oneTaskBytes": "16m", f"{_LIMITS}.replicatedBytes": "64m"},
    "one executor": {f"{_LIMITS}.oneTaskBytes": "1", f"{_LIMITS}.replicatedBytes": "64m"},
    "divided": {f"{_LIMITS}.oneTaskBytes": "0", f"{_LIMITS}.replicatedBytes": "64m"},
}
_OPERATORS = re.compile(r"\b(\w*Join|Expand|Window|Exchange|Aggregate|BroadcastExchange)\b")
_SPARK_DEFAULTS = ("spark.sql.autoBroadcastJoinThreshold", "spark.sql.adaptive.autoBroadcastJoin")


def make_star(spark: SparkSession, folder: Path) -> None:
    """Make the tables in the catalog, and copies in Parquet as global views of their names."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.star")
    for name, (partitioning, rows) in TABLES.items():
        spark.sql(f"CREATE TABLE lance.star.{name} {partitioning} AS {rows}")
        spark.sql(rows).coalesce(1).write.parquet(str(folder / name))
        spark.read.parquet(str(folder / name)).createGlobalTempView(name)


def rows_of(frame: DataFrame) -> Counter[str]:
    """Collect rows as a multiset; NaN is equal to itself, and zero has no sign."""
    return Counter(re.sub(r"-0\.0\b", "0.0", repr(row)) for row in frame.collect())


class StarSessions:
    """One session for each way to execute the queries, and one of Spark over Parquet."""

    def __init__(self, spark: SparkSession) -> None:
        self.plain = spark.newSession()
        for table in TABLES:
            self.plain.table(f"global_temp.{table}").createOrReplaceTempView(table)
        self.ways = {}
        for name, settings in MODES.items():
            way = spark.newSession()
            for key, value in settings.items():
                way.conf.set(key, value)
            way.sql("USE lance.star")
            self.ways[name] = way

    def differences(self, sql: str) -> tuple[list[str], dict[str, str]]:
        """Run a query in all ways: what differs, and the plan of each."""
        wrong, plans = [], {}
        expected = self.attempt(self.plain, sql)[0]
        for name, way in self.ways.items():
            found, plans[name] = self.attempt(way, sql)
            if found != expected:
                missing, extra = expected - found, found - expected
                wrong.append(f"{name}: missing {_few(missing)}, not expected {_few(extra)}")
        return wrong, plans

    @staticmethod
    def attempt(way: SparkSession, sql: str) -> tuple[Counter[str], str]:
        frame = way.sql(sql)
        rows = rows_of(frame)
        plan = str(frame._jdf.queryExecution().executedPlan().toString())
        return rows, final_plan(plan)


def final_plan(text: str) -> str:
    """Leave out what adaptive plans, those of subqueries among them, were at first."""
    kept, initial = [], math.inf
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" :"))
        if depth > initial:
            continue
        initial = depth if "== Initial Plan ==" in line else math.inf
        if initial == math.inf:
            kept.append(line)
    return "\n".join(kept)


def _few(rows: Counter[str]) -> str:
    return str(list(rows.items())[:3])


def left_to_spark(plan: str) -> tuple[str, ...]:
    """List the joins and exchanges of an executed plan that the workers did not take."""
    kept = []
    for line in plan.splitlines():
        operator = line.lstrip("+-: *()0123456789").split("(", 1)[0].split(" ", 1)[0]
        if operator.endswith("Join") or operator in ("Exchange", "Expand"):
            kept.append(operator)
    return tuple(sorted(set(kept)))


def main() -> int:
    """Run the queries that the command line asks for."""
    parser = argparse.ArgumentParser(prog="make torture-execution ARGS=…")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pennon-star-") as folder:
        builder = session.spark(root=Path(folder) / "lake").master("local[2]")
        for key, value in RUN_CONF.items():
            if not key.startswith(_SPARK_DEFAULTS):
                builder.config(key, value)
        for key, value in ENGINE.items():
            builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        make_star(spark, Path(folder) / "parquet")
        return run(StarSessions(spark), options.seed, options.queries)


def run(sessions: StarSessions, seed: int, count: int) -> int:
    """Run queries from a seed on; the number of those that differ."""
    started, failed = time.monotonic(), 0
    kept: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in MODES}
    for number in range(seed, seed + count):
        sql = StarQueries(number).query()
        try:
            wrong, plans = sessions.differences(sql)
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed has to be told
            wrong, plans = [f"{type(error).__name__}: {str(error)[:1500]}"], {}
        if wrong:
            failed += 1
            print(f"--seed {number} --queries 1\n{sql}\n" + "\n".join(wrong), flush=True)
        if number % 10 == 9:
            print(f"{number + 1 - seed} queries, {failed} differ", flush=True)
        for name, plan in plans.items():
            kept[name][left_to_spark(plan)] += 1
    seconds = time.monotonic() - started
    print(f"{count} queries in {seconds:.0f} s, {failed} differ")
    for name, ends in kept.items():
        whole = ends.pop((), 0)
        print(f"{name}: {whole / max(1, count):.0%} wholly in workers; the others kept in Spark:")
        for operators, times in ends.most_common(8):
            print(f"  {times:5} {', '.join(operators)}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
