"""A session with another table format beside Pennon, and what the jobs of two formats both ask."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from tests.document_snippets import snippets
from tests.separate_process import ROOT

from pennon.session import spark_conf


def neighbour_session(
    folder: str, extensions: str, package: str, conf: Mapping[str, str]
) -> SparkSession:
    """Start it, Pennon's catalog and the format's jar in it.

    Args:
        folder: Pennon's tables go below it.
        extensions: Names of session extensions by comma, in their order.
        package: Maven coordinates of the format's jar.
        conf: The format's own settings.
    """
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    own = {
        "spark.sql.extensions": extensions,
        "spark.jars.packages": package,
        # a few dozen rows: two hundred tasks would be minutes of nothing
        "spark.sql.shuffle.partitions": "2",
    }
    for key, value in {**spark_conf(f"{folder}/lake"), **own, **conf}.items():
        builder.config(key, value)
    return builder.getOrCreate()


def rows_of(spark: SparkSession, query: str) -> list[list[str]]:
    """Give the rows of a query, each value as text."""
    return [list(map(str, row)) for row in spark.sql(query).collect()]


def check_merges_across(spark: SparkSession, table: str) -> None:
    """Merge a row of each table into the other: ``lance.db.t`` is a copy of ``table``."""
    spark.sql("DELETE FROM lance.db.t WHERE id = 5")
    spark.sql(
        f"MERGE INTO lance.db.t t USING {table} s ON t.id = s.id AND s.id < 4"
        " WHEN MATCHED THEN UPDATE SET s = concat(s.s, '!')"
    )
    spark.sql(
        f"MERGE INTO {table} t USING lance.db.t s ON t.id = s.id"
        " WHEN MATCHED AND t.id = 2 THEN DELETE"
    )


def check_joins_across(spark: SparkSession, table: str, time: str) -> None:
    """Join the tables on the id and a column of times, and insert from one into the other."""
    joined = (
        f"SELECT a.id FROM lance.db.t a JOIN {table} b ON a.id = b.id AND a.{time} <=> b.{time}"
        " ORDER BY 1"
    )
    ids = [row.id for row in spark.sql(f"SELECT id FROM {table} ORDER BY id").collect()]
    assert [row.id for row in spark.sql(joined).collect()] == [id_ for id_ in ids if id_ != 5]
    assert spark.sql("CALL lance.system.check(table => 'db.t')").collect() == []
    spark.sql(f"INSERT INTO {table} SELECT * FROM lance.db.t WHERE id = 2")
    assert sorted(row.id for row in spark.table(table).collect()) == sorted([*ids, 2])


def check_migration(spark: SparkSession, title: str, old: str, new: str) -> None:
    """Copy a table as docs/migration.md has it for a neighbour, and compare the rows.

    Its folder ``/data`` is the current one.
    """
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.shop")
    copies = [part for part in snippets(ROOT / "docs" / "migration.md") if part.title == title]
    assert copies, title
    for copy in copies:
        spark.sql(copy.text.rstrip().rstrip(";").replace("/data/", f"{Path.cwd()}/"))
    assert sorted(rows_of(spark, f"SELECT * FROM {new}")) == sorted(
        rows_of(spark, f"SELECT * FROM {old}")
    )
