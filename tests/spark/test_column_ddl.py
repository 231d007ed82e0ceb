"""ALTER TABLE on columns by SQL, with rows that were written before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows(spark: SparkSession, query: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.sql(query).collect()), key=repr)


def failure_of(spark: SparkSession, statement: str) -> str:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(statement)
    return str(caught.value)


def test_columns_change_under_rows_that_are_there(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.changing"
    spark.sql(
        f"CREATE TABLE {table} (id INT NOT NULL, v INT, p STRUCT<x: INT, y: INT>) "
        "PARTITIONED BY (id)"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 10, named_struct('x', 1, 'y', 2)), (2, 20, NULL)")
    for change in (
        "ADD COLUMNS (n DOUBLE COMMENT 'new' AFTER id)",
        "ALTER COLUMN id TYPE BIGINT",
        "DROP COLUMN v",
        "ADD COLUMN v STRING",
        "RENAME COLUMN p.x TO z",
        "DROP COLUMN p.y",
        "ALTER COLUMN id DROP NOT NULL",
        "ALTER COLUMN v SET DEFAULT 'd'",
    ):
        spark.sql(f"ALTER TABLE {table} {change}")
    assert rows(spark, f"SELECT id, n, p.z, v FROM {table}") == [
        (1, None, 1, None),
        (2, None, None, None),
    ]
    spark.sql(f"INSERT INTO {table} (id, n) VALUES (1, 0.5), (5000000000, 1.5)")
    assert rows(spark, f"SELECT id, n, v FROM {table} WHERE id = 1") == [
        (1, 0.5, "d"),
        (1, None, None),
    ]
    assert rows(spark, f"SELECT a.id FROM {table} a JOIN {table} b ON a.id = b.id") == [
        *[(1,)] * 4,
        (2,),
        (5000000000,),
    ]


def test_columns_are_not_changed_where_rows_would_be_wrong(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.kept"
    spark.sql(f"CREATE TABLE {table} (id INT, k STRING) PARTITIONED BY (k)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a')")
    assert "Add it without DEFAULT" in failure_of(
        spark, f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5"
    )
    failure_of(spark, f"ALTER TABLE {table} ALTER COLUMN id SET NOT NULL")
    failure_of(spark, f"ALTER TABLE {table} ALTER COLUMN id TYPE SMALLINT")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN k")
    assert rows(spark, f"SELECT * FROM {table}") == [(1,)]
    message = failure_of(spark, f"INSERT INTO {table} VALUES (2)")
    assert "[PARTITION_SOURCE_DROPPED]" in message
    assert "DROP PARTITION FIELD k" in message
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD k")
    spark.sql(f"INSERT INTO {table} VALUES (2)")
    assert rows(spark, f"SELECT * FROM {table}") == [(1,), (2,)]
