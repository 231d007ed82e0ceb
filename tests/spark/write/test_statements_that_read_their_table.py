"""Statements that read the table which they change, while another writer commits.

A statement that is held open has its table at the version of its analysis. Before Spark plans it,
Spark loads anew what it reads, and not what it changes.
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from tests.spark.statement_results import location_of, sorted_rows
from tests.torture.held_statements import analyzed

import pennon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

SNAPSHOT = "TBLPROPERTIES ('write.isolation' = 'snapshot')"


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, day INT, v BIGINT) PARTITIONED BY (day)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 1, 10), (2, 2, 20)")
    return name


def append(spark: SparkSession, table: str, identifier: int, day: int) -> None:
    row = {"id": identifier, "day": day, "v": identifier * 10}
    pennon.open(location_of(spark, table)).append([row])


def test_an_overwrite_with_its_own_rows_takes_none_twice(spark: SparkSession, table: str) -> None:
    """The appended row comes behind the overwrite, which has not read it then."""
    run = analyzed(spark, f"INSERT OVERWRITE {table} SELECT id, day + 10, v FROM {table}")
    append(spark, table, 3, 3)
    run()
    assert sorted_rows(spark.table(table)) == [(1, 11, 10), (2, 12, 20), (3, 3, 30)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET v = (SELECT sum(v) FROM {t}) WHERE day = 1",
        "UPDATE {t} SET v = 30 WHERE day = 1 AND 2 IN (SELECT count(*) FROM {t})",
        (
            "MERGE INTO {t} t USING (SELECT sum(v) AS v, 1 AS id FROM {t}) s"
            " ON t.id = s.id AND t.day = 1 WHEN MATCHED THEN UPDATE SET v = s.v"
        ),
    ],
    ids=["value", "condition", "source"],
)
def test_what_is_read_beside_the_changed_rows_is_of_their_version(
    spark: SparkSession, table: str, statement: str
) -> None:
    """Snapshot isolation: what others append is not looked at, nor half of it."""
    spark.sql(f"ALTER TABLE {table} SET {SNAPSHOT}")
    run = analyzed(spark, statement.format(t=table))
    append(spark, table, 3, 1)
    run()
    assert sorted_rows(spark.table(table)) == [(1, 1, 30), (2, 2, 20), (3, 1, 30)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET v = (SELECT sum(v) FROM {t} WHERE day = 2) WHERE day = 1",
        "DELETE FROM {t} WHERE day = 1 AND id NOT IN (SELECT id FROM {t} WHERE day > 1)",
        (
            "MERGE INTO {t} t USING (SELECT id - 1 AS id, v FROM {t} WHERE day = 2) s"
            " ON t.id = s.id AND t.day = 1 WHEN MATCHED THEN UPDATE SET v = s.v"
        ),
    ],
    ids=["value", "condition", "source"],
)
def test_a_change_of_what_is_read_beside_the_changed_rows_is_a_conflict(
    spark: SparkSession, table: str, statement: str
) -> None:
    run = analyzed(spark, statement.format(t=table))
    append(spark, table, 1, 2)
    with pytest.raises(PySparkException, match="WRITE_CONFLICT.*day=2"):
        run()
    assert sorted_rows(spark.table(table)) == [(1, 1, 10), (1, 2, 10), (2, 2, 20)]
    run = analyzed(spark, statement.format(t=table))
    append(spark, table, 5, 0)
    run()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OVERWRITE {t} SELECT id, day + 10, v FROM {t}",
        "UPDATE {t} SET v = (SELECT sum(v) FROM {t}) WHERE day = 1",
    ],
    ids=["overwrite", "update"],
)
def test_a_change_of_columns_in_between_is_refused(
    spark: SparkSession, table: str, statement: str
) -> None:
    run = analyzed(spark, statement.format(t=table))
    pennon.open(location_of(spark, table)).add_column("note", pa.string())
    with pytest.raises(PySparkException, match="INCOMPATIBLE_TABLE_CHANGE|WRITE_CONFLICT"):
        run()
    assert sorted_rows(spark.table(table)) == [(1, 1, 10, None), (2, 2, 20, None)]


def while_it_runs(
    spark: SparkSession, statement: str, others: Callable[[], object]
) -> Callable[[], object]:
    """Have others commit when the statement has read its first row."""
    done: list[int] = []
    path = Path(tempfile.mkdtemp())

    def waiting(value: int) -> int:
        (path / "read").touch()
        deadline = time.monotonic() + 60
        while not (path / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return value

    spark.udf.register("waiting", waiting, "bigint")

    def beside() -> None:
        deadline = time.monotonic() + 60
        while not (path / "read").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        try:
            others()
            done.append(1)
        finally:
            (path / "go").touch()

    def run() -> None:
        thread = threading.Thread(target=beside)
        thread.start()
        try:
            spark.sql(statement)
        finally:
            thread.join()
            assert done

    return run


@pytest.mark.parametrize("start", ["CREATE OR REPLACE TABLE", "REPLACE TABLE"])
def test_a_table_made_of_the_one_it_replaces_loses_no_row_that_comes_meanwhile(
    spark: SparkSession, table: str, start: str
) -> None:
    """It was replaced by rows that were read before, and the appended ones were gone."""
    statement = f"{start} {table} AS SELECT id, day, waiting(v) + 1 AS v FROM {table}"
    run = while_it_runs(spark, statement, lambda: append(spark, table, 3, 1))
    with pytest.raises(PySparkException, match="WRITE_CONFLICT.*new rows are made of it.*day=1"):
        run()
    assert sorted_rows(spark.table(table)) == [(1, 1, 10), (2, 2, 20), (3, 1, 30)]
    append(spark, table, 4, 4)  # nothing keeps others from writing
    spark.sql(statement)
    assert sorted_rows(spark.table(table)) == [(1, 1, 11), (2, 2, 21), (3, 1, 31), (4, 4, 41)]


def test_a_table_made_of_others_replaces_whatever_comes_first(
    spark: SparkSession, table: str
) -> None:
    statement = f"REPLACE TABLE {table} AS SELECT waiting(id) AS id FROM range(2)"
    while_it_runs(spark, statement, lambda: append(spark, table, 3, 1))()
    assert sorted_rows(spark.table(table)) == [(0,), (1,)]


def test_a_compaction_keeps_no_table_from_being_replaced(spark: SparkSession, table: str) -> None:
    append(spark, table, 3, 1)
    statement = f"REPLACE TABLE {table} AS SELECT id, day, waiting(v) AS v FROM {table}"
    compact = pennon.open(location_of(spark, table)).maintenance.compact
    while_it_runs(spark, statement, compact)()
    assert sorted_rows(spark.table(table)) == [(1, 1, 10), (2, 2, 20), (3, 1, 30)]


OF_ANOTHER_DAY = {
    "static": "INSERT OVERWRITE {t} PARTITION (day = 1) SELECT id, v FROM {t} WHERE day = 2",
    "dynamic": "INSERT OVERWRITE {t} SELECT id, 1 AS day, v FROM {t} WHERE day = 2",
    "condition": (
        "INSERT INTO {t} REPLACE WHERE day = 1 SELECT id, 1 AS day, v FROM {t} WHERE day = 2"
    ),
    "append": "INSERT INTO {t} SELECT id, 1 AS day, v FROM {t} WHERE day = 2",
}


@pytest.fixture
def dynamic(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    yield
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


@pytest.mark.usefixtures("dynamic")
@pytest.mark.parametrize("statement", OF_ANOTHER_DAY.values(), ids=OF_ANOTHER_DAY)
def test_rows_made_of_rows_that_others_change_are_a_conflict(
    spark: SparkSession, table: str, statement: str
) -> None:
    """They were written: the deleted row came back as a row of another day."""
    run = analyzed(spark, statement.format(t=table))
    pennon.open(location_of(spark, table)).update({"v": "0"}, "day = 2")
    with pytest.raises(PySparkException, match="WRITE_CONFLICT.*day=2: this statement read it"):
        run()
    assert sorted_rows(spark.table(table)) == [(1, 1, 10), (2, 2, 0)]
    kept = [(1, 1, 10)] if statement == OF_ANOTHER_DAY["append"] else []
    run = analyzed(spark, statement.format(t=table))
    append(spark, table, 5, 2)
    append(spark, table, 6, 6)
    run()
    assert sorted_rows(spark.table(table)) == [*kept, (2, 1, 0), (2, 2, 0), (5, 2, 50), (6, 6, 60)]


@pytest.mark.parametrize("is_cached", [False, True])
def test_rows_that_spark_keeps_are_read_of_the_table_all_the_same(
    spark: SparkSession, table: str, *, is_cached: bool
) -> None:
    source = spark.table(table).where("day = 2").selectExpr("id - 1 AS id", "v")
    if is_cached:
        assert source.cache().count() == 1
    source.createOrReplaceTempView("of_day_2")
    merge = (
        f"MERGE INTO {table} t USING of_day_2 s ON t.id = s.id AND t.day = 1"
        " WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    try:
        run = analyzed(spark, merge)
        pennon.open(location_of(spark, table)).update({"v": "0"}, "day = 2")
        with pytest.raises(PySparkException, match="WRITE_CONFLICT.*day=2: this statement read it"):
            run()
        assert sorted_rows(spark.table(table)) == [(1, 1, 10), (2, 2, 0)]
        spark.sql(merge)
        assert sorted_rows(spark.table(table)) == [(1, 1, 0), (2, 2, 0)]
    finally:
        source.unpersist()
        spark.catalog.dropTempView("of_day_2")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, 1 AS day, v FROM of_day_2",
        "WITH of_day_2 AS (SELECT * FROM {t} WHERE day = 2) SELECT id, 1 AS day, v FROM of_day_2",
        "SELECT 2, 1, (SELECT sum(v) FROM {t} WHERE day = 2)",
        "SELECT max(id), 1, count(*) FROM {t}",
        "SELECT DISTINCT day, 1, 0 FROM {t}",
        "SELECT a.id, 1, b.v FROM {t} a JOIN {t} b ON a.day = b.day WHERE a.day = 2",
        "SELECT id, 1, v FROM kept_rows",
    ],
    ids=["view", "cte", "subquery", "count", "distinct", "join", "cached"],
)
def test_rows_that_come_by_another_name_are_read_of_the_table(
    spark: SparkSession, table: str, query: str
) -> None:
    """A view is one of the session: the catalog keeps none."""
    spark.sql(f"CACHE TABLE kept_rows AS SELECT * FROM {table} WHERE day = 2")
    spark.sql(f"CREATE TEMPORARY VIEW of_day_2 AS SELECT * FROM {table} WHERE day = 2")
    try:
        run = analyzed(spark, f"INSERT INTO {table} " + query.format(t=table))
        pennon.open(location_of(spark, table)).update({"v": "0"}, "day = 2")
        with pytest.raises(PySparkException, match="WRITE_CONFLICT.*day=2: this statement read it"):
            run()
    finally:
        spark.sql("UNCACHE TABLE kept_rows")
        spark.catalog.dropTempView("kept_rows")
        spark.catalog.dropTempView("of_day_2")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, 1 AS day, v FROM {t} VERSION AS OF {version} WHERE day = 2",
        "SELECT 2, 1, count(*) FROM {t}.snapshots",
        "SELECT id, 1, id FROM range(2, 3)",
    ],
    ids=["version", "metadata", "others"],
)
def test_rows_made_of_what_stays_or_of_other_rows_meet_no_conflict(
    spark: SparkSession, table: str, query: str
) -> None:
    opened = pennon.open(location_of(spark, table))
    query = query.format(t=table, version=opened.history()[-1].version)
    run = analyzed(spark, f"INSERT INTO {table} {query}")
    opened.update({"v": "0"}, "day = 2")
    run()
    assert sorted_rows(spark.table(table).where("day = 2")) == [(2, 2, 0)]
    assert spark.table(table).where("day = 1").count() == 2
    assert pennon.open(location_of(spark, table)).history()[-1].operation == "append"
