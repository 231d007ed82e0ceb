"""Recursive queries over partitioned tables: Spark plans each step anew over the same scans."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import EXECUTION, conf

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

EMPLOYEES = """
SELECT CAST(id AS INT) AS id, CAST(id DIV 2 AS INT) AS boss, concat('e', id) AS name,
  concat('e', id DIV 2) AS of,
  TIMESTAMP '2024-01-01 05:00:00' + make_dt_interval(CAST(id AS INT)) AS ts,
  TIMESTAMP '2024-01-01 05:00:00' + make_dt_interval(CAST(id DIV 2 AS INT)) AS since
FROM range(1, 200)
"""
UP = """
WITH RECURSIVE up(id) AS (
  SELECT 150 UNION ALL SELECT e.boss FROM up JOIN {table} e ON e.id = up.id
) SELECT id FROM up
"""
DOWN = """
WITH RECURSIVE dn(id) AS (
  SELECT 1 UNION ALL SELECT e.id FROM dn JOIN {table} e ON e.boss = dn.id
) SELECT id FROM dn
"""
BY_NAME = """
WITH RECURSIVE up(name) AS (
  SELECT 'e150' UNION ALL SELECT e.of FROM up JOIN {table} e ON e.name = up.name
) SELECT name FROM up
"""
BY_TIME = """
WITH RECURSIVE up(ts) AS (
  SELECT TIMESTAMP '2024-05-30 05:00:00'
  UNION ALL SELECT e.since FROM up JOIN {table} e ON e.ts = up.ts
) SELECT ts FROM up
"""
CHAINED = """
WITH RECURSIVE up(id, name) AS (
  SELECT 150, 'e150'
  UNION ALL SELECT a.boss, b.of FROM up
  JOIN {table} a ON a.id = up.id JOIN {table} b ON b.name = up.name
) SELECT id, name FROM up
"""
# The layout, the query, how many rows it has.
CASES = {
    "up buckets": ("bucket(8, id)", UP, 9),
    "up values": ("id", UP, 9),
    "down buckets": ("bucket(8, boss)", DOWN, 199),
    "down values": ("boss", DOWN, 199),
    "names": ("name", BY_NAME, 9),
    "days": ("days(ts)", BY_TIME, 9),
    "months": ("months(ts)", BY_TIME, 9),
    "two columns": ("bucket(8, id), name", CHAINED, 9),
}
# Spark's own joins are all of one kind: what differs is whether a scan reports buckets or values.
IN_SPARK = ("up buckets", "names")


@pytest.fixture(scope="module")
def parquet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("employees"))
    spark.sql(EMPLOYEES).write.mode("overwrite").parquet(path)
    return f"parquet.`{path}`"


@pytest.mark.parametrize(
    ("case", "execution"),
    [*((case, "worker") for case in CASES), *((case, "spark") for case in IN_SPARK)],
)
def test_a_recursion_has_all_its_steps(
    spark: SparkSession, namespace: str, parquet: str, case: str, execution: str
) -> None:
    partitioning, query, number = CASES[case]
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY ({partitioning}) AS {EMPLOYEES}")
    with conf(spark, {EXECUTION: execution}):
        frame = spark.sql(query.format(table=table))
        rows = Counter(frame.collect())
        assert rows == Counter(spark.sql(query.format(table=parquet)).collect())
        assert rows.total() == number
        assert frame.count() == number  # it is planned again
        assert "runtime filters kept" not in frame._jdf.queryExecution().toString()


@pytest.mark.parametrize("execution", ["worker", "spark"])
def test_a_recursion_goes_on_over_tables_of_several_layouts(
    spark: SparkSession, namespace: str, parquet: str, execution: str
) -> None:
    query = """
    WITH RECURSIVE up(id, ts, name) AS (
      SELECT 150, TIMESTAMP '2024-05-30 05:00:00', 'e150'
      UNION ALL
      SELECT a.boss, b.since, c.of FROM up JOIN {0} a ON a.id = up.id
      JOIN {1} b ON b.ts = up.ts JOIN {2} c ON c.name = up.name
    ) SELECT * FROM up
    """
    layouts = ["bucket(8, id)", "days(ts)", "name"]
    tables = [f"{namespace}.t{at}" for at in range(3)]
    for table, layout in zip(tables, layouts, strict=True):
        spark.sql(f"CREATE TABLE {table} PARTITIONED BY ({layout}) AS {EMPLOYEES}")
    with conf(spark, {EXECUTION: execution}):
        rows = Counter(spark.sql(query.format(*tables)).collect())
        assert rows == Counter(spark.sql(query.format(parquet, parquet, parquet)).collect())
        assert rows.total() == 9


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("execution", ["worker", "spark"])
def test_a_pruned_query_that_runs_again_has_the_rows_of_one_that_is_not_pruned(
    spark: SparkSession, namespace: str, tmp_path: Path, execution: str, adaptive: str
) -> None:
    path = str(tmp_path / "dimension")
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (id) AS {EMPLOYEES}")

    query = f"SELECT t.id FROM {table} t JOIN parquet.`{path}` d ON t.id = d.id WHERE d.v = 1"

    def rows_before_and_after(settings: Mapping[str, str]) -> list[Counter[int]]:
        with conf(
            spark, {EXECUTION: execution, "spark.sql.adaptive.enabled": adaptive, **settings}
        ):
            spark.sql("SELECT 7 AS id, 1 AS v").write.mode("overwrite").parquet(path)
            frame = spark.sql(query)
            rows = [Counter(row.id for row in frame.collect())]
            spark.sql("SELECT 8 AS id, 1 AS v").write.mode("append").parquet(path)
            spark.catalog.refreshByPath(path)
            frames = [frame, frame.select("id"), spark.sql(query)]
            return rows + [Counter(row.id for row in again.collect()) for again in frames]

    off = "spark.sql.optimizer.dynamicPartitionPruning.enabled"
    pruned = rows_before_and_after({})
    assert pruned == rows_before_and_after({off: "false"})
    assert pruned[0] == {7: 1}
    assert pruned[-1] == {7: 1, 8: 1}
