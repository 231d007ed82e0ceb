"""Limits of which every task takes its part: the rows of Spark's own execution."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import EXECUTION, conf, execute, executed_plan
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("fragment_tables")

# The first rows of each task are enough. Where rows tie, only what they are ordered by is selected.
BY_ID = "FROM x JOIN y ON x.id = y.id"
GROUPED = (
    f"SELECT x.id, x.i, count(*) AS n, sum(y.v) AS v, max(y.d) AS d {BY_ID} GROUP BY x.id, x.i"
)
LIMITED = [
    f"SELECT x.id, y.v, y.d {BY_ID} ORDER BY x.id DESC, y.v, y.d LIMIT 9",
    f"SELECT x.i {BY_ID} ORDER BY x.i NULLS LAST LIMIT 40",
    f"SELECT x.i, y.s {BY_ID} ORDER BY x.i DESC NULLS FIRST, y.s LIMIT 50",
    f"SELECT abs(x.f) {BY_ID} ORDER BY x.f DESC LIMIT 30",
    f"SELECT abs(x.f) {BY_ID} ORDER BY x.f NULLS LAST LIMIT 30",
    f"SELECT x.dec, x.ts, x.flag {BY_ID} ORDER BY x.flag, x.dec DESC, x.ts LIMIT 7",
    f"SELECT x.s {BY_ID} ORDER BY x.s LIMIT 5 OFFSET 60",
    f"SELECT y.d {BY_ID} ORDER BY x.i16 + y.i16, y.d LIMIT 10",
    f"SELECT x.s {BY_ID} ORDER BY x.s LIMIT 100000",
    f"SELECT x.id {BY_ID} WHERE x.id = -1 ORDER BY x.id LIMIT 3",
    f"SELECT x.id {BY_ID} ORDER BY x.id LIMIT 0",
    f"{GROUPED} ORDER BY v DESC, d, x.id, x.i LIMIT 6",
    f"{GROUPED} ORDER BY d DESC NULLS FIRST, n, x.id, x.i LIMIT 6",
    f"SELECT v, d FROM ({GROUPED}) ORDER BY n, v LIMIT 0",
    f"SELECT n, v FROM ({GROUPED}) ORDER BY d DESC, n, v LIMIT 4 OFFSET 3",
    f"SELECT x.id, max(y.s) AS m {BY_ID} GROUP BY x.id ORDER BY m DESC NULLS FIRST, x.id LIMIT 5",
    f"SELECT x.id, avg(y.dec) AS a {BY_ID} GROUP BY x.id ORDER BY a, x.id LIMIT 3",
    f"SELECT x.id, sum(y.v) {BY_ID} GROUP BY x.id HAVING sum(y.v) > 1 ORDER BY 2, 1 LIMIT 3",
    "SELECT i, id, count(*), sum(v) FROM x GROUP BY i, id ORDER BY 3 DESC, 4, 1, 2 LIMIT 5",
    "SELECT * FROM x ORDER BY s DESC NULLS LAST, id DESC, v LIMIT 12",
    "SELECT id, upper(s) FROM x WHERE i16 > 1 ORDER BY abs(f) DESC, id, v LIMIT 5 OFFSET 2",
    "SELECT x.id, x.v FROM x LEFT ANTI JOIN y ON x.id = y.id ORDER BY x.v DESC, x.id LIMIT 5",
]


@pytest.mark.parametrize("query", LIMITED)
def test_the_first_rows_are_those_of_spark(spark: SparkSession, query: str) -> None:
    plan = assert_same(spark, query, is_fragment="LIMIT 0" not in query)
    assert ("LIMIT" in plan) is ("LIMIT 0" not in query), plan


@pytest.mark.parametrize("query", LIMITED[:3])
def test_the_first_rows_of_a_whole_sort_are_those_of_spark(spark: SparkSession, query: str) -> None:
    with conf(spark, {"spark.sql.execution.topKSortFallbackThreshold": "2"}):
        assert "LIMIT" in assert_same(spark, query)


def test_each_task_gives_only_its_first_rows(spark: SparkSession) -> None:
    frame = spark.sql(f"{GROUPED} ORDER BY v DESC, x.id, x.i LIMIT 2")
    frame.collect()
    found = re.search(r"fragment: complete in (\d+) tasks", executed_plan(frame))
    assert found is not None
    assert scanned_rows(frame) <= 2 * int(found[1])


@pytest.mark.parametrize(
    "query",
    [
        # groups of several tasks, computed above the aggregate, a long list
        f"SELECT x.s, count(*) AS n {BY_ID} GROUP BY x.s ORDER BY n, x.s LIMIT 3",
        f"SELECT x.id, hex(count(*)) AS a {BY_ID} GROUP BY x.id ORDER BY a, x.id LIMIT 3",
        f"SELECT x.s {BY_ID} ORDER BY x.s LIMIT 100001",
    ],
)
def test_an_order_of_what_is_not_in_the_worker_stays_above(spark: SparkSession, query: str) -> None:
    assert_same(spark, query)
    [row] = spark.sql(f"EXPLAIN FORMATTED {query}").collect()
    computed = re.findall(r"^query: .*", row[0], re.MULTILINE)
    assert computed
    assert not any(" LIMIT" in text for text in computed), computed


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT x.id, y.v {BY_ID} LIMIT 5",
        f"SELECT x.id, count(*), sum(y.v) {BY_ID} GROUP BY x.id LIMIT 5",
        "SELECT x.id, y.v FROM x LEFT JOIN y ON x.id = y.id LIMIT 5",
        f"SELECT * FROM (SELECT x.id {BY_ID} LIMIT 5) JOIN z USING (id)",
    ],
)
def test_a_limit_without_an_order_gives_rows_of_the_query(spark: SparkSession, query: str) -> None:
    limited = execute(spark, query)
    assert re.search(r"fragment: .* LIMIT 5", limited.plan), limited.plan
    every = execute(spark, query.replace(" LIMIT 5", "")).rows
    assert not limited.rows - every
    assert limited.rows.total() == 5 or "USING" in query
    with conf(spark, {EXECUTION: "spark"}):
        joined = execute(spark, query)
    assert joined.rows.total() == limited.rows.total() or "USING" in query
    assert limited.shuffles <= joined.shuffles


def test_a_limit_below_a_join_leaves_its_partitioning(spark: SparkSession) -> None:
    for execution in ("spark", "worker"):
        with conf(spark, {EXECUTION: execution}):
            joined = execute(spark, "SELECT x.id, y.v FROM x LEFT JOIN y ON x.id = y.id LIMIT 5")
        assert (joined.rows.total(), joined.shuffles) == (5, 0), joined.plan


def test_fragments_of_other_limits_do_not_share_an_exchange(spark: SparkSession) -> None:
    first = "SELECT x.id, x.i FROM x JOIN y ON x.id = y.id ORDER BY x.id DESC, x.i LIMIT"
    sql = f"SELECT a.id, b.i FROM ({first} 9) a JOIN ({first} 3) b ON a.i = b.i"
    assert_same(spark, sql)


def scanned_rows(frame: DataFrame) -> int:
    """Add up the rows that the scans of an executed query gave."""
    waiting, found = [frame._jdf.queryExecution().executedPlan()], 0
    while waiting:
        plan = waiting.pop()
        children = plan.children()
        waiting += [children.apply(at) for at in range(children.size())]
        if plan.nodeName() == "AdaptiveSparkPlan":
            waiting.append(plan.executedPlan())
        elif str(plan.nodeName()).startswith("BatchScan"):
            found += int(plan.metrics().apply("numOutputRows").value())
    return found
