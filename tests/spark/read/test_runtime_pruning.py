"""Dynamic partition pruning as Spark does it by default: one side of the join is broadcast.

Nothing groups by partitions there, so that leaves are packed; those without a partner are not read.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import EXECUTION, conf
from tests.spark.spark_release import SPARK
from tests.torture.execution.sessions import MODES

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

VALUES, EACH = 97, 20
FACT = f"""
SELECT k, k DIV 10 AS a, k % 10 AS b, concat('K', k) AS s, DATE '2024-01-01' + CAST(k AS INT) AS d,
  TIMESTAMP '2024-01-01 05:00:00' + MAKE_INTERVAL(0, 0, 0, CAST(k AS INT)) AS ts, n AS v
FROM (SELECT id DIV {EACH} AS k, id AS n FROM range({VALUES * EACH}))
"""
DEFAULTS = {
    EXECUTION: "spark",
    "spark.sql.autoBroadcastJoinThreshold": "10485760",
    "spark.sql.adaptive.enabled": "false",
}
# The layout, what is joined on, and the most rows that the one value leaves to read.
LAYOUTS = {
    "identity": ("s", "f.s = d.s", EACH),
    "days": ("days(ts)", "f.ts = d.ts", EACH),
    "months and days": ("month(d), day(d)", "f.d = d.d", EACH),
    "bucket": ("bucket(64, k)", "f.k = d.k", 6 * EACH),
    "multi_bucket": ("multi_bucket(64, a, b)", "f.a = d.a AND f.b = d.b", 6 * EACH),
    "expression": ("expression('lower(col0)', s)", "f.s = d.s", EACH),
}


@pytest.fixture(scope="module")
def dimension(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("dimension"))
    spark.sql(FACT).where(f"v % {EACH} = 0").write.mode("overwrite").parquet(path)
    return f"parquet.`{path}`"


def rows_read(frame: DataFrame) -> int:
    """The rows that the scan of the namespace gave; the dimension's is of files."""
    counted = [scan.metrics().get("numOutputRows").get().value() for scan in table_scans(frame)]
    assert counted
    return sum(counted)


def table_scans(frame: DataFrame) -> list[JavaObject]:
    """The scans of Pennon's tables, or the parts of the query that its workers computed."""
    plan = frame._jdf.queryExecution().executedPlan()
    if "AdaptiveSparkPlan" in plan.nodeName():
        plan = plan.executedPlan()
    leaves = plan.collectLeaves()
    scans = [leaves.apply(at) for at in range(leaves.size())]
    return [scan for scan in scans if scan.nodeName().startswith("BatchScan")]


def joined(spark: SparkSession, table: str, dimension: str, on: str) -> DataFrame:
    return spark.sql(
        f"SELECT f.v, d.v AS dv FROM {table} f JOIN {dimension} d ON {on} WHERE d.v = {42 * EACH}"
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_all_partitions_those_with_a_partner_are_read(
    spark: SparkSession, namespace: str, dimension: str, layout: str
) -> None:
    partitioning, on, most = LAYOUTS[layout]
    table = f"{namespace}.fact"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY ({partitioning}) AS {FACT}")
    with conf(spark, DEFAULTS):
        frame = joined(spark, table, dimension, on)
        rows = Counter(map(tuple, frame.collect()))
        assert rows == {(v, 42 * EACH): 1 for v in range(42 * EACH, 43 * EACH)}
        assert EACH <= rows_read(frame) <= most


@pytest.mark.parametrize("mode", ["one task", "divided"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fragment_reads_the_partitions_with_a_partner(
    spark: SparkSession, namespace: str, layout: str, mode: str
) -> None:
    partitioning, on, most = LAYOUTS[layout]
    table = f"{namespace}.fact"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY ({partitioning}) AS {FACT}")
    spark.sql(f"CREATE TABLE {namespace}.dimension AS {FACT} WHERE n % {EACH} = 0")
    with conf(spark, MODES[mode]):
        frame = joined(spark, table, f"{namespace}.dimension", on)
        rows = Counter(map(tuple, frame.collect()))
        assert rows == {(v, 42 * EACH): 1 for v in range(42 * EACH, 43 * EACH)}
        (fragment,) = table_scans(frame)
        read = fragment.metrics().get("rowsScanned").get().value()
        assert EACH <= read <= most + VALUES


def test_an_evolved_table_is_pruned_in_both_specs(
    spark: SparkSession, namespace: str, dimension: str
) -> None:
    table = f"{namespace}.fact"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (s) AS {FACT}")
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD s WITH expression('lower(col0)', s)")
    spark.sql(f"INSERT INTO {table} {FACT}")
    with conf(spark, DEFAULTS):
        frame = joined(spark, table, dimension, "f.s = d.s")
        assert len(frame.collect()) == 2 * EACH
        assert rows_read(frame) == 2 * EACH
    spark.sql(f"CREATE TABLE {namespace}.dimension AS {FACT} WHERE n % {EACH} = 0")
    with conf(spark, MODES["one task"]):
        frame = joined(spark, table, f"{namespace}.dimension", "f.s = d.s")
        assert len(frame.collect()) == 2 * EACH
        (fragment,) = table_scans(frame)
        assert fragment.metrics().get("rowsScanned").get().value() <= 2 * EACH + VALUES


def test_a_list_of_more_values_than_a_plan_takes_prunes_by_its_range(
    spark: SparkSession, namespace: str
) -> None:
    rows = "SELECT id AS k, id DIV 5000 AS part FROM range(100000)"
    spark.sql(f"CREATE TABLE {namespace}.t PARTITIONED BY (truncate(5000, k)) AS {rows}")
    spark.sql(f"CREATE TABLE {namespace}.d AS SELECT id AS k, id % 2 AS even FROM range(30000)")
    with conf(spark, DEFAULTS):
        frame = spark.sql(
            f"SELECT t.k FROM {namespace}.t JOIN {namespace}.d USING (k) WHERE even = 0"
        )
        assert len(frame.collect()) == 15_000
        assert rows_read(frame) <= 30_000 + 30_000


@pytest.mark.parametrize("kind", ["BIGINT", "INT"])
@pytest.mark.parametrize("mode", ["spark", "worker"])
def test_the_value_of_a_subquery_prunes(
    spark: SparkSession, namespace: str, kind: str, mode: str
) -> None:
    """Spark compares an INT as a BIGINT; from 4.3 it hands the value to the scan."""
    table = f"{namespace}.fact"
    rows = f"SELECT CAST(id DIV {EACH} AS {kind}) AS k, id AS v FROM range({VALUES * EACH})"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (k) AS {rows}")
    spark.range(VALUES - 2).createOrReplaceTempView("of_all_but_two")
    with conf(spark, {**DEFAULTS, EXECUTION: mode}):
        frame = spark.sql(f"SELECT v FROM {table} WHERE k >= (SELECT count(*) FROM of_all_but_two)")
        assert {row.v for row in frame.collect()} == set(range((VALUES - 2) * EACH, VALUES * EACH))
        if SPARK >= (4, 3):
            assert rows_read(frame) == 2 * EACH
