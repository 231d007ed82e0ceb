"""Rows that are expected behind filters, beside those that are there."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.planning import plan_scan
from pennon.planning.reports.explain import scan_report
from pennon.planning.reports.row_estimate import estimate_rows

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "region": pa.utf8(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(38, 2),
        "weight": pa.float64(),
        "none": pa.int32(),
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pennon.PartitionedNamespace:
    made = pennon.create(tmp_path_factory.mktemp("estimates") / "t", SCHEMA, ["region"])
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    made.append(
        [
            {
                "id": number,
                "region": f"r{number % 4}" if number % 5 else None,
                "day": (start + dt.timedelta(days=number % 90)).date(),
                "at": start + dt.timedelta(hours=number),
                "price": decimal.Decimal(number) / 100 if number % 2 else None,
                "weight": number / 7,
                "none": None,
            }
            for number in range(3_000)
        ]
    )
    return made


@pytest.mark.parametrize(
    ("where", "off_by"),
    [
        ("region = 'r1'", 0),
        ("region IS NULL OR region > 'r2'", 0),
        ("id < 750", 10),
        ("id >= 750 AND id < 1000", 10),
        ("id BETWEEN 100 AND 200 AND region = 'r3'", 10),
        ("id = 7", 3),
        ("id <> 7", 3),
        ("id IN (1, 2, 3, 4, 100000)", 4),
        ("day >= DATE '2024-02-01'", 60),
        ("at < TIMESTAMP '2024-02-01 00:00:00'", 20),
        ("price < 15", 20),
        ("price IS NULL", 0),
        ("price IS NOT NULL AND region = 'r1'", 0),
        ("weight > 100", 20),
        ("none IS NULL", 0),
        ("none = 1 OR id < 10", 5),
        ("none > 1", 0),
    ],
)
def test_rows_are_estimated_as_they_are(
    table: pennon.PartitionedNamespace, where: str, off_by: int
) -> None:
    estimate = estimate_rows(plan_scan(table.snapshot, where))
    there = table.scan(where).to_arrow().num_rows
    assert estimate is not None
    assert estimate.is_complete
    assert abs(estimate.num_rows - there) <= off_by, (estimate, there)


def test_what_no_statistics_tell_is_said(
    table: pennon.PartitionedNamespace, tmp_path: Path
) -> None:
    told = dict(scan_report(plan_scan(table.snapshot, "id < 300 AND id % 3 = 1")))
    assert told["expected rows"].startswith("at most about 298:")
    assert "expected rows" not in dict(scan_report(plan_scan(table.snapshot, "region = 'r1'")))
    uncounted = {"write.statistics.columns": "0"}
    other = pennon.create(tmp_path / "t", SCHEMA, ["region"], properties=uncounted)
    other.append(table.scan().to_arrow().slice(0, 100))
    told = dict(scan_report(plan_scan(other.snapshot, "id < 300")))
    assert told["expected rows"].startswith("at most about 100:")
