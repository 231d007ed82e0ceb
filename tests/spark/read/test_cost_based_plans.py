"""What Spark's cost-based optimizer estimates of a scan, beside a Parquet table it has analyzed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyspark
import pytest
from tests.spark.assert_join import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = (
    "SELECT id, id % 40 AS n, CAST(id % 97 AS DECIMAL(9, 2)) AS price, concat('r', id % 3) AS s,"
    " DATE '2024-01-01' + CAST(id % 200 AS INT) AS d, IF(id % 4 = 0, NULL, id % 7) AS m,"
    " TIMESTAMP '2024-01-01 00:00:00' + make_dt_interval(0, 0, CAST(id AS INT)) AS ts,"
    " CAST(id % 10 AS DOUBLE) AS f FROM range(4000)"
)
CONDITIONS = [
    "n < 10",
    "n = 7",
    "n > 100",
    "price BETWEEN 10 AND 19",
    "s = 'r1'",
    "d >= DATE '2024-06-01'",
    "ts < TIMESTAMP '2024-01-01 10:00:00'",
    "f >= 5",
    "n < 10 AND d < DATE '2024-02-01'",
    "m IS NULL",
    "m IS NOT NULL",
    "m IS NULL AND n = 7",
]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[tuple[str, str]]:
    spark.sql("CREATE NAMESPACE lance.costs")
    spark.sql(
        "CREATE TABLE lance.costs.t (id BIGINT, n BIGINT, price DECIMAL(9, 2), s STRING, d DATE,"
        " m BIGINT, ts TIMESTAMP, f DOUBLE) PARTITIONED BY (bucket(3, id), months(d))"
    )
    spark.sql(f"INSERT INTO lance.costs.t {ROWS}")
    spark.sql("CALL lance.system.analyze('costs.t')")
    spark.sql(f"CREATE TABLE costs_parquet USING parquet AS {ROWS}")
    spark.sql("ANALYZE TABLE costs_parquet COMPUTE STATISTICS FOR ALL COLUMNS")
    spark.conf.set("spark.sql.cbo.enabled", "true")
    yield "lance.costs.t", "costs_parquet"
    spark.conf.unset("spark.sql.cbo.enabled")
    spark.sql("DROP TABLE costs_parquet")
    spark.sql("DROP NAMESPACE lance.costs CASCADE")


def estimated(spark: SparkSession, query: str) -> int:
    plan = spark.sql(query)._jdf.queryExecution().optimizedPlan()
    return int(str(plan.stats().rowCount().get()))


def test_filters_are_estimated_as_of_an_analyzed_table(
    spark: SparkSession, tables: tuple[str, str]
) -> None:
    ours, theirs = tables
    found = {
        condition: (
            estimated(spark, f"SELECT * FROM {ours} WHERE {condition}"),
            estimated(spark, f"SELECT * FROM {theirs} WHERE {condition}"),
        )
        for condition in CONDITIONS
    }
    far = {operator: (a, b) for operator, (a, b) in found.items() if not b / 2 <= a <= 2 * b}
    assert not far


def test_a_join_is_estimated_by_the_values_of_its_keys(
    spark: SparkSession, tables: tuple[str, str]
) -> None:
    ours, theirs = tables
    query = "SELECT l.id FROM {0} l JOIN {0} r ON l.n = r.n"
    a, b = (estimated(spark, query.format(table)) for table in (ours, theirs))
    assert b / 2 <= a <= 2 * b


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="estimates no row beside NaN")
def test_no_column_ends_a_cost_based_query(spark: SparkSession, namespace: str) -> None:
    """Spark's estimates do not know every type of a column whose statistics it has."""
    table = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {table} PARTITIONED BY (truncate(100, id)) AS SELECT id, id % 2 = 0 AS flag,"
        " TIMESTAMP_NTZ '2025-01-01 00:00:00' + make_dt_interval(0, 0, CAST(id AS INT)) AS ntz,"
        " IF(id % 9 = 0, DOUBLE('NaN'), id % 5) AS f, CAST(id % 5 AS TINYINT) AS tiny,"
        " CAST(NULL AS INT) AS none, X'00' AS b, named_struct('x', id) AS s FROM range(400)"
    )
    spark.sql(f"CALL lance.system.analyze('{table.partition('.')[2]}')")
    conditions = [
        "ntz < TIMESTAMP_NTZ '2025-01-01 05:00:00'",
        "ntz = TIMESTAMP_NTZ '2025-01-01 00:07:00' OR ntz IN (TIMESTAMP_NTZ '2025-01-01 00:09:00')",
        "flag = (tiny < 3)",
        "NOT flag",
        "flag = true",
        "f = 3",
        "f IN (1, 2) AND tiny = 1",
        "f < 3",
        "tiny IN (1, 3)",
        "none = 3 OR none IS NULL",
        "b = X'00'",
        "s.x < 70",
    ]
    query = " UNION ALL ".join(
        f"SELECT id, f FROM {table} WHERE {condition}" for condition in conditions
    )
    full = Counter(map(repr, spark.sql(query).collect()))
    with conf(spark, {"spark.sql.cbo.enabled": "true"}):
        rows = {
            condition: estimated(spark, f"SELECT * FROM {table} WHERE {condition}")
            for condition in conditions
        }
        assert {row for row, count in rows.items() if count <= 0} == set()
        assert Counter(map(repr, spark.sql(query).collect())) == full
