"""CHAR and VARCHAR columns in the workers: Spark pads what it reads, whoever wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import ONE_TASK, conf
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

NOT_PADDED = {"spark.sql.legacy.charVarcharAsString": "true"}
QUERIES = [
    "SELECT c, count(*) FROM coded GROUP BY c",
    "SELECT concat('<', c, '>') AS t, max(v) FROM coded GROUP BY 1",
    "SELECT count(*) FROM coded WHERE c = 'é'",
    "SELECT count(*), min(c), max(length(c)) FROM coded WHERE c > 'a'",
    "SELECT x.c, count(*) FROM coded x JOIN coded y ON x.id = y.id AND x.c = y.c GROUP BY x.c",
    "SELECT v, count(DISTINCT id) FROM coded WHERE v LIKE '% ' GROUP BY v",
]


@pytest.fixture(scope="module", autouse=True)
def coded(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.chars")
    table = "lance.chars.coded"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, c CHAR(4), v VARCHAR(5)) PARTITIONED BY (bucket(4, id))"
    )
    rows = (
        "SELECT id, IF(id % 7 = 0, NULL, ELT(id % 4 + 1, 'a', 'é', 'abcd', '')) AS c,"
        " IF(id % 5 = 0, NULL, CONCAT('v', id % 3, IF(id % 2 = 0, ' ', ''))) AS v"
        " FROM RANGE({0}, {1})"
    )
    spark.sql(f"INSERT INTO {table} {rows.format(0, 90)}")
    with conf(spark, NOT_PADDED):
        spark.sql(f"INSERT INTO {table} {rows.format(90, 150)}")
    spark.table(table).createOrReplaceTempView("coded")
    yield
    spark.catalog.dropTempView("coded")
    spark.sql("DROP NAMESPACE lance.chars CASCADE")


@pytest.mark.parametrize("query", QUERIES)
def test_columns_of_a_length_are_those_of_spark(spark: SparkSession, query: str) -> None:
    with conf(spark, ONE_TASK):
        assert_same(spark, query)
