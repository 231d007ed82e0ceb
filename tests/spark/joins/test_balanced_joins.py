"""Many small groups, one large group, too few groups: fewer or more tasks, and the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import IN_SPARK, assert_join, conf, execute, executed_plan, views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("without_broadcasts")

JOINS = {
    "inner": "SELECT l.id, l.v, r.v AS rv FROM l JOIN r ON {on}",
    "left": "SELECT l.id, l.v, r.v AS rv FROM l LEFT JOIN r ON {on}",
    "right": "SELECT l.v AS lv, r.id, r.v FROM l RIGHT JOIN r ON {on}",
    "full": "SELECT l.v AS lv, r.v AS rv FROM l FULL JOIN r ON {on}",
    "semi": "SELECT l.id, l.v FROM l LEFT SEMI JOIN r ON {on}",
    "anti": "SELECT l.id, l.v FROM l LEFT ANTI JOIN r ON {on}",
    "exists": "SELECT l.id, l.v, EXISTS (SELECT 1 FROM r WHERE {on}) AS e FROM l",
}
ON = "l.k = r.k AND l.id = r.id"
# A share of it is what counts as much: a few rows do.
LITTLE = {
    **IN_SPARK,
    "spark.sql.files.maxPartitionBytes": "2kb",
    "spark.sql.leafNodeDefaultParallelism": "4",
}


@pytest.fixture(scope="module")
def many(spark: SparkSession) -> Iterator[dict[str, str]]:
    """Two tables of 90 small partitions, 60 of them in both."""
    yield from tables(
        spark,
        "lance.many",
        "SELECT id, IF(id % 91 = 0, NULL, CAST(id % 90 AS INT)) AS k, id * 2 AS v FROM RANGE(400)",
        "SELECT id, IF(id % 91 = 0, NULL, CAST(id % 90 + 30 AS INT)) AS k, id * 3 AS v"
        " FROM RANGE(0, 400, 3)",
    )


@pytest.fixture(scope="module")
def skewed(spark: SparkSession) -> Iterator[dict[str, str]]:
    """Two tables of four partitions; one partition of the left one is many times as large."""
    yield from tables(
        spark,
        "lance.skewed",
        "SELECT id, CAST(IF(id % 50 < 47, 0, id % 50 - 46) AS INT) AS k,"
        " xxhash64(id) AS v FROM RANGE(20000)",
        "SELECT id, CAST(id % 5 AS INT) AS k, id * 3 AS v FROM RANGE(0, 20000, 7)",
        inserts=4,
    )


def tables(
    spark: SparkSession, namespace: str, left: str, right: str, inserts: int = 1
) -> Iterator[dict[str, str]]:
    spark.sql(f"CREATE NAMESPACE {namespace}")
    for side, query in {"l": left, "r": right}.items():
        for kind, by in {"plain": "", "by_k": "PARTITIONED BY (k)"}.items():
            name = f"{namespace}.{side}_{kind}"
            spark.sql(f"CREATE TABLE {name} (id BIGINT, k INT, v BIGINT) {by}")
            for part in range(inserts):
                spark.sql(
                    f"INSERT INTO {name} SELECT * FROM ({query}) WHERE id % {inserts} = {part}"
                )
    yield {"l": f"{namespace}.l_by_k", "r": f"{namespace}.r_by_k"}
    spark.sql(f"DROP NAMESPACE {namespace} CASCADE")


def plain(partitioned: dict[str, str]) -> dict[str, str]:
    return {side: name.replace("by_k", "plain") for side, name in partitioned.items()}


def plan_of(spark: SparkSession, sql: str, partitioned: dict[str, str]) -> str:
    with views(spark, partitioned):
        return executed_plan(spark.sql(sql))


@pytest.mark.parametrize("kind", JOINS)
def test_many_small_partitions_are_joined_in_few_tasks(
    spark: SparkSession, many: dict[str, str], kind: str
) -> None:
    sql = JOINS[kind].format(on=ON)
    with conf(spark, IN_SPARK):
        assert_join(spark, sql, many, plain(many), 0, adaptive=(kind == "inner",))
        plan = plan_of(spark, sql, many)
    assert " groups in 4 tasks" in plan
    assert ("partitions without partner are not read" in plan) == (kind != "full")


@pytest.mark.parametrize("kind", JOINS)
def test_a_large_group_is_divided_where_the_join_allows_it(
    spark: SparkSession, skewed: dict[str, str], kind: str
) -> None:
    sql = JOINS[kind].format(on=ON)
    with conf(spark, LITTLE):
        assert_join(spark, sql, skewed, plain(skewed), 0, adaptive=(kind == "inner",))
        plan = plan_of(spark, sql, skewed)
    assert ("1 of them large: divided here" in plan) == (kind not in ("right", "full"))


def test_a_large_group_of_three_tables_is_divided_along_its_path(
    spark: SparkSession, skewed: dict[str, str]
) -> None:
    sql = (
        "SELECT l.id, l.v, r.v AS rv, x.v AS xv FROM l JOIN r ON l.k = r.k AND l.id = r.id"
        " LEFT JOIN (SELECT k, max(v) AS v FROM r GROUP BY k) x ON l.k = x.k"
    )
    with conf(spark, LITTLE):
        assert_join(spark, sql, skewed, plain(skewed), 0, adaptive=(True,))
        assert "1 of them large: divided here" in plan_of(spark, sql, skewed)


def test_a_large_group_below_an_aggregate_of_its_key_stays_whole(
    spark: SparkSession, skewed: dict[str, str]
) -> None:
    sql = "SELECT l.k, count(*), sum(r.v) FROM l JOIN r ON l.k = r.k AND l.id = r.id GROUP BY l.k"
    with conf(spark, LITTLE):
        assert_join(spark, sql, skewed, plain(skewed), 0, adaptive=(True,))
        assert "divided" not in plan_of(spark, sql, skewed)


def test_too_few_groups_of_much_data_are_shuffled_and_told(
    spark: SparkSession, skewed: dict[str, str]
) -> None:
    sql = JOINS["full"].format(on=ON)
    with conf(spark, {**LITTLE, "spark.sql.leafNodeDefaultParallelism": "16"}):
        assert_join(spark, sql, skewed, plain(skewed), range(1, 3))
        with views(spark, skewed):
            verdict, *_ = spark.sql(f"CALL lance.system.explain_join('{sql}')").collect()
    assert "a shuffle is faster" in verdict.reason
    assert "more buckets" in verdict.remedy
    with views(spark, skewed):
        assert execute(spark, sql).shuffles == 0
