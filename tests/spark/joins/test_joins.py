"""The public join cases, J1 to J35: no shuffle, and the rows of the shuffled join."""

from __future__ import annotations

import pytest
from tests.spark.joins.join_sides import EXHAUSTIVE, JOINS, Sides, check, check_sql, evolved

PAIRS = {
    "J1": (["bucket(16, id)"], ["bucket(16, id)"], "l.id = r.id"),
    "J2": (["bucket(16, id)"], ["bucket(8, id)"], "l.id = r.id"),
    "J3": (["bucket(6, id)"], ["bucket(4, id)"], "l.id = r.id"),
    "J6": (["dep"], ["dep"], "l.dep = r.dep"),
    "J6 and id": (["dep"], ["dep"], "l.dep = r.dep AND l.id = r.id"),
    "J7 bucket": (["id"], ["bucket(8, id)"], "l.id = r.id"),
    "J7 truncate": (["id"], ["truncate(10, id)"], "l.id = r.id"),
    "J8 days": (["days(ts)"], ["days(ts)"], "l.ts = r.ts"),
    "J8 months": (["days(ts)"], ["months(ts)"], "l.ts = r.ts"),
    "J8 years": (["days(ts)"], ["years(ts)"], "l.ts = r.ts"),
    "J8 hours": (["days(ts)"], ["hours(ts)"], "l.ts = r.ts"),
    "J8 ntz": (["days(tsn)"], ["months(tsn)"], "l.tsn = r.tsn"),
    "J9": (["days(d)"], ["d"], "l.d = r.d"),
    "J10": (["year(ts)", "month(ts)", "day(ts)"], ["year(ts)", "month(ts)"], "l.ts = r.ts"),
    "J11": (["truncate(4, id)"], ["truncate(8, id)"], "l.id = r.id"),
    "J12": (["truncate(2, s)"], ["truncate(1, s)"], "l.s = r.s"),
    "J13": (
        ["bucket(16, id)", "days(ts)"],
        ["bucket(8, id)", "months(ts)"],
        "l.id = r.id AND l.ts = r.ts",
    ),
    "J13 other order": (
        ["bucket(16, id)", "days(ts)"],
        ["months(ts)", "bucket(8, id)"],
        "l.ts = r.ts AND l.id = r.id",
    ),
    "J14": (
        ["region", "bucket(8, id)"],
        ["bucket(4, id)", "region"],
        "l.region = r.region AND l.id = r.id",
    ),
    "J16": (
        ["bucket(16, id)", "days(ts)"],
        ["bucket(16, id)", "days(ts)"],
        "l.id = r.id AND l.ts = r.ts AND l.region = r.region",
    ),
    "J17 same": (["multi_bucket(8, a, b)"], ["multi_bucket(8, a, b)"], "l.a = r.a AND l.b = r.b"),
    "J17 half": (["multi_bucket(8, a, b)"], ["multi_bucket(4, a, b)"], "l.a = r.a AND l.b = r.b"),
    "J18": (["expression('lower(col0)', s)"], ["expression('lower(col0)', s)"], "l.s = r.s"),
    "J25": (["dep"], ["dep", "bucket(8, id)"], "l.dep = r.dep AND l.id = r.id"),
    "J31 null-safe": (["bucket(8, id)"], ["bucket(8, id)"], "l.id <=> r.id"),
    "integers of two widths": (["bucket(8, i16)"], ["bucket(4, id)"], "l.i16 = r.id"),
    "J31 extra": (["bucket(8, id)"], ["bucket(8, id)"], "l.id = r.id AND l.v < r.v"),
}


# Every join type where a mechanism is met first; where it only meets other functions, two.
EVERY_JOIN_TYPE = {"J2", "J6", "J10", "J13 other order", "J17 half", "J31 null-safe"}


@pytest.mark.spec(
    "Storage Partitioned Join 1",
    "Storage Partitioned Join 2",
    "Storage Partitioned Join 3",
    "Storage Partitioned Join 4",
    "Storage Partitioned Join 5",
    "Transform Compatibility 1",
    "Transform Compatibility 2",
    "Transform Compatibility 3",
    "Appendix F 6",
    "reading 31",
)
@pytest.mark.parametrize("case", PAIRS)
def test_two_tables_join_without_shuffle(sides: Sides, case: str) -> None:
    left, right, on = PAIRS[case]
    kinds = tuple(JOINS) if case in EVERY_JOIN_TYPE or EXHAUSTIVE else ("inner", "full")
    check(sides, {"l": sides.table("l", *left), "r": sides.table("r", *right)}, on, 0, kinds)


@pytest.mark.spec("Transform Compatibility 2")
def test_j4_incompatible_buckets_shuffle_and_are_right(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(9, id)"), "r": sides.table("r", "bucket(4, id)")}
    check(sides, tables, "l.id = r.id", range(1, 3), ("inner", "full"))


def test_j11_truncate_with_no_common_width_is_right(sides: Sides) -> None:
    tables = {"l": sides.table("l", "truncate(4, id)"), "r": sides.table("r", "truncate(6, id)")}
    check(sides, tables, "l.id = r.id", range(3), ("inner", "full"))


@pytest.mark.parametrize(
    "column", ["i8", "i16", "i32", "id", "dec", "s", "bin", "d", "ts", "tsn", "flag"]
)
def test_j5_bucket_of_every_type(sides: Sides, column: str) -> None:
    tables = {
        "l": sides.table("l", f"bucket(8, {column})"),
        "r": sides.table("r", f"bucket(8, {column})"),
    }
    kinds = tuple(JOINS) if EXHAUSTIVE else ("inner", "full")
    check(sides, tables, f"l.id = r.id AND l.{column} = r.{column}", 0, kinds)


def test_j15_a_pruned_partition_column_does_not_matter(sides: Sides) -> None:
    tables = {
        "l": sides.table("l", "region", "bucket(8, id)"),
        "r": sides.table("r", "bucket(8, id)"),
    }
    check_sql(sides, tables, "SELECT l.id, r.v FROM l JOIN r ON l.id = r.id", 0)
    check_sql(sides, tables, "SELECT l.id FROM l LEFT SEMI JOIN r ON l.id = r.id", 0)


def test_j19_three_tables_with_different_bucket_counts(sides: Sides) -> None:
    tables = {
        "l": sides.table("l", "bucket(16, id)"),
        "r": sides.table("r", "bucket(8, id)"),
        "r2": sides.table("r", "bucket(4, id)"),
    }
    for kind in ("JOIN", "LEFT JOIN"):
        sql = (
            f"SELECT l.id, l.v, r.v, r2.v FROM l {kind} r ON l.id = r.id {kind} r2 ON l.id = r2.id"
        )
        check_sql(sides, tables, sql, 0)


def test_j20_three_tables_with_different_time_levels(sides: Sides) -> None:
    tables = {
        "l": sides.table("l", "years(ts)"),
        "r": sides.table("r", "days(ts)"),
        "r2": sides.table("r", "hours(ts)"),
    }
    sql = "SELECT l.ts, l.v, r.v, r2.v FROM l JOIN r ON l.ts = r.ts JOIN r2 ON r.ts = r2.ts"
    check_sql(sides, tables, sql, 0)


def test_j21_only_the_table_without_partitioning_moves(sides: Sides) -> None:
    left = sides.table("l", "bucket(16, id)")
    check(sides, {"l": left, "r": "r_plain"}, "l.id = r.id", 1)


EVOLVED = {
    "J22": (
        (["bucket(8, id)"], "REPLACE PARTITION FIELD bucket(8, id) WITH bucket(16, id)"),
        ["bucket(16, id)"],
        "l.id = r.id",
    ),
    "J23": ((["months(ts)"], "ADD PARTITION FIELD days(ts)"), ["days(ts)"], "l.ts = r.ts"),
    "J25": (
        (["dep"], "ADD PARTITION FIELD bucket(8, id)"),
        ["dep"],
        "l.dep = r.dep AND l.id = r.id",
    ),
}


@pytest.mark.parametrize("case", EVOLVED)
def test_an_evolved_table_groups_by_what_its_versions_have_in_common(
    sides: Sides, case: str
) -> None:
    (before, change), right, on = EVOLVED[case]
    tables = {"l": evolved(sides, before, change), "r": sides.table("r", *right)}
    check(sides, tables, on, 0, tuple(JOINS) if EXHAUSTIVE else ("left", "full"))


def test_j24_a_version_without_fields_shuffles_until_it_is_pruned(sides: Sides) -> None:
    left = sides.fresh("l", where="v % 2 = 0 AND dep = 'a'")
    sides.spark.sql(f"ALTER TABLE {left} ADD PARTITION FIELD dep")
    sides.spark.sql(
        f"INSERT INTO {left} SELECT * FROM l_plain"
        " WHERE NOT (v % 2 = 0 AND dep = 'a') OR dep IS NULL"
    )
    tables = {"l": left, "r": sides.table("r", "dep")}
    sql = "SELECT l.v, r.v FROM l JOIN r ON l.dep = r.dep"
    check_sql(sides, tables, sql, range(1, 3))
    check_sql(sides, tables, f"{sql} WHERE l.dep = 'b'", 0)  # one value, in that version too


def test_j27_a_partition_of_many_fragments(sides: Sides) -> None:
    left = sides.fresh("l", "bucket(16, id)", where="v < 20")
    for start in range(20, 300, 70):
        sides.spark.sql(
            f"INSERT INTO {left} SELECT * FROM l_plain WHERE v >= {start} AND v < {start + 70}"
        )
    check(sides, {"l": left, "r": sides.table("r", "bucket(16, id)")}, "l.id = r.id", 0)


GROUPINGS = {
    "on the column": "SELECT id, count(*), sum(v) FROM l GROUP BY id",
    "on it and more": "SELECT id, region, count(*) FROM l GROUP BY id, region",
    "distinct": "SELECT DISTINCT id, b FROM l",
    "count distinct": "SELECT id, count(DISTINCT v) FROM l GROUP BY id",
    "window": "SELECT id, v, row_number() OVER (PARTITION BY id ORDER BY v) FROM l",
    "window and more": "SELECT id, v, sum(v) OVER (PARTITION BY id, region ORDER BY v) FROM l",
    "top n": "SELECT * FROM (SELECT id, v, rank() OVER (PARTITION BY id ORDER BY v) AS k FROM l)"
    " WHERE k < 3",
    "after a join": "SELECT l.id, sum(r.v) FROM l JOIN r ON l.id = r.id GROUP BY l.id",
}


@pytest.mark.parametrize("case", GROUPINGS)
def test_j28_grouping_by_a_partition_column(sides: Sides, case: str) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)"), "r": sides.table("r", "bucket(4, id)")}
    check_sql(sides, tables, GROUPINGS[case], 0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region, count(*) FROM l GROUP BY region",
        "SELECT id, count(*) FROM l GROUP BY id",
        "SELECT region, v, sum(v) OVER (PARTITION BY region ORDER BY v) FROM l",
        "SELECT id, count(*) n, rank() OVER (PARTITION BY id ORDER BY count(*)) FROM l GROUP BY id",
        "SELECT id, max(n) FROM (SELECT id, v, count(*) n FROM l GROUP BY id, v) GROUP BY id",
    ],
)
def test_j28_grouping_by_a_subset_of_the_partition_columns(sides: Sides, sql: str) -> None:
    check_sql(sides, {"l": sides.table("l", "region", "bucket(8, id)")}, sql, 0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, b, count(*) FROM l GROUP BY a, b",
        "SELECT DISTINCT b, a FROM l",
        "SELECT a, b, v, row_number() OVER (PARTITION BY a, b ORDER BY v) FROM l",
        (
            "SELECT a, b, v FROM "
            "(SELECT *, row_number() OVER (PARTITION BY a, b ORDER BY v) k FROM l) WHERE k = 1"
        ),
    ],
)
def test_j29_grouping_by_the_columns_of_a_multi_bucket(sides: Sides, sql: str) -> None:
    check_sql(sides, {"l": sides.table("l", "multi_bucket(8, a, b)")}, sql, 0)


SHAPES = {
    "in": "SELECT l.* FROM l WHERE id IN (SELECT id FROM r)",
    "exists": "SELECT l.* FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.id = l.id AND r.v > 9)",
    "not exists": "SELECT l.* FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.id = l.id)",
    "self-join": "SELECT x.v, y.v FROM l x JOIN l y ON x.id = y.id",
    "aggregates": "SELECT x.id, x.n, y.n FROM (SELECT id, count(*) n FROM l GROUP BY id) x"
    " JOIN (SELECT id, sum(v) n FROM r GROUP BY id) y ON x.id = y.id",
    "using": "SELECT id, l.v, r.v FROM l JOIN r USING (id)",
    "alias": "SELECT x.k, y.v FROM (SELECT id AS k, v FROM l) x JOIN r y ON x.k = y.id",
    "all of full aggregates": "SELECT * FROM (SELECT id, count(*) n FROM l GROUP BY id) x"
    " FULL JOIN (SELECT id, sum(v) n FROM r GROUP BY id) y ON x.id = y.id",
    "all of a full join": "SELECT * FROM l FULL JOIN r ON l.id = r.id",
    "generated above a full join": "SELECT * FROM (SELECT * FROM (SELECT id, v FROM l)"
    " FULL JOIN (SELECT id AS k, v AS w FROM r) ON id = k) LATERAL VIEW explode(array(v, w)) AS e",
    "union of full joins": "SELECT * FROM (SELECT id, v FROM l) FULL JOIN (SELECT id AS k FROM r)"
    " ON id = k UNION ALL SELECT id, v, id FROM l",
    "cte": "WITH c AS (SELECT id, v FROM l) SELECT c.v, r.v FROM c JOIN r ON c.id = r.id",
}


@pytest.mark.parametrize("case", SHAPES)
def test_j30_shapes_of_queries(sides: Sides, case: str) -> None:
    tables = {"l": sides.table("l", "bucket(8, id)"), "r": sides.table("r", "bucket(4, id)")}
    check_sql(sides, tables, SHAPES[case], 0)
