"""CACHE TABLE and DataFrame.cache: used while the table is the same, and never longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_from_cache(frame: DataFrame) -> bool:
    return "InMemoryRelation" in frame._jdf.queryExecution().withCachedData().toString()


def test_a_cached_table_is_used_and_written_rows_are_in_it(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (bucket(2, id)) AS SELECT id FROM range(10)")
    spark.sql(f"CACHE TABLE {table}")
    again = spark.sql(f"SELECT sum(id) FROM {table}")
    assert is_from_cache(again)
    assert again.collect()[0][0] == 45
    spark.sql(f"INSERT INTO {table} VALUES (100)")
    assert spark.sql(f"SELECT sum(id) FROM {table}").collect()[0][0] == 145
    spark.sql(f"UNCACHE TABLE {table}")
    assert not is_from_cache(spark.sql(f"SELECT sum(id) FROM {table}"))


def test_a_cached_table_that_is_rolled_back_has_the_rows_of_then(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (id) AS SELECT id FROM range(3)")
    spark.sql(f"CACHE TABLE {table}")
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    assert spark.table(table).count() == 2
    spark.sql(f"CALL lance.system.rollback('{table}', 3)")
    again = spark.sql(f"SELECT sum(id) FROM {table}")
    assert is_from_cache(again)
    assert again.collect()[0][0] == 3
    spark.sql(f"UNCACHE TABLE {table}")


def test_a_cached_table_is_read_after_its_older_versions_have_gone(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    spark.sql(f"CACHE TABLE {table}")
    spark.sql(f"INSERT INTO {table} VALUES (3)")
    spark.sql(f"CALL lance.system.compact('{table}')")
    soon = "older_than => TIMESTAMP '2999-01-01'"
    spark.sql(f"CALL lance.system.expire_snapshots(table => '{table}', {soon}, retain_last => 1)")
    assert sorted(row.id for row in spark.table(table).collect()) == [0, 1, 2, 3]
    spark.sql(f"UNCACHE TABLE {table}")


def test_a_table_made_anew_has_none_of_the_rows_that_were_cached(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} AS SELECT id FROM range(10)")
    spark.sql(f"CACHE TABLE {table}")
    spark.sql(f"DROP TABLE {table}")
    spark.sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    assert spark.table(table).count() == 3
