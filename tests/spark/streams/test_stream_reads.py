"""Tables read as streams: each row that a commit adds is read once, across restarts and upkeep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark
import pytest
from pyspark.errors import StreamingQueryException

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def follow(spark: SparkSession, source: str, target: str, checkpoint: Path, **options: str) -> int:
    """Append what is new in a table to another one; tells how many batches that took."""
    query = (
        spark.readStream.options(**options)
        .table(source)
        .writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .toTable(target)
    )
    assert query.awaitTermination(240)
    return len(query.recentProgress)


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, spark.table(table).select("id", "k").collect()))


@pytest.fixture
def source(spark: SparkSession, namespace: str) -> str:
    table = f"{namespace}.source"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, k BIGINT) PARTITIONED BY (k)")
    spark.sql(f"INSERT INTO {table} SELECT id, id % 3 FROM range(30)")
    return table


def test_rows_are_read_once_across_restarts_upkeep_and_evolution(
    spark: SparkSession, namespace: str, source: str, tmp_path: Path
) -> None:
    target = f"{namespace}.target"
    spark.sql(f"CREATE TABLE {target} (id BIGINT, k BIGINT)")
    spark.sql(f"INSERT INTO {source} VALUES (100, 1), (101, NULL)")
    follow(spark, source, target, tmp_path / "checkpoint")
    assert rows(spark, target) == rows(spark, source)
    for at in range(3):
        spark.sql(f"INSERT INTO {source} VALUES ({200 + at}, {at}), ({300 + at}, 7)")
    spark.sql(f"CALL lance.system.compact('{source.removeprefix('lance.')}')")
    spark.sql(f"ALTER TABLE {source} ADD PARTITION FIELD bucket(2, id)")
    spark.sql(f"ALTER TABLE {source} ADD COLUMN more STRING")
    spark.sql(f"INSERT INTO {source} VALUES (400, 1, 'a')")
    spark.sql(f"CALL lance.system.rewrite_partitions('{source.removeprefix('lance.')}')")
    spark.sql(f"INSERT INTO {source} VALUES (401, 1, 'b')")
    spark.sql(f"ALTER TABLE {target} ADD COLUMN more STRING")
    follow(spark, source, target, tmp_path / "checkpoint")
    follow(spark, source, target, tmp_path / "checkpoint")
    assert rows(spark, target) == rows(spark, source)
    assert len(rows(spark, target)) == 40


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="asks a stream for no such column")
def test_metadata_columns_are_those_of_the_version_that_added_a_row(
    spark: SparkSession, namespace: str, source: str, tmp_path: Path
) -> None:
    spark.sql(f"INSERT INTO {source} VALUES (100, NULL)")
    spark.sql(f"ALTER TABLE {source} ADD PARTITION FIELD bucket(2, id)")
    spark.sql(f"INSERT INTO {source} VALUES (200, 1), (201, NULL)")
    columns = "id", "_spec_version", "_partition", "_leaf", "_rowaddr"
    for version, least in ("1", 0), ("4", 100), ("latest", 300):
        frame = spark.readStream.option("startingVersion", version).table(source).select(*columns)
        writer = frame.writeStream.format("memory").queryName(f"rows_{version}")
        started = writer.option("checkpointLocation", str(tmp_path / version)).start()
        try:
            started.processAllAvailable()
            if version == "latest":
                spark.sql(f"INSERT INTO {source} VALUES (300, 2)")
            started.processAllAvailable()
        finally:
            started.stop()
        expected = spark.table(source).select(*columns).where(f"id >= {least}")
        assert sorted(spark.table(f"rows_{version}").collect()) == sorted(expected.collect())


def test_a_batch_covers_at_most_as_many_versions_as_are_asked_for(
    spark: SparkSession, namespace: str, source: str, tmp_path: Path
) -> None:
    target = f"{namespace}.target"
    for at in range(4):
        spark.sql(f"INSERT INTO {source} VALUES ({100 + at}, 0)")
    spark.sql(f"CREATE TABLE {target} (id BIGINT, k BIGINT)")
    batches = follow(
        spark, source, target, tmp_path / "c", startingVersion="3", maxVersionsPerTrigger="2"
    )
    assert batches >= 2
    assert rows(spark, target) == rows(spark, source)


def test_the_one_batch_of_a_stream_that_runs_once_has_all_versions(
    spark: SparkSession, namespace: str, source: str, tmp_path: Path
) -> None:
    target = f"{namespace}.target"
    for at in range(4):
        spark.sql(f"INSERT INTO {source} VALUES ({100 + at}, 0)")
    spark.sql(f"CREATE TABLE {target} (id BIGINT, k BIGINT)")
    frame = spark.readStream.options(startingVersion="3", maxVersionsPerTrigger="2").table(source)
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(once=True).toTable(target)
    assert query.awaitTermination(240)
    assert rows(spark, target) == rows(spark, source)


def test_a_stream_begins_at_a_version_or_with_what_comes(
    spark: SparkSession, namespace: str, source: str, tmp_path: Path
) -> None:
    late, target = f"{namespace}.late", f"{namespace}.target"
    for table in (late, target):
        spark.sql(f"CREATE TABLE {table} (id BIGINT, k BIGINT)")
    version = spark.sql(f"SELECT max(snapshot_id) AS v FROM {source}.snapshots").first().v
    follow(spark, source, late, tmp_path / "late", startingVersion="latest")
    spark.sql(f"INSERT INTO {source} VALUES (100, 1)")
    follow(spark, source, late, tmp_path / "late", startingVersion="latest")
    follow(spark, source, target, tmp_path / "c", startingVersion=str(version + 1))
    assert rows(spark, late) == rows(spark, target) == [(100, 1)]


def test_a_stream_that_lags_reads_on_over_columns_that_came_since(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    source, target = f"{namespace}.source", f"{namespace}.target"
    spark.sql(f"CREATE TABLE {source} (id INT, s STRUCT<a: INT>, k BIGINT) PARTITIONED BY (k)")
    for at in range(3):
        spark.sql(f"INSERT INTO {source} VALUES ({at}, named_struct('a', {at}), {at % 2})")
    spark.sql(f"ALTER TABLE {source} ADD COLUMN more INT DEFAULT 7")
    spark.sql(f"ALTER TABLE {source} ADD COLUMN s.b STRING")
    spark.sql(f"ALTER TABLE {source} ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"INSERT INTO {source} VALUES (5000000000, named_struct('a', 3, 'b', 'x'), 1, 8)")
    spark.sql(f"CREATE TABLE {target} AS SELECT * FROM {source} WHERE false")
    stated = {"startingVersion": "2", "maxVersionsPerTrigger": "1"}
    assert follow(spark, source, target, tmp_path / "c", **stated) > 3
    assert sorted(spark.table(target).collect()) == sorted(spark.table(source).collect())


def test_a_batch_that_failed_is_read_again_after_a_column_came(
    spark: SparkSession, namespace: str, source: str, tmp_path: Path
) -> None:
    target, checkpoint = f"{namespace}.target", tmp_path / "c"
    spark.sql(f"CREATE TABLE {target} (id BIGINT, k BIGINT)")
    follow(spark, source, target, checkpoint)
    spark.sql(f"INSERT INTO {source} VALUES (100, 1)")

    def fail(_: DataFrame, __: int) -> None:
        raise RuntimeError

    writer = spark.readStream.table(source).writeStream.foreachBatch(fail)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match="RuntimeError"):
        writer.start().awaitTermination(240)
    spark.sql(f"ALTER TABLE {source} ADD COLUMN more STRING")
    spark.sql(f"ALTER TABLE {target} ADD COLUMN more STRING")
    spark.sql(f"INSERT INTO {source} VALUES (101, 1, 'x')")
    follow(spark, source, target, checkpoint)
    assert rows(spark, target) == rows(spark, source)


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM {} WHERE id = 4",
        "DELETE FROM {} WHERE k = 1",
        "UPDATE {} SET k = 5 WHERE id = 4",
        "INSERT OVERWRITE {} VALUES (7, 7)",
    ],
)
def test_commits_that_change_rows_end_a_stream_or_are_passed_over(
    spark: SparkSession, namespace: str, source: str, tmp_path: Path, change: str
) -> None:
    target = f"{namespace}.target"
    spark.sql(f"CREATE TABLE {target} (id BIGINT, k BIGINT)")
    follow(spark, source, target, tmp_path / "c")
    read = rows(spark, target)
    spark.sql(change.format(source))
    spark.sql(f"INSERT INTO {source} VALUES (100, 1)")
    with pytest.raises(StreamingQueryException, match="STREAM_SOURCE_CHANGED.*skipChangeCommits"):
        follow(spark, source, target, tmp_path / "c")
    follow(spark, source, target, tmp_path / "c", skipChangeCommits="true")
    assert rows(spark, target) == sorted([*read, (100, 1)])


def test_a_stream_is_grouped_and_joined_with_tables(
    spark: SparkSession, namespace: str, source: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE {namespace}.names (k BIGINT, name STRING) PARTITIONED BY (k)")
    spark.sql(f"INSERT INTO {namespace}.names VALUES (0, 'a'), (1, 'b'), (2, 'c')")
    joined = spark.readStream.table(source).join(spark.table(f"{namespace}.names"), "k")
    for name in ("sums", "again"):
        query = (
            joined.groupBy("name")
            .count()
            .writeStream.format("memory")
            .queryName(name)
            .outputMode("complete")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(240)
        spark.sql(f"INSERT INTO {source} VALUES (100, 0)")
    assert {tuple(row) for row in spark.table("sums").collect()} == {
        ("a", 10),
        ("b", 10),
        ("c", 10),
    }
    assert {tuple(row) for row in spark.table("again").collect()} == {
        ("a", 11),
        ("b", 10),
        ("c", 10),
    }


def test_what_cannot_be_read_as_a_stream_is_told(
    spark: SparkSession, namespace: str, source: str, tmp_path: Path
) -> None:
    target, weak = f"{namespace}.target", f"{namespace}.weak"
    spark.sql(f"CREATE TABLE {target} (id BIGINT, k BIGINT)")
    spark.sql(f"CREATE TABLE {weak} (id BIGINT, k BIGINT) TBLPROPERTIES ('transaction' = 'weak')")
    with pytest.raises(StreamingQueryException, match=f"STREAM_SOURCE_REFUSED.*{weak}"):
        follow(spark, weak, target, tmp_path / "weak")
    with pytest.raises(StreamingQueryException, match="STREAM_OPTION_REFUSED.*skipChangeCommits"):
        follow(spark, source, target, tmp_path / "o", ignoreChanges="true")
    follow(spark, source, target, tmp_path / "c")
    spark.sql(f"DROP TABLE {source}")
    spark.sql(f"CREATE TABLE {source} (id BIGINT, k BIGINT) PARTITIONED BY (k)")
    spark.sql(f"INSERT INTO {source} VALUES (1, 1)")
    with pytest.raises(StreamingQueryException, match=f"TABLE_MADE_ANEW.*table {source} "):
        follow(spark, source, target, tmp_path / "c")
