"""Run a query with and without Pennon's partitioning, count its shuffles, compare its rows."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

_SHUFFLE = re.compile(r"^[\s:+\-*()0-9]*Exchange\b", re.MULTILINE)

EXECUTION = "spark.sql.catalog.lance.execution"
"""The setting that says who executes joins and aggregates: ``worker`` or ``spark``."""

IN_SPARK = {EXECUTION: "spark"}
"""Settings under which Spark executes them, by the partitionings that scans report."""

ONE_TASK = {f"{EXECUTION}.oneTaskBytes": "16m"}
"""Pennon's default, which the run switches off: a small query is one task of a worker."""

WITHOUT_BROADCASTS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
"""Settings under which Spark joins the small tables of a test as it joins large ones."""


@dataclass(frozen=True, slots=True)
class Executed:
    """A query that ran: its rows as a multiset, the shuffles of its executed plan, the plan."""

    rows: Counter[str]
    shuffles: int
    plan: str


def shuffles_in(plan: str) -> int:
    """Count Exchange nodes of an executed plan; of an adaptive one, those of its final plan."""
    final = plan.split("== Initial Plan ==", maxsplit=1)[0]
    return len(_SHUFFLE.findall(final))


def execute(spark: SparkSession, sql: str) -> Executed:
    frame = spark.sql(sql)
    rows = Counter(repr(row) for row in frame.collect())
    plan = executed_plan(frame)
    return Executed(rows, shuffles_in(plan), plan)


def executed_plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@contextmanager
def conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


@contextmanager
def views(spark: SparkSession, tables: Mapping[str, str]) -> Iterator[None]:
    for name, source in tables.items():
        spark.table(source).createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name in tables:
            spark.catalog.dropTempView(name)


def assert_join(
    spark: SparkSession,
    sql: str,
    tables: Mapping[str, str],
    plain: Mapping[str, str],
    shuffles: int | range,
    *,
    adaptive: tuple[bool, ...] = (True, False),
) -> None:
    """Assert the shuffles of a query and its rows, in Spark's joins and in the workers'.

    Args:
        spark: The session.
        sql: A query over the names in ``tables``.
        tables: View name to the table of Pennon that it shows.
        plain: View name to a table with the same rows that reports nothing.
        shuffles: The number of Exchange nodes, or the range it must lie in.
        adaptive: The values of AQE to run with.
    """
    wanted = shuffles if isinstance(shuffles, range) else range(shuffles, shuffles + 1)
    off = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.sources.v2.bucketing.enabled": "false",
    }
    with views(spark, plain), conf(spark, off):
        expected = execute(spark, sql)
    ways = [*((setting, "spark") for setting in adaptive), (adaptive[0], "worker")]
    with views(spark, tables):
        for is_adaptive, execution in ways:
            settings = {"spark.sql.adaptive.enabled": str(is_adaptive).lower()}
            with conf(spark, {**settings, EXECUTION: execution}):
                actual = execute(spark, sql)
            problem = f"AQE {is_adaptive}, {execution}: {sql}\n{actual.plan}"
            assert actual.rows == expected.rows, f"wrong rows, {problem}"
            # What the workers compute can only make a shuffle needless.
            allowed = wanted if execution == "spark" else range(wanted.stop)
            assert actual.shuffles in allowed, f"{actual.shuffles} shuffles, {problem}"
