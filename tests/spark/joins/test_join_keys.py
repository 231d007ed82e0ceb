"""Join keys that are no plain columns of one type: fields of structs, casts, fixed values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import assert_join, conf
from tests.spark.joins.join_sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MORE = """
SELECT *, IF(i32 = 3, NULL, NAMED_STRUCT('id', id, 'in', NAMED_STRUCT('k', i32))) AS p,
  CAST(dec AS DECIMAL(9, 2)) AS narrow
FROM {side}_plain
"""
KEYS = {
    "field of a struct": ("bucket(8, p.id)", "bucket(4, p.id)", "l.p.id = r.p.id", 0),
    "field of a struct in one": ("p.in.k", "bucket(4, i32)", "l.p.in.k = r.i32", 0),
    "field of a struct, one side": ("bucket(8, p.id)", "", "l.p.id = r.p.id", 1),
    "whole struct": ("bucket(8, p.id)", "bucket(4, p.id)", "l.p = r.p", 2),
    "wider decimal": ("bucket(8, narrow)", "dec", "l.narrow = r.dec", 0),
    "wider integer, one side": ("bucket(8, i16)", "", "l.i16 = r.id", 1),
    "DATE as TIMESTAMP_NTZ": ("d", "hours(tsn)", "l.d = r.tsn", 0),
    "DATE as TIMESTAMP": ("months(d)", "ts", "l.d = r.ts", 0),
    "DATE as TIMESTAMP, hashed": ("bucket(4, d)", "bucket(4, ts)", "l.d = r.ts", 1),
    "DATE as TIMESTAMP, one side": ("days(d)", "", "l.d = r.ts", 2),
    "TIMESTAMP_NTZ as TIMESTAMP": ("bucket(4, tsn)", "bucket(8, ts)", "l.tsn = r.ts", 0),
    "columns that cross over": (
        "multi_bucket(8, i32, id)",
        "multi_bucket(4, id, i32)",
        "l.i32 = r.id AND l.id = r.i32",
        0,
    ),
    "columns that do not": (
        "multi_bucket(8, i32, id)",
        "multi_bucket(8, id, i32)",
        "l.i32 = r.i32 AND l.id = r.id",
        1,
    ),
    "one column with two": ("bucket(8, id)", "bucket(4, i32)", "l.id = r.id AND l.id = r.i32", 0),
    "two hashes of one column": (
        "bucket(8, id), truncate(10, id)",
        "truncate(20, id), bucket(4, id)",
        "l.id = r.id",
        0,
    ),
    "a column and its hash": ("s, bucket(4, s)", "bucket(8, s), truncate(1, s)", "l.s = r.s", 0),
    "text of a zone and of none": (
        "expression('CAST(col0 AS VARCHAR)', ts)",
        "expression('CAST(col0 AS VARCHAR)', tsn)",
        "l.ts = r.tsn",
        2,
    ),
    "text of a zone": (
        "expression('CAST(col0 AS VARCHAR)', ts)",
        "tsn",
        "l.ts = r.tsn",
        1,
    ),
    "spelling": ("expression('lower(col0)', s)", "expression('LOWER( col0 )', s)", "l.s = r.s", 0),
}


@pytest.fixture(scope="module")
def keyed(sides: Sides) -> Sides:
    for side in "lr":
        sides.spark.sql(MORE.format(side=side)).createOrReplaceTempView(f"{side}k_plain")
    return sides


def check(keyed: Sides, sql: str, left: str, right: str, shuffles: int) -> None:
    tables = {
        side: keyed.table(f"{side}k", *([by] if by else []))
        for side, by in {"l": left, "r": right}.items()
    }
    plain = {"l": "lk_plain", "r": "rk_plain"}
    assert_join(keyed.spark, sql, tables, plain, shuffles, adaptive=(True,))


@pytest.mark.parametrize("case", KEYS)
def test_a_key_is_followed_where_its_partition_value_is(keyed: Sides, case: str) -> None:
    left, right, on, shuffles = KEYS[case]
    check(keyed, f"SELECT l.v, r.v FROM l FULL JOIN r ON {on}", left, right, shuffles)


def test_midnight_is_not_that_of_partitions_in_another_zone(
    keyed: Sides, spark: SparkSession
) -> None:
    with conf(spark, {"spark.sql.session.timeZone": "America/Los_Angeles"}):
        sql = "SELECT l.v, r.v FROM l FULL JOIN r ON l.d = r."
        check(keyed, f"{sql}ts", "days(d)", "days(ts)", 1)
        check(keyed, f"{sql}tsn", "days(d)", "days(tsn)", 0)


ZONED = {
    "hours(ts)": "ts",
    "hour(ts)": "ts",
    "days(ts)": "ts",
    "day(tsn)": "tsn",
    "months(d)": "d",
}


@pytest.mark.parametrize("by", ZONED)
def test_j21_partition_values_know_no_zone(keyed: Sides, spark: SparkSession, by: str) -> None:
    """Spark computes the values of the other side, in a session half an hour off the hours."""
    on = f"l.{ZONED[by]} = r.{ZONED[by]}"
    with conf(spark, {"spark.sql.session.timeZone": "Asia/Kathmandu"}):
        check(keyed, f"SELECT l.v, r.v FROM l FULL JOIN r ON {on}", by, "", 1)
