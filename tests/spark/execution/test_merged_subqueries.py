"""Subqueries of one row over one table: Spark 4.3 merges them, and the workers read it once."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession
from tests.spark.assert_join import EXECUTION
from tests.spark.spark_release import SPARK
from tests.torture.execution.sessions import StarSessions

ARE_MERGED = SPARK >= (4, 3)
FEW, MANY = "q BETWEEN 1 AND 3", "q BETWEEN 4 AND 6"
CASES = {
    "values under one condition": (
        f"SELECT c.s, CASE WHEN (SELECT count(*) FROM f WHERE {FEW}) > 5"
        f" THEN (SELECT avg(amt) FROM f WHERE {FEW}) ELSE (SELECT max(amt) FROM f WHERE {FEW}) END"
        " AS few FROM c WHERE c.rk = 1"
    ),
    "values under several conditions": (
        f"SELECT c.s, (SELECT sum(amt) FROM f WHERE {FEW}) AS few, (SELECT count(v) FROM f WHERE"
        f" {MANY}) AS many, (SELECT min(pk) FROM f WHERE {MANY}) AS least FROM c WHERE c.rk = 1"
    ),
    "one value twice": (
        "SELECT s, q - (SELECT avg(q) FROM f) AS more, q / (SELECT avg(q) FROM f) AS times FROM c"
    ),
    "nothing to aggregate": (
        "SELECT c.s, (SELECT count(*) FROM f WHERE q = 1000) AS n,"
        " (SELECT sum(amt) FROM f WHERE q = 1000) AS amt FROM c"
    ),
    "values of joined rows": (
        "SELECT p.pk, (SELECT sum(f.amt) FROM f JOIN c ON f.ck = c.ck WHERE c.rk = 1) AS amt,"
        " (SELECT count(f.v) FROM f JOIN c ON f.ck = c.ck WHERE c.rk = 1) AS n FROM p"
    ),
}
# How often the fragment reads the table of facts where Spark merges: only under one condition.
READS = {"values under several conditions": 2}
# Spark reuses what it has merged where the same value stands at several places.
REUSED = {
    "values without other rows": (
        f"SELECT (SELECT max(amt) FROM f WHERE {FEW}) AS most,"
        f" (SELECT sum(v) FROM f WHERE {FEW}) AS v"
    ),
    "aggregates beside each other": (
        f"SELECT * FROM (SELECT count(*) AS n, avg(amt) AS a FROM f WHERE {FEW}) x,"
        f" (SELECT count(*) AS m, min(v) AS b FROM f WHERE {FEW}) y"
    ),
    "a condition and a value": (
        f"SELECT pk, amt / (SELECT sum(amt) FROM f WHERE {FEW}) AS part FROM f"
        f" WHERE amt > (SELECT avg(amt) FROM f WHERE {FEW})"
    ),
    "a group that is not there": (
        "SELECT c.s, (SELECT count(*) FROM f HAVING count(*) < 0) AS n,"
        " (SELECT sum(amt) FROM f) AS amt FROM c"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_subqueries_over_one_table_are_read_together(star: StarSessions, case: str) -> None:
    differences, plans = star.differences(CASES[case])
    assert differences == []
    plan = plans["one task"]
    assert plan.count("fragment: ") == 1, plan
    assert "Subquery" not in plan, plan
    if ARE_MERGED:
        assert len(re.findall(r"\br\d+: \S+\.f\b", plan)) == READS.get(case, 1), plan


@pytest.mark.parametrize("case", REUSED)
def test_a_value_at_several_places_is_the_same(star: StarSessions, case: str) -> None:
    differences, plans = star.differences(REUSED[case])
    assert differences == []
    if ARE_MERGED and case in ("values without other rows", "aggregates beside each other"):
        for plan in plans.values():
            assert len(re.findall(r"\br\d+: \S+\.f\b", plan)) == 1, plan


def test_one_row_of_values_stands_beside_the_rows_of_several_queries(star: StarSessions) -> None:
    """Aggregates of everything that a query names twice: Spark 4.3 makes them rows of no table."""
    sql = (
        "WITH one AS (SELECT max(amt) AS most, count(*) AS n FROM f)"
        " SELECT ck, sum(amt / most) AS part FROM f, one WHERE f.q < one.n GROUP BY ck"
        " UNION ALL SELECT pk, sum(amt - most) FROM f, one WHERE amt > most / 2 GROUP BY pk"
    )
    differences, plans = star.differences(sql)
    assert differences == []
    for plan in plans.values():
        assert "NestedLoop" not in plan, plan


ONE_ROW = {
    "beside divided rows": "SELECT pk, amt FROM f UNION ALL SELECT -1, (SELECT max(amt) FROM f)",
    "kept by an outer join": (
        "SELECT p.pk, most FROM p RIGHT JOIN (SELECT (SELECT max(pk) - 1 FROM f) AS most) m"
        " ON p.pk > most"
    ),
    "below an aggregate": (
        "SELECT pk, count(*), sum(amt) FROM (SELECT pk, amt FROM f UNION ALL"
        " SELECT (SELECT min(pk) FROM f WHERE q < 2), 5) GROUP BY pk"
    ),
}


@pytest.mark.parametrize("case", ONE_ROW)
def test_a_row_of_no_table_comes_once_from_all_tasks(star: StarSessions, case: str) -> None:
    differences, _ = star.differences(ONE_ROW[case])
    assert differences == []


def test_what_spark_executes_reads_the_table_once_too(
    spark: SparkSession, star: StarSessions
) -> None:
    sql = CASES["values under one condition"]
    way = star.session(spark, {EXECUTION: "spark"})
    way.sql(f"USE {star.namespace}")
    rows, plan = star.attempt(way, sql)
    assert rows == star.attempt(star.plain, sql)[0]
    if ARE_MERGED:
        assert len(re.findall(r"BatchScan \S+\.f\[", plan.split("Initial Plan")[0])) == 1, plan
