"""Counts, sums and averages of different values, alone and beside others, in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import ONE_TASK, conf
from tests.spark.execution.fragment_tables import assert_same, made_fragment_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

QUERIES = [
    # of one column: the tasks tell its values once
    "SELECT i, count(DISTINCT i16), sum(DISTINCT i16), max(s) FROM x GROUP BY i",
    "SELECT count(DISTINCT i16), sum(DISTINCT i16), avg(DISTINCT i16) FROM x",
    "SELECT i, avg(DISTINCT dec), count(DISTINCT dec) FROM x GROUP BY i",
    "SELECT i, avg(DISTINCT v), sum(DISTINCT v), sum(DISTINCT f) FROM x GROUP BY i",
    # of several columns together
    "SELECT i, count(DISTINCT s, d), count(*) FROM x GROUP BY i",
    "SELECT id, count(DISTINCT s, f, i16), count(s, d) FROM x GROUP BY id",
    "SELECT count(DISTINCT f, v), sum(dec) FROM x WHERE i = 1",
    "SELECT i, count(s, d) FILTER (WHERE flag), count(s, NULL), count(1, 2) FROM x GROUP BY i",
    "SELECT i, flag, count(DISTINCT s, d) FROM x GROUP BY CUBE(i, flag)",
    "SELECT x.i, count(DISTINCT x.s, y.s) FROM x JOIN y ON x.id = y.id GROUP BY x.i",
    # which Spark takes for the same values, in another order, twice, or beside a constant
    "SELECT i, count(DISTINCT s, s), count(DISTINCT s), max(d) FROM x GROUP BY i",
    "SELECT i, count(DISTINCT s, d), count(DISTINCT d, s) FROM x GROUP BY i",
    "SELECT i, count(DISTINCT 1, i16), sum(DISTINCT i16), count(DISTINCT 2) FROM x GROUP BY i",
    "SELECT i, count(DISTINCT s, NULL), count(*) FROM x GROUP BY i",
    # of several columns, for which Spark repeats the rows
    "SELECT i, count(DISTINCT s), count(DISTINCT d), sum(dec), avg(v), max(s) FROM x GROUP BY i",
    "SELECT count(DISTINCT s, d) FILTER (WHERE flag), count(DISTINCT f), min(ts) FROM x",
    "SELECT i, count(DISTINCT s), avg(DISTINCT i16), bit_or(i16) FROM x GROUP BY ROLLUP(i)",
]


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession, without_broadcasts: None) -> Iterator[None]:
    yield from made_fragment_tables(spark)


@pytest.mark.parametrize("query", QUERIES)
def test_different_values_give_the_same_rows(spark: SparkSession, query: str) -> None:
    assert "fragment: complete" in assert_same(spark, query) or "GROUP BY id" not in query
    with conf(spark, ONE_TASK):
        plan = assert_same(spark, query)
    assert "Aggregate" not in plan, plan


def test_bits_give_the_same_rows(spark: SparkSession) -> None:
    bits = "bit_and(i16), bit_or(-i16), bit_xor(id), bit_xor(CAST(i16 AS TINYINT))"
    assert_same(spark, f"SELECT i, {bits} FROM x GROUP BY i")
    assert_same(spark, f"SELECT id, {bits} FROM x WHERE flag GROUP BY id")
    assert_same(spark, f"SELECT {bits} FROM x WHERE v > 1000")


def test_what_spark_does_not_define_stays_there(spark: SparkSession) -> None:
    """Which row is the first, and sums of BIGINTs that are no BIGINT."""
    assert_same(
        spark,
        "SELECT i, count(first) FROM"
        " (SELECT i, first(i, true) AS first FROM x GROUP BY i) GROUP BY i",
        is_fragment=False,
    )
    assert_same(spark, "SELECT avg(DISTINCT id) FROM x", is_fragment=False)
