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


def test_what_cannot_be_found_is_told(spark: SparkSession, namespace: str, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="TABLE_NOT_FOUND"):
        spark.read.format("pennon").load(str(tmp_path / "absent"))
    with pytest.raises(AnalysisException, match="SOURCE_NOT_NAMED"):
        spark.read.format("pennon").load()
    with pytest.raises(AnalysisException, match=r"SOURCE_OUTSIDE_OF_CATALOG.*readStream\.table"):
        spark.readStream.format("pennon").load(str(tmp_path / "absent"))
    numbers(spark, 1).writeTo(f"{namespace}.t").create()
    with pytest.raises(AnalysisException, match="save.. makes a table in its mode"):
        numbers(spark, 1).write.format("pennon").mode("append").save(str(tmp_path / "absent"))


@pytest.mark.parametrize("option", ["snapshot-id", "as-of-timestamp", "branch", "readChangeFeed"])
def test_an_option_of_another_format_reads_no_other_rows_than_it_says(
    spark: SparkSession, namespace: str, option: str
) -> None:
    numbers(spark, 3).writeTo(f"{namespace}.t").create()
    for reader in (spark.read, spark.read.format("pennon")):
        with pytest.raises(
            AnalysisException, match=f"READ_OPTION_NOT_SUPPORTED.* with the option {option}: "
        ):
            reader.option(option, "1").table(f"{namespace}.t").count()
