"""``format("pennon")`` and ``format("lance")`` of DataFrames, for paths and for names."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count).selectExpr("id", "id % 3 AS part")


@pytest.mark.parametrize("source", ["pennon", "lance"])
def test_path_is_saved_to_in_every_mode_and_loaded(
    spark: SparkSession, tmp_path: Path, source: str
) -> None:
    path = str(tmp_path / "saved")
    write = numbers(spark, 9).write.format(source)
    write.partitionBy("part").save(path)
    loaded = spark.read.format(source).load(path)
    assert sorted(map(tuple, loaded.collect())) == [(n, n % 3) for n in range(9)]
    assert spark.sql(f"SELECT count(*) FROM lance.`{path}`.partitions").head()[0] == 3
    write.mode("append").save(path)
    assert spark.read.format(source).load(f"file:{path}").count() == 18
    numbers(spark, 2).write.format(source).mode("overwrite").save(path)
    assert spark.read.format(source).load(path).count() == 2
    version = spark.sql(f"SELECT min(snapshot_id) FROM lance.`{path}`.snapshots").head()[0]
    assert spark.read.format(source).option("versionAsOf", version).load(path).count() == 0
    write.mode("ignore").save(path)
    assert spark.read.format(source).load(path).count() == 2
    with pytest.raises(AnalysisException, match="TABLE_ALREADY_EXISTS|already exists"):
        write.mode("error").save(path)


def test_a_path_is_saved_to_and_loaded_in_a_thread_of_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    """No session is active in such a thread; the catalogs are those of the default one."""
    path = str(tmp_path / "saved")

    def saved() -> int:
        numbers(spark, 3).write.format("pennon").save(path)
        return spark.read.format("pennon").load(path).count()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(saved).result() == 3


def test_table_is_saved_inserted_into_and_loaded_by_name(
    spark: SparkSession, namespace: str
) -> None:
    name = f"{namespace}.saved"
    numbers(spark, 6).write.format("pennon").partitionBy("part").saveAsTable(name)
    numbers(spark, 3).write.insertInto(name)
    numbers(spark, 3).write.format("lance").mode("append").saveAsTable(name)
    assert spark.read.format("pennon").load(name).count() == 12
    assert spark.read.format("pennon").load(name.removeprefix("lance.")).count() == 12
    numbers(spark, 3).write.format("pennon").mode("overwrite").save(name)
    assert spark.read.table(name).count() == 3


def test_a_name_of_one_part_is_in_the_current_namespace_as_in_sql(
    spark: SparkSession, namespace: str
) -> None:
    catalog, current = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    spark.sql(f"CREATE NAMESPACE {namespace}.below")
    try:
        spark.sql(f"USE {namespace}.below")
        for mode in ("error", "append"):
            numbers(spark, 3).write.format("lance").mode(mode).save("p")
        assert spark.table(f"{namespace}.below.p").count() == 6
        assert spark.read.format("lance").load("p").count() == 6
        assert spark.read.format("pennon").option("catalog", "lance").load("`p`").count() == 6
        assert spark.readStream.format("lance").load("p").columns == ["id", "part"]
        spark.sql("CREATE TEMP VIEW seen USING lance OPTIONS (path 'p')")
        assert spark.table("seen").count() == 6
        with pytest.raises(AnalysisException, match="table lance.p:"):
            spark.read.format("lance").load("lance.p")
        spark.sql(f"USE {catalog}.{current}")
        with pytest.raises(AnalysisException, match="table lance.p:"):
            spark.read.format("lance").load("p")
    finally:
        spark.sql(f"USE {catalog}.{current}")
        spark.sql("DROP VIEW IF EXISTS seen")


def test_what_cannot_be_found_is_told(spark: SparkSession, namespace: str, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="TABLE_NOT_FOUND"):
        spark.read.format("pennon").load(str(tmp_path / "absent"))
    with pytest.raises(AnalysisException, match="SOURCE_NOT_NAMED"):
        spark.read.format("pennon").load()
    with pytest.raises(AnalysisException, match="TABLE_NOT_FOUND"):
        spark.readStream.format("pennon").load(str(tmp_path / "absent"))
    numbers(spark, 1).writeTo(f"{namespace}.t").create()
    with pytest.raises(
        AnalysisException, match="CREATE TABLE makes one, or save.. in mode error or ignore"
    ):
        numbers(spark, 1).write.format("pennon").mode("append").save(str(tmp_path / "absent"))


def test_paths_and_names_are_streamed_from_and_to(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    name, path = f"{namespace}.streamed", str(tmp_path / "lake" / "streamed")
    numbers(spark, 6).write.format("pennon").partitionBy("part").save(path)
    numbers(spark, 0).write.format("pennon").partitionBy("part").save(name)

    def follow() -> None:
        arriving = spark.readStream.format("lance").option("maxVersionsPerTrigger", 1).load(path)
        running = (
            arriving.writeStream.format("pennon")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(name)
        )
        assert running.awaitTermination(240)

    follow()
    numbers(spark, 9).filter("id > 5").write.format("pennon").mode("append").save(path)
    follow()
    assert sorted(spark.table(name).collect()) == sorted(numbers(spark, 9).collect())


def test_the_session_catalog_refuses_to_keep_a_table(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "kept")
    numbers(spark, 3).write.format("pennon").save(path)
    for statement in (
        "CREATE TABLE spark_catalog.default.kept USING lance",
        "CREATE TABLE IF NOT EXISTS spark_catalog.default.kept (id INT) USING pennon",
        f"CREATE TABLE spark_catalog.default.kept USING lance LOCATION '{path}'",
        "CREATE TABLE spark_catalog.default.kept USING lance AS SELECT 1 AS id",
    ):
        with pytest.raises(
            AnalysisException, match=r"TABLE_OUTSIDE_OF_CATALOG.*CREATE VIEW spark_catalog\.def"
        ):
            spark.sql(statement)
    with pytest.raises(AnalysisException, match="TABLE_OUTSIDE_OF_CATALOG"):
        numbers(spark, 3).write.format("lance").saveAsTable("spark_catalog.default.kept")
    assert not spark.catalog.tableExists("spark_catalog.default.kept")
    spark.sql("CREATE TABLE spark_catalog.default.kept USING parquet AS SELECT 1 AS id")
    spark.sql("DROP TABLE spark_catalog.default.kept")


@pytest.mark.parametrize("option", ["snapshot-id", "as-of-timestamp", "branch", "readChangeFeed"])
def test_an_option_of_another_format_reads_no_other_rows_than_it_says(
    spark: SparkSession, namespace: str, option: str
) -> None:
    numbers(spark, 3).writeTo(f"{namespace}.t").create()
    for reader in (spark.read, spark.read.format("pennon")):
        with pytest.raises(
            AnalysisException,
            match=f"READ_OPTION_NOT_SUPPORTED.* with the option {option}: .*([Ww]rite|Read|leave) ",
        ):
            reader.option(option, "1").table(f"{namespace}.t").count()


@pytest.mark.parametrize("option", ["startingVersion", "startingtimestamp", "skipChangeCommits"])
@pytest.mark.parametrize("sql", ["SELECT * FROM {}", "SELECT k, count(*) FROM {} GROUP BY k"])
def test_an_option_of_streams_is_not_passed_over_by_a_batch(
    spark: SparkSession, namespace: str, option: str, sql: str
) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t AS SELECT id, id % 2 AS k FROM range(9)")
    named = f"{namespace}.t WITH ('{option}' = '1')"
    with pytest.raises(AnalysisException, match=f"READ_OPTION_OF_STREAMS.* the option {option}: "):
        spark.sql(sql.format(named)).collect()
    with pytest.raises(AnalysisException, match="READ_OPTION_OF_STREAMS"):
        spark.read.option(option, "1").table(f"{namespace}.t").count()
