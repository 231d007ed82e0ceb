"""Timestamps with a zone, in sessions whose clocks are put forward and back: Spark's own values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyspark
import pytest
from tests.spark.assert_join import conf
from tests.spark.expressions.spark_expressions import Expressions, zone_offsets_of
from tests.strategies.edge_values import edge_rows

from pennon.predicate.expressions import Semantics
from pennon.predicate.values.time_units import ZoneOffsets
from pennon.starting_jvm import started_by, starting_jvm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

EXPRESSIONS = [
    *("year(ts)", "month(ts)", "day(ts)", "hour(ts)", "minute(ts)", "second(ts)", "dayofweek(ts)"),
    *(f"date_trunc('{unit}', ts)" for unit in ("YEAR", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")),
    *("CAST(ts AS DATE)", "CAST(ts AS STRING)", "CAST(ts AS TIMESTAMP_NTZ)"),
    *("CAST(ntz AS TIMESTAMP)", "CAST(d AS TIMESTAMP)", "ts < ntz", "ts >= d"),
    *("date_format(ts, 'yyyy-MM-dd HH:mm')", "extract(SECOND FROM ts)", "last_day(ts)"),
    *("timestampdiff(MONTH, ts, ntz)", "timestampdiff(HOUR, ts, ntz)", "datediff(ts, ntz)"),
    *("from_unixtime(i64)", "hour(timestamp_seconds(i32))", "trunc(ts, 'MM')"),
    *(f"ts {way} INTERVAL '{span}" for way in "+-" for span in ("2' HOUR", "1' MONTH", "1' DAY")),
    *("ts + INTERVAL '36' HOUR", "ts - INTERVAL '1 00:30:00.5' DAY TO SECOND"),
    *("ts - INTERVAL '5' YEAR", "timestampadd(WEEK, 26, ts)", "timestampadd(QUARTER, -2, ts)"),
    *("timestampadd(MILLISECOND, -1, ts)", "ts + INTERVAL '0' DAY"),
]
DECLINED = ["months_between(ts, ntz)"]

# Half an hour, midnights that are there twice or never, days that are, no rule behind 2087.
ZONES = [
    *(
        "Europe/Berlin",
        "Australia/Lord_Howe",
        "America/Sao_Paulo",
        "America/Havana",
        "Pacific/Apia",
    ),
    *("Africa/Monrovia", "Africa/Casablanca", "Asia/Kolkata", "+05:45"),
]


def rows_around_changes(zone: ZoneOffsets) -> pa.Table:
    """Give times at, before and behind changes of offsets, in all centuries and in later ones."""
    changes = zone.changes if len(zone.changes) else np.array([0], np.int64)
    some = changes[np.unique(np.linspace(0, len(changes) - 1, 60).astype(int))]
    hour = 3_600_000_000
    around = [0, -1, 1, hour // 2, -hour // 2, hour, -hour, 12 * hour, 7 * hour + 123_456]
    moments = np.concatenate([some + near for near in around])
    far = moments[::5] + 146_097 * 24 * hour * np.resize([3, -2, 30, 600], len(moments[::5]))
    moments = np.concatenate([moments, far, [-(10**17), 10**17]])
    clocks = zone.clocks(moments)
    rows = edge_rows(len(moments))
    times = {"ts": moments, "ntz": clocks, "d": (clocks // (24 * hour)).astype(np.int32)}
    for name, values in times.items():
        kind = rows.schema.field(name).type
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values).cast(kind))
    return rows


@pytest.fixture
def jvm_of_this_spark() -> Iterator[None]:
    jvm = starting_jvm()
    started_by(replace(jvm, spark=pyspark.__version__))
    yield
    started_by(None)


@pytest.mark.usefixtures("jvm_of_this_spark")
@pytest.mark.parametrize("zone", ZONES)
def test_times_are_those_of_the_clocks_of_the_session(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    offsets = zone_offsets_of(spark, zone)
    rows = rows_around_changes(ZoneOffsets.of(offsets))
    session = {
        "spark.sql.session.timeZone": zone,
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    }
    with conf(spark, session):
        expressions = Expressions.over(spark, rows, tmp_path / "rows")
        compared = expressions.compare([*EXPRESSIONS, *DECLINED], Semantics(zone_offsets=offsets))
    assert compared.different == {}
    assert sorted(compared.declined) == sorted(DECLINED)


def test_changes_of_every_zone_of_java_are_apart(spark: SparkSession) -> None:
    """The times that clocks show twice, or never, are those of one change at a time."""
    for name in spark._jvm.java.time.ZoneId.getAvailableZoneIds():
        zone = ZoneOffsets.of(zone_offsets_of(spark, name))
        early = zone.changes + np.minimum(zone.before, zone.after)
        late = zone.changes + np.maximum(zone.before, zone.after)
        assert (early[1:] > late[:-1]).all(), name
