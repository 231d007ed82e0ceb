"""Streams written into tables: a commit per batch, made once however often the batch is sent."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from tests.spark.statement_results import location_of

import pennon
from pennon.errors import TextTooLong

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter


def arrive(spark: SparkSession, folder: Path, first: int) -> None:
    rows = spark.range(first, first + 40).selectExpr("id", "id % 3 AS k")
    rows.coalesce(1).write.mode("append").parquet(str(folder))


def streamed(spark: SparkSession, folder: Path) -> DataFrame:
    source = spark.readStream.schema("id BIGINT, k BIGINT").option("maxFilesPerTrigger", 1)
    return source.parquet(str(folder))


def write(rows: DataFrame, table: str, checkpoint: Path, mode: str = "append") -> None:
    query = once(rows, checkpoint).outputMode(mode).toTable(table)
    assert query.awaitTermination(240)


def once(rows: DataFrame, checkpoint: Path) -> DataStreamWriter:
    writer = rows.writeStream.option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True)


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row.id for row in spark.table(table).select("id").collect())


def test_a_batch_that_is_sent_again_after_a_restart_is_there_once(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    table, folder, checkpoint = f"{namespace}.t", tmp_path / "arriving", tmp_path / "checkpoint"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, k BIGINT) PARTITIONED BY (k)")
    for batch in range(3):
        arrive(spark, folder, batch * 40)
        write(streamed(spark, folder), table, checkpoint)
        if batch == 0:
            spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
            spark.sql(f"INSERT INTO {table} VALUES (-1, NULL)")
    expected = [-1, *range(120)]
    assert ids(spark, table) == expected
    # The stream ends behind the commit of its last batch, before its own note of it.
    (checkpoint / "commits" / "2").unlink()
    (checkpoint / "commits" / ".2.crc").unlink(missing_ok=True)
    spark.sql(f"INSERT INTO {table} VALUES (120, 1)")
    write(streamed(spark, folder), table, checkpoint)
    assert ids(spark, table) == [*expected, 120]
    arrive(spark, folder, 200)
    arrive(spark, folder, 240)
    write(streamed(spark, folder), table, checkpoint)
    assert ids(spark, table) == [*expected, 120, *range(200, 280)]
    epochs = spark.sql(f"SELECT summary['epoch'] AS e FROM {table}.snapshots ORDER BY snapshot_id")
    assert [row.e for row in epochs.collect() if row.e is not None] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("by_path", [False, True])
def test_a_stream_is_started_by_name_or_path_whatever_the_transforms(
    spark: SparkSession, namespace: str, tmp_path: Path, *, by_path: bool
) -> None:
    """Spark has no catalog there, and so none of the functions that rows are distributed by."""
    table, folder, checkpoint = f"{namespace}.t", tmp_path / "arriving", tmp_path / "checkpoint"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, k BIGINT, day DATE, s STRING) "
        "PARTITIONED BY (days(day), bucket(4, id), truncate(1, s), k)"
    )
    arrive(spark, folder, 0)
    rows = streamed(spark, folder).selectExpr(
        "id", "DATE '2024-02-28' + CAST(id % 3 AS INT) AS day", "CONCAT(CHAR(97 + id % 2), id) AS s"
    )
    target = location_of(spark, table) if by_path else table
    query = once(rows, checkpoint).format("pennon").start(target)
    assert query.awaitTermination(240)
    assert ids(spark, table) == list(range(40))
    kept = spark.table(table).where("day = DATE '2024-02-29' AND s LIKE 'a%' AND k IS NULL")
    assert kept.count() == sum(n % 3 == 1 and n % 2 == 0 for n in range(40))


def test_a_stream_without_a_column_of_the_partitioning_writes_null(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    table, folder = f"{namespace}.t", tmp_path / "arriving"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, k BIGINT) PARTITIONED BY (k, bucket(2, id))")
    spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY k, id DESC")
    arrive(spark, folder, 0)
    write(streamed(spark, folder).select("id"), table, tmp_path / "checkpoint")
    assert ids(spark, table) == list(range(40))
    assert spark.table(table).where("k IS NULL").count() == 40


def test_complete_results_replace_those_of_the_batch_before(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    table, folder = f"{namespace}.sums", tmp_path / "arriving"
    spark.sql(f"CREATE TABLE {table} (k BIGINT, n BIGINT) PARTITIONED BY (k)")
    for batch in range(2):
        arrive(spark, folder, batch * 40)
        counted = streamed(spark, folder).groupBy("k").count().withColumnRenamed("count", "n")
        write(counted, table, tmp_path / "checkpoint", "complete")
    found = {row.k: row.n for row in spark.table(table).collect()}
    assert found == {0: 27, 1: 27, 2: 26}


def test_a_batch_that_fails_leaves_no_row_and_is_taken_up_again(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    table, folder, checkpoint = f"{namespace}.t", tmp_path / "arriving", tmp_path / "checkpoint"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, k BIGINT) PARTITIONED BY (k)")
    arrive(spark, folder, 0)
    failing = streamed(spark, folder).selectExpr("IF(id = 39, raise_error('no'), id) AS id", "k")
    with pytest.raises(StreamingQueryException):
        write(failing, table, checkpoint)
    assert ids(spark, table) == []
    write(streamed(spark, folder), table, checkpoint)
    assert ids(spark, table) == list(range(40))


def test_a_stream_is_refused_where_a_repeated_batch_could_not_be_told(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    folder, table = tmp_path / "arriving", f"{namespace}.weak"
    arrive(spark, folder, 0)
    weak = "TBLPROPERTIES ('transaction' = 'weak')"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, k BIGINT) PARTITIONED BY (k) {weak}")
    with pytest.raises(StreamingQueryException, match="STREAM_NOT_REPEATABLE"):
        write(streamed(spark, folder), table, tmp_path / "checkpoint")
    assert ids(spark, table) == []
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "option",
    ["branch", "replaceWhere", "overwrite-mode", "txnAppId", "write-format", "snapshot-property.x"],
)
def test_options_by_which_other_formats_choose_rows_or_files_are_refused(
    spark: SparkSession, namespace: str, option: str
) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} AS SELECT id FROM range(3)")
    writer = spark.range(9, 10).write.option(option, "id = 1")
    with pytest.raises(PySparkException, match="WRITE_OPTION_NOT_SUPPORTED"):
        writer.mode("overwrite").insertInto(table)
    assert ids(spark, table) == [0, 1, 2]


def test_the_columns_of_a_stream_are_checked_as_those_of_a_statement(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    """Spark checks and fills columns of statements alone."""
    table, folder = f"{namespace}.checked", tmp_path / "arriving"
    spark.sql(f"CREATE TABLE {table} (k BIGINT, v VARCHAR(3), c CHAR(3), n INT DEFAULT 7)")
    arrive(spark, folder, 0)
    rows = streamed(spark, folder)
    with pytest.raises(StreamingQueryException, match=r"STREAM_COLUMN_LEFT_OUT.* n .*\(7\)"):
        write(rows.selectExpr("k", "'ab' AS v"), table, tmp_path / "left_out")
    for long, column in (("'abcd' AS v", "v"), ("'abcd ' AS c", "c")):
        failure = f"TEXT_TOO_LONG.* 4 characters to column {column} of {table}"
        with pytest.raises(StreamingQueryException, match=failure):
            write(rows.selectExpr("k", "1 AS n", long), table, tmp_path / column)
    write(
        rows.selectExpr("1 AS n", "'abc  ' AS V", "'a' AS c", "k"), table, tmp_path / "checkpoint"
    )
    found = spark.sql(f"SELECT k, v, c, n FROM {table}").collect()
    assert sorted(map(tuple, found)) == sorted((n % 3, "abc", "a  ", 1) for n in range(40))
    location = location_of(spark, table)
    with pytest.raises(TextTooLong, match=r"VARCHAR\(3\)"):
        pennon.open(location).append([{"k": 100, "v": "abcd"}])
    pennon.open(location).append([{"k": 100, "v": "äöü ", "c": "b"}])
    added = spark.sql(f"SELECT v, c FROM {table} WHERE k = 100").collect()
    assert list(map(tuple, added)) == [("äöü", "b  ")]


@pytest.mark.parametrize(
    ("more", "column"),
    [
        ("1 AS `a b`", "`a b`"),
        ("named_struct('b', 1, 'a', 2) AS s", r"s\.b"),
        ("array(named_struct('b', 1, 'a', 2)) AS l", r"l\.element\.b"),
    ],
)
def test_a_stream_with_a_column_more_says_how_its_table_gets_it(
    spark: SparkSession, namespace: str, tmp_path: Path, more: str, column: str
) -> None:
    table, folder = f"{namespace}.narrow", tmp_path / "arriving"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, s STRUCT<a: INT>, l ARRAY<STRUCT<a: INT>>)")
    arrive(spark, folder, 0)
    rows = streamed(spark, folder).selectExpr("id AS ID", more)
    failure = (
        f"STREAM_COLUMN_UNKNOWN.*to {table}.*mergeSchema.*ALTER TABLE {table} ADD COLUMN {column}"
    )
    with pytest.raises(StreamingQueryException, match=failure):
        write(rows, table, tmp_path / "c")


def test_values_of_a_stream_that_do_not_fit_are_told_with_the_name_of_the_table(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    table, folder = f"{namespace}.t", tmp_path / "arriving"
    spark.sql(f"CREATE TABLE {table} (id INT NOT NULL, k BIGINT) PARTITIONED BY (k)")
    arrive(spark, folder, 0)
    rows = streamed(spark, folder)
    for at, (value, condition) in enumerate(
        [("id + 5000000000", "WRITE_TYPE_MISMATCH"), ("nullif(id, 7)", "NOT_NULL_VIOLATED")]
    ):
        with pytest.raises(StreamingQueryException, match=rf"{condition}.* of {table}: "):
            write(rows.selectExpr(f"{value} AS id", "k"), table, tmp_path / str(at))
    assert ids(spark, table) == []


def test_a_stream_reads_nothing_of_its_table_also_where_its_query_has_it_in_sparks_cache(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    """A static side is of the version that the stream began with, whatever came since."""
    table, folder = f"{namespace}.t", tmp_path / "arriving"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, k BIGINT) PARTITIONED BY (k)")
    spark.sql(f"INSERT INTO {table} VALUES (0, 0)")
    known = spark.table(table).select("id").cache()
    try:
        assert known.count() == 1
        for batch in range(2):
            arrive(spark, folder, batch * 40)
        write(
            streamed(spark, folder).join(known, "id", "left_anti"), table, tmp_path / "checkpoint"
        )
    finally:
        known.unpersist()
    assert ids(spark, table) == list(range(80))
    made = spark.sql(f"SELECT operation FROM {table}.snapshots ORDER BY snapshot_id").collect()
    assert [row.operation for row in made][-2:] == ["append", "append"]
