"""How many values columns have over all leaves, and between which bounds they lie."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from tests.transaction.lake import append, make

import pennon
from pennon.planning import plan_scan
from pennon.planning.reports.column_summaries import (
    ColumnSummary,
    column_summaries,
    most_values,
    scan_summary,
)

COLUMNS = {
    "id": pa.int64(),
    "region": pa.utf8(),
    "product": pa.int32(),
    "code": pa.utf8(),
    "day": pa.date32(),
    "empty": pa.float64(),
}
NAMES = [*COLUMNS, "no column"]


def rows(first: int, count: int) -> list[dict[str, object]]:
    return [
        {
            "id": number,
            "region": f"r{number % 5}" if number % 7 else None,
            "product": number % 50,
            "code": f"c{number % 30}",
            "day": dt.date(2024, 1, 1) + dt.timedelta(days=number % 90),
            "empty": None,
        }
        for number in range(first, first + count)
    ]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pennon.PartitionedNamespace:
    place = tmp_path_factory.mktemp("summaries") / "t"
    made = pennon.create(place, pa.schema(COLUMNS), ["bucket(4, code)", "region"])
    for first in (0, 1_000, 2_000):
        made.append(rows(first, 1_000))
    return made


def summaries(
    table: pennon.PartitionedNamespace, where: str | None = None
) -> dict[str, ColumnSummary]:
    return column_summaries(plan_scan(pennon.open(table.location).snapshot, where), NAMES)


def test_bounds_and_nulls_are_those_of_all_leaves(table: pennon.PartitionedNamespace) -> None:
    known = summaries(table)
    assert set(known) == set(COLUMNS)
    assert (known["id"].lower.as_py(), known["id"].upper.as_py()) == (0, 2_999)
    assert known["region"].null_count == sum(row["region"] is None for row in rows(0, 3_000))
    assert known["empty"].lower.as_py() is None
    assert known["empty"].null_count == 3_000
    assert known["region"].distinct_count == 5, "one value per leaf needs nobody to count"
    assert known["product"].distinct_count is None
    assert summaries(table, "region = 'r1'")["region"].distinct_count == 1


@pytest.mark.parametrize(
    ("name", "most"),
    [("product", 51), ("day", 91), ("id", 3_001), ("region", None), ("empty", None), ("no", None)],
)
def test_there_are_no_more_values_than_numbers_between_the_bounds(
    table: pennon.PartitionedNamespace, name: str, most: int | None
) -> None:
    assert most_values(plan_scan(table.snapshot), name) == most


def test_values_that_leaves_share_are_not_counted_once_per_leaf(
    table: pennon.PartitionedNamespace,
) -> None:
    table.maintenance.analyze()
    known = {name: summary.distinct_count for name, summary in summaries(table).items()}
    assert known["region"] == 5
    assert known["empty"] == 0
    assert known["code"] == 30, "of each bucket as many as its leaves have, and no two share one"
    assert known["product"] in range(40, 51)
    assert known["day"] in range(70, 91)
    assert known["id"] in range(1_500, 3_001)


def test_partition_values_alone_tell_of_their_column(tmp_path: Path) -> None:
    """A table that counts no columns, and one whose spec divided by something else before."""
    schema = pa.schema({"region": pa.utf8(), "k": pa.int32(), "f": pa.float64(), "v": pa.int64()})
    uncounted = {"write.statistics.columns": "0"}
    table = pennon.create(tmp_path / "t", schema, ["region", "k", "f"], properties=uncounted)
    values = [(f"r{n % 3}" if n % 4 else None, n % 2, float(n % 2), n) for n in range(24)]
    table.append([dict(zip(schema.names, value, strict=True)) for value in values])
    known = column_summaries(plan_scan(table.snapshot), schema.names)
    assert set(known) == {"region", "k"}, "zeros and NaN are not told apart"
    region = known["region"]
    assert (region.lower.as_py(), region.upper.as_py()) == ("r0", "r2")
    assert (region.null_count, region.distinct_count) == (6, 3)
    assert known["k"].distinct_count == 2
    table.drop_partition_field("k")
    table.append([{"region": "r9", "k": 70, "f": 1.0, "v": 1}])
    known = column_summaries(plan_scan(table.snapshot), schema.names)
    assert set(known) == {"region"}, "not every partition has one k"
    assert known["region"].distinct_count == 4


@pytest.mark.parametrize(
    "where",
    [
        "region IS NULL",
        "region IS NOT NULL",
        "empty IS NULL AND region = 'r1'",
        "product IS NOT NULL AND region IS NULL",
        "empty IS NOT NULL",
    ],
)
def test_rows_behind_tests_for_null_are_those_of_a_full_scan(
    table: pennon.PartitionedNamespace, where: str
) -> None:
    """Spark evaluates no such test again, and has nothing to estimate it by."""
    plan = plan_scan(pennon.open(table.location).snapshot, where.split(" AND "))
    known = scan_summary(plan, NAMES)
    scanned = pennon.open(table.location).scan(where).to_arrow()
    assert known.num_rows == scanned.num_rows
    for name, column in known.columns.items():
        if scanned.num_rows:
            assert column.null_count == scanned[name].null_count, name


def test_nulls_that_may_be_gone_rule_out_no_rows(tmp_path: Path) -> None:
    """A side of a join that is taken for empty is sent everywhere."""
    table = pennon.create(tmp_path / "t", pa.schema({"k": pa.int32(), "n": pa.int32()}), ["k"])
    table.append([{"k": 1, "n": None} for _ in range(10)])
    assert scan_summary(plan_scan(table.snapshot, ["n IS NOT NULL"]), ["k"]).num_rows == 0
    table.update({"n": "7"}, where="k = 1")
    assert scan_summary(plan_scan(table.snapshot, ["n IS NOT NULL"]), ["k"]).num_rows == 10


def test_a_leaf_of_which_nothing_is_known_leaves_nothing_to_say(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path, strong=False), {1: "eu"})
    assert column_summaries(plan_scan(snapshot), ["id", "region"]) == {}


def test_extremes_beside_nan_and_nulls_that_went_are_not_told(tmp_path: Path) -> None:
    """The greatest number beside NaN is not known, and no leaf has more NULLs than rows."""
    schema = pa.schema({"k": pa.int32(), "f": pa.float64(), "n": pa.int32()})
    table = pennon.create(tmp_path / "t", schema, ["k"])
    table.append([{"k": 1, "f": 3.0, "n": None if n else 7} for n in range(10)])
    table.append([{"k": 2, "f": f, "n": 1} for f in (float("nan"), 100.0, -5.0)])
    table.delete("n IS NULL")
    known = column_summaries(plan_scan(table.snapshot), ["f", "n"])
    assert known["f"].lower.as_py() is known["f"].upper.as_py() is None
    assert known["n"].null_count <= 4
    alone = column_summaries(plan_scan(table.snapshot, "k = 1"), ["f", "n"])
    assert (alone["f"].upper.as_py(), alone["n"].null_count) == (3.0, 1)
