"""CREATE and REPLACE TABLE AS SELECT: the table is there with all its rows, or as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.functions import expr, partitioning, udf
from tests.spark.statement_results import sorted_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FAILING = "SELECT IF(id = 9999, raise_error('no'), id) AS id FROM RANGE(0, 10000, 1, 1)"


def folders(lake: Path) -> set[str]:
    return {path.name for path in lake.iterdir()}


def test_a_failed_creation_leaves_no_table_and_no_file(
    spark: SparkSession, namespace: str, lake: Path
) -> None:
    before = folders(lake)
    for statement in (
        f"CREATE TABLE {namespace}.t PARTITIONED BY (bucket(4, id)) AS {FAILING}",
        f"CREATE OR REPLACE TABLE {namespace}.t AS {FAILING}",
    ):
        with pytest.raises(PySparkException, match="USER_RAISED_EXCEPTION"):
            spark.sql(statement)
    assert spark.sql(f"SHOW TABLES IN {namespace}").collect() == []
    assert folders(lake) == before
    with pytest.raises(AnalysisException, match="TABLE_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"REPLACE TABLE {namespace}.t AS SELECT 1 AS id")


def test_a_failed_replacement_leaves_the_old_table(
    spark: SparkSession, namespace: str, lake: Path
) -> None:
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} PARTITIONED BY (id) AS SELECT id FROM RANGE(3)")
    before = folders(lake)
    for verb in ("REPLACE", "CREATE OR REPLACE"):
        with pytest.raises(PySparkException, match="USER_RAISED_EXCEPTION"):
            spark.sql(f"{verb} TABLE {name} AS {FAILING}")
    assert folders(lake) == before
    assert sorted_rows(spark.table(name)) == [(0,), (1,), (2,)]


def test_a_table_is_replaced_by_a_query_on_itself(spark: SparkSession, namespace: str) -> None:
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} PARTITIONED BY (id) AS SELECT id FROM RANGE(3)")
    spark.sql(
        f"CREATE OR REPLACE TABLE {name} PARTITIONED BY (bucket(2, k)) COMMENT 'new'"
        f" AS SELECT id + 1 AS k, 'x' AS s FROM {name}"
    )
    assert sorted_rows(spark.table(name)) == [(1, "x"), (2, "x"), (3, "x")]
    described = {
        row.col_name: row.data_type for row in spark.sql(f"DESC EXTENDED {name}").collect()
    }
    assert (described["Part 0"], described["Comment"]) == ("bucket(2, k)", "new")
    spark.sql(f"REPLACE TABLE {name} (other INT)")
    assert (spark.table(name).columns, spark.table(name).count()) == (["other"], 0)


def test_dataframe_writer_creates_and_replaces(spark: SparkSession, namespace: str) -> None:
    name = f"{namespace}.t"
    first = spark.range(5).withColumn("day", expr("DATE '2024-01-31' + CAST(id AS INT)"))
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        first.writeTo(name).replace()
    first.writeTo(name).partitionedBy(partitioning.months("day")).create()
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        first.writeTo(name).create()
    second = spark.range(3)
    second.writeTo(name).createOrReplace()
    assert sorted_rows(spark.table(name)) == sorted_rows(second)
    first.writeTo(name).tableProperty("a", "b").replace()
    assert sorted_rows(spark.table(name)) == sorted_rows(first)
    assert ("a", "b") in sorted_rows(spark.sql(f"SHOW TBLPROPERTIES {name}"))
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT 'never' AS id")
    assert sorted_rows(spark.table(name)) == sorted_rows(first)


def test_a_path_is_created_by_a_query(spark: SparkSession, lake: Path) -> None:
    path = f"lance.`{lake}/by_path`"
    with pytest.raises(PySparkException, match="USER_RAISED_EXCEPTION"):
        spark.sql(f"CREATE TABLE {path} AS {FAILING}")
    place = lake / "by_path"
    is_there = udf(lambda _: place.exists(), "boolean").asNondeterministic()
    rows = spark.range(3).withColumn("there", is_there("id"))
    rows.writeTo(path).partitionedBy("id").create()
    assert sorted_rows(spark.table(path)) == [(0, False), (1, False), (2, False)]
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        rows.writeTo(path).create()
    spark.sql(f"DELETE FROM {path} WHERE id = 1")
    assert spark.table(path).count() == 2
    spark.sql(f"DROP TABLE {path}")
    assert not place.exists()


def test_rows_without_a_column_are_refused_and_not_lost(
    spark: SparkSession, namespace: str
) -> None:
    nothing = spark.range(3).select()
    with pytest.raises(PySparkException, match="TABLE_WITHOUT_COLUMNS"):
        nothing.writeTo(f"{namespace}.t").create()
    assert spark.sql(f"SHOW TABLES IN {namespace}").collect() == []
    spark.sql(f"CREATE TABLE {namespace}.t")
    with pytest.raises(PySparkException, match="TABLE_WITHOUT_COLUMNS"):
        nothing.writeTo(f"{namespace}.t").append()
    spark.sql(f"ALTER TABLE {namespace}.t ADD COLUMNS (a INT)")
    nothing.writeTo(f"{namespace}.t").append()
    assert sorted_rows(spark.table(f"{namespace}.t")) == [(None,)] * 3
