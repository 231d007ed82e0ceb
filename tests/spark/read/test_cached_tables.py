"""CACHE TABLE and DataFrame.cache: used while the table is the same, and never longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_from_cache(frame: DataFrame) -> bool:
    return "InMemoryRelation" in frame._jdf.queryExecution().withCachedData().toString()


def path_of(spark: SparkSession, table: str) -> str:
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    [path] = (row.data_type for row in described if row.col_name == "Location")
    return f"lance.`{path}`"


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


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO {other} VALUES (100)", 11),
        ("DELETE FROM {other} WHERE id = 3", 9),
        ("DELETE FROM {other} WHERE id % 4 = 3", 8),
        ("UPDATE {other} SET id = id + 20 WHERE id = 3", 10),
        ("INSERT OVERWRITE {other} VALUES (7)", 1),
        ("TRUNCATE TABLE {other}", 0),
    ],
)
@pytest.mark.parametrize("is_written_by_path", [True, False])
def test_a_cached_table_has_what_is_written_under_another_of_its_names(
    spark: SparkSession, namespace: str, statement: str, rows: int, *, is_written_by_path: bool
) -> None:
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} PARTITIONED BY (id) AS SELECT id FROM range(10)")
    names = (name, path_of(spark, name))
    cached, other = names if is_written_by_path else reversed(names)
    spark.sql(f"CACHE TABLE kept AS SELECT id FROM {cached} WHERE id < 1000")
    spark.sql(f"CACHE TABLE {cached}")
    spark.sql(statement.format(other=other))
    expected = sorted(spark.table(other).collect())
    assert len(expected) == rows
    for kept in (cached, "kept"):
        again = spark.table(kept)
        assert is_from_cache(again)
        assert sorted(again.collect()) == expected
    spark.catalog.dropTempView("kept")
    spark.sql(f"UNCACHE TABLE {cached}")


def test_a_cached_table_has_what_dataframes_write_to_its_path(
    spark: SparkSession, namespace: str
) -> None:
    table, gone = f"{namespace}.t", f"{namespace}.gone"
    spark.sql(f"CREATE TABLE {gone} PARTITIONED BY (id) AS SELECT id FROM range(10)")
    assert spark.table(gone).count() == 10
    spark.sql(f"ALTER TABLE {gone} RENAME TO {table.removeprefix('lance.')}")
    path = path_of(spark, table)
    spark.sql(f"CACHE TABLE {table}")
    spark.range(10, 12).writeTo(path).append()
    assert spark.table(table).count() == 12
    spark.range(12, 15).write.format("pennon").mode("append").save(path.split("`")[1])
    assert is_from_cache(spark.table(table))
    assert spark.table(table).count() == 15
    spark.sql(f"UNCACHE TABLE {table}")


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
