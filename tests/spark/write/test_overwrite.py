"""Overwriting, truncating and deleting whole partitions, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.functions import col, expr, lit, upper
from tests.spark.assert_join import conf
from tests.spark.statement_results import sorted_rows

import pennon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} PARTITIONED BY (dep, bucket(2, id)) AS"
        " SELECT * FROM VALUES (1L, 'a'), (2L, 'a'), (3L, 'b'), (4L, NULL), (5L, 'c') AS t(id, dep)"
    )
    return name


@pytest.fixture
def dynamic(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(DYNAMIC, "dynamic")
    yield
    spark.conf.unset(DYNAMIC)


def rows(spark: SparkSession, dep: str | None, *ids: int) -> DataFrame:
    return spark.createDataFrame([(id_, dep) for id_ in ids], "id BIGINT, dep STRING")


def version_of(spark: SparkSession, table: str) -> int:
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    [location] = [row.data_type for row in described if row.col_name == "Location"]
    return pennon.open(location).snapshot.version


def test_insert_overwrite_replaces_the_table(spark: SparkSession, table: str) -> None:
    before = version_of(spark, table)
    spark.sql(f"INSERT OVERWRITE {table} SELECT id + 10, dep FROM {table} WHERE id < 4")
    assert sorted_rows(spark.table(table)) == [(11, "a"), (12, "a"), (13, "b")]
    assert version_of(spark, table) == before + 1
    assert spark.sql(f"SELECT * FROM {table} VERSION AS OF {before}").count() == 5
    spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM {table} WHERE id < 0")
    assert sorted_rows(spark.table(table)) == []


def test_insert_overwrite_of_a_partition_replaces_it_alone(spark: SparkSession, table: str) -> None:
    spark.sql(f"INSERT OVERWRITE {table} PARTITION (dep = 'a') SELECT 9")
    spark.sql(f"INSERT OVERWRITE {table} PARTITION (dep = NULL) VALUES (8)")
    spark.sql(f"INSERT INTO {table} REPLACE WHERE dep IN ('b', 'c') SELECT 7, 'b'")
    assert sorted_rows(spark.table(table)) == [(7, "b"), (8, None), (9, "a")]


def test_names_in_conditions_are_as_the_session_has_them(
    spark: SparkSession, namespace: str, table: str
) -> None:
    spark.sql(f"INSERT INTO {table} REPLACE WHERE DEP = 'b' SELECT 7, 'b'")
    rows(spark, "c", 8).writeTo(table).overwrite(col("Dep") == "c")
    assert sorted_rows(spark.table(table)) == [(1, "a"), (2, "a"), (4, None), (7, "b"), (8, "c")]
    nested = f"{namespace}.nested"
    spark.sql(f"CREATE TABLE {nested} (Id INT, St STRUCT<Ab: INT>) PARTITIONED BY (st.ab)")
    spark.sql(f"INSERT INTO {nested} VALUES (1, named_struct('ab', 1)), (2, named_struct('ab', 2))")
    spark.sql(f"INSERT INTO {nested} REPLACE WHERE ST.AB = 2 SELECT 9, named_struct('ab', 2)")
    assert [row.Id for row in spark.table(nested).orderBy("id").collect()] == [1, 9]


def test_dataframe_overwrites_by_a_condition(spark: SparkSession, table: str) -> None:
    rows(spark, "b", 7).writeTo(table).overwrite(col("dep").isin("b", "c"))
    assert sorted_rows(spark.table(table)) == [(1, "a"), (2, "a"), (4, None), (7, "b")]
    with pytest.raises(
        AnalysisException, match=r"NOT_WHOLE_PARTITIONS.*lance\.ns\d+\.t.*by dep, id"
    ):
        rows(spark, "b", 7).writeTo(table).overwrite(col("id") < 3)
    with pytest.raises(AnalysisException, match="cannot translate"):
        rows(spark, "b", 7).writeTo(table).overwrite(col("dep").rlike("^b"))
    with pytest.raises(AnalysisException, match=r"CONDITION_NOT_SUPPORTED.*UPPER\(dep\)"):
        rows(spark, "b", 7).writeTo(table).overwrite(upper(col("dep")) == "B")
    assert sorted_rows(spark.table(table)) == [(1, "a"), (2, "a"), (4, None), (7, "b")]
    rows(spark, "z", 1).writeTo(table).overwrite(lit(True))
    assert sorted_rows(spark.table(table)) == [(1, "z")]


@pytest.mark.parametrize(
    "condition", ["_spec_version = 1", "dep = 'a' AND _Leaf LIKE 'x%'", "_partition.dep = 'b'"]
)
def test_an_overwrite_is_not_by_a_metadata_column(
    spark: SparkSession, table: str, condition: str
) -> None:
    """It was an internal error of Spark's."""
    refused = r"OVERWRITE_BY_METADATA.*lance\.ns\d+\.t where .*rewrite_partitions"
    with pytest.raises(AnalysisException, match=refused):
        spark.sql(f"INSERT INTO {table} REPLACE WHERE {condition} SELECT 7, 'b'")
    with pytest.raises(AnalysisException, match=refused):
        rows(spark, "b", 7).writeTo(table).overwrite(expr(condition))
    assert spark.table(table).count() == 5


@pytest.mark.parametrize(
    "condition",
    [
        "year(d) = 2024",
        "NOT (extract(YEAR FROM d) IN (2025)) OR s.place IS NULL",
        "s.place <=> 'a' AND d < DATE '2025-01-01'",
        "s.place LIKE 'b%' OR s.place <> 'a'",
        "n IN (7, NULL)",
        "CAST(n AS STRING) = '7'",
        "coalesce(s.place, 'b') = 'b' AND n % 2 = 1",
        "s.place LIKE '%b%' OR CASE WHEN n IS NULL THEN true ELSE false END",
        "greatest(n, 3) = 3 OR if(n > 100, true, false)",
    ],
)
def test_a_condition_overwrites_the_rows_that_spark_finds(
    spark: SparkSession, namespace: str, condition: str
) -> None:
    """Spark hands it over in another form than it gives to scans."""
    name = f"{namespace}.c"
    spark.sql(
        f"CREATE TABLE {name} PARTITIONED BY (d, s.place, n) AS SELECT id, DATE(d) AS d,"
        " named_struct('place', place) AS s, n FROM VALUES (1, '2024-01-05', 'a', 2),"
        " (2, '2024-03-01', 'b', 7), (3, '2025-02-01', NULL, 7), (4, '2025-03-01', 'a', NULL)"
        " AS t(id, d, place, n)"
    )
    kept = spark.table(name).where(f"NOT coalesce({condition}, FALSE)").select("id").collect()
    assert 0 < len(kept) < 4
    spark.table(name).where("id > 4").writeTo(name).overwrite(expr(condition))
    assert sorted(spark.table(name).select("id").collect()) == sorted(kept)


def _written(spark: SparkSession, name: str, condition: str) -> bool:
    """Whether REPLACE WHERE takes a condition; of what it refuses, the table keeps all."""
    before = sorted_rows(spark.table(name))
    statement = f"INSERT INTO {name} REPLACE WHERE {condition} SELECT * FROM {name}"
    refusal = None
    try:
        spark.sql(f"{statement} WHERE {condition}")
    except AnalysisException as refused:
        refusal = str(refused)
    assert sorted_rows(spark.table(name)) == before, condition
    kinds = "CONDITION_NOT_SUPPORTED|NOT_WHOLE_PARTITIONS|cannot translate"
    assert refusal is None or re.search(kinds, refusal), condition
    return refusal is None


def test_what_replace_where_takes_is_what_the_page_on_sql_lists(
    spark: SparkSession, namespace: str
) -> None:
    name = f"{namespace}.listed"
    spark.sql(f"CREATE TABLE {name} (k INT, dep STRING, at TIMESTAMP)")
    for field in ("k", "dep", "months(at)"):
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {field}")
    spark.sql(
        f"INSERT INTO {name} VALUES (1, 'eu', TIMESTAMP '2024-03-05 10:00:00'),"
        " (2, 'us', TIMESTAMP '2024-04-05 10:00:00')"
    )
    of_time = ["year(at) = 2024 AND month(at) = 3", "to_date(at) < DATE '2024-04-01'"]
    taken = ["dep LIKE 'e%'", "endswith(dep, 's')", "nvl(dep, 'x') = 'eu'", *of_time]
    refused = [
        *("lower(dep) = 'eu'", "concat(dep, 'x') = 'eux'", "substr(dep, 1, 1) = 'e'"),
        *("dep LIKE 'e_'", "dep RLIKE 'e'", "length(dep) = 2", "trim(dep) = 'eu'"),
        *("k + 1 = 2", "k * 2 = 2", "abs(k) = 1", "year(at) * 100 + month(at) = 202403"),
        "date_trunc('month', at) = TIMESTAMP '2024-03-01'",
        "date_format(at, 'yyyy-MM') = '2024-03'",
    ]
    assert [condition for condition in taken if not _written(spark, name, condition)] == []
    assert [condition for condition in refused if _written(spark, name, condition)] == []
    with conf(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        assert [condition for condition in of_time if _written(spark, name, condition)] == []


def test_dynamic_overwrite_replaces_what_the_rows_fall_into(
    spark: SparkSession, table: str, dynamic: None
) -> None:
    spark.sql(f"INSERT OVERWRITE {table} VALUES (3, 'b'), (30, 'b'), (4, 'new')")
    found = sorted_rows(spark.table(table))
    assert {(3, "b"), (30, "b"), (4, "new"), (1, "a"), (2, "a"), (4, None), (5, "c")} == set(found)
    rows(spark, None, 4, 4).writeTo(table).overwritePartitions()
    assert sorted_rows(spark.table(table).where("dep IS NULL")) == [(4, None), (4, None)]
    rows(spark, "x").writeTo(table).overwritePartitions()
    assert spark.table(table).count() == 8


def test_dynamic_overwrite_after_the_spec_changed(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD bucket(2, id)")
    rows(spark, "a", 6).writeTo(table).overwritePartitions()
    assert sorted_rows(spark.table(table)) == [(3, "b"), (4, None), (5, "c"), (6, "a")]
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD truncate(10, id)")
    with pytest.raises(PySparkException, match="OVERLAPS_OLDER_PARTITION"):
        rows(spark, "b", 7).writeTo(table).overwritePartitions()
    rows(spark, "d", 7).writeTo(table).overwritePartitions()
    assert sorted_rows(spark.table(table)) == [(3, "b"), (4, None), (5, "c"), (6, "a"), (7, "d")]


def test_delete_and_truncate(spark: SparkSession, table: str) -> None:
    spark.sql(f"DELETE FROM {table} WHERE dep = 'a' OR dep IS NULL")
    assert sorted_rows(spark.table(table)) == [(3, "b"), (5, "c")]
    spark.sql(f"DELETE FROM {table} WHERE dep = 'nothing'")
    spark.sql(f"TRUNCATE TABLE {table}")
    assert sorted_rows(spark.table(table)) == []
    spark.sql(f"INSERT INTO {table} VALUES (3, 'b')")
    assert sorted_rows(spark.table(table)) == [(3, "b")]


def test_delete_by_a_time_range_takes_whole_months(spark: SparkSession, namespace: str) -> None:
    name = f"{namespace}.m"
    spark.sql(
        f"CREATE TABLE {name} PARTITIONED BY (months(ts)) AS SELECT id,"
        " TIMESTAMP '2024-01-15 00:00:00' + MAKE_INTERVAL(0, CAST(id AS INT)) AS ts FROM RANGE(6)"
    )
    spark.sql(f"DELETE FROM {name} WHERE ts < TIMESTAMP '2024-04-01 00:00:00'")
    assert [row[0] for row in sorted_rows(spark.table(name))] == [3, 4, 5]


def test_plain_datasets_are_overwritten_as_a_whole(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "plain.lance")
    lance.write_dataset(pa.table({"id": [1, 2]}), path)
    spark.sql(f"INSERT OVERWRITE lance.`{path}` SELECT 7")
    assert sorted_rows(spark.table(f"lance.`{path}`")) == [(7,)]
    assert lance.dataset(path).to_table().to_pylist() == [{"id": 7}]
    spark.sql(f"TRUNCATE TABLE lance.`{path}`")
    assert lance.dataset(path).count_rows() == 0
