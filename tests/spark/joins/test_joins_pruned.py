"""Joins of tables without rows, and of tables of which pruning leaves a part or nothing."""

from __future__ import annotations

import re

import pytest
from tests.spark.assert_join import IN_SPARK, assert_join, conf, execute, views
from tests.spark.joins.join_sides import EXHAUSTIVE, JOINS, Sides, check_sql, evolved

ANY_SPEC = {
    "buckets": (["bucket(16, id)"], ["bucket(8, id)"], "l.id = r.id"),
    "identities": (["dep"], ["dep"], "l.dep = r.dep"),
    "times": (["days(ts)"], ["months(ts)"], "l.ts = r.ts"),
    "several columns": (
        ["multi_bucket(8, a, b)"],
        ["multi_bucket(4, a, b)"],
        "l.a = r.a AND l.b = r.b",
    ),
    "two fields": (
        ["region", "bucket(8, id)"],
        ["bucket(4, id)", "region"],
        "l.region <=> r.region AND l.id = r.id",
    ),
}


@pytest.mark.parametrize("empty", ["l", "r", "both"])
@pytest.mark.parametrize("case", ANY_SPEC)
def test_j26_a_table_without_rows(sides: Sides, case: str, empty: str) -> None:
    left, right, on = ANY_SPEC[case]
    is_empty = {side: empty in (side, "both") for side in "lr"}
    tables = {
        "l": sides.table("l", *left, where="FALSE" if is_empty["l"] else "TRUE"),
        "r": sides.table("r", *right, where="FALSE" if is_empty["r"] else "TRUE"),
    }
    plain = plain_sides(sides, is_empty)
    kinds = tuple(JOINS) if EXHAUSTIVE or (case, empty) == ("buckets", "r") else ("inner", "full")
    for kind in kinds:
        adaptive = (True, False) if kind == "inner" else (True,)
        assert_join(sides.spark, JOINS[kind].format(on=on), tables, plain, 0, adaptive=adaptive)


def plain_sides(sides: Sides, is_empty: dict[str, bool]) -> dict[str, str]:
    """The views without partitioning, those of empty tables without rows."""
    for side in "lr":
        none = sides.spark.table(f"{side}_plain").where("FALSE")
        none.createOrReplaceTempView(f"{side}_none")
    return {side: f"{side}_none" if empty else f"{side}_plain" for side, empty in is_empty.items()}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, count(*) FROM l GROUP BY id",
        "SELECT DISTINCT id, b FROM l",
        "SELECT id, row_number() OVER (PARTITION BY id ORDER BY v) FROM l",
        "SELECT r.v FROM r WHERE id IN (SELECT id FROM l)",
        "SELECT r.v FROM r WHERE NOT EXISTS (SELECT 1 FROM l WHERE l.id = r.id)",
        "SELECT x.v, r.v AS rv FROM l x JOIN l y ON x.id = y.id JOIN r ON y.id = r.id",
    ],
)
def test_j26_shapes_over_a_table_without_rows(sides: Sides, sql: str) -> None:
    tables = {
        "l": sides.table("l", "bucket(16, id)", where="FALSE"),
        "r": sides.table("r", "bucket(8, id)"),
    }
    plain = plain_sides(sides, {"l": True, "r": False})
    assert_join(sides.spark, sql, tables, plain, 0)


def test_j26_an_evolved_table_without_rows(sides: Sides) -> None:
    left = sides.fresh("l", "bucket(8, id)", where="FALSE")
    sides.spark.sql(f"ALTER TABLE {left} REPLACE PARTITION FIELD bucket(8, id) WITH bucket(16, id)")
    tables = {"l": left, "r": sides.table("r", "bucket(8, id)")}
    plain = plain_sides(sides, {"l": True, "r": False})
    for kind in JOINS:
        sql = JOINS[kind].format(on="l.id = r.id")
        assert_join(sides.spark, sql, tables, plain, 0, adaptive=(True,))


def test_j33_all_partitions_pruned(sides: Sides) -> None:
    tables = {"l": sides.table("l", "dep"), "r": sides.table("r", "dep")}
    for join in JOINS.values():
        sql = join.format(on="l.dep = r.dep AND l.dep = 'nowhere'")
        check_sql(sides, tables, sql, range(3), (True,))


# Spark makes a runtime filter where it believes in a gain; small tables it does not believe in.
# What it filters are scans of its own, not joins that the workers execute.
FORCED = {
    **IN_SPARK,
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.useStats": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio": "1000",
}
FEW_R = "(SELECT * FROM r WHERE v < 6)"
FEW_L = "(SELECT * FROM l WHERE v < 6)"
# The join type, and the side of which partitions without a partner need not be read.
PRUNING = {
    "inner": (f"SELECT l.*, r.v AS rv FROM l JOIN {FEW_R} r ON {{on}}", "l"),
    "semi": (f"SELECT l.* FROM l LEFT SEMI JOIN {FEW_R} r ON {{on}}", "l"),
    "right": (f"SELECT l.v AS lv, r.* FROM l RIGHT JOIN {FEW_R} r ON {{on}}", "l"),
    "left": (f"SELECT l.*, r.v AS rv FROM {FEW_L} l LEFT JOIN r ON {{on}}", "r"),
    "in": (f"SELECT l.* FROM l WHERE id IN (SELECT id FROM {FEW_R})", "l"),
}
UNPRUNED = {
    "full": f"SELECT l.v AS lv, r.v AS rv FROM l FULL JOIN {FEW_R} r ON {{on}}",
    "anti": f"SELECT l.* FROM l LEFT ANTI JOIN {FEW_R} r ON {{on}}",
    "left": f"SELECT l.*, r.v AS rv FROM l LEFT JOIN {FEW_R} r ON {{on}}",
}
LAYOUTS = {
    "bucket": (["bucket(16, id)"], ["bucket(8, id)"], "l.id = r.id"),
    "two fields": (
        ["region", "bucket(8, id)"],
        ["bucket(4, id)", "region"],
        "l.region = r.region AND l.id = r.id",
    ),
}


@pytest.mark.parametrize("kind", PRUNING)
@pytest.mark.parametrize("case", LAYOUTS)
def test_j33_partitions_without_a_partner_are_not_read(sides: Sides, case: str, kind: str) -> None:
    left, right, on = LAYOUTS[case]
    template, pruned = PRUNING[kind]
    tables = {"l": sides.table("l", *left), "r": sides.table("r", *right)}
    sql = template.format(on=on)
    # Each filter's own subquery may group its few values: that moves nothing of the join.
    with conf(sides.spark, FORCED):
        check_sql(sides, tables, sql, range(1 + on.count("=")))
        with views(sides.spark, tables):
            plan = execute(sides.spark, sql).plan
    scan = filtered_scan(plan, tables[pruned])
    kept = re.search(r"runtime filters kept: (\d+) of (\d+) partitions", scan)
    if kept is None:
        # The plan had left out already what has no partner.
        planned = re.search(r"partitions: (\d+) of (\d+)", scan)
        assert planned is not None, plan
        is_left_out = "without partner are not read" in scan
        assert is_left_out or int(planned[1]) < int(planned[2]), plan
    else:
        assert int(kept[1]) < int(kept[2]), plan


@pytest.mark.parametrize("kind", UNPRUNED)
def test_j33_where_every_row_of_a_side_is_wanted_all_is_read(sides: Sides, kind: str) -> None:
    tables = {"l": sides.table("l", "bucket(16, id)"), "r": sides.table("r", "bucket(8, id)")}
    with conf(sides.spark, FORCED):
        check_sql(sides, tables, UNPRUNED[kind].format(on="l.id = r.id"), range(2))


def test_j33_a_runtime_filter_that_keeps_nothing(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(16, id)"), "r": sides.table("r", "bucket(8, id)")}
    none = "(SELECT * FROM r WHERE v + id < -100)"
    with conf(sides.spark, FORCED):
        for join in ("JOIN", "RIGHT JOIN"):
            sql = f"SELECT l.v, r.v AS rv FROM l {join} {none} r ON l.id = r.id"
            check_sql(sides, tables, sql, range(2))


def filtered_scan(plan: str, table: str) -> str:
    """Find the line of a table's scan that has a runtime filter."""
    for line in plan.splitlines():
        if f"BatchScan {table}[" in line and "RuntimeFilters: [dynamicpruning" in line:
            return line
    pytest.fail(f"no runtime filter on {table}:\n{plan}")


def test_j24_pruning_leaves_partitions_of_one_version(sides: Sides) -> None:
    left = sides.fresh("l", "region", where="region = 'eu'")
    sides.spark.sql(f"ALTER TABLE {left} REPLACE PARTITION FIELD region WITH dep")
    sides.spark.sql(f"INSERT INTO {left} SELECT * FROM l_plain WHERE NOT region <=> 'eu'")
    tables = {"l": left, "r": sides.table("r", "dep")}
    for kind in JOINS:
        source = "(SELECT * FROM l WHERE region = 'us') l"
        sql = JOINS[kind].format(on="l.dep = r.dep").replace("FROM l ", f"FROM {source} ")
        check_sql(sides, tables, sql, 0, (True,))
    check_sql(sides, tables, JOINS["inner"].format(on="l.dep = r.dep"), range(3))


def test_j22_pruning_leaves_the_finer_version(sides: Sides) -> None:
    change = "REPLACE PARTITION FIELD bucket(8, id) WITH bucket(16, id)"
    left = evolved(sides, ["bucket(8, id)"], change)
    tables = {"l": left, "r": sides.table("r", "bucket(16, id)")}
    sql = "SELECT l.v, r.v AS rv FROM l JOIN r ON l.id = r.id WHERE l.id IN (7, 8)"
    check_sql(sides, tables, sql, 0)
