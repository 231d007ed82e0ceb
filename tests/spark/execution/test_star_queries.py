"""Random queries of several tables in the workers, beside plain Parquet: the torture in short."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.assert_join import EXECUTION, executed_plan
from tests.strategies.star_queries import StarQueries
from tests.torture.execution.sessions import LIMITS, MODES, StarSessions, left_to_spark, rows_of

import pennon


@pytest.mark.parametrize("seed", range(300, 306))
def test_a_random_query_gives_the_same_rows(star: StarSessions, seed: int) -> None:
    sql = StarQueries(seed).query()
    differences, _ = star.differences(sql)
    assert differences == [], sql


def test_a_star_is_one_fragment(star: StarSessions) -> None:
    sql = (
        "SELECT r.s, count(*), sum(f.amt) FROM f JOIN c ON f.ck = c.ck JOIN r ON c.rk = r.rk"
        " JOIN p ON f.pk = p.pk WHERE p.q < 6 GROUP BY r.s HAVING count(*) > 3"
    )
    differences, plans = star.differences(sql)
    assert differences == []
    for plan in plans.values():
        assert plan.count("fragment: ") == 1
        assert "Join " not in plan.replace(" JOIN ", "")
    assert "Exchange" not in plans["one task"]


def test_a_small_filtered_table_is_joined_before_rows_are_multiplied(star: StarSessions) -> None:
    sql = (
        "SELECT c.s, count(*), sum(f.amt), max(g.d) FROM f JOIN g ON f.pk = g.pk AND f.q < g.q"
        " JOIN c ON f.ck = c.ck JOIN r ON c.rk = r.rk LEFT JOIN p ON f.pk = p.pk"
        " WHERE r.rk = 1 AND c.q < 3 GROUP BY c.s"
    )
    differences, plans = star.differences(sql)
    assert differences == []
    for plan in plans.values():
        read = plan[plan.index("; query: ") :]
        assert read.index("lance.star.f;") < read.index("lance.star.c;")
        assert read.index("lance.star.r;") < read.index("lance.star.g;"), plan


def test_one_of_several_executors_computes_what_they_would_exchange(
    spark: SparkSession, star: StarSessions
) -> None:
    several = {
        "spark.sql.leafNodeDefaultParallelism": "16",  # eight executors
        f"{LIMITS}.oneTaskBytes": "5k",  # less than f and c have
        f"{LIMITS}.replicatedBytes": "2k",
    }
    way = star.session(spark, several)
    way.sql(f"USE {star.namespace}")
    by_key = "SELECT id, sum(q) AS n FROM f GROUP BY id"
    others = (
        "SELECT c.s, sum(f.amt), count(*) FROM f JOIN c ON f.ck = c.ck GROUP BY c.s",
        f"{by_key} HAVING n > (SELECT avg(q) FROM f)",
        f"SELECT n, count(*) FROM ({by_key}) GROUP BY n",
        f"{by_key} ORDER BY n, id",
    )
    for sql in (by_key, f"{by_key} ORDER BY n, id LIMIT 3", *others):
        found, plan = star.attempt(way, sql)
        assert found == star.attempt(star.plain, sql)[0]
        assert ("in 1 tasks of 2 threads" in plan) == (sql in others), plan
        assert "Exchange" not in plan


def test_partitions_without_a_value_of_a_dimension_are_not_opened(
    spark: SparkSession, namespace: str, lake: Path
) -> None:
    months = "date_add(DATE'2024-01-15', CAST(30 * (id % 6) AS INT))"
    way = spark.newSession()
    for key, value in MODES["divided"].items():
        way.conf.set(key, value)
    way.sql(
        f"CREATE TABLE {namespace}.sales PARTITIONED BY (months(d)) AS"
        f" SELECT id, IF(id = 7, NULL, {months}) AS d FROM RANGE(60)"
    )
    way.sql(
        f"CREATE TABLE {namespace}.days AS SELECT {months} AS d, CAST(id % 6 AS INT) AS q"
        " FROM RANGE(6) UNION ALL SELECT NULL, 1"
    )
    wanted = [date(2024, 2, 14), date(2024, 3, 15)]
    (root,) = lake.glob(f"*{namespace.removeprefix('lance.')}$sales")
    partitions = pennon.open(str(root)).scan().plan().partitions
    others = [
        partition.location
        for partition in partitions
        if partition.values["d_month"] not in {row.month for row in wanted}
    ]
    assert len(others) == 5
    for other in others:
        (root / other).rename(root / f"{other}.away")
    sales, days = f"{namespace}.sales s", f"(SELECT * FROM {namespace}.days WHERE q IN (1, 2)) t"
    by_day = "SELECT s.d, count(*) AS n FROM {} GROUP BY s.d"
    for mode in ("divided", "one executor"):
        for key, value in MODES[mode].items():
            way.conf.set(key, value)
        frame = way.sql(by_day.format(f"{sales} JOIN {days} ON s.d = t.d"))
        assert sorted(tuple(row) for row in frame.collect()) == [(wanted[0], 9), (wanted[1], 10)]
        plan = executed_plan(frame)
        assert "r0 at run time: partitions with months(d) in p0" in plan
        assert ("threads" in plan) == (mode == "one executor")
    # The preserved side is the small one: what it has no day for leaves no trace either.
    outer = way.sql(by_day.format(f"{days} LEFT JOIN {sales} ON s.d = t.d"))
    assert set(map(tuple, outer.collect())) == {(wanted[0], 9), (wanted[1], 10), (None, 1)}
    anti = way.sql(f"SELECT count(*) AS n FROM {days} LEFT ANTI JOIN {sales} ON s.d = t.d")
    assert [tuple(row) for row in anti.collect()] == [(1,)]


def test_different_values_are_told_once_by_each_task(star: StarSessions) -> None:
    sql = (
        "SELECT c.s, count(DISTINCT f.v), sum(f.amt), avg(f.q), count(*), sum(DISTINCT f.amt),"
        " count_if(f.q > 3), bool_or(f.q > 5), every(f.q > 5), max(floor(f.amt))"
        " FROM f JOIN c ON f.ck = c.ck GROUP BY c.s"
    )
    everything = "SELECT count(DISTINCT IF(q > 3, v, NULL)), max(amt) FROM f WHERE s IS NULL"
    for query in (sql, everything, everything.replace("s IS", "s IS NOT")):
        differences, plans = star.differences(query)
        assert differences == []
        assert plans["divided"].count("fragment: partial") == 1
        assert plans["one task"].count("fragment: complete") == 1


def test_variances_are_of_whole_groups(star: StarSessions) -> None:
    """Tasks tell no parts of one, which Spark would merge; what is rounded are the last digits."""
    calls = "stddev(f.amt), var_pop(f.q), stddev_pop(f.v), variance(f.pk) FILTER (WHERE f.q > 3)"
    rounded = re.sub(r"((?:std|var)[^,]*\)(?: FILTER[^,]*)?)", r"round(\1, 6)", calls)
    differences, plans = star.differences(f"SELECT id, {rounded}, sum(q) FROM f GROUP BY id")
    assert differences == []
    assert plans["divided"].count("fragment: complete") == 1
    alone = "SELECT var_pop(v), stddev_pop(v), var_samp(v) FROM f WHERE id = 5 AND isnan(v)"
    assert star.differences(f"{alone} AND q = 5")[0] == []
    by_name = f"SELECT c.s, {rounded} FROM f JOIN c ON f.ck = c.ck GROUP BY c.s"
    differences, plans = star.differences(by_name)
    assert differences == []
    assert plans["one task"].count("fragment: complete") == 1
    assert "fragment: partial" not in plans["divided"]


def test_a_correlated_subquery_computes_the_groups_of_a_small_side(star: StarSessions) -> None:
    """The same aggregate twice, restricted in different ways: no exchange is shared."""
    average = "(SELECT avg(x.q) FROM f x WHERE x.pk = p.pk)"
    counted = "SELECT {1} FROM f JOIN p ON f.pk = p.pk WHERE p.s = '{0}' AND f.q >= " + average
    selected = "'{0}' AS o, count(*), sum(f.amt)"
    inputs = [counted.format(name, selected.format(name)) for name in ("b2", "b3")]
    # Subqueries are planned each by itself: both name their columns alike.
    values = [counted.format(name, "sum(f.amt)") for name in ("b2", "b3")]
    settings = {"oneTaskBytes": "0", "replicatedBytes": "2k"}  # of which p is a part, and f is none
    way = star.plain.newSession()
    for key, value in settings.items():
        way.conf.set(f"spark.sql.catalog.lance.execution.{key}", value)
    way.sql("USE lance.star")
    queries = (" UNION ALL ".join(inputs), f"SELECT ({values[0]}) AS b2, ({values[1]}) AS b3")
    for sql, names in zip(queries, (2, 1), strict=True):
        found, plan = star.attempt(way, sql)
        assert found == star.attempt(star.plain, sql)[0]
        restrictions = re.findall(r"only groups of (c\d+ in p0\.c\d+)", plan)
        assert (len(restrictions) >= 2, len(set(restrictions))) == (True, names), plan


def test_a_limited_side_restricts_no_subquery(star: StarSessions) -> None:
    """Spark and a worker choose other rows by a limit: a group that one wants the other drops."""
    value = "(SELECT sum(x.q) FROM f x WHERE x.pk = p.pk)"
    sql = f"SELECT p.pk, {value} AS q FROM p WHERE p.s >= 'b1'"
    way = star.plain.newSession()
    for key, setting in {"oneTaskBytes": "0", "replicatedBytes": "2k"}.items():
        way.conf.set(f"spark.sql.catalog.lance.execution.{key}", setting)
    way.sql("USE lance.star")
    found, plan = star.attempt(way, f"{sql} LIMIT 5")
    every = star.attempt(star.plain, sql)[0]
    assert len(found) == min(5, len(every))
    assert set(found) <= set(every)
    assert "only groups of " in plan
    [row] = way.sql(f"EXPLAIN FORMATTED {sql} LIMIT 5").collect()
    parts = re.findall(r"^p\d+ in every worker: .*", row[0], re.MULTILINE)
    assert parts
    assert not any("LIMIT" in part for part in parts), parts


def test_a_union_and_its_dimension_are_one_fragment(star: StarSessions) -> None:
    """Scans of other partitionings are divided each by itself; Spark merges the groups."""
    both = "SELECT 'f' AS o, ck, d, amt FROM f UNION ALL SELECT 'g', ck, d, amt FROM g WHERE q > 2"
    sql = (
        f"SELECT u.o, c.s, count(*), sum(u.amt) FROM ({both}) u JOIN c ON u.ck = c.ck"
        " JOIN t ON u.d = t.d WHERE t.q IN (1, 2) GROUP BY u.o, c.s"
    )
    differences, plans = star.differences(sql)
    assert differences == []
    for plan in plans.values():
        assert plan.count("fragment: ") == 1
        assert "Union" not in plan
    assert "at run time: partitions with months(d) in p" in plans["divided"]


def test_a_subquery_of_one_value_is_evaluated_in_the_workers(star: StarSessions) -> None:
    sql = (
        "SELECT c.s, sum(f.amt) AS amt FROM f JOIN c ON f.ck = c.ck WHERE f.amt > (SELECT"
        " 0.2 * max(amt) FROM f WHERE q > 2) GROUP BY c.s"
        " HAVING sum(f.amt) > (SELECT max(amt) - 100 FROM f WHERE q > 4)"
    )
    differences, plans = star.differences(sql)
    assert differences == []
    assert plans["one task"].count("fragment: ") == 1
    assert "Subquery" not in plans["one task"]


def test_groups_that_a_join_repeats_are_grouped_again(star: StarSessions) -> None:
    """DataFusion believes that the first keys still determine all columns."""
    per_kind = "SELECT rk, count(*) AS n FROM c GROUP BY rk"
    joined = f"SELECT k.rk, c.q, count(*) AS m FROM c JOIN ({per_kind}) k ON c.rk = k.rk"
    sql = (
        "SELECT rk, sum(CASE WHEN q > 2 THEN m END), count(CASE WHEN q > 2 THEN q END)"
        f" FROM ({joined} GROUP BY k.rk, c.q) GROUP BY rk"
    )
    differences, plans = star.differences(sql)
    assert differences == []
    assert "Aggregate" not in plans["one task"]


def test_few_groups_stand_beside_each_other_in_one_task(star: StarSessions) -> None:
    """No worker compares as many pairs as 20,000 rows make, but those of 7 and 9 groups."""
    spark, table = star.ways["one task"], f"{star.namespace}.numbers"
    numbers = spark.range(20_000).selectExpr("id", "id % 7 AS g", "CAST(id % 9 AS INT) AS h")
    numbers.createOrReplaceTempView("plain")
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (h) AS SELECT * FROM plain")
    sql = (
        "SELECT g, h, n / total AS part FROM (SELECT g, count(*) AS n FROM {0} GROUP BY g) x"
        " JOIN (SELECT h, sum(id) AS total FROM {0} GROUP BY h) y ON n > h"
    )
    grouped = spark.sql(sql.format(table))
    assert rows_of(grouped) == rows_of(spark.sql(sql.format("plain")))
    assert "NestedLoop" not in executed_plan(grouped)


_EVERY = "d, id, pk, ck, q, amt, v, s"


def test_the_first_rows_of_a_side_are_found_in_one_task(star: StarSessions) -> None:
    first = f"(SELECT * FROM f ORDER BY amt DESC NULLS LAST, {_EVERY} LIMIT 40)"
    sql = f"SELECT c.s, count(*), sum(x.amt) FROM {first} x JOIN c ON x.ck = c.ck GROUP BY c.s"
    differences, plans = star.differences(sql)
    assert differences == []
    assert "GlobalLimit" not in plans["one task"]
    assert "TakeOrdered" not in plans["one task"].split("fragment: ")[0]
    # Divided, each task would have its own first rows.
    assert "TakeOrdered" in plans["divided"].split("fragment: ")[0]


@pytest.mark.parametrize(
    "first",
    [
        f"SELECT * FROM f ORDER BY amt DESC NULLS LAST, {_EVERY} LIMIT 40 OFFSET 7",
        f"SELECT ck, amt FROM f ORDER BY amt DESC NULLS LAST, {_EVERY} OFFSET 30",
        f"SELECT ck, amt + 1 AS amt FROM f ORDER BY v, {_EVERY} LIMIT 3 OFFSET 1000",
        "SELECT ck, sum(amt) AS amt FROM f GROUP BY ck ORDER BY count(*), ck LIMIT 5",
        "SELECT ck, avg(amt) AS amt FROM f GROUP BY ck ORDER BY amt DESC, ck LIMIT 5 OFFSET 3",
        "SELECT ck, max(amt) AS amt FROM f GROUP BY ck ORDER BY 2 DESC NULLS LAST, 1 OFFSET 9",
    ],
)
def test_rows_after_the_first_ones_are_found_in_one_task(star: StarSessions, first: str) -> None:
    sql = f"SELECT c.s, count(*), sum(x.amt) FROM ({first}) x JOIN c ON x.ck = c.ck GROUP BY c.s"
    differences, plans = star.differences(sql)
    assert differences == []
    assert left_to_spark(plans["one task"]) == ()


def test_what_an_offset_without_an_order_leaves_out_spark_decides(star: StarSessions) -> None:
    sql = "SELECT c.s, count(*) FROM (SELECT * FROM f OFFSET 30) x JOIN c ON x.ck = c.ck GROUP BY 1"
    assert star.reasons("one task", sql) == ["OFFSET of rows without an order"]


# Spark leaves out an aggregate's functions that nobody reads, and it has one row all the same.
_UNREAD = {
    "a literal beside them": (
        "SELECT p.pk, (SELECT mark FROM (SELECT 'a' AS mark, max(v) FROM f WHERE q < 4)) AS mark"
        " FROM p"
    ),
    "by the values of rows": (
        "SELECT p.pk, (SELECT mark FROM (SELECT 'a' AS mark, max(v) FROM f WHERE f.pk = p.pk))"
        " AS mark FROM p"
    ),
    "whether they are": "SELECT p.pk, EXISTS (SELECT max(v) FROM f WHERE q < 4) AS is_any FROM p",
    "rows where they are": (
        "SELECT count(*) FROM c WHERE EXISTS (SELECT max(v) FROM f WHERE q = 1000)"
    ),
    "rows where they are not": (
        "SELECT count(*) FROM c WHERE NOT EXISTS (SELECT max(v) FROM f WHERE q = 1000)"
    ),
    "how many they are": "SELECT count(*) FROM (SELECT sum(v) FROM f JOIN c ON f.ck = c.ck) x, p",
    "groups of one literal": "SELECT count(*) FROM (SELECT DISTINCT 7 FROM f WHERE q = 1000) x, p",
}


@pytest.mark.parametrize("name", _UNREAD)
def test_an_aggregate_has_one_row_where_nobody_reads_its_functions(
    star: StarSessions, name: str
) -> None:
    differences, _ = star.differences(_UNREAD[name])
    assert differences == []


FILTERED = {
    "join": "SELECT count(*), sum(v) FROM s JOIN c ON s.k = c.k WHERE c.n = 3",
    "correlated": "SELECT count(*), sum(s.v) FROM s JOIN c ON s.k = c.k WHERE c.n = 3 AND s.v <"
    " (SELECT 0.9 * avg(t.v) FROM s t WHERE t.k = c.k)",
    "preserved": "SELECT c.k, count(s.v) FROM c LEFT JOIN s ON c.k = s.k WHERE c.n = 3"
    " GROUP BY c.k",
    "semi": "SELECT count(*), sum(v) FROM s WHERE k IN (SELECT k FROM c WHERE n = 3)",
    "text": "SELECT count(*), sum(v) FROM s JOIN c ON s.text = c.text WHERE c.n = 3",
    "twice": "SELECT count(*) FROM (SELECT k, v FROM s UNION ALL SELECT k + 1, v FROM s) s"
    " JOIN c ON s.k = c.k WHERE c.n = 3",
    "nobody": "SELECT count(*), sum(v) FROM s JOIN c ON s.k = c.k WHERE c.n % 50 = 49",
}
UNFILTERED = {
    "all rows": "SELECT count(*), sum(c.k), sum(v) FROM s LEFT JOIN (SELECT * FROM c WHERE n = 3) c"
    " ON s.k = c.k",
    "NULL": "SELECT count(*), sum(v) FROM s JOIN c ON s.k <=> c.k WHERE c.n = 3",
    "NOT IN": "SELECT count(*), sum(v) FROM s WHERE k NOT IN (SELECT k FROM c WHERE n = 3)",
    "NOT EXISTS": "SELECT count(*) FROM s WHERE NOT EXISTS"
    " (SELECT 1 FROM c WHERE c.k = s.k AND n = 3)",
}


def test_rows_without_a_value_of_a_small_side_are_not_read(
    spark: SparkSession, namespace: str
) -> None:
    way = spark.newSession()
    way.sql(f"USE {namespace}")
    way.sql(
        "CREATE TABLE s PARTITIONED BY (bucket(2, v)) AS SELECT IF(id % 97 = 0, NULL, id % 3001) AS"
        " k, concat('it''s ', id % 3001) AS text, id AS v FROM RANGE(270000)"
    )
    way.sql(
        "CREATE TABLE c AS SELECT IF(id = 7, NULL, id) AS k, concat('it''s ', id) AS text,"
        " CAST(id % 43 AS INT) AS n FROM RANGE(2999)"
    )
    for name, sql in (FILTERED | UNFILTERED).items():
        way.conf.set(EXECUTION, "spark")
        expected = rows_of(way.sql(sql))
        way.conf.unset(EXECUTION)
        for mode in ("divided", "one executor"):
            for key, value in MODES[mode].items():
                way.conf.set(key, value)
            frame = way.sql(sql)
            plan = executed_plan(frame)
            assert rows_of(frame) == expected, f"{mode}: {sql}\n{plan}"
            if name in UNFILTERED:
                assert ": rows with" not in plan, plan
            elif mode == "one executor":
                assert ": rows with" in plan, plan
