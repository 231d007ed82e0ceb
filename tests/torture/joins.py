"""Random joins over partitioned tables, each against the same query without any partitioning.

Run it with ``make torture-joins N=1000``; a failure prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import RUN_CONF
from tests.spark.assert_join import conf, execute, views
from tests.spark.joined_rows import ROWS
from tests.torture.random_queries import random_query

from pennon import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAYOUTS: list[tuple[list[str], str | None]] = [
    (["bucket(8, id)"], None),
    (["bucket(6, id)"], "REPLACE PARTITION FIELD bucket(6, id) WITH bucket(4, id)"),
    (["bucket(16, id)", "days(ts)"], None),
    (["months(ts)"], "ADD PARTITION FIELD days(ts)"),
    (["region", "bucket(8, id)"], None),
    (["bucket(4, id)", "region"], None),
    (["multi_bucket(8, a, b)"], None),
    (["a", "b"], None),
    (["truncate(2, s)"], None),
    (["truncate(4, id)"], "ADD PARTITION FIELD region"),
    (["d"], None),
    (["years(tsn)", "bucket(4, s)"], None),
    (["expression('lower(col0)', region)"], None),
    ([], "ADD PARTITION FIELD bucket(8, id)"),
    ([], None),
]
OFF = {"spark.sql.adaptive.enabled": "false", "spark.sql.sources.v2.bucketing.enabled": "false"}


def make_tables(spark: SparkSession, folder: Path) -> tuple[list[str], list[str]]:
    """Make one table per layout, and its plain copy as a view."""
    spark.sql("CREATE NAMESPACE lance.torture")
    names: list[str] = []
    plain: list[str] = []
    for number, (layout, change) in enumerate(LAYOUTS):
        is_left = number % 2 == 0
        path = str(folder / f"plain{number}")
        step, deps, rows = (3, "'a', 'b', NULL", 120) if is_left else (5, "'b', 'c', NULL", 70)
        spark.sql(ROWS.format(step=step, deps=deps, rows=rows)).coalesce(2).write.parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(f"plain{number}")
        name = f"lance.torture.t{number}"
        by = f"PARTITIONED BY ({', '.join(layout)})" if layout else ""
        where = "v % 2 = 0" if change else "TRUE"
        spark.sql(f"CREATE TABLE {name} {by} AS SELECT * FROM plain{number} WHERE {where}")
        if change:
            spark.sql(f"ALTER TABLE {name} {change}")
            spark.sql(f"INSERT INTO {name} SELECT * FROM plain{number} WHERE v % 2 <> 0")
        names.append(name)
        plain.append(f"plain{number}")
    return names, plain


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture-joins", description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", type=int, help="run just the query of this number")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        builder = session.spark(root=Path(folder) / "lake").master("local[2]")
        for key, value in RUN_CONF.items():
            builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        failed = run(spark, Path(folder), options)
        spark.stop()
    return 1 if failed else 0


def run(spark: SparkSession, folder: Path, options: argparse.Namespace) -> int:
    tables, plain = make_tables(spark, folder)
    aliases = [f"t{number}" for number in range(len(tables))]
    numbers = range(options.queries) if options.only is None else [options.only]
    failed = 0
    shuffles: Counter[str] = Counter()
    started = time.monotonic()
    for number in numbers:
        rng = random.Random(f"{options.seed}/{number}")  # noqa: S311 - it has to repeat
        sql = random_query(rng, aliases)
        problem, verdict = compare(
            spark,
            sql,
            dict(zip(aliases, tables, strict=True)),
            dict(zip(aliases, plain, strict=True)),
            is_adaptive=number % 2 == 0,
        )
        shuffles[verdict] += 1
        if problem:
            failed += 1
            again = f"make torture-joins N=1 ARGS='--seed {options.seed} --only {number}'"
            print(f"query {number} failed: {problem}\n{sql}\nagain: {again}", flush=True)
        if number % 50 == 49:
            pace = (number + 1) / (time.monotonic() - started)
            print(
                f"{number + 1} queries, {failed} failed, {dict(shuffles)}, {pace:.2f}/s", flush=True
            )
    print(f"{len(numbers)} queries, seed {options.seed}: {failed} failed, {dict(shuffles)}")
    return failed


def compare(
    spark: SparkSession,
    sql: str,
    tables: dict[str, str],
    plain: dict[str, str],
    *,
    is_adaptive: bool,
) -> tuple[str | None, str]:
    """Run a query both ways; say what is wrong, and how many shuffles were saved."""
    with views(spark, plain), conf(spark, OFF):
        expected = execute(spark, sql)
    adaptive = {"spark.sql.adaptive.enabled": str(is_adaptive).lower()}
    with views(spark, tables), conf(spark, adaptive):
        try:
            actual = execute(spark, sql)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            return f"{type(error).__name__}: {str(error)[:2000]}", "error"
    if actual.rows != expected.rows:
        missing, extra = expected.rows - actual.rows, actual.rows - expected.rows
        return f"{missing.total()} rows missing, {extra.total()} too many\n{actual.plan}", "wrong"
    if actual.shuffles == 0:
        return None, "none"
    return None, "fewer" if actual.shuffles < expected.shuffles else "same"


if __name__ == "__main__":
    sys.exit(main())
