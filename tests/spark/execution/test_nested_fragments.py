"""Structs, arrays and maps that pass through what the workers compute: the rows of Spark's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import EXECUTION, conf
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("without_broadcasts")

ROWS = """
SELECT IF(n % 9 = 0, NULL, n % 40) AS id, n,
  IF(n % 7 = 0, NULL, named_struct('os', IF(n % 5 = 0, NULL, concat('os', n % 3)), 'v',
    named_struct('major', CAST(n % 4 AS INT), 'minor', n % 2 = 0))) AS dev,
  CASE WHEN n % 6 = 0 THEN NULL WHEN n % 6 = 1 THEN array() ELSE array(n, NULL) END AS tags,
  IF(n % 8 = 0, NULL, map('a', n, 'b', NULL)) AS attrs,
  array(named_struct('k', n)) AS items
FROM (SELECT id AS n FROM RANGE({rows}))
"""
QUERIES = {
    "carried by a join": "SELECT x.n, x.dev, x.tags, y.attrs, y.items FROM x JOIN y ON x.id = y.id",
    "of the side that may be missing": (
        "SELECT x.n, y.dev, y.tags, y.attrs FROM x LEFT JOIN y ON x.id = y.id AND x.n > y.n"
    ),
    "some fields of a struct": (
        "SELECT x.n, x.dev.v.major, y.dev.os FROM x JOIN y ON x.id = y.id WHERE x.dev.v.major > 0"
    ),
    "whether there is one": (
        "SELECT x.n, y.tags FROM x JOIN y ON x.id = y.id WHERE x.dev IS NULL OR y.tags IS NOT NULL"
    ),
    "a field as a key": (
        "SELECT x.dev.os, count(y.dev.v.major), min(y.dev.os) FROM x JOIN y ON x.id = y.id"
        " GROUP BY x.dev.os"
    ),
    "a field beside the key": (
        "SELECT x.n, y.n FROM x JOIN y ON x.id = y.id AND x.dev.os = y.dev.os"
    ),
    "the first of each": (
        "SELECT id, n, dev, tags FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY n)"
        " AS at FROM x) WHERE at < 3"
    ),
    "the first of all": (
        "SELECT x.n, y.dev FROM x JOIN y ON x.id = y.id ORDER BY x.n, y.n LIMIT 7"
    ),
}


@pytest.fixture
def _tables(spark: SparkSession, namespace: str) -> None:
    for name, rows in (("x", 120), ("y", 70)):
        table = f"{namespace}.{name}"
        source = ROWS.format(rows=rows)
        spark.sql(f"CREATE TABLE {table} PARTITIONED BY (bucket(4, id)) AS {source}")
        spark.table(table).createOrReplaceTempView(name)


@pytest.mark.usefixtures("_tables")
def test_nested_columns_in_queries(spark: SparkSession) -> None:
    for query in QUERIES.values():
        assert_same(spark, query)


@pytest.mark.usefixtures("_tables")
def test_groups_by_the_field_of_a_struct_are_counted(spark: SparkSession) -> None:
    with conf(spark, {EXECUTION: "worker"}):
        assert_same(spark, "SELECT dev.os, count(*), max(dev.v.major) FROM x GROUP BY dev.os")


@pytest.mark.usefixtures("_tables")
def test_groups_by_a_whole_struct_stay_in_spark(spark: SparkSession) -> None:
    assert_same(spark, "SELECT dev, count(*) FROM x GROUP BY dev", is_fragment=False)
