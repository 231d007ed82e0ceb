"""How many values columns have over all leaves, and between which bounds they lie."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from tests.transaction.lake import append, make

import pennon
from pennon.planning import plan_scan
from pennon.planning.column_summaries import ColumnSummary, column_summaries

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
    assert known["region"].null_count == sum(each["region"] is None for each in rows(0, 3_000))
    assert known["empty"].lower.as_py() is None
    assert known["empty"].null_count == 3_000
    assert known["region"].distinct_count == 5, "one value per leaf needs nobody to count"
    assert known["product"].distinct_count is None
    assert summaries(table, "region = 'r1'")["region"].distinct_count == 1


def test_values_that_leaves_share_are_not_counted_once_per_leaf(
    table: pennon.PartitionedNamespace,
) -> None:
    table.maintenance.analyze()
    known = {name: each.distinct_count for name, each in summaries(table).items()}
    assert known["region"] == 5
    assert known["empty"] == 0
    assert known["code"] == 30, "of each bucket as many as its leaves have, and no two share one"
    assert 40 <= known["product"] <= 50
    assert 70 <= known["day"] <= 90
    assert 1_500 <= known["id"] <= 3_000


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
