"""Joins of tables that another client wrote, of two catalogs, and of tables named by their path."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.assert_join import assert_join
from tests.spark.joins.foreign_levels import write_levels
from tests.spark.joins.join_sides import EXHAUSTIVE, JOINS, Sides, check

from pennon import session

SELECTED = {
    "inner": "SELECT l.id, l.v, r.v AS rv FROM l JOIN r ON {on}",
    "full": "SELECT l.id, l.v, r.v AS rv FROM l FULL JOIN r ON {on}",
}


@pytest.mark.spec("Storage Partitioned Join 1", "reading 31")
@pytest.mark.parametrize("right", [["year(ts)", "month(ts)"], ["days(ts)"], ["hours(ts)"]])
def test_j10_levels_that_pylance_alone_wrote(
    sides: Sides, tmp_path: Path, right: list[str]
) -> None:
    columns = sides.spark.table("l_plain").select("id", "ts", "v")
    write_levels(tmp_path / "foreign", columns.toArrow())
    tables = {"l": f"lance.`{tmp_path / 'foreign'}`", "r": sides.table("r", *right)}
    plain = {"l": "l_plain", "r": "r_plain"}
    for sql in SELECTED.values():
        assert_join(sides.spark, sql.format(on="l.ts = r.ts"), tables, plain, 0)
    count = "SELECT ts, count(*), sum(v) FROM l GROUP BY ts"
    assert_join(sides.spark, count, {"l": tables["l"]}, {"l": "l_plain"}, 0)


def test_j34_a_path_identifier_on_one_side(sides: Sides) -> None:
    left, right = sides.table("l", "bucket(8, id)"), sides.table("r", "bucket(4, id)")
    path = f"lance.`{sides.location_of(right)}`"
    kinds = tuple(JOINS) if EXHAUSTIVE else ("inner", "full", "anti")
    check(sides, {"l": left, "r": path}, "l.id = r.id", 0, kinds)


def test_j34_two_catalogs_with_two_roots(sides: Sides, tmp_path: Path) -> None:
    for key, value in session.spark_conf(tmp_path / "other", "other").items():
        if key.startswith("spark.sql.catalog."):
            sides.spark.conf.set(key, value)
    sides.spark.sql("CREATE NAMESPACE other.far")
    far = "other.far.r"
    sides.spark.sql(f"CREATE TABLE {far} PARTITIONED BY (bucket(4, id)) AS SELECT * FROM r_plain")
    near = sides.table("l", "bucket(8, id)")
    kinds = tuple(JOINS) if EXHAUSTIVE else ("inner", "full", "semi")
    check(sides, {"l": near, "r": far}, "l.id = r.id", 0, kinds)
    check(sides, {"l": near, "r": f"other.`{sides.location_of(far)}`"}, "l.id = r.id", 0, kinds)
    third = sides.table("r", "bucket(2, id)")
    tables = {"l": near, "r": far, "r2": third}
    plain = {"l": "l_plain", "r": "r_plain", "r2": "r_plain"}
    sql = "SELECT l.v, r.v AS rv, r2.v AS r2v FROM l JOIN r ON l.id = r.id JOIN r2 ON r.id = r2.id"
    assert_join(sides.spark, sql, tables, plain, 0)
