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
from tests.spark.write.test_row_statements import location_of, rows_of
from tests.torture.held_statements import analyzed

import pennon

if TYPE_CHECKING:
    from collections.abc import Callable

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
    assert rows_of(spark.table(table)) == [(1, 11, 10), (2, 12, 20), (3, 3, 30)]


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
    assert rows_of(spark.table(table)) == [(1, 1, 30), (2, 2, 20), (3, 1, 30)]


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
    assert rows_of(spark.table(table)) == [(1, 1, 10), (1, 2, 10), (2, 2, 20)]
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
    assert rows_of(spark.table(table)) == [(1, 1, 10, None), (2, 2, 20, None)]


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
    assert rows_of(spark.table(table)) == [(1, 1, 10), (2, 2, 20), (3, 1, 30)]
    append(spark, table, 4, 4)  # nothing keeps others from writing
    spark.sql(statement)
    assert rows_of(spark.table(table)) == [(1, 1, 11), (2, 2, 21), (3, 1, 31), (4, 4, 41)]


def test_a_table_made_of_others_replaces_whatever_comes_first(
    spark: SparkSession, table: str
) -> None:
    statement = f"REPLACE TABLE {table} AS SELECT waiting(id) AS id FROM range(2)"
    while_it_runs(spark, statement, lambda: append(spark, table, 3, 1))()
    assert rows_of(spark.table(table)) == [(0,), (1,)]


def test_a_compaction_keeps_no_table_from_being_replaced(spark: SparkSession, table: str) -> None:
    append(spark, table, 3, 1)
    statement = f"REPLACE TABLE {table} AS SELECT id, day, waiting(v) AS v FROM {table}"
    compact = pennon.open(location_of(spark, table)).maintenance.compact
    while_it_runs(spark, statement, compact)()
    assert rows_of(spark.table(table)) == [(1, 1, 10), (2, 2, 20), (3, 1, 30)]
