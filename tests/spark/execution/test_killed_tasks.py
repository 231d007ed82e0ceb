"""A task that is killed without an interrupt, while it waits for the first row of a long query."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("without_broadcasts")

# Every row meets every other: minutes of work before the first row.
ROWS = 200_000


def test_the_worker_of_a_killed_task_does_not_compute_on(
    spark: SparkSession, namespace: str
) -> None:
    for name in ("one", "other"):
        spark.sql(
            f"CREATE TABLE {namespace}.{name} PARTITIONED BY (bucket(2, id))"
            f" AS SELECT 7L AS id, id AS n FROM range({ROWS})"
        )
    endless = spark.sql(
        f"SELECT sum(a.n * b.n) FROM {namespace}.one a JOIN {namespace}.other b USING (id)"
    )
    assert "fragment" in endless._jdf.queryExecution().toString()
    worker = Path(f"/proc/{spark._jvm.dev.pennon.spark.worker.WorkerProcess.shared().pid()}")
    context = spark.sparkContext
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(endless.collect)
        while not running.done() and not is_at_work(spark):
            time.sleep(0.1)
        context.cancelAllJobs()
        with pytest.raises(Exception, match="cancelled"):
            running.result(timeout=60)
    # Alone with what nobody waits for, the process ends itself.
    deadline = time.monotonic() + 60
    while worker.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not worker.exists()
    assert spark.sql(f"SELECT count(*) FROM {namespace}.one").first()[0] == ROWS


def is_at_work(spark: SparkSession) -> bool:
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return any(stage is not None and stage.numActiveTasks for stage in stages)
