"""Windows of time as grouping keys: the workers' are Spark's, before 1970 and in any zone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import EXECUTION, ONE_TASK, conf, execute
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ZONES = ["UTC", "America/New_York", "Asia/Kathmandu"]
QUERIES = [
    "SELECT window(ts, '5 minutes').start AS w, count(*) FROM readings GROUP BY 1",
    "SELECT window(ts, '1 day', '1 day', '90 minutes').end AS w, sum(v) FROM readings GROUP BY 1",
    "SELECT window(n, '7 days').start AS w, max(v) FROM readings GROUP BY 1",
    "SELECT unix_timestamp(ts) div 3600 AS hour, sum(v) FROM readings GROUP BY 1",
    (
        "SELECT w, count(*) OVER (ORDER BY w) FROM"
        " (SELECT DISTINCT window(n, '11 hours').end AS w FROM readings WHERE v > 3)"
    ),
    (
        "SELECT a, b, count(*), sum(id) FROM (SELECT id,"
        " sum(v) OVER (ORDER BY n RANGE INTERVAL 2 DAYS PRECEDING) AS a, count(*) OVER"
        " (ORDER BY n DESC NULLS LAST RANGE BETWEEN INTERVAL '30' HOUR PRECEDING"
        " AND INTERVAL '4' HOUR FOLLOWING) AS b FROM readings) GROUP BY a, b"
    ),
    (
        "SELECT m, sum(id) FROM (SELECT id, sum(v) OVER"
        " (ORDER BY ts RANGE INTERVAL 90 MINUTES PRECEDING) AS m FROM readings) GROUP BY m"
    ),
]


@pytest.fixture(scope="module", autouse=True)
def readings(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.windows")
    spark.sql(
        "CREATE TABLE lance.windows.readings PARTITIONED BY (bucket(4, id)) AS SELECT id,"
        " IF(id % 41 = 0, NULL, TIMESTAMP'1970-01-01 00:00:00Z'"
        "   + MAKE_INTERVAL(0, 0, 0, 0, 0, (id - 300) * 53, 0.25)) AS ts,"
        " IF(id % 37 = 0, NULL, TIMESTAMP_NTZ'1968-12-31 23:59:59.999999'"
        "   + MAKE_INTERVAL(0, 0, 0, 0, id * 3)) AS n,"
        " id % 17 AS v FROM RANGE(600)"
    )
    spark.table("lance.windows.readings").createOrReplaceTempView("readings")
    yield
    spark.catalog.dropTempView("readings")
    spark.sql("DROP NAMESPACE lance.windows CASCADE")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("query", QUERIES)
def test_windows_of_time_are_those_of_spark(spark: SparkSession, query: str, zone: str) -> None:
    with conf(spark, {**ONE_TASK, "spark.sql.session.timeZone": zone}):
        assert_same(spark, query)


@pytest.mark.parametrize("zone", ZONES)
def test_days_of_a_zone_differ_in_length(spark: SparkSession, zone: str) -> None:
    """A frame of days is the workers' where every day has 24 hours."""
    day = "(ORDER BY ts RANGE INTERVAL 1 DAY PRECEDING)"
    windows = f"SELECT id, sum(v) OVER {day} AS w FROM readings"
    query = f"SELECT w, sum(id) FROM ({windows}) GROUP BY w"
    with conf(spark, {**ONE_TASK, "spark.sql.session.timeZone": zone}):
        with conf(spark, {EXECUTION: "spark"}):
            expected = execute(spark, query)
        actual = execute(spark, query)
    assert actual.rows == expected.rows
    assert ("Window [" in actual.plan) is (zone != "UTC")


def test_what_workers_do_not_compute_has_the_name_that_users_write(spark: SparkSession) -> None:
    query = "SELECT initcap(CAST(v AS STRING)) AS r, count(*) FROM readings GROUP BY 1"
    (found, _) = spark.sql(f'CALL lance.system.explain_join("{query}")').collect()
    assert "do not compute: initcap" in found.reason
