"""What Spark's page of a query shows of scans and writes; the truth are the files themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import WITHOUT_BROADCASTS, conf

if TYPE_CHECKING:
    from pathlib import Path

    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession


def metrics(frame: DataFrame) -> dict[str, int]:
    """The metrics of the only scan, once the query has run."""
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    if "AdaptiveSparkPlan" in plan.nodeName():
        plan = plan.executedPlan()
    (scan,) = [node for node in nodes(plan) if node.nodeName().startswith("BatchScan")]
    return metrics_of(scan)


def metrics_of(node: JavaObject) -> dict[str, int]:
    names = node.metrics().keys().toSeq()
    keys = [names.apply(at) for at in range(names.length())]
    return {key: node.metrics().apply(key).value() for key in keys}


def nodes(plan: JavaObject) -> list[JavaObject]:
    children = plan.children()
    below = [nodes(children.apply(at)) for at in range(children.length())]
    return [plan, *(operator for some in below for operator in some)]


def test_a_scan_tells_partitions_and_planning(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.t"
    rows = "SELECT id, id % 12 AS k FROM range(120)"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (k) AS {rows}")
    found = metrics(spark.sql(f"SELECT id FROM {table} WHERE k IN (3, 4, 5)"))
    leaves = spark.sql(f"SELECT DISTINCT _leaf FROM {table} WHERE k IN (3, 4, 5)").count()
    assert found["partitionsRead"] == leaves == 3
    assert found["partitionsSkipped"] == 9
    assert found["planningMillis"] > 0
    assert found["numOutputRows"] == 30
    assert found["arrowBytesRead"] > 30 * 8
    assert found["workerCpuMillis"] >= 0
    assert found["workerPeakBytes"] > 30 << 20


def test_a_scan_tells_the_rows_before_its_filter_and_those_behind(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.t"
    rows = "SELECT id, id % 4 AS k, repeat('x', 200) AS wide FROM range(12000)"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (k) AS {rows}")
    spark.sql(f"DELETE FROM {table} WHERE id < 400")
    found = metrics(spark.sql(f"SELECT id, wide FROM {table} WHERE k < 2 AND id < 1400"))
    assert found["rowsScanned"] == 2 * 3000 - 200
    assert found["numOutputRows"] == 500
    assert found["bytesScanned"] > 5800
    few = metrics(spark.sql(f"SELECT id, wide FROM {table} WHERE id < 500"))
    assert (few["rowsScanned"], few["numOutputRows"]) == (12000 - 400, 100)


def told(spark: SparkSession, node: str) -> dict[str, list[str]]:
    """What the SQL page of the last query shows of its nodes of a name, as it writes it."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    last = store.executionsList().last().executionId()
    values, graph = store.executionMetrics(last), store.planGraph(last).allNodes()
    found: dict[str, list[str]] = {}
    for at in range(graph.length()):
        if not graph.apply(at).name().startswith(node):
            continue
        metrics = graph.apply(at).metrics()
        for metric in (metrics.apply(number) for number in range(metrics.length())):
            if values.contains(metric.accumulatorId()):
                found.setdefault(metric.name(), []).append(values.apply(metric.accumulatorId()))
    return found


def number(text: str) -> int:
    """The total that the page writes before the smallest and the largest of the tasks."""
    return int(text.replace(",", "").split("\n")[-1].split(" ")[0])


def test_the_page_of_a_query_in_the_workers_tells_what_it_took(
    spark: SparkSession, namespace: str
) -> None:
    facts, kinds = f"{namespace}.facts", f"{namespace}.kinds"
    spark.sql(
        f"CREATE TABLE {facts} PARTITIONED BY (k) AS SELECT id, id % 12 AS k FROM range(1200)"
    )
    spark.sql(f"CREATE TABLE {kinds} PARTITIONED BY (k) AS SELECT id AS k FROM range(12)")
    with conf(spark, WITHOUT_BROADCASTS):
        joined = spark.sql(
            f"SELECT k, count(*), sum(id) FROM {facts} JOIN {kinds} USING (k)"
            " WHERE k < 3 AND id > 600 GROUP BY k"
        )
        assert len(joined.collect()) == 3
    shown = told(spark, f"BatchScan {facts}, {kinds}")
    (partitions,), (skipped,) = shown["partitions read"], shown["partitions skipped"]
    assert (number(partitions), number(skipped)) == (3 + 3, 9 + 9)
    # The three partitions of either table, before the filter on id.
    assert number(shown["rows scanned by the workers"][0]) == 3 * 100 + 3
    assert number(shown["bytes scanned by the workers"][0]) > 300 * 8
    assert number(shown["number of output rows"][0]) == 3
    assert number(shown["processor time of the workers (ms)"][0]) > 0
    # Of so few rows it may round to nothing: `test_engine.py` has the time of many.
    assert "time of the workers' operators (ms)" in shown
    assert number(shown["peak memory of a worker (bytes)"][0]) > 30 << 20
    assert number(shown["bytes spilled by the workers"][0]) == 0
    assert number(shown["time to plan the scan (ms)"][0]) > 0


@pytest.mark.parametrize(("clause", "partitions"), [("PARTITIONED BY (k)", 12), ("", 1)])
def test_a_write_tells_partitions_files_and_bytes(
    spark: SparkSession, namespace: str, lake: Path, clause: str, partitions: int
) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, k BIGINT) {clause}")
    insert = spark.sql(f"INSERT INTO {table} SELECT id, id % 12 FROM range(600)")
    found = metrics_of(insert._jdf.queryExecution().executedPlan().commandPhysicalPlan())
    (folder,) = lake.glob(f"*{namespace.removeprefix('lance.')}$t")
    files = [file for file in folder.rglob("data/*.lance") if "__manifest" not in file.parts]
    assert found["recordsWritten"] == 600
    assert found["partitionsWritten"] == partitions
    assert found["filesWritten"] == len(files) > 0
    assert found["bytesWritten"] == sum(file.stat().st_size for file in files)
    # Spark's page of the stages has the rows, too.
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    stage = spark.sparkContext._jsc.sc().statusStore().lastStageAttempt(last_stage(spark))
    assert stage.outputRecords() == 600


def last_stage(spark: SparkSession) -> int:
    jobs = spark.sparkContext.statusTracker()
    job = jobs.getJobInfo(max(jobs.getJobIdsForGroup(None)))
    assert job is not None
    return max(job.stageIds)
