"""Reading through Spark: exact values, pruning, push-down, early ends and a worker that dies."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from tests.spark.assert_join import WITHOUT_BROADCASTS, conf, executed_plan
from tests.spark.statement_results import counted_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

EVERY_TYPE = """
SELECT * FROM VALUES
  (true, 1Y, 2S, 3, 4L, 1.5F, double('NaN'), 12345678901234567.125BD,
   1.0000000001BD, 'äß\\'\\\\"x', X'00FF', DATE '1969-12-31',
   TIMESTAMP '1900-01-01 00:00:00.000001', TIMESTAMP_NTZ '2100-01-01 01:02:03.999999',
   array(1, null, 3), named_struct('x', 1, 'y', named_struct('z', 'q', 'w', array(1.0D, 2.0D))),
   map('k', 1, 'l', null), array(named_struct('p', 1L, 'q', array('u', null)))),
  (false, -128Y, -32768S, -2147483648, -9223372036854775807L, -0.0F, double('-Infinity'),
   -99999999999999999.999BD, -0.5BD, '', X'', DATE '1582-10-15',
   TIMESTAMP '1970-01-01 00:00:00', TIMESTAMP_NTZ '1969-12-31 23:59:59.999999',
   array(), named_struct('x', null, 'y', null), map(), array()),
  (null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
   null, null)
  AS t(b, i1, i2, i4, i8, f4, f8, d, d2, s, bin, dt, ts, tn, a, st, m, arr)
"""

ROWS = """
SELECT
  IF(id % 11 = 0, NULL, CAST(id AS INT)) AS i,
  id * 1000000007 AS l,
  IF(id % 13 = 0, NULL, id / 8 - 3) AS f,
  IF(id % 5 = 0, double('NaN'), IF(id % 5 = 1, -0.0D, 0.0D)) AS odd,
  CAST(id / 4 - 20 AS DECIMAL(12, 2)) AS dec,
  IF(id % 7 = 0, NULL, CONCAT(ELT(id % 5 + 1, 'ab', 'a\\'b', 'a\\\\', 'éx', ''), id % 9)) AS s,
  CAST(CONCAT('b', id % 3) AS BINARY) AS bin,
  id % 2 = 0 AS flag,
  IF(id % 17 = 0, NULL, DATE '2013-01-30' + CAST(id AS INT)) AS dt,
  IF(id % 19 = 0, NULL, TIMESTAMP '2013-01-30 22:30:00' + MAKE_INTERVAL(0, 0, 0, 0, id * 7)) AS ts,
  TIMESTAMP_NTZ '2013-01-30 22:30:00' + MAKE_INTERVAL(0, 0, 0, 0, id * 7) AS tn,
  named_struct('x', CAST(id % 4 AS INT), 'y', CONCAT('y', id % 6)) AS st
FROM RANGE(120)
"""

LAYOUTS = (
    ("months(ts)", "bucket(4, i)"),
    ("days(tn)", "truncate(2, s)"),
    ("s", "flag", "year(dt)"),
    ("bucket(3, l)", "truncate(10, i)", "hour(ts)"),
    (),
)

PREDICATES = (
    "i = 7",
    "i <=> NULL",
    "i IN (3, 5, 11, NULL)",
    "i NOT IN (3, 5, 11)",
    "NOT (i > 20 AND s LIKE 'a%')",
    "i > 100 OR ts < TIMESTAMP '2013-02-02 00:00:00'",
    "l = 21000000147",
    "f > 1.5 AND f <= 9.125",
    "odd = 'NaN'",
    "odd = 0.0",
    "odd > 5.0",
    "dec BETWEEN -3.25 AND 1.5",
    "s = 'a\\'b1'",
    "s LIKE 'a\\\\\\\\%'",
    "s >= 'a' AND s < 'b'",
    "startswith(s, 'é') OR endswith(s, '3')",
    "s LIKE '%b%'",
    "length(s) = 2",
    "bin = X'6231'",
    "flag",
    "NOT flag AND i IS NOT NULL",
    "dt >= DATE '2013-03-01' AND dt < DATE '2013-04-01'",
    "dt IS NULL",
    "year(dt) = 2013 AND month(dt) = 2",
    "ts >= TIMESTAMP '2013-02-10 00:00:00' AND ts < TIMESTAMP '2013-02-12 00:00:00'",
    "date(ts) = DATE '2013-02-05'",
    "hour(ts) = 5",
    "month(ts) = 2",
    "date_trunc('MONTH', ts) = TIMESTAMP '2013-02-01 00:00:00'",
    "tn < TIMESTAMP_NTZ '2013-02-01 00:00:00'",
    "cast(tn AS DATE) = DATE '2013-02-03'",
    "CAST(ts AS STRING) LIKE '2013-02-0%'",
    "st.x = 2 AND st.y <> 'y4'",
    "st IS NULL OR st.x IN (1)",
    "i + 1 = 20",
    "i % 10 = 3",
    "rand(7) < 2",
    "1 = 0",
)

_PARTITIONS = re.compile(r"partitions: (\d+) of (\d+)")


def partitions_read(frame: DataFrame) -> tuple[int, int]:
    """How many partitions the one scan of a query reads, of how many."""
    [(chosen, total)] = set(_PARTITIONS.findall(executed_plan(frame)))
    return int(chosen), int(total)


@pytest.fixture(scope="module")
def lake_of_layouts(spark: SparkSession) -> Iterator[dict[tuple[str, ...], str]]:
    """Every layout's table with the same rows, and the rows as view ``plain_rows``."""
    spark.sql("CREATE NAMESPACE lance.queries")
    spark.sql(ROWS).createOrReplaceTempView("plain_rows")
    tables = {}
    for number, layout in enumerate(LAYOUTS):
        name = f"lance.queries.t{number}"
        by = f"PARTITIONED BY ({', '.join(layout)})" if layout else ""
        spark.sql(f"CREATE TABLE {name} {by} AS {ROWS}")
        tables[layout] = name
    yield tables
    spark.catalog.dropTempView("plain_rows")
    spark.sql("DROP NAMESPACE lance.queries CASCADE")


def test_every_type_comes_back_exactly(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t AS {EVERY_TYPE}")
    table = spark.table(f"{namespace}.t")
    source = spark.sql(EVERY_TYPE)
    assert table.dtypes == source.dtypes
    assert counted_rows(table) == counted_rows(source)


@pytest.mark.spec("Partition Expression 8")
@pytest.mark.parametrize("column", ["b", "i1", "i2", "i4", "i8", "d", "s", "bin", "dt", "ts", "tn"])
def test_partition_of_null_holds_the_null_row(
    spark: SparkSession, namespace: str, column: str
) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t PARTITIONED BY ({column}) AS {EVERY_TYPE}")
    nulls = spark.sql(f"SELECT * FROM {namespace}.t WHERE {column} IS NULL")
    assert counted_rows(nulls) == counted_rows(spark.sql(EVERY_TYPE).where(f"{column} IS NULL"))
    assert partitions_read(nulls) == (1, 3)
    assert counted_rows(spark.table(f"{namespace}.t")) == counted_rows(spark.sql(EVERY_TYPE))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=" ".join)
def test_predicates_give_the_rows_of_a_full_scan(
    spark: SparkSession,
    lake_of_layouts: dict[tuple[str, ...], str],
    layout: tuple[str, ...],
    zone: str,
) -> None:
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        pruned = spark.sql(all_predicates(lake_of_layouts[layout]))
        full = spark.sql(all_predicates("plain_rows"))
        found, expected = counted_rows(pruned), counted_rows(full)
    assert found - expected == Counter(), "rows that no full scan has"
    assert expected - found == Counter(), "rows lost"


def all_predicates(table: str) -> str:
    """One query with the rows of every predicate, each scan with its own push-down."""
    return " UNION ALL ".join(
        f"SELECT {number} AS predicate, * FROM {table} WHERE {predicate}"
        for number, predicate in enumerate(PREDICATES)
    )


@pytest.mark.spec("Partition Pruning 5")
@pytest.mark.parametrize(
    ("layout", "predicate", "most"),
    [
        (LAYOUTS[0], "ts >= TIMESTAMP '2013-02-01' AND ts < TIMESTAMP '2013-03-01'", 5),
        (LAYOUTS[0], "i = 7", 4),
        (LAYOUTS[1], "cast(tn AS DATE) = DATE '2013-02-03'", 4),
        (LAYOUTS[2], "flag AND s = 'ab0'", 1),
        (LAYOUTS[3], "i BETWEEN 10 AND 19 AND hour(ts) = 5", 3),
    ],
)
def test_explain_shows_the_partitions_that_are_read(
    spark: SparkSession,
    lake_of_layouts: dict[tuple[str, ...], str],
    layout: tuple[str, ...],
    predicate: str,
    most: int,
) -> None:
    frame = spark.sql(f"SELECT * FROM {lake_of_layouts[layout]} WHERE {predicate}")
    chosen, total = partitions_read(frame)
    assert chosen <= most < total
    assert "manifest: " in executed_plan(frame)
    formatted = frame._jdf.queryExecution().explainString(
        spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    )
    assert re.search(r"\nmanifest: SELECT", formatted)
    assert max(map(len, executed_plan(frame).splitlines())) < 700


def test_only_the_needed_columns_are_read(
    spark: SparkSession, lake_of_layouts: dict[tuple[str, ...], str]
) -> None:
    table = lake_of_layouts[LAYOUTS[0]]
    frame = spark.sql(f"SELECT st.x FROM {table} WHERE st.y = 'y1'")
    assert counted_rows(frame) == counted_rows(
        spark.sql("SELECT st.x FROM plain_rows WHERE st.y = 'y1'")
    )
    assert re.search(r"BatchScan \S+\[st#\d+\]", executed_plan(frame))
    nested = spark.sql(f"SELECT st.x FROM {table}")
    scan = nested._jdf.queryExecution().optimizedPlan().collectLeaves().head().schema()
    assert scan.simpleString() == "struct<st:struct<x:int>>"


def test_a_scan_without_columns_counts_rows(
    spark: SparkSession, lake_of_layouts: dict[tuple[str, ...], str]
) -> None:
    for table in lake_of_layouts.values():
        assert spark.sql(f"SELECT 1 FROM {table}").count() == 120


def test_statistics_come_from_the_manifest(
    spark: SparkSession, lake_of_layouts: dict[tuple[str, ...], str]
) -> None:
    # without this setting Spark keeps row counts out of its statistics, whoever knows them
    with conf(spark, {"spark.sql.cbo.enabled": "true"}):
        plan = spark.table(lake_of_layouts[LAYOUTS[0]])._jdf.queryExecution().optimizedPlan()
        assert str(plan.stats().rowCount().get()) == "120"


def test_equal_scans_share_their_exchange(
    spark: SparkSession, lake_of_layouts: dict[tuple[str, ...], str]
) -> None:
    grouped = f"(SELECT f AS k, count(*) AS n FROM {lake_of_layouts[()]} GROUP BY f)"
    joined = f"SELECT * FROM {grouped} x JOIN {grouped} y ON x.k = y.k AND x.n < y.n + 1"
    with conf(spark, WITHOUT_BROADCASTS):
        frame = spark.sql(joined)
        assert frame.count() > 0
        frame.collect()
        assert "ReusedExchange" in executed_plan(frame)


def test_values_found_while_running_drop_partitions(spark: SparkSession, namespace: str) -> None:
    spark.sql(
        f"CREATE TABLE {namespace}.facts PARTITIONED BY (k)"
        " AS SELECT id % 20 AS k, id AS v FROM RANGE(200)"
    )
    spark.sql(
        f"CREATE TABLE {namespace}.chosen"
        " AS SELECT * FROM VALUES (3L, 'a'), (7L, 'a'), (NULL, 'a'), (9L, 'b') AS t(k, tag)"
    )
    prune = "spark.sql.optimizer.dynamicPartitionPruning"
    settings = {
        f"{prune}.reuseBroadcastOnly": "false",
        f"{prune}.useStats": "false",
        f"{prune}.fallbackFilterRatio": "10",
    }
    with conf(spark, settings):
        for tag, kept, count in (("a", 2, 20), ("none", 0, 0)):
            frame = spark.sql(
                f"SELECT v FROM {namespace}.facts f JOIN {namespace}.chosen c ON f.k = c.k"
                f" WHERE c.tag = '{tag}'"
            )
            assert len(frame.collect()) == count
            # where nothing is left, Spark replaces the whole plan while it runs
            if count:
                assert f"runtime filters kept: {kept} of 20 partitions" in executed_plan(frame)


def test_a_limit_stops_the_scan(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t AS SELECT id, uuid() AS u FROM RANGE(3000000)")
    started = time.monotonic()
    for _ in range(20):
        assert len(spark.sql(f"SELECT * FROM {namespace}.t LIMIT 3").collect()) == 3
    assert time.monotonic() - started < 20
    assert spark.table(f"{namespace}.t").count() == 3000000


def test_a_killed_worker_fails_the_task_and_is_started_again(
    spark: SparkSession, namespace: str
) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t AS SELECT id FROM RANGE(4000000)")
    slow = spark.sql(
        f"SELECT sum(length(soundex(repeat(sha2(cast(id AS STRING), 512), 10)))) FROM {namespace}.t"
    )
    caught: list[Exception] = []

    def run() -> None:
        try:
            slow.collect()
        except PySparkException as error:
            caught.append(error)

    query = threading.Thread(target=run)
    query.start()
    # Whoever kills it while the query is planned meets a worker that is started again in silence.
    tracker = spark.sparkContext.statusTracker()
    while not any(map(tracker.getStageInfo, tracker.getActiveStageIds())):
        assert query.is_alive(), "the query must run while the worker is killed"
    time.sleep(1.5)
    os.kill(worker_pid(spark), signal.SIGKILL)
    query.join(600)  # on a busy machine the tasks fail late
    assert str(caught[0]).startswith("[WORKER_LOST]")
    assert spark.table(f"{namespace}.t").count() == 4000000


def worker_pid(spark: SparkSession) -> int:
    """The one child process of the JVM that runs the worker."""
    children = spark._jvm.java.lang.ProcessHandle.current().children().toArray()
    [pid] = [
        child.pid()
        for child in children
        if "pennon.worker" in child.info().commandLine().orElse("")
    ]
    return int(pid)
