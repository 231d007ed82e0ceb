"""Namespaces that earlier releases wrote: every later release reads them as they are."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from decimal import Decimal
from pathlib import Path

import lance
import pytest
from tests.interop.freeze import FIRST, SECOND, THIRD, append, time

import pennon
from pennon.cli import main
from pennon.maintenance.checks.check_manifest import check
from pennon.manifest import Snapshot
from pennon.namespace import read_plan

FROZEN = sorted((Path(__file__).parent / "frozen").glob("*.zip"))


@pytest.fixture(params=FROZEN, ids=[folder.stem for folder in FROZEN])
def frozen(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy, so that nothing can change what is checked in."""
    shutil.unpack_archive(request.param, tmp_path / "frozen")
    return tmp_path / "frozen"


def wanted(frozen: Path) -> list[dict[str, object]]:
    rows = json.loads((frozen / "rows.json").read_text(encoding="utf-8"))
    for row in rows:
        row["at"] = None if row["at"] is None else dt.datetime.fromisoformat(row["at"])
        row["price"] = None if row["price"] is None else Decimal(row["price"])
    return list(rows)


def test_every_row_of_every_type_is_read(frozen: Path) -> None:
    found = pennon.open(frozen / "orders").scan().to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == sorted(
        wanted(frozen), key=lambda row: str(row["id"]).zfill(3)
    )


@pytest.mark.parametrize(
    ("predicate", "ids", "leaves"),
    [
        ("zone = 'eu'", [1, 2, 6], 4),
        ("zone = 'EU'", [8, 9, 41], 3),
        ("zone IS NULL", [4, 7], 2),
        ("zone = '日本'", [5], 1),
        ("at >= TIMESTAMP '2025-12-01 00:00:00'", [3], 1),
        ("id = 41", [41], 6),
        ("point.x > 4", [9, 41], 8),
        ("note = 'n8'", [8], 8),
    ],
)
def test_both_specs_prune(frozen: Path, predicate: str, ids: list[int], leaves: int) -> None:
    plan = pennon.open(frozen / "orders").scan(predicate).plan()
    assert sorted(read_plan(plan).to_arrow()["id"].to_pylist()) == ids
    assert plan.table.num_rows == leaves


def test_it_breaks_no_rule_and_earlier_versions_are_read(frozen: Path) -> None:
    location = str(frozen / "orders")
    report = check(location)
    assert report.violations == ()
    assert report.rows == len(FIRST) + len(SECOND) + len(THIRD)
    assert main(["check", location]) == 0
    versions = [row["version"] for row in lance.dataset(f"{location}/__manifest").versions()]
    rows = [pennon.open(location, version).scan().plan().num_rows for version in versions[1:]]
    assert sorted({n or 0 for n in rows}) == [0, 5, 7, 10]
    assert pennon.open(location, versions[2]).schema.names[1] == "region"


def test_it_can_be_written_on(frozen: Path) -> None:
    snapshot = Snapshot.open(str(frozen / "orders"))
    row = {"id": 50, "zone": "Eu", "at": time(3, 4, 9)}
    after = append(snapshot, [row])
    found = pennon.open(after.location).scan("id = 50").to_arrow().to_pylist()
    assert [row["zone"] for row in found] == ["Eu"]
    assert check(after.location).violations == ()
