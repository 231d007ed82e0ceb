"""Tables whose joins and aggregates the workers execute, and the comparison with Spark's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.spark.assert_join import EXECUTION, conf, execute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Doubles that sum exactly in any order; every kind of zero and NaN, NULL keys, text beyond ASCII.
ROWS = """
SELECT
  IF(n % 13 = 0, NULL, n * {step} % 31) AS id,
  CAST(IF(n % 7 = 0, NULL, n % 5) AS INT) AS i,
  CAST(n % 9 AS SMALLINT) AS i16,
  IF(n % 11 = 0, NULL, (n % 17 - 8) / 4D) AS v,
  CASE n % 6 WHEN 0 THEN -0D WHEN 1 THEN 0D WHEN 2 THEN DOUBLE('NaN')
    WHEN 3 THEN -DOUBLE('NaN') WHEN 4 THEN 1.5D END AS f,
  CAST(IF(n % 5 = 0, NULL, n * 1.37) AS DECIMAL(12, 2)) AS dec,
  IF(n % 8 = 0, NULL, CONCAT(ELT(n % 4 + 1, 'ab', 'éx', 'Zz', 'a%_'), n % 3)) AS s,
  IF(n % 10 = 0, NULL, DATE'2019-12-29' + CAST(n % 6 AS INT)) AS d,
  TIMESTAMP'2019-12-30 22:00:00' + MAKE_INTERVAL(0, 0, 0, n % 5, n % 7, 0, n % 2) AS ts,
  n % 2 = 0 AS flag
FROM (SELECT id AS n FROM RANGE({rows}))
"""

TABLES = {
    "x": ("bucket(4, id)", 3, 120, None),
    "y": ("bucket(4, id)", 5, 70, None),
    "z": ("bucket(2, id)", 7, 50, None),
    "old": (
        "bucket(8, id)",
        3,
        80,
        "REPLACE PARTITION FIELD bucket(8, id) WITH bucket(4, id)",
    ),
}


def made_fragment_tables(spark: SparkSession) -> Iterator[None]:
    """Make the tables, and views of their names; drop them in the end."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.fragments")
    for name, (partitioning, step, rows, change) in TABLES.items():
        source = ROWS.format(step=step, rows=rows)
        table = f"lance.fragments.{name}"
        spark.sql(f"CREATE TABLE {table} PARTITIONED BY ({partitioning}) AS {source}")
        if change:
            spark.sql(f"ALTER TABLE {table} {change}")
            spark.sql(f"INSERT INTO {table} {source}")
        spark.table(table).createOrReplaceTempView(name)
    yield
    for name in TABLES:
        spark.catalog.dropTempView(name)
    spark.sql("DROP NAMESPACE lance.fragments CASCADE")


def assert_same(spark: SparkSession, sql: str, *, is_fragment: bool = True) -> str:
    """Assert that both executions give the same rows; give the workers' plan."""
    with conf(spark, {EXECUTION: "spark"}):
        expected = execute(spark, sql)
    actual = execute(spark, sql)
    assert actual.rows == expected.rows, f"{sql}\n{actual.plan}"
    assert "fragment: " not in expected.plan
    assert ("fragment: " in actual.plan) is is_fragment, f"{sql}\n{actual.plan}"
    # Spark knows of a plain scan, and not of a fragment, that it has one partition.
    by_hash = "Exchange hashpartitioning"
    assert actual.plan.count(by_hash) <= expected.plan.count(by_hash), f"{sql}\n{actual.plan}"
    return actual.plan
