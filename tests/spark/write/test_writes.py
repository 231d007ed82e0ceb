"""Writing through Spark: appended rows, one commit, nothing left of a write that fails."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import expr, partitioning
from tests.spark.assert_join import conf
from tests.spark.statement_results import counted_rows, sorted_rows

import pennon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def files_under(lake: Path) -> set[Path]:
    return {path for path in lake.rglob("*.lance") if path.is_file()}


def test_inserts_append(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t (id BIGINT, s STRING) PARTITIONED BY (bucket(4, id))")
    assert spark.table(f"{namespace}.t").count() == 0
    spark.sql(f"INSERT INTO {namespace}.t SELECT id, 'x' FROM RANGE(100)")
    spark.sql(f"INSERT INTO {namespace}.t (s, id) VALUES ('y', 7), ('z', NULL)")
    expected = spark.sql(
        "SELECT id, 'x' AS s FROM RANGE(100) UNION ALL SELECT 7, 'y' UNION ALL SELECT NULL, 'z'"
    )
    assert counted_rows(spark.table(f"{namespace}.t")) == counted_rows(expected)


def test_lines_of_another_encoding_are_refused(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    lines = tmp_path / "latin1.txt"
    lines.write_bytes("café\nplain\n".encode("latin-1"))
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (line STRING, day INT) PARTITIONED BY (day)")
    read = spark.read.text(str(lines)).selectExpr("value AS line", "1 AS day")
    with pytest.raises(PySparkException, match=f"TEXT_NOT_UTF8.*{name}.*line"):
        read.writeTo(name).append()
    read.withColumn("line", expr("make_valid_utf8(line)")).writeTo(name).append()
    with pytest.raises(PySparkException, match="TEXT_NOT_UTF8"):
        spark.sql(f"UPDATE {name} SET line = CAST(X'E9' AS STRING) WHERE line = 'plain'")
    assert sorted_rows(spark.table(name)) == [("caf\ufffd", 1), ("plain", 1)]


def test_dataframe_writer_creates_and_appends(spark: SparkSession, namespace: str) -> None:
    frame = spark.range(50).withColumn("day", expr("DATE '2024-01-01' + CAST(id AS INT)"))
    frame.writeTo(f"{namespace}.t").partitionedBy(partitioning.months("day")).create()
    frame.writeTo(f"{namespace}.t").append()
    assert counted_rows(spark.table(f"{namespace}.t")) == counted_rows(frame.union(frame))


def test_columns_that_a_write_leaves_out_are_as_spark_has_them(
    spark: SparkSession, namespace: str
) -> None:
    """Their DEFAULT, else NULL; a session can have a write without them refused."""
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, s STRING, n INT)")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n SET DEFAULT 5")
    spark.range(1).writeTo(name).append()
    spark.sql(f"INSERT INTO {name} (id) VALUES (1)")
    assert [tuple(row) for row in spark.table(name).orderBy("id").collect()] == [
        (0, None, 5),
        (1, None, 5),
    ]
    refused = pytest.raises(PySparkException, match="CANNOT_FIND_DATA")
    setting = {"spark.sql.defaultColumn.useNullsForMissingDefaultValues": "false"}
    with conf(spark, setting), refused:
        spark.range(1).writeTo(name).append()
    assert spark.table(name).count() == 2


def test_a_load_into_one_partition_is_divided_among_tasks(
    spark: SparkSession, namespace: str
) -> None:
    """At Spark's defaults: adaptive execution divides what is more than a task should write."""
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (k INT, id BIGINT, text STRING) PARTITIONED BY (k)")
    # Some 70 MB of text that no codec makes shorter, from eight tasks.
    rows = "SELECT 1, id, randstr(32000, 7) || id FROM range(0, 2200, 1, 8)"
    spark.sql(f"INSERT INTO {name} {rows}")
    [files] = spark.sql(f"SELECT file_count FROM {name}.partitions").collect()
    assert files[0] > 1
    counted = spark.sql(f"SELECT count(*), sum(id), count(DISTINCT text) FROM {name}").head()
    assert tuple(counted) == (2200, sum(range(2200)), 2200)


@pytest.mark.parametrize(
    "layout",
    ["k", "bucket(3, k)", "days(ts)", "truncate(1, s), years(ts)", "month(ts), bucket(2, s)"],
)
def test_one_insert_writes_each_partition_once(
    spark: SparkSession, namespace: str, layout: str
) -> None:
    source = spark.sql(
        "SELECT id % 5 AS k, CONCAT('ab', id % 3) AS s,"
        " TIMESTAMP '2020-02-28 12:00:00' + MAKE_INTERVAL(0, 0, 0, CAST(id % 4 AS INT)) AS ts"
        " FROM RANGE(0, 4000, 1, 4)"
    )
    source.createOrReplaceTempView("source")
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} PARTITIONED BY ({layout}) AS SELECT * FROM source")
    assert counted_rows(spark.table(name)) == counted_rows(source)
    # Spark groups by the transforms and sorts, so no partition is written by two tasks.
    root = location_of(spark, name)
    plan = pennon.open(root).scan().plan()
    assert plan.partitions
    for partition in plan.partitions:
        leaf = lance.dataset(f"{root}/{partition.location}", version=partition.version)
        assert len(leaf.get_fragments()) == 1


def location_of(spark: SparkSession, table: str) -> str:
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    [location] = [row.data_type for row in described if row.col_name == "Location"]
    return str(location)


def test_a_failed_insert_leaves_the_table_as_it_was(
    spark: SparkSession, namespace: str, lake: Path
) -> None:
    spark.sql(
        f"CREATE TABLE {namespace}.t PARTITIONED BY (bucket(4, id)) AS SELECT id FROM RANGE(10)"
    )
    before = files_under(lake)
    with pytest.raises(PySparkException, match="USER_RAISED_EXCEPTION"):
        spark.sql(
            f"INSERT INTO {namespace}.t"
            " SELECT IF(id = 99999, raise_error('no'), id) FROM RANGE(0, 100000, 1, 1)"
        )
    assert counted_rows(spark.table(f"{namespace}.t")) == counted_rows(spark.range(10))
    assert files_under(lake) == before


def test_a_value_that_cannot_be_cast_is_refused(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t (id INT)")
    with pytest.raises(PySparkException, match="CAST_OVERFLOW|CAST_INVALID_INPUT"):
        spark.sql(f"INSERT INTO {namespace}.t SELECT 3000000000")
    assert spark.table(f"{namespace}.t").count() == 0


def test_an_insert_of_no_rows_changes_nothing(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t (id BIGINT) PARTITIONED BY (id)")
    spark.sql(f"INSERT INTO {namespace}.t SELECT id FROM RANGE(5) WHERE id < 0")
    assert spark.table(f"{namespace}.t").count() == 0


def test_wide_rows_go_in_small_batches(spark: SparkSession, namespace: str) -> None:
    spark.sql(
        f"CREATE TABLE {namespace}.t AS SELECT id, repeat(CAST(id AS STRING), 500000) AS wide"
        " FROM RANGE(10, 100)"
    )
    found = spark.sql(f"SELECT sum(length(wide)), count(DISTINCT wide) FROM {namespace}.t").first()
    assert tuple(found) == (90 * 1000000, 90)


def test_concurrent_appends_all_arrive(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t (id BIGINT, w INT) PARTITIONED BY (bucket(3, id))")
    failures: list[PySparkException] = []

    def append(writer: int) -> None:
        try:
            spark.sql(f"INSERT INTO {namespace}.t SELECT id, {writer} FROM RANGE(30)")
        except PySparkException as failure:
            failures.append(failure)

    writers = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert failures == []
    counts = spark.sql(f"SELECT w, count(*), sum(id) FROM {namespace}.t GROUP BY w").collect()
    assert sorted(tuple(row) for row in counts) == [(n, 30, 435) for n in range(4)]


def test_hours_that_no_integer_counts_are_refused_with_their_time(
    spark: SparkSession, namespace: str
) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t (ts TIMESTAMP) PARTITIONED BY (hours(ts))")
    spark.sql(f"CREATE TABLE {namespace}.u (ts TIMESTAMP, d DATE) PARTITIONED BY (days(ts), d)")
    spark.sql(f"INSERT INTO {namespace}.u VALUES (TIMESTAMP '2000-01-01', DATE '2000-01-01')")
    years = "SELECT timestampadd(YEAR, {}, TIMESTAMP '2000-01-01 00:00:00')"
    for far in (248_000, -248_000):
        rows = years.format(far)
        with pytest.raises(PySparkException, match=r"\[HOURS_OUT_OF_RANGE\] .*[+-]2\d{5}-01-01T"):
            spark.sql(f"INSERT INTO {namespace}.t {rows}")
        spark.sql(f"INSERT INTO {namespace}.u {rows}, date_add(DATE '2000-01-01', {far * 365})")
    assert spark.table(f"{namespace}.t").count() == 0
    day = "date_add(DATE '2000-01-01', 90520000)"
    found = spark.sql(f"SELECT d FROM {namespace}.u WHERE d IN ({day}, DATE '2000-01-01')")
    assert found.count() == 2
