"""Keys that a union, an expansion, a generator or an outer join brings to what is above it."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pyspark
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import udf
from tests.spark.assert_join import EXECUTION, conf, execute, executed_plan, shuffles_in, views
from tests.spark.joins.join_sides import Sides, check_sql

# Older ones know nothing of the partitioning of a union.
UNION_SHUFFLES = 0 if pyspark.__version__ >= "4.3" else 1

UNIONS = {
    "grouping": "SELECT id, count(*), sum(v) FROM"
    " (SELECT id, v FROM l WHERE v > 3 UNION ALL SELECT id, v FROM r) GROUP BY id",
    "distinct": "SELECT id, b FROM l UNION SELECT id, b FROM r",
    "window": "SELECT v, sum(v) OVER (PARTITION BY id) FROM"
    " (SELECT id, v FROM l UNION ALL SELECT id, v FROM r)",
    "columns in another order": "SELECT id, max(v) FROM"
    " (SELECT v, id FROM l UNION ALL SELECT v, id FROM (SELECT id, v, s FROM r)) GROUP BY id",
    "join below": "SELECT id, count(*) FROM (SELECT r.id FROM l JOIN r ON l.id = r.id"
    " UNION ALL SELECT id FROM l) GROUP BY id",
    "intersect all": "SELECT id, b FROM l INTERSECT ALL SELECT id, b FROM r",
}
EXPANSIONS = {
    "several distinct": "SELECT id, count(DISTINCT v), count(DISTINCT b), sum(v) FROM l"
    " GROUP BY id",
    "grouping sets": "SELECT id, b, region, count(*), sum(v), grouping_id() FROM l"
    " GROUP BY GROUPING SETS ((id, b), (id, region), (id))",
    "after a join": "SELECT l.id, count(DISTINCT r.v), count(DISTINCT l.b) FROM l"
    " JOIN r ON l.id = r.id GROUP BY l.id",
}


@pytest.mark.parametrize("case", UNIONS)
def test_operators_above_a_union(sides: Sides, case: str) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)"), "r": sides.table("r", "bucket(4, id)")}
    check_sql(sides, tables, UNIONS[case], range(UNION_SHUFFLES + 1))


def test_a_join_above_a_union(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)"), "r": sides.table("r", "bucket(4, id)")}
    sql = (
        "SELECT u.v, l.v FROM l LEFT JOIN (SELECT id, v FROM l UNION ALL SELECT id, v FROM r) u"
        " ON l.id = u.id AND l.v > 9"
    )
    check_sql(sides, tables, sql, range(2 * UNION_SHUFFLES + 1))


@pytest.mark.parametrize("case", EXPANSIONS)
def test_j28_groupings_of_expanded_rows(sides: Sides, case: str) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)"), "r": sides.table("r", "bucket(4, id)")}
    check_sql(sides, tables, EXPANSIONS[case], 0)


def test_a_total_over_all_keys_is_shuffled(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)")}
    check_sql(sides, tables, "SELECT id, b, count(*) FROM l GROUP BY ROLLUP (id, b)", 1)


def test_a_generator_below_a_join(sides: Sides) -> None:
    tables = {
        "l": sides.table("l", "multi_bucket(8, a, b)"),
        "r": sides.table("r", "multi_bucket(4, a, b)"),
    }
    sql = (
        "SELECT x.e, r.v FROM (SELECT a, b, explode(array(v, v + 1)) e FROM l) x"
        " JOIN r ON x.a = r.a AND x.b = r.b"
    )
    check_sql(sides, tables, sql, 0)


def test_only_the_side_that_compares_an_expression_is_shuffled(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(16, id)"), "r": sides.table("r", "bucket(8, id)")}
    check_sql(sides, tables, "SELECT l.v, r.v FROM l JOIN r ON l.id + 1 = r.id", 1)


def test_python_functions_over_groups_find_them_together(sides: Sides) -> None:
    frame = sides.spark.table(sides.table("l", "bucket(8, id)")).select("id", "v")
    with conf(sides.spark, {EXECUTION: "spark"}):
        counted = frame.groupBy("id").applyInPandas(lambda rows: rows.head(1), "id long, v long")
        plan = executed_plan(counted)
    assert shuffles_in(plan) == 0, plan


def test_python_functions_over_two_groups_find_them_together(sides: Sides) -> None:
    def paired(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"v": [len(left) * len(right)]})

    def applied(table: str) -> DataFrame:
        left, right = (sides.spark.table(name).groupBy("id") for name in (table, sides.plain("r")))
        return left.cogroup(right).applyInPandas(paired, "v long")

    keyed, plain = applied(sides.table("l", "bucket(8, id)")), applied(sides.plain("l"))
    with conf(sides.spark, {EXECUTION: "spark"}):
        assert Counter(keyed.collect()) == Counter(plain.collect())
        assert "grouping: bucket(8, id)" in executed_plan(keyed)


def test_a_subquery_that_gives_each_row_one_value_gets_no_key(sides: Sides) -> None:
    """Spark joins by LEFT SINGLE in one way only, with the subquery's rows in each task."""
    tables = {"l": sides.table("l", "bucket(16, id)"), "r": sides.table("r", "bucket(8, id)")}
    sql = (
        "SELECT l.id, l.v, (SELECT of.most FROM (SELECT id, max(v) most FROM r GROUP BY id) of"
        " WHERE of.id = l.id AND of.most > l.v) AS more FROM l"
    )
    with views(sides.spark, {"l": sides.plain("l"), "r": sides.plain("r")}):
        expected = execute(sides.spark, sql)
    with views(sides.spark, tables):
        executed = execute(sides.spark, sql)
    assert executed.rows == expected.rows
    assert "LeftSingle" in executed.plan
    joined = executed.plan.partition("LeftSingle, ")[2].partition("\n")[0]
    assert "_derived_key" not in joined


def test_python_functions_read_the_rows_that_they_are_given(sides: Sides) -> None:
    """Spark 4.3 keeps a scan's batches while Python computes; they have to be as they were."""
    is_even = udf(lambda value: value % 2 == 0, "boolean")

    def rows(table: str) -> list[tuple[int, int]]:
        kept = sides.spark.table(table).where(is_even("v")).select("id", "v")
        return sorted((row.v, row.id) for row in kept.where("id IS NOT NULL").collect())

    assert rows(sides.table("l", "bucket(16, id)")) == rows(sides.plain("l"))


@pytest.mark.parametrize("kind", ["LEFT", "FULL", "LEFT ANTI"])
@pytest.mark.parametrize(
    ("operator", "shuffles"),
    [("=", 0), ("<=>", 1)],  # By <=> a row without partner meets NULL, in another partition.
)
def test_a_column_that_an_outer_join_pads_meets_its_equals(
    sides: Sides, kind: str, operator: str, shuffles: int
) -> None:
    tables = {
        "l": sides.table("l", "bucket(8, id)"),
        "r": sides.table("r", "bucket(4, id)"),
        "l2": sides.table("l", "bucket(16, id)"),
    }
    columns = "l.v, r.v" if kind == "LEFT ANTI" else "l.v, r.v, l2.v"
    sql = (
        f"SELECT {columns} FROM l LEFT JOIN r ON l.id = r.id AND l.v > 40"
        f" {kind} JOIN l2 ON r.id {operator} l2.id AND l2.v > 30"
    )
    check_sql(sides, tables, sql, shuffles)


def test_a_padded_column_is_no_key_of_a_grouping(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)"), "r": sides.table("r", "bucket(4, id)")}
    padded = "SELECT r.id, l.v FROM l LEFT JOIN r ON l.id = r.id AND l.v > 40"
    check_sql(sides, tables, f"SELECT id, count(*), sum(v) FROM ({padded}) GROUP BY id", 1)


def test_padded_columns_of_several_sources(sides: Sides) -> None:
    tables = {
        "l": sides.table("l", "a", "b"),
        "r": sides.table("r", "multi_bucket(4, a, b)"),
        "l2": sides.table("l", "multi_bucket(8, a, b)"),
        "r2": sides.plain("r"),
    }
    sql = (
        "SELECT l.v, r.v, l2.v FROM r RIGHT JOIN l ON l.a = r.a AND l.b = r.b AND r.v < 90"
        " LEFT JOIN l2 ON r.a = l2.a AND l.b = l2.b AND l2.v > 30"
    )
    check_sql(sides, tables, sql, 0)
    check_sql(sides, tables, f"{sql} LEFT JOIN r2 ON r.a = r2.a AND l2.b = r2.b", 1)
