"""A misspelt option or property is refused by its name: it would do nothing, in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from tests.spark.assert_join import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("option", "near"),
    [
        ("exection", "did you mean execution"),
        ("Execution", "did you mean execution"),
        ("execution.onetaskbytes", "did you mean execution.oneTaskBytes"),
        ("impl", "the options there are implementation, "),
        ("storge.secret", r"did you mean storage\.\*"),
    ],
)
def test_a_session_is_told_of_an_option_that_its_catalog_has_not(
    spark: SparkSession, namespace: str, option: str, near: str
) -> None:
    stated = f"spark.sql.catalog.lance.{option}"
    spark.sql(f"CREATE TABLE {namespace}.t (id INT)")
    with (
        conf(spark, {stated: "hidden"}),
        pytest.raises(AnalysisException, match=f"UNKNOWN_SETTING.*{option}: .*{near}") as caught,
    ):
        spark.table(f"{namespace}.t").collect()
    assert "hidden" not in str(caught.value)
    assert spark.table(f"{namespace}.t").collect() == []


def test_options_that_a_catalog_has_are_taken_in_the_letters_that_spark_takes(
    spark: SparkSession, namespace: str
) -> None:
    known = {"execution": "spark", "Root": "/elsewhere"}
    with conf(spark, {f"spark.sql.catalog.lance.{name}": value for name, value in known.items()}):
        spark.sql(f"CREATE TABLE {namespace}.t (id INT)")


@pytest.mark.parametrize("option", ["versionOf", "version", "timestamp", "startingVersoin"])
def test_a_misspelt_option_reads_no_newer_rows_than_it_means(
    spark: SparkSession, namespace: str, option: str
) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t AS SELECT 1 AS id")
    with pytest.raises(AnalysisException, match=f"READ_OPTION_NOT_SUPPORTED.*option {option}: "):
        spark.read.format("pennon").option(option, "1").load(f"{namespace}.t").collect()
    ours = {"header": "true", "inferSchema": "true", "mergeSchema": "true", "versionasof": "3"}
    assert spark.read.format("pennon").options(**ours).load(f"{namespace}.t").count() == 1


def test_a_misspelt_condition_does_not_overwrite_the_whole_table(
    spark: SparkSession, namespace: str
) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t AS SELECT id FROM range(3)")
    written = spark.range(1).write.format("pennon").mode("overwrite").option("replaceWher", "id=0")
    with pytest.raises(AnalysisException, match="WRITE_OPTION_NOT_SUPPORTED.*replaceWher"):
        written.saveAsTable(f"{namespace}.t")
    assert spark.table(f"{namespace}.t").count() == 3


@pytest.mark.parametrize(
    ("name", "value", "near"),
    [
        ("Write.Order", "id", "write.order"),
        ("transacton", "weak", "transaction"),
        ("Transaction", "weak", "transaction"),
    ],
)
def test_a_misspelt_property_is_refused_where_a_table_is_made_and_altered(
    spark: SparkSession, namespace: str, name: str, value: str, near: str
) -> None:
    refused = f"TABLE_PROPERTY_REFUSED.*{name} = '{value}'.*Write {near} if that is meant"
    with pytest.raises(AnalysisException, match=refused):
        spark.sql(f"CREATE TABLE {namespace}.t (id INT) TBLPROPERTIES ('{name}' = '{value}')")
    spark.sql(f"CREATE TABLE {namespace}.t (id INT) TBLPROPERTIES ('transactions' = 'many')")
    with pytest.raises(AnalysisException, match=refused):
        spark.sql(f"ALTER TABLE {namespace}.t SET TBLPROPERTIES ('{name}' = '{value}')")
