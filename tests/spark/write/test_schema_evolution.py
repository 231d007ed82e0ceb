"""MERGE and INSERT WITH SCHEMA EVOLUTION: the table follows its source, as far as it is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from tests.spark.spark_release import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MERGE = (
    "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING ({source}) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, dep STRING, n INT, at STRUCT<x: INT>)"
        " PARTITIONED BY (dep, bucket(2, id))"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (1, 'a', 1, struct(1)), (2, NULL, 2, struct(2)),"
        " (3, 'c', NULL, NULL)"
    )
    return name


def types_of(spark: SparkSession, table: str) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in spark.table(table).schema}


def test_a_merge_adds_columns_and_widens_types(spark: SparkSession, table: str) -> None:
    source = (
        "SELECT id, CAST(dep AS STRING) AS dep, n, named_struct('x', 7, 'y', 'new') AS at,"
        " 1.5 AS price"
        " FROM VALUES (2L, NULL, 5000000000L), (9L, NULL, NULL) AS v(id, dep, n)"
    )
    spark.sql(MERGE.format(t=table, source=source))
    assert types_of(spark, table) == {
        "id": "bigint",
        "dep": "string",
        "n": "bigint",
        "at": "struct<x:int,y:string>",
        "price": "decimal(2,1)",
    }
    found = spark.sql(f"SELECT id, dep, n, at.x, at.y, CAST(price AS STRING) FROM {table}")
    assert sorted(map(tuple, found.collect())) == [
        (1, "a", 1, 1, None, None),
        (2, None, 5000000000, 7, "new", "1.5"),
        (3, "c", None, None, None, None),
        (9, None, None, 7, "new", "1.5"),
    ]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_merge_widens_a_partition_column_and_what_is_in_lists(
    spark: SparkSession, namespace: str, mode: str
) -> None:
    """Rows move to partitions of values that the narrower type does not have."""
    table = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {table} (id INT, n INT, l ARRAY<STRUCT<a: INT>>)"
        f" PARTITIONED BY (n, bucket(2, id)) TBLPROPERTIES ('write.merge.mode' = '{mode}')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 1, array(struct(1))), (2, 2, NULL), (3, NULL, NULL)")
    source = (
        "SELECT id, n, array(named_struct('a', 7, 'b', 'new')) AS l"
        " FROM VALUES (1L, 5000000000L), (3L, 3L), (6000000000L, NULL) AS v(id, n)"
    )
    spark.sql(MERGE.format(t=table, source=source))
    assert types_of(spark, table) == {
        "id": "bigint",
        "n": "bigint",
        "l": "array<struct<a:int,b:string>>",
    }
    found = spark.sql(f"SELECT id, n, l[0].a, l[0].b FROM {table}").collect()
    assert sorted(map(tuple, found)) == [
        (1, 5000000000, 7, "new"),
        (2, 2, None, None),
        (3, 3, 7, "new"),
        (6000000000, None, 7, "new"),
    ]
    for condition, ids in (
        ("n = 5000000000", [1]),
        ("n < 3", [2]),
        ("id > 5000000000", [6 * 10**9]),
    ):
        chosen = spark.sql(f"SELECT id FROM {table} WHERE {condition}").collect()
        assert [row.id for row in chosen] == ids


@pytest.mark.skipif(SPARK < (4, 2), reason="earlier Sparks ask for the narrower type")
def test_a_narrower_source_leaves_the_wider_column_as_it_is(
    spark: SparkSession, table: str
) -> None:
    source = "SELECT 2 AS id, 'b' AS dep, CAST(3 AS TINYINT) AS n, struct(4 AS x) AS at, 'k' AS k"
    spark.sql(MERGE.format(t=table, source=source))
    types = types_of(spark, table)
    assert (types["id"], types["n"], types["k"]) == ("bigint", "int", "string")
    found = spark.sql(f"SELECT dep, n, k FROM {table} WHERE id = 2").collect()
    assert [tuple(row) for row in found] == [("b", 3, "k")]


@pytest.mark.skipif(SPARK >= (4, 2), reason="Spark asks before")
def test_a_narrower_source_is_refused_where_spark_does_not_ask(
    spark: SparkSession, table: str
) -> None:
    source = "SELECT 2 AS id, 'b' AS dep, 3 AS n, struct(4 AS x) AS at"
    with pytest.raises(PySparkException):
        spark.sql(MERGE.format(t=table, source=source))
    assert types_of(spark, table)["id"] == "bigint"
    assert spark.table(table).count() == 3


def test_a_merge_without_the_words_changes_no_column(spark: SparkSession, table: str) -> None:
    source = "SELECT id, dep, 7 AS n, at, 'new' AS k FROM {t} WHERE id < 3"
    spark.sql(
        MERGE.replace("WITH SCHEMA EVOLUTION ", "").format(t=table, source=source.format(t=table))
    )
    assert "k" not in types_of(spark, table)
    assert [row.n for row in spark.sql(f"SELECT n FROM {table} WHERE id < 3").collect()] == [7, 7]


@pytest.mark.skipif(SPARK < (4, 2), reason="INSERT WITH SCHEMA EVOLUTION is newer")
def test_an_insert_adds_columns(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME"
        " SELECT 4 AS id, 9999999999 AS n, CAST(NULL AS STRING) AS dep, 'x' AS k"
    )
    types = types_of(spark, table)
    assert (types["id"], types["n"], types["k"]) == ("bigint", "bigint", "string")
    found = spark.sql(f"SELECT id, n, k, at FROM {table} WHERE dep IS NULL ORDER BY id").collect()
    assert [(row.id, row.n, row.k) for row in found] == [(2, 2, None), (4, 9999999999, "x")]
