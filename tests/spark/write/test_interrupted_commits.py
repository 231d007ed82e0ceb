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

from pennon.manifest.versions.history import history

if TYPE_CHECKING:
    from collections.abc import Callable

    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession


def committing_thread(spark: SparkSession) -> JavaObject | None:
    """The JVM's thread that waits for the worker's answer to a commit."""
    for thread, frames in spark._jvm.java.lang.Thread.getAllStackTraces().items():
        names = {(frame.getFileName(), frame.getMethodName()) for frame in frames}
        if {("PennonBatchWrite.java", "commit"), ("FutureTask.java", "get")} <= names:
            return thread
    return None


def interrupt_commit(spark: SparkSession, worker: int) -> bool:
    """Interrupt the statement that waits for a worker which stands still, if there is one."""
    thread = committing_thread(spark)
    if thread is not None:
        thread.interrupt()
    os.kill(worker, signal.SIGCONT)
    return thread is not None


def kill_worker(_: SparkSession, worker: int) -> bool:
    """Kill the worker, and wait until this JVM can have seen it."""
    os.kill(worker, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(worker, 0)
            time.sleep(0.01)
    return True


def detached_versions(root: Path) -> set[Path]:
    return set(root.glob("*/_versions/d*.manifest"))


def during_commit(
    spark: SparkSession,
    statement: str,
    root: Path,
    act: Callable[[SparkSession, int], bool],
) -> bool:
    """Run a statement, hold its worker still in the midst of the commit, and act on it then.

    Returns:
        Whether the action met a commit that was not through; a machine that is busy elsewhere
        may look too late.

    Raises:
        PySparkException: What the statement raised.
    """
    raised: list[PySparkException] = []

    def run() -> None:
        try:
            spark.sql(statement)
        except PySparkException as error:
            raised.append(error)

    earlier = detached_versions(root)
    worker = spark._jvm.dev.pennon.spark.worker.WorkerProcess.shared().pid()
    running = threading.Thread(target=run)
    running.start()
    while running.is_alive() and detached_versions(root) == earlier:
        time.sleep(0.001)
    os.kill(worker, signal.SIGSTOP)
    has_met = act(spark, worker) and running.is_alive()
    running.join()
    if raised:
        raise raised[0]
    return has_met


def rows_after_meeting(
    spark: SparkSession,
    table: str,
    act: Callable[[SparkSession, int], bool],
) -> int:
    """Add 200 rows at a time until the action met a commit; give how many there must be."""
    root = location_of(spark, table)
    for first in range(0, 4_000, 200):
        rows = f"SELECT id, id % 100 AS part FROM range({first}, {first + 200})"
        if during_commit(spark, f"INSERT INTO {table} {rows}", root, act):
            return first + 200
    raise AssertionError("no commit was met in 20 statements")


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
    rows = rows_after_meeting(spark, table, interrupt_commit)
    assert spark.table(table).distinct().count() == spark.table(table).count() == rows


def test_an_insert_that_loses_its_worker_while_it_commits_adds_its_rows_once(
    spark: SparkSession, table: str
) -> None:
    rows = rows_after_meeting(spark, table, kill_worker)
    assert spark.table(table).distinct().count() == spark.table(table).count() == rows
    operations = [entry.operation for entry in history(str(location_of(spark, table)))]
    assert operations.count("append") == rows // 200


def test_a_commit_whose_worker_is_gone_for_good_is_told_to_be_unknown(
    spark: SparkSession, table: str
) -> None:
    interpreter = "spark.pyspark.driver.python"
    of_application = spark.sparkContext._jsc.sc().conf()
    of_session = spark._jsparkSession.sessionState().conf()
    before = of_application.get(interpreter)

    def choose(python: str) -> None:
        of_application.set(interpreter, python)
        of_session.setConfString(interpreter, python)

    def kill_for_good(session: SparkSession, worker: int) -> bool:
        choose("/absent/python")
        return kill_worker(session, worker)

    try:
        with pytest.raises(PySparkException, match="COMMIT_OUTCOME_UNKNOWN") as raised:
            rows_after_meeting(spark, table, kill_for_good)
    finally:
        choose(before)
    assert "interpreter '/absent/python': it cannot be run" in str(raised.value)
    assert spark.table(table).count() % 200 == 0
