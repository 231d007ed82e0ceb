"""Namespaces of the older draft, written by pylance after its text, become current ones."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import lance
import lance_namespace
import pytest
from lance_namespace import DescribeTableRequest
from tests.draft.older_draft import CASES, Row, make

from pennon.cli import main
from pennon.errors import DraftLayout, MigrationRefused
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.migrate import migrate
from pennon.manifest import Snapshot
from pennon.namespace import read_plan
from pennon.planning import plan_scan


def ids(location: str, predicate: str | None = None) -> tuple[list[int], int]:
    """The ids that a predicate finds, and the leaves that it reads."""
    plan = plan_scan(Snapshot.open(location), predicate)
    return sorted(read_plan(plan).to_arrow()["id"].to_pylist()), plan.table.num_rows


def test_a_draft_says_what_to_do_and_migrates_without_new_data_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns: list[Row] = [
        {"name": "ts", "function": "month", "properties": {}},
        {"name": "country", "function": "identity"},
    ]

    def name(row: Row) -> list[str]:
        ts = row["ts"]
        assert isinstance(ts, dt.datetime)
        country = "null" if row["country"] is None else str(row["country"]).replace("/", "%2F")
        return [f"ts_month={(ts.year - 1970) * 12 + ts.month - 1}", f"country={country}"]

    location = make(tmp_path / "draft", columns, name)
    files = {path for path in Path(location).rglob("*.lance") if path.is_file()}
    with pytest.raises(DraftLayout, match="pennon migrate"):
        Snapshot.open(location)
    assert main(["migrate", location]) == 0
    assert "month(ts) is taken for months since 1970" in capsys.readouterr().out
    data = {path for path in Path(location).rglob("*.lance") if "__manifest" not in str(path)}
    assert {path for path in data if path.is_file()} <= files
    assert check(location).violations == ()
    assert ids(location) == (list(range(10)), 4)
    assert ids(location, "country = 'a/b c'") == ([4, 9], 1)
    assert ids(location, "country IS NULL") == ([3, 8], 1)
    assert ids(location, "ts >= TIMESTAMP '2025-12-01 00:00:00'") == ([0, 1, 2, 5, 6, 7], 2)
    upstream = lance_namespace.connect("dir", {"root": location})
    old = upstream.describe_table(DescribeTableRequest(id=["ts_month=671", "country=US"]))
    assert lance.dataset(old.location).count_rows() == 4
    with pytest.raises(MigrationRefused, match="current format already"):
        migrate(location)
    migrate(location, remove_old=True)
    rows = Snapshot.open(location).manifest.to_table()["object_id"].to_pylist()
    assert all(name_.startswith("v1") for name_ in rows)
    key = Snapshot.open(location).manifest.schema.field("object_id")
    assert b"lance-schema:unenforced-primary-key:position" in (key.metadata or {})
    assert ids(location) == (list(range(10)), 4)
    assert check(location).violations == ()


@pytest.mark.parametrize("case", CASES)
def test_each_function_is_read_as_its_rows_say(tmp_path: Path, case: str) -> None:
    column, name, predicate, wanted = CASES[case]
    location = make(tmp_path, [column], lambda row: [name(row)], above="root")
    migrate(location)
    assert check(location).violations == ()
    assert ids(location)[0] == list(range(10))
    assert ids(location, predicate) == wanted


def test_a_name_that_contradicts_its_rows_is_refused(tmp_path: Path) -> None:
    column: list[Row] = [{"name": "ts", "function": "year"}]
    location = make(tmp_path, column, lambda _: ["ts_year=1999"])
    before = lance.dataset(f"{location}/__manifest").version
    with pytest.raises(MigrationRefused, match=r"leaf 00000000_leaf\.lance have ts_year=2025"):
        migrate(location)
    assert lance.dataset(f"{location}/__manifest").version == before


def test_an_unknown_function_is_refused(tmp_path: Path) -> None:
    location = make(tmp_path, [{"name": "n", "function": "zorder"}], lambda _: ["n=1"])
    with pytest.raises(MigrationRefused, match="function zorder"):
        migrate(location)
