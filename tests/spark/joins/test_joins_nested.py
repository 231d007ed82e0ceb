"""Joins around subqueries, and joins of which only one side can stay where it is."""

from __future__ import annotations

import pytest
from tests.spark.assert_join import EXECUTION, conf, views
from tests.spark.joins.join_sides import Sides, check, check_sql

BEST = "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY v) k FROM r) AS q"
KNOWN = "SELECT b FROM r WHERE b IS NOT NULL"
SUBQUERIES = {
    "in the best": f"SELECT l.* FROM l WHERE id IN ({BEST} WHERE k = 1)",
    "exists among the best": (
        f"SELECT l.* FROM l WHERE EXISTS (SELECT 1 FROM ({BEST} WHERE k <= 2) b WHERE b.id = l.id)"
    ),
    "not among groups": (
        "SELECT l.* FROM l WHERE NOT EXISTS"
        " (SELECT 1 FROM (SELECT id, count(*) n FROM r GROUP BY id) q WHERE q.id = l.id AND n > 1)"
    ),
    "in a join": (
        "SELECT l.v FROM l WHERE id IN"
        " (SELECT r.id FROM r JOIN (SELECT DISTINCT id FROM r) q ON r.id = q.id)"
    ),
    "two levels": (
        "SELECT l.v FROM l WHERE id IN (SELECT id FROM (SELECT id, max(v) m FROM r"
        f" WHERE id IN ({BEST} WHERE k = 1) GROUP BY id) WHERE m > 9)"
    ),
    "of a scalar": (
        "SELECT l.id, (SELECT max(v) FROM r WHERE r.id = l.id) FROM l"
        f" WHERE id IN ({BEST} WHERE k = 1)"
    ),
}


CORRELATED = {
    "lateral": "SELECT l.v, x.rv FROM l, LATERAL (SELECT r.v rv FROM r WHERE {on}) x",
    "lateral aggregate": "SELECT l.v, x.n FROM l, LATERAL (SELECT count(*) n FROM r WHERE {on}) x",
    "lateral, padded": (
        "SELECT l.v, x.m FROM l LEFT JOIN LATERAL (SELECT max(v) m FROM r WHERE {on}) x ON true"
    ),
    "lateral, nested": (
        "SELECT l.v, x.m FROM l, LATERAL (SELECT max(v) m FROM r WHERE {on}"
        " AND EXISTS (SELECT 1 FROM r q WHERE {inner} AND q.v > 9)) x"
    ),
    "scalar": "SELECT l.v, (SELECT max(r.v) FROM r WHERE {on}) FROM l",
    "count": "SELECT l.v, (SELECT count(*) FROM r WHERE {on}) FROM l",
    "compared": "SELECT l.v FROM l WHERE l.v > (SELECT avg(r.v) FROM r WHERE {on})",
    "two of them": (
        "SELECT l.v, (SELECT max(r.v) FROM r WHERE {on}), (SELECT min(r.v) FROM r WHERE {on})"
        " FROM l WHERE EXISTS (SELECT 1 FROM r WHERE {on})"
    ),
}
BY_KEYS = {
    "r.id = l.id": ("bucket(8, id)", "bucket(4, id)"),
    "r.a = l.a AND r.b = l.b": ("multi_bucket(8, a, b)", "multi_bucket(4, a, b)"),
}


@pytest.mark.parametrize("on", BY_KEYS)
@pytest.mark.parametrize("case", CORRELATED)
def test_a_correlated_subquery_meets_the_rows_around_it(sides: Sides, case: str, on: str) -> None:
    left, right = BY_KEYS[on]
    tables = {"l": sides.table("l", left), "r": sides.table("r", right)}
    check_sql(sides, tables, CORRELATED[case].format(on=on, inner=on.replace("l.", "q.")), 0)


@pytest.mark.parametrize("case", SUBQUERIES)
def test_a_grouping_inside_a_subquery_has_the_key_of_the_join_around_it(
    sides: Sides, case: str
) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)"), "r": sides.table("r", "bucket(4, id)")}
    check_sql(sides, tables, SUBQUERIES[case], 0)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT id, count(*) FROM l WHERE b NOT IN ({KNOWN} AND v > 900) GROUP BY id",
        "SELECT id, count(*) FROM (SELECT l.id FROM l LEFT JOIN r ON l.v < r.v - 160) GROUP BY id",
        (
            "SELECT l.id FROM l JOIN r ON l.id = r.id"
            " WHERE NOT EXISTS (SELECT 1 FROM r x WHERE x.v > l.v)"
        ),
    ],
)
def test_a_join_without_keys_leaves_the_rows_where_they_are(sides: Sides, sql: str) -> None:
    tables = {"l": sides.table("l", "id"), "r": sides.table("r", "bucket(4, id)")}
    check_sql(sides, tables, sql, 0)


def test_one_side_stays_where_both_are_partitioned_by_other_columns(sides: Sides) -> None:
    tables = {
        "l": sides.table("l", "multi_bucket(8, a, b)"),
        "r": sides.table("r", "truncate(2, s)"),
    }
    check(sides, tables, "l.a = r.a AND l.b = r.b", 1)


def test_the_side_that_reads_more_bytes_stays(sides: Sides) -> None:
    few = sides.table("r", "multi_bucket(2, b, a)", where="v < 20")
    tables = {"l": sides.table("l", "multi_bucket(8, a, b)"), "r": few, "r2": few}
    sql = (
        "SELECT r.v, r2.s, l.* FROM r JOIN r2 ON r.a = r2.a AND r.b = r2.b"
        " JOIN l ON l.a = r.a AND l.b = r.b"
    )
    with conf(sides.spark, {EXECUTION: "spark"}), views(sides.spark, tables):
        found = sides.spark.sql(f"CALL lance.system.explain_join('{sql}')").collect()
    common = [row.common for row in found if row.operator == "join"]
    assert [text.partition("(")[0] for text in common] == ["multi_bucket"] * 2, found
    assert tables["l"] in common[1], found


def test_the_side_that_stays_has_a_key_for_the_next_join(sides: Sides) -> None:
    tables = {
        "l": sides.table("l", "truncate(2, s)"),
        "r": sides.table("r", "bucket(8, id)", "region"),
        "r2": sides.table("r", "region", "bucket(4, id)"),
    }
    sql = (
        "SELECT l.v, r.v, r2.v FROM l JOIN r ON l.id = r.id AND l.region = r.region"
        " JOIN r2 ON r.id = r2.id AND l.region = r2.region"
    )
    check_sql(sides, tables, sql, 1)


def test_j21_null_safe_comparison_with_a_side_without_partitioning(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)"), "r": sides.plain("r")}
    check(sides, tables, "l.id <=> r.id", 1, ("inner", "left", "full", "anti"))


TREES: dict[str, tuple[str, int | range]] = {
    "right-deep": (
        "SELECT l.v, r.v, r2.v FROM l FULL JOIN (r JOIN r2 ON r.id = r2.id) ON l.id = r2.id",
        0,
    ),
    "bushy": (
        (
            "SELECT l.v, r.v, l2.v, r2.v FROM (l LEFT JOIN r ON l.id = r.id) LEFT JOIN"
            " (l2 LEFT JOIN r2 ON l2.id = r2.id) ON l.id = l2.id AND l.v <= l2.v"
        ),
        0,
    ),
    "right above left": (
        (
            "SELECT l.v, r.v, r2.v FROM l JOIN r ON l.id = r.id LEFT JOIN l2 ON l2.id = l.id"
            " AND l2.v = l.v RIGHT JOIN r2 ON r2.id = l.id"
        ),
        0,
    ),
    # A row of r without a partner has no key of l: what is above must not rely on it.
    "by the column that may be missing": (
        "SELECT l.v, r.v, r2.v FROM l RIGHT JOIN r ON l.id = r.id LEFT JOIN r2 ON l.id = r2.id",
        range(3),
    ),
    "by one column of both": (
        (
            "SELECT k, r2.v FROM (SELECT coalesce(l.id, r.id) AS k FROM l FULL JOIN r"
            " ON l.id = r.id) LEFT JOIN r2 ON k = r2.id"
        ),
        range(3),
    ),
}


@pytest.mark.parametrize("case", TREES)
def test_trees_of_joins_meet_in_one_key(sides: Sides, case: str) -> None:
    sql, shuffles = TREES[case]
    tables = {
        "l": sides.table("l", "bucket(16, id)"),
        "r": sides.table("r", "bucket(8, id)"),
        "l2": sides.table("l", "id"),
        "r2": sides.table("r", "bucket(12, id)"),
    }
    check_sql(sides, tables, sql, shuffles, (True,))


def test_a_third_table_that_shares_one_field_of_two(sides: Sides) -> None:
    tables = {
        "l": sides.table("l", "bucket(8, id)", "days(ts)"),
        "r": sides.table("r", "bucket(4, id)", "years(ts)"),
        "r2": sides.table("r", "months(ts)"),
    }
    sql = (
        "SELECT l.v, r.v, r2.v FROM l JOIN r ON l.id = r.id AND l.ts = r.ts JOIN r2 ON l.ts = r2.ts"
    )
    check_sql(sides, tables, sql, 0)


def test_three_tables_of_which_only_two_have_something_in_common(sides: Sides) -> None:
    sql = "SELECT l.v, r.v, r2.v FROM l JOIN r ON l.id = r.id LEFT JOIN r2 ON l.id = r2.id"
    tables = {
        "l": sides.table("l", "bucket(6, id)"),
        "r": sides.table("r", "bucket(4, id)"),
        "r2": sides.table("r", "bucket(3, id)"),
    }
    check_sql(sides, tables, sql, range(1, 3), (True,))
    tables["l"], tables["r2"] = sides.table("l", "id"), sides.table("r", "truncate(10, id)")
    check_sql(sides, tables, sql, range(1, 3), (True,))


FEW, OTHERS = ("(SELECT * FROM l WHERE id < 9) x", "(SELECT * FROM l WHERE id > 3) y")
WITH_OTHER_PARTITIONS = {
    "preserved": f"FROM r LEFT JOIN {FEW} ON r.id = x.id LEFT JOIN {OTHERS} ON r.id = y.id",
    "inner above": f"FROM {FEW} RIGHT JOIN r ON x.id = r.id JOIN {OTHERS} ON r.id = y.id",
    "full above": f"FROM {FEW} RIGHT JOIN r ON x.id = r.id FULL JOIN {OTHERS} ON r.id = y.id",
    "anti above": f"FROM {FEW} RIGHT JOIN r ON x.id = r.id LEFT ANTI JOIN {OTHERS} ON r.id = y.id",
    "padded": f"FROM {FEW} LEFT JOIN r ON x.id = r.id LEFT JOIN {OTHERS} ON r.id = y.id",
    "not padded": f"FROM {FEW} LEFT JOIN r ON x.id = r.id FULL JOIN {OTHERS} ON x.id = y.id",
}


@pytest.mark.parametrize("case", WITH_OTHER_PARTITIONS)
def test_a_shuffled_table_meets_two_with_different_partitions(sides: Sides, case: str) -> None:
    tables = {"l": sides.table("l", "id"), "r": "r_plain"}
    check_sql(sides, tables, f"SELECT r.id, r.v {WITH_OTHER_PARTITIONS[case]}", 1)


def test_the_side_stays_on_which_more_stands_above(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(9, id)"), "r": sides.table("r", "bucket(16, id)")}
    sql = "SELECT DISTINCT l.id FROM l JOIN l AS l2 ON l.id = l2.id JOIN r ON l2.id = r.id"
    check_sql(sides, tables, sql, 1)


def test_a_shuffled_side_lies_by_what_the_window_above_needs(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)", "bucket(4, a)"), "r": "r_plain"}
    sql = "SELECT r.v, sum(r.v) OVER (PARTITION BY r.id) FROM r JOIN l ON r.id = l.id AND r.a = l.a"
    check_sql(sides, tables, sql, 1)
