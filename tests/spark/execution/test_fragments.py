"""Joins and aggregates that the workers execute: the rows of Spark's own execution."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from tests.spark.assert_join import EXECUTION, ONE_TASK, conf, execute, executed_plan
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("fragment_tables")

AGGREGATES = """count(*) AS n, count({0}.v) AS c, sum({0}.v) AS sv, sum({0}.i) AS si, avg({0}.i16)
    AS ai, min({0}.i) AS li, max({0}.i16) AS hi, sum({0}.dec) AS sd, avg({0}.dec) AS ad,
    avg({0}.v) AS av, min({0}.s) AS ls, max({0}.d) AS hd"""

JOINED = [
    "SELECT x.id, x.s, x.f, y.v, y.d FROM x {kind} JOIN y ON x.id = y.id",
    "SELECT x.id, x.dec, y.s FROM x {kind} JOIN y ON x.id <=> y.id AND x.i <= y.i",
    "SELECT x.id, {y} FROM x {kind} JOIN y ON x.id = y.id GROUP BY x.id",
    "SELECT x.s, {x} FROM x {kind} JOIN y ON x.id = y.id GROUP BY x.s",
    "SELECT {x} FROM x {kind} JOIN y ON x.id = y.id",
]
SEMI_JOINED = [
    "SELECT x.* FROM x {kind} JOIN y ON x.id = y.id",
    "SELECT x.id, {x} FROM x {kind} JOIN y ON x.id = y.id AND x.v < y.v GROUP BY x.id",
    "SELECT {x} FROM x {kind} JOIN y ON x.id = y.id",
]

QUERIES = [
    # what becomes a join
    "SELECT x.id, x.v FROM x WHERE x.id IN (SELECT id FROM y WHERE y.i > 1)",
    "SELECT count(*), sum(x.v) FROM x WHERE EXISTS (SELECT * FROM y WHERE y.id = x.id)",
    "SELECT x.* FROM x WHERE NOT EXISTS (SELECT * FROM y WHERE y.id = x.id AND y.i = x.i)",
    "SELECT x.id, x.v FROM x WHERE x.i > 0 AND x.id IN (SELECT id FROM y WHERE v > 1)",
    # shapes
    "SELECT x.id, y.v, z.s FROM x JOIN y ON x.id = y.id JOIN z ON y.id = z.id",
    (
        "SELECT x.id, count(*), sum(z.v) FROM x JOIN y ON x.id = y.id LEFT JOIN z ON x.id = z.id"
        " GROUP BY x.id"
    ),
    "SELECT a.id, a.v, b.v FROM x a JOIN x b ON a.id = b.id WHERE a.i < b.i",
    (
        "WITH t AS (SELECT x.id, x.v, y.d FROM x JOIN y ON x.id = y.id)"
        " SELECT a.id, a.v, b.d FROM t a JOIN t b ON a.id = b.id WHERE a.v > 1"
    ),
    (
        "SELECT x.id, y.w FROM x JOIN (SELECT id AS k, v * 2 AS w, upper(s) AS s FROM y) y"
        " ON x.id = y.k"
    ),
    (
        "SELECT x.id, y.w FROM x JOIN (SELECT id AS k, i + 1 AS w FROM y WHERE i IS NOT NULL) y"
        " ON x.id = y.k AND y.w <> 3"
    ),
    # above
    "SELECT x.id, y.v FROM x JOIN y ON x.id = y.id ORDER BY x.id, y.v LIMIT 7",
    "SELECT x.id, sum(y.v) AS t FROM x JOIN y ON x.id = y.id GROUP BY x.id HAVING sum(y.v) > 1",
    "SELECT DISTINCT x.id, y.i FROM x JOIN y ON x.id = y.id",
    "SELECT x.i, count(DISTINCT y.s) FROM x JOIN y ON x.id = y.id GROUP BY x.i",
    "SELECT * FROM (SELECT x.id, y.v FROM x JOIN y ON x.id = y.id) UNION ALL SELECT id, v FROM z",
    (
        "SELECT *, row_number() OVER (PARTITION BY i ORDER BY id, v) FROM"
        " (SELECT DISTINCT x.i, x.id, y.v FROM x JOIN y ON x.id = y.id)"
    ),
    # expressions
    (
        "SELECT x.id, CASE WHEN y.i > 2 THEN 'high' WHEN y.i IS NULL THEN y.s ELSE 'low' END AS c,"
        " coalesce(x.v, y.v, 0D) FROM x JOIN y ON x.id = y.id"
    ),
    "SELECT x.id, CASE WHEN y.i > 2 THEN 'x' ELSE reverse(y.s) END FROM x JOIN y ON x.id = y.id",
    "SELECT x.id, if(y.i > 2, y.dec, y.dec / 3) AS q FROM x JOIN y ON x.id = y.id",
    "SELECT x.id + y.i, x.i16 * 2, x.dec * y.dec, -x.v, x.i % 3 FROM x JOIN y ON x.id = y.id",
    (
        "SELECT year(y.d), month(y.d), sum(x.dec * (1 - y.dec)) FROM x JOIN y ON x.id = y.id"
        " GROUP BY year(y.d), month(y.d)"
    ),
    (
        "SELECT x.id, sum(y.v) FILTER (WHERE y.i > 1), count(*) FILTER (WHERE y.flag), avg(y.v)"
        " FILTER (WHERE y.s LIKE 'a%') FROM x JOIN y ON x.id = y.id GROUP BY x.id"
    ),
    "SELECT x.s FROM x JOIN y ON x.id = y.id WHERE x.s LIKE 'a%' OR y.s IN ('éx1', 'Zz2')",
    "SELECT x.f, count(*), sum(x.v) FROM x JOIN y ON x.id = y.id GROUP BY x.f",
    "SELECT count(*) FROM x JOIN y ON x.id = y.id AND x.f = y.f",
    "SELECT max(y.d), sum(y.v) + 1, sum(y.v) / count(*) FROM x JOIN y ON x.id = y.id",
    "SELECT x.s FROM x JOIN y ON x.id = y.id AND (x.s LIKE 'a\\\\%%' OR y.i = 2)",
    "SELECT x.id, y.v FROM x JOIN y ON x.id = y.id AND upper(y.s) = 'AB0'",
    (
        "SELECT date_trunc('MONTH', y.ts), sum(x.v), sum(CASE WHEN y.s LIKE '%x%1' THEN x.dec ELSE"
        " 0 END), avg(x.dec / 3) FROM x JOIN y ON x.id = y.id WHERE substring(y.s, 1, 2) IN ('ab',"
        " 'Zz') AND y.d < DATE'2020-01-03' - INTERVAL '1' DAY GROUP BY date_trunc('MONTH', y.ts)"
    ),
    "SELECT x.id FROM x JOIN y ON x.id = y.id WHERE x.i <> 0 AND y.i / x.i > 0.5",
    "SELECT x.id FROM x JOIN y ON x.id = y.id AND (x.i = 0 OR y.i % x.i = 1)",
    # an aggregate below a join
    "SELECT x.id, x.v FROM x WHERE x.id IN (SELECT id FROM y GROUP BY id HAVING count(*) > 1)",
    # existence beside other conditions
    "SELECT x.id, x.i FROM x WHERE x.i = 1 OR EXISTS (SELECT 1 FROM y WHERE y.id = x.id)",
    (
        "SELECT x.flag, count(*) FROM x WHERE x.v > 1 OR NOT EXISTS (SELECT 1 FROM y WHERE y.id ="
        " x.id AND y.f = x.f AND y.i > 2) GROUP BY x.flag"
    ),
    # short decimals, which Spark computes as whole numbers
    (
        "SELECT x.i, sum(CAST(y.dec AS DECIMAL(7, 2))), avg(CAST(x.dec AS DECIMAL(9, 3))),"
        " avg(x.dec), max(CAST(y.dec AS DECIMAL(7, 2))) FROM x JOIN y ON x.id = y.id GROUP BY x.i"
    ),
    (
        "SELECT x.id FROM x JOIN (SELECT id, sum(CAST(dec AS DECIMAL(7, 2))) AS t FROM y"
        " GROUP BY id HAVING sum(CAST(dec AS DECIMAL(7, 2))) > 50) y ON x.id = y.id AND x.dec < t"
    ),
    # averages that are not the last thing that is computed
    "SELECT x.id FROM x WHERE x.v > (SELECT avg(y.v) FROM y WHERE y.id = x.id)",
    (
        "SELECT x.id, a, b FROM x JOIN (SELECT id, avg(dec) AS a, avg(i) AS b FROM y GROUP BY id)"
        " y ON x.id = y.id AND x.dec < a WHERE b >= 1 OR b IS NULL"
    ),
    # one relation
    "SELECT i, flag, {x} FROM x GROUP BY i, flag",
    "SELECT {x} FROM x WHERE v > 0.5 AND d >= DATE'2019-12-31'",
    "SELECT count(*) FROM x",
    "SELECT s, count(*) FROM x WHERE DATE'2019-12-31' = d GROUP BY s",
    "SELECT s, count(*) FROM x WHERE NOT (1.37 <> dec) AND CAST(1 AS SMALLINT) = i16 GROUP BY s",
    "SELECT min(f + 1D), max(f + 1D) FROM x",
    "SELECT i, min(f + 1D), max(f + 1D) FROM x GROUP BY i",
    "SELECT count(*), sum(v), min(s) FROM x WHERE id = -1",
    "SELECT id, {x} FROM x GROUP BY id",
    "SELECT f, count(*) FROM x GROUP BY f",
    "SELECT (SELECT sum(v) FROM y) AS t, (SELECT max(d) FROM y WHERE i = 1) AS d, count(*) FROM x",
    # partitions of two specs
    "SELECT x.id, old.v FROM x JOIN old ON x.id = old.id",
    "SELECT old.id, {x} FROM old LEFT JOIN x ON x.id = old.id GROUP BY old.id",
    # no rows at all
    "SELECT x.i, count(*) FROM x JOIN y ON x.id = y.id WHERE x.id = -1 GROUP BY x.i",
    "SELECT count(*), sum(y.v) FROM x JOIN y ON x.id = y.id WHERE x.id = -1",
]

# No part of these is certain, or possible: Spark executes them.
DECLINED = [
    "SELECT x.id, y.v FROM x JOIN y ON x.i = y.i",
    "SELECT x.id FROM x WHERE x.id NOT IN (SELECT id FROM y)",
    "SELECT id, v FROM x WHERE v > 1",
    "SELECT i, sort_array(collect_set(v)) FROM x GROUP BY i",
]


def written(query: str, kind: str = "") -> str:
    return query.format(kind=kind, x=AGGREGATES.format("x"), y=AGGREGATES.format("y"))


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize("query", JOINED)
def test_joins_of_every_type_give_the_same_rows(spark: SparkSession, query: str, kind: str) -> None:
    assert_same(spark, written(query, kind))


@pytest.mark.parametrize("kind", ["LEFT SEMI", "LEFT ANTI"])
@pytest.mark.parametrize("query", SEMI_JOINED)
def test_semi_and_anti_joins_give_the_same_rows(spark: SparkSession, query: str, kind: str) -> None:
    assert_same(spark, written(query, kind))


@pytest.mark.parametrize("query", QUERIES)
def test_queries_around_joins_give_the_same_rows(spark: SparkSession, query: str) -> None:
    assert_same(spark, written(query))


@pytest.mark.parametrize("query", DECLINED)
def test_what_is_not_certain_stays_in_spark(spark: SparkSession, query: str) -> None:
    assert_same(spark, written(query), is_fragment=False)


@pytest.mark.parametrize("query", [QUERIES[0], JOINED[2], JOINED[4], QUERIES[16], QUERIES[23]])
def test_the_same_without_ansi_and_without_adaptive_plans(spark: SparkSession, query: str) -> None:
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.adaptive.enabled": "false"}
    sql = written(query, "LEFT")
    with conf(spark, settings):
        with conf(spark, {EXECUTION: "spark"}):
            expected = execute(spark, sql)
        assert execute(spark, sql).rows == expected.rows


def test_an_aggregate_by_the_key_is_finished_in_the_workers(spark: SparkSession) -> None:
    sql = written("SELECT x.id, {y} FROM x JOIN y ON x.id = y.id GROUP BY x.id")
    plan = assert_same(spark, sql)
    assert "fragment: complete in " in plan
    assert "Aggregate" not in plan
    assert "Exchange" not in plan


def test_any_other_aggregate_is_merged_by_spark(spark: SparkSession) -> None:
    plan = assert_same(spark, written("SELECT x.s, {y} FROM x JOIN y ON x.id = y.id GROUP BY x.s"))
    assert "fragment: partial in " in plan


def test_the_output_of_a_fragment_has_the_schema_of_the_query(spark: SparkSession) -> None:
    sql = written("SELECT x.id AS k, x.i16, {y} FROM x LEFT JOIN y ON x.id = y.id GROUP BY 1, 2")
    with conf(spark, {EXECUTION: "spark"}):
        expected = spark.sql(sql)
        types = str(expected._jdf.queryExecution().optimizedPlan().schema().json())
    actual = spark.sql(sql)
    assert actual.schema == expected.schema
    assert str(actual._jdf.queryExecution().optimizedPlan().schema().json()) == types


def test_equal_fragments_share_their_exchange(spark: SparkSession) -> None:
    sql = """
        WITH t AS (
            SELECT x.s, count(*) AS n, sum(y.v) AS v FROM x JOIN y ON x.id = y.id GROUP BY x.s)
        SELECT a.s, a.n, a.v, b.n AS m, b.v AS w FROM t a JOIN t b ON a.s = b.s AND a.n + 1 > b.n"""
    assert "ReusedExchange" in assert_same(spark, sql)


def test_prunings_that_the_join_implies_do_not_keep_it_in_spark(spark: SparkSession) -> None:
    prune = "spark.sql.optimizer.dynamicPartitionPruning"
    settings = {
        f"{prune}.reuseBroadcastOnly": "false",
        f"{prune}.useStats": "false",
        f"{prune}.fallbackFilterRatio": "10",
    }
    sql = "SELECT x.id, y.v FROM x JOIN y ON x.id = y.id WHERE y.i = 3"
    with conf(spark, settings):
        with conf(spark, {EXECUTION: "spark"}):
            optimized = spark.sql(sql)._jdf.queryExecution().optimizedPlan().toString()
        assert "dynamicpruning" in optimized
        assert_same(spark, sql)


def test_a_pruning_by_a_join_outside_is_not_lost(spark: SparkSession) -> None:
    spark.sql(
        "CREATE TABLE lance.fragments.fine PARTITIONED BY (i16, bucket(2, id)) AS"
        " SELECT * FROM x WHERE i16 < 4"
    )
    prune = "spark.sql.optimizer.dynamicPartitionPruning"
    settings = {
        f"{prune}.reuseBroadcastOnly": "false",
        f"{prune}.useStats": "false",
        f"{prune}.fallbackFilterRatio": "10",
    }
    sql = (
        "SELECT f.id, y.v, z.s FROM lance.fragments.fine f JOIN y ON f.id = y.id"
        " JOIN (SELECT * FROM z WHERE dec = 1.37) z ON f.i16 = z.i16"
    )
    assert "fragment: rows" in assert_same(spark, sql)
    with conf(spark, settings):
        plan = assert_same(spark, sql, is_fragment=False)
    kept = re.search(r"runtime filters kept: (\d+) of (\d+) partitions", plan)
    assert kept is not None, plan
    assert int(kept[1]) <= int(kept[2]) // 2, plan


@pytest.mark.parametrize("keys", ["id", "i"])
def test_sums_beyond_all_digits_are_null_without_ansi(spark: SparkSession, keys: str) -> None:
    """Where Spark merges the parts of a group it leaves a NULL out: it sums those by itself."""
    most = f"{'9' * 38}BD"
    large = f"CAST(IF(flag AND id % 3 = 0, {most}, dec) AS DECIMAL(38, 0))"
    sql = f"SELECT {keys}, count(*), sum({large}) AS t, avg({large}) FROM x GROUP BY {keys}"
    with conf(spark, {"spark.sql.ansi.enabled": "false"}):
        assert [row for row in spark.sql(sql).collect() if row.t is None]
        plan = assert_same(spark, sql, is_fragment=keys == "id")
    assert ("fragment: complete" in plan) is (keys == "id")


def test_a_cached_query_and_a_view_are_joined_by_the_workers(spark: SparkSession) -> None:
    frame = spark.sql("SELECT x.id, y.v FROM x JOIN y ON x.id = y.id").cache()
    frame.createOrReplaceTempView("joined")
    try:
        rows = execute(spark, "SELECT id, count(*) FROM joined GROUP BY id").rows
    finally:
        spark.catalog.dropTempView("joined")
        frame.unpersist()
    sql = "SELECT x.id, count(*) FROM x JOIN y ON x.id = y.id GROUP BY x.id"
    with conf(spark, {EXECUTION: "spark"}):
        assert execute(spark, sql).rows == rows


def test_a_join_of_another_snapshot_is_another_fragment(spark: SparkSession) -> None:
    sql = "SELECT count(*), sum(y.v) FROM x JOIN {} y ON x.id = y.id"
    before = execute(spark, sql.format("lance.fragments.z")).rows
    spark.sql("INSERT INTO lance.fragments.z SELECT * FROM y")
    assert execute(spark, sql.format("lance.fragments.z")).rows != before
    plan = executed_plan(spark.sql(sql.format("lance.fragments.z")))
    assert "fragment: " in plan


def test_explain_is_short_and_explain_formatted_is_whole(spark: SparkSession) -> None:
    sql = "SELECT year(x.ts), count(*) FROM x JOIN y ON x.id = y.id GROUP BY 1"
    [simple], [whole] = (spark.sql(f"EXPLAIN {mode} {sql}").collect() for mode in ("", "FORMATTED"))
    [scan] = re.findall(r"fragment: .*", simple[0])
    assert max(map(len, scan.split("; "))) <= 121
    assert re.search(r"; query: SELECT [^;]* … [^;]*;", scan)
    [query] = re.findall(r"^query: .*", whole[0], re.MULTILINE)
    assert len(query) > 121
    assert "INNER JOIN" in query
    assert "…" not in query


def test_a_format_of_the_old_calendar_is_spark_s_to_write(
    spark: SparkSession, namespace: str
) -> None:
    """A year of five digits has no sign there; a partition has it, and a fragment would."""
    rows = "SELECT DATE'+12000-01-01' AS d, 7 AS k"
    spark.sql(f"CREATE TABLE {namespace}.t PARTITIONED BY (d) AS {rows}")
    sql = "SELECT date_format(d, 'yyyy') AS year, count(*) AS n FROM {} {} GROUP BY 1"
    with conf(spark, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}):
        for where in ("", "WHERE date_format(d, 'yyyy') = '12000'"):
            expected = spark.sql(sql.format(f"({rows})", where)).collect()
            assert spark.sql(sql.format(f"{namespace}.t", where)).collect() == expected
            assert [row["year"] for row in expected] == ["12000"]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("CAST(s AS INT) > 3", 5),
        ("to_date('2020-01-0' || s, 'yyyy-MM-dd') > '2020-01-04'", 4),
        ("100 / (k - 9) < -20", 4),
    ],
)
def test_a_condition_is_an_error_only_of_rows_that_no_other_one_leaves_out(
    spark: SparkSession, namespace: str, condition: str, count: int
) -> None:
    rows = "SELECT id AS k, IF(id = 9, 'none', CAST(id AS STRING)) AS s FROM RANGE(10)"
    spark.sql(f"CREATE TABLE {namespace}.t PARTITIONED BY (bucket(2, k)) AS {rows}")
    sql = f"SELECT count(*) FROM {namespace}.t WHERE k BETWEEN 1 AND 8 AND {condition}"
    assert_same(spark, sql)
    assert spark.sql(sql).collect()[0][0] == count


def test_a_text_is_read_by_the_old_calendar_in_spark(spark: SparkSession, namespace: str) -> None:
    """It takes the fourth of March of 1000 in the Julian calendar, and what follows a date."""
    rows = "SELECT '1000-03-04 and more' AS s, 7 AS k"
    spark.sql(f"CREATE TABLE {namespace}.t PARTITIONED BY (k) AS {rows}")
    sql = "SELECT to_date(s, 'yyyy-MM-dd') AS d, count(*) AS n FROM {} GROUP BY 1"
    with conf(spark, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}):
        expected = spark.sql(sql.format(f"({rows})")).collect()
        assert spark.sql(sql.format(f"{namespace}.t")).collect() == expected


def test_a_constant_that_an_outer_join_fills_with_nulls_is_none(
    spark: SparkSession, namespace: str
) -> None:
    for name, field in (("few", "truncate(2, id)"), ("many", "bucket(8, id)")):
        spark.sql(
            f"CREATE TABLE {namespace}.{name} PARTITIONED BY ({field})"
            " AS SELECT id, CAST(id % 6 AS INT) AS k FROM range(20)"
        )
    many = f"SELECT k FROM {namespace}.many"
    query = (
        f"SELECT DISTINCT a.k FROM (SELECT * FROM {namespace}.few WHERE k = 3) a"
        f" RIGHT JOIN ({many} UNION ALL {many}) b ON a.k = b.k"
    )
    with conf(spark, ONE_TASK):
        rows = [row.k for row in spark.sql(query).collect()]
    assert sorted(rows, key=str) == [3, None]


@pytest.mark.parametrize("name", ["floor", "ceil"])
def test_whole_numbers_beyond_bigint_are_what_this_spark_makes_of_them(
    spark: SparkSession, namespace: str, name: str
) -> None:
    """From 4.3 on an error, and before it the end of BIGINT."""
    spark.sql(f"CREATE TABLE {namespace}.t PARTITIONED BY (k) AS SELECT 7 AS k, 1E300D AS x")

    def outcome(execution: str) -> object:
        with conf(spark, {EXECUTION: execution}):
            try:
                return spark.sql(
                    f"SELECT {name}(x) AS w, count(*) FROM {namespace}.t GROUP BY 1"
                ).collect()
            except PySparkException as error:
                return error.getCondition()

    assert outcome("worker") == outcome("spark")
