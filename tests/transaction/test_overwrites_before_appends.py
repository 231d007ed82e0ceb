"""Overwrites come before rows that others appended, where an order of all statements allows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.transaction.lake import SCHEMA, table_of
from tests.transaction.test_races_behind_the_last_look import behind_the_look, merge, rows
from tests.transaction.test_rows_made_of_their_table import write

import pennon
from pennon.catalog.configured_catalog import WriteMode
from pennon.errors import WriteConflict
from pennon.manifest.format.rows import CommitIdentity
from pennon.namespace import PartitionedNamespace
from pennon.namespace.rows.row_write import batches_of

HALVES = pa.schema({"id": pa.int64(), "region": pa.string(), "half": pa.int32()})
EU, ASIA = {"id": 1, "region": "eu"}, {"id": 4, "region": "asia"}
APPENDED, TOTAL = {"id": 5, "region": "new"}, {"id": 100, "region": "us"}
SOME = "region IN ('eu', 'new')"
REFUSED = "a statement that read what this one replaces made it meanwhile, or came behind rows"

Change = Callable[[PartitionedNamespace], object]
TAKE_OUT: dict[str, Change] = {
    "overwrite": lambda table: table.overwrite([{"id": 9, "region": "eu"}], SOME),
    "delete": lambda table: table.delete(SOME),
}
READERS: dict[str, Change] = {
    "merge": lambda table: merge(str(table.location), EU, APPENDED, {"id": 7, "region": "us"}),
    "insert": lambda table: write(table, WriteMode.APPEND, TOTAL, [[SOME]]),
}


@pytest.fixture
def location(tmp_path: Path) -> str:
    table = pennon.create(str(tmp_path / "t"), SCHEMA, ["region"])
    table.append([EU, ASIA])
    return str(table.location)


def one_after_the_other(location: str, *changes: Change) -> Callable[[], None]:
    def run() -> None:
        for change in changes:
            change(pennon.open(location))

    return run


@pytest.mark.parametrize("take_out", TAKE_OUT)
@pytest.mark.parametrize("reader", READERS)
def test_none_comes_before_rows_that_another_statement_read_with_those_it_takes_out(
    location: str, monkeypatch: pytest.MonkeyPatch, take_out: str, reader: str
) -> None:
    """It would come before the append, that before the reader, and the reader before it."""
    mine = pennon.open(location)
    others = one_after_the_other(location, lambda table: table.append([APPENDED]), READERS[reader])
    behind_the_look(monkeypatch, others)
    with pytest.raises(WriteConflict, match=f"region=new: {REFUSED}"):
        TAKE_OUT[take_out](mine)
    new = {"merge": (7, "us"), "insert": (100, "us")}[reader]
    assert rows(location) == sorted([(1, "eu"), (4, "asia"), (5, "new"), new])


@pytest.mark.parametrize("take_out", TAKE_OUT)
def test_one_comes_before_appends_and_behind_those_who_came_before_these(
    location: str, monkeypatch: pytest.MonkeyPatch, take_out: str
) -> None:
    mine = pennon.open(location)
    others = one_after_the_other(
        location,
        lambda table: table.delete("region = 'asia'"),
        lambda table: merge(str(table.location), {"id": 7, "region": "us"}),
        lambda table: table.append([APPENDED]),
        lambda table: table.maintenance.compact(),
        lambda table: table.append([{"id": 6, "region": "us"}]),
    )
    behind_the_look(monkeypatch, others)
    TAKE_OUT[take_out](mine)
    written = {"overwrite": [(9, "eu")], "delete": []}[take_out]
    assert rows(location) == [(5, "new"), (6, "us"), (7, "us"), *written]


def test_none_comes_before_rows_of_which_another_one_took_some_out(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has read anything, and the DELETE would have taken what the overwrite writes."""
    mine = pennon.open(location)
    others = one_after_the_other(
        location,
        lambda table: table.append([APPENDED, {"id": 6, "region": "newer"}]),
        lambda table: table.delete("region IN ('newer', 'us')"),
    )
    behind_the_look(monkeypatch, others)
    with pytest.raises(WriteConflict, match=f"region=new: {REFUSED}"):
        mine.overwrite([TOTAL], SOME)
    assert rows(location) == [(1, "eu"), (4, "asia"), (5, "new")]


def test_rows_that_a_statement_made_in_an_empty_partition_are_met(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The overwrite has nothing to take out there, and would leave the same key twice."""
    pennon.open(location).delete("id > 0 AND id < 10")
    mine = pennon.open(location)
    assert mine.scan().to_arrow().num_rows == 0
    behind_the_look(monkeypatch, lambda: merge(location, EU))
    with pytest.raises(WriteConflict, match=f"region=eu: {REFUSED}"):
        mine.overwrite([{"id": 1, "region": "us"}], "id < 10")
    assert rows(location) == [(1, "eu")]


@pytest.mark.parametrize("is_new", [True, False], ids=["new spec", "older spec"])
@pytest.mark.parametrize("is_append", [True, False], ids=["append", "merge"])
def test_a_dynamic_overwrite_meets_rows_that_another_spec_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_new: bool, is_append: bool
) -> None:
    row: dict[str, Any] = {"id": 5, "region": "eu", "half": 0}
    place = str(pennon.create(str(tmp_path / "halves"), HALVES, ["region"]).location)
    before = pennon.open(place)

    def add_field() -> None:
        pennon.open(place).add_partition_field("half")

    def other() -> None:
        if is_new:
            add_field()
        if is_append:
            table = pennon.open(place) if is_new else before
            write_rows(table, WriteMode.APPEND, row)
        elif is_new:
            merge(place, row)
        else:
            write_rows(before, WriteMode.APPEND, row, [["id = 5"]])

    if not is_new:
        add_field()
    mine = pennon.open(place)
    behind_the_look(monkeypatch, other)
    if is_append:
        mine.overwrite_partitions([{**row, "id": 6}])
        assert rows(place) == [(5, "eu"), (6, "eu")]
        return
    why = "region=eu: another partition spec was set meanwhile" if is_new else REFUSED
    with pytest.raises(WriteConflict, match=why):
        mine.overwrite_partitions([row])
    assert rows(place) == [(5, "eu")]


def test_a_dynamic_overwrite_comes_before_a_change_of_its_spec_and_all_behind_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the new spec it would have replaced both rows; the other statement saw none of its own."""
    here: list[dict[str, Any]] = [{"id": at, "region": "eu", "half": at} for at in (0, 1)]
    total = {"id": len(here), "region": "us", "half": 0}
    place = str(pennon.create(str(tmp_path / "halves"), HALVES, ["region", "half"]).location)
    pennon.open(place).append(here)
    mine = pennon.open(place)

    def others() -> None:
        pennon.open(place).drop_partition_field("half")
        write_rows(pennon.open(place), WriteMode.APPEND, total, [["true"]])

    behind_the_look(monkeypatch, others)
    with pytest.raises(WriteConflict, match="region=eu, half=1: another partition spec"):
        mine.overwrite_partitions([{**here[1], "id": 9}])
    assert rows(place) == [(0, "eu"), (1, "eu"), (2, "us")]


def write_rows(
    table: PartitionedNamespace,
    mode: WriteMode,
    row: dict[str, Any],
    reads: list[list[str]] | None = None,
) -> None:
    """Write a row by the version, and the partition spec, of the table that is open."""
    stored = table_of(table).stored
    staged = stored.stage_unordered(batches_of([row])).texts
    stored.commit(mode, [], staged, CommitIdentity.fresh(), reads or [])
