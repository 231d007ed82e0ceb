"""A statement interrupted while it commits, or robbed of its worker: its rows are there once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from pennon.manifest.history import history

if TYPE_CHECKING:
    from collections.abc import Callable

    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession


def committing_thread(spark: SparkSession) -> JavaObject | None:
    """The JVM's thread that waits for the worker's answer to a commit."""
    for thread, frames in spark._jvm.java.lang.Thread.getAllStackTraces().items():
        names = {(each.getFileName(), each.getMethodName()) for each in frames}
        if {("PennonBatchWrite.java", "commit"), ("FutureTask.java", "get")} <= names:
            return thread
    return None


def interrupt_commit(spark: SparkSession) -> bool:
    thread = committing_thread(spark)
    if thread is not None:
        thread.interrupt()
    return thread is not None


def kill_worker(spark: SparkSession) -> None:
    """Kill the worker, and wait until this JVM can have seen it."""
    pid = spark._jvm.dev.pennon.spark.worker.WorkerProcess.shared().pid()
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.01)


def kill_once_there(spark: SparkSession, root: Path) -> bool:
    """Kill the worker when it has made files that are not committed yet."""
    is_there = any(root.glob("*/_versions/d*.manifest"))
    if is_there:
        kill_worker(spark)
    return is_there


def during(spark: SparkSession, statement: str, act: Callable[[], bool]) -> list[BaseException]:
    """Run a statement beside an action that is tried until it was done; give what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            spark.sql(statement)
        except PySparkException as error:
            raised.append(error)

    running = threading.Thread(target=run)
    running.start()
    is_done = False
    while running.is_alive() and not is_done:
        is_done = act()
    running.join()
    assert is_done
    return raised


def location_of(spark: SparkSession, table: str) -> Path:
    (row,) = spark.sql(f"DESCRIBE EXTENDED {table}").where("col_name = 'Location'").collect()
    return Path(str(row.data_type).removeprefix("file:"))


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.commits"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, part INT) PARTITIONED BY (part)")
    return name


def test_an_insert_interrupted_while_it_commits_adds_its_rows_once(
    spark: SparkSession, table: str
) -> None:
    statement = f"INSERT INTO {table} SELECT id, id % 100 AS part FROM range(200)"
    assert during(spark, statement, lambda: interrupt_commit(spark)) == []
    assert spark.table(table).distinct().count() == spark.table(table).count() == 200


def test_an_insert_that_loses_its_worker_while_it_commits_adds_its_rows_once(
    spark: SparkSession, table: str
) -> None:
    root = location_of(spark, table)
    statement = f"INSERT INTO {table} SELECT id, id % 100 AS part FROM range(200)"
    assert during(spark, statement, lambda: kill_once_there(spark, root)) == []
    assert spark.table(table).distinct().count() == spark.table(table).count() == 200
    operations = [each.operation for each in history(str(root))]
    assert operations.count("append") == 1
