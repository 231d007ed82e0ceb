"""Times in sessions of other zones than UTC, by the offsets of the zones that Spark's JVM knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import ONE_TASK, conf
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("fragment_tables")

DAYS = "SELECT CAST(ts AS DATE) AS day, count(*) AS n FROM y GROUP BY 1"


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT date_trunc('DAY', ts), hour(ts), count(*), min(ts) FROM x GROUP BY 1, 2",
        "SELECT date_format(ts, 'yyyy-MM-dd HH'), count(*) FROM x WHERE minute(ts) > 7 GROUP BY 1",
        f"SELECT id, n FROM x JOIN ({DAYS}) ON CAST(ts AS DATE) = day WHERE hour(ts) > 7",
        "SELECT id, date_trunc('MONTH', max(ts)) FROM x GROUP BY id ORDER BY 2 DESC, 1 LIMIT 5",
    ],
)
def test_times_of_a_zone_are_computed_in_the_workers(
    spark: SparkSession, query: str, zone: str
) -> None:
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        assert_same(spark, query)
        with conf(spark, ONE_TASK):
            plan = assert_same(spark, query)
    assert " in 1 tasks" in plan


def test_partitions_of_hours_are_no_answer_where_clocks_are_half_an_hour_ahead(
    spark: SparkSession,
) -> None:
    """The hour of a clock changes within such a partition."""
    table = "lance.fragments.by_hours"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (hours(ts)) AS SELECT ts, id FROM x")
    with conf(spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        for query in (
            f"SELECT hour(ts), count(*) FROM {table} GROUP BY 1",
            f"SELECT date_trunc('DAY', ts), count(*), max(ts) FROM {table} GROUP BY 1",
        ):
            assert "answered by the manifest" not in assert_same(spark, query)


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe"])
def test_hours_are_added_as_time_that_passes_and_intervals_by_the_clocks(
    spark: SparkSession, zone: str
) -> None:
    """The clocks of both zones change by an hour, or by half of one, within these days."""
    table = "lance.fragments.changing_clocks"
    spark.sql(
        f"CREATE OR REPLACE TABLE {table} AS SELECT id, TIMESTAMP '2021-10-01 05:30:00Z'"
        " + make_dt_interval(0, 7 * CAST(id AS INT)) AS ts FROM range(300)"
    )
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        assert_same(
            spark,
            "SELECT id, max(timestampadd(HOUR, 24, ts)), max(dateadd(MINUTE, -1500, ts)),"
            " max(timestampadd(SECOND, 86400, ts)), max(timestampadd(DAY, 1, ts)),"
            f" max(ts + INTERVAL '25' HOUR), max(ts - INTERVAL '49' HOUR) FROM {table} GROUP BY id",
        )
