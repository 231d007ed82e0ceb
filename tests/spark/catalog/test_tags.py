"""Tags in SQL: statements in Iceberg's grammar, and reads by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tags_are_made_read_and_dropped(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} (id INT, region STRING) PARTITIONED BY (region)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'eu'), (2, NULL)")
    spark.sql(f"ALTER TABLE {table} CREATE TAG `before-load` RETAIN 365 DAYS")
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    spark.sql(f"INSERT INTO {table} VALUES (3, 'us')")
    tagged = spark.sql(f"SELECT id FROM {table} VERSION AS OF 'before-load' ORDER BY id")
    assert [row.id for row in tagged.collect()] == [1, 2]
    loaded = spark.read.option("versionAsOf", "before-load").format("pennon").load(table)
    assert loaded.count() == 2
    assert spark.read.option("versionAsOf", "before-load").table(table).count() == 2
    parts = spark.sql(f"SELECT * FROM {table}.partitions VERSION AS OF 'before-load'")
    assert parts.count() == 2
    newest = spark.sql(f"SELECT id FROM {table} VERSION AS OF 'main' ORDER BY id")
    assert [row.id for row in newest.collect()] == [2, 3]
    assert spark.read.option("versionAsOf", "main").table(table).count() == 2
    spark.sql(f"BEGIN ALTER TABLE {table} CREATE OR REPLACE TAG `before-load`; END")
    refs = spark.sql(f"SELECT name, type, snapshot_id FROM {table}.refs ORDER BY type").collect()
    assert [(row.name, row.type) for row in refs] == [("main", "BRANCH"), ("before-load", "TAG")]
    assert len({row.snapshot_id for row in refs}) == 1
    spark.sql(f"ALTER TABLE {table} DROP /* it */ TAG `before-load`")
    with pytest.raises(PySparkException, match="it has no tags"):
        spark.sql(f"SELECT * FROM {table} VERSION AS OF 'before-load'")
    with pytest.raises(PySparkException, match="BRANCHES_NOT_SUPPORTED"):
        spark.sql(f"ALTER TABLE {table} CREATE BRANCH b")
