"""Statements that write rows which they made of the same table, beside others."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.transaction.lake import SCHEMA, table_of
from tests.transaction.test_races_behind_the_last_look import behind_the_look, merge, rows

import pennon
from pennon.catalog.configured_catalog import WriteMode
from pennon.catalog.layouts.partitioned_table import PartitionedTable
from pennon.errors import WriteConflict
from pennon.manifest.format.rows import CommitIdentity
from pennon.namespace.rows.row_write import batches_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pennon.namespace import PartitionedNamespace

EU, US, ASIA = {"id": 1, "region": "eu"}, {"id": 2, "region": "us"}, {"id": 3, "region": "asia"}
OF_EU, OF_US = [["region = 'eu'"]], [["region = 'us'"]]
READ = r"this statement read it, and another commit"
MODES = [WriteMode.OVERWRITE, WriteMode.OVERWRITE_PARTITIONS]


@pytest.fixture
def location(tmp_path: Path) -> str:
    table = pennon.create(str(tmp_path / "t"), SCHEMA, ["region"])
    table.append([EU, US])
    return str(table.location)


def write(
    table: PartitionedNamespace, mode: WriteMode, row: dict[str, object], reads: list[list[str]]
) -> int:
    """Write a row that was made of what a statement read of the version that is open."""
    stored = table_of(table).stored
    predicates = [f"region = '{row['region']}'"] if mode is WriteMode.OVERWRITE else []
    return stored.commit(
        mode, predicates, stored.stage_unordered(batches_of([row])).texts, None, reads
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_behind", [False, True])
def test_of_two_overwrites_that_read_each_others_partition_one_is_refused(
    location: str, monkeypatch: pytest.MonkeyPatch, mode: WriteMode, *, is_behind: bool
) -> None:
    """Each would have the rows that the other one has replaced: no order gives that."""
    mine, theirs = pennon.open(location), pennon.open(location)
    from_mine, from_theirs = {"id": 10, "region": "us"}, {"id": 20, "region": "eu"}
    if is_behind:
        behind_the_look(monkeypatch, lambda: write(theirs, mode, from_mine, OF_EU))
    else:
        write(theirs, mode, from_mine, OF_EU)
    with pytest.raises(WriteConflict, match=f"partition region=us: {READ} changed it"):
        write(mine, mode, from_theirs, OF_US)
    assert rows(location) == [(1, "eu"), (10, "us")]


@pytest.mark.parametrize("mode", [*MODES, WriteMode.APPEND])
@pytest.mark.parametrize(
    ("others", "what"),
    [
        (lambda table: table.delete("region = 'us'"), "dropped it"),
        (lambda table: table.delete("id = 2"), "dropped it"),
        (lambda table: table.update({"id": "id + 5"}, "region = 'us'"), "changed it"),
        (lambda table: write(table, WriteMode.APPEND, US, OF_EU), "changed it"),
    ],
    ids=["drop", "delete", "update", "insert"],
)
def test_what_was_read_must_not_change(
    location: str,
    mode: WriteMode,
    others: Callable[[PartitionedNamespace], object],
    what: str,
) -> None:
    mine = pennon.open(location)
    others(pennon.open(location))
    before = rows(location)
    with pytest.raises(WriteConflict, match=f"region=us: {READ} {what}"):
        write(mine, mode, {"id": 20, "region": "eu"}, OF_US)
    assert rows(location) == before


@pytest.mark.parametrize("mode", [*MODES, WriteMode.APPEND])
def test_rows_that_others_append_come_behind(location: str, mode: WriteMode) -> None:
    """Whoever appends them has read nothing, so the statement may have come first."""
    mine = pennon.open(location)
    pennon.open(location).append([{"id": 5, "region": "us"}])
    pennon.open(location).maintenance.compact()
    pennon.open(location).add_column("note", pa.int32())
    write(mine, mode, {"id": 20, "region": "eu"}, OF_US)
    first = [(1, "eu")] if mode is WriteMode.APPEND else []
    assert rows(location) == [*first, (2, "us"), (5, "us"), (20, "eu")]


def test_rows_that_another_statement_has_read_do_not_come_behind(location: str) -> None:
    """The merge has found the appended key, and not the row of the statement."""
    mine = pennon.open(location)
    pennon.open(location).append([{"id": 5, "region": "us"}])
    merge(location, {"id": 5, "region": "us"}, ASIA)
    with pytest.raises(WriteConflict, match=f"region=us: {READ} changed it"):
        write(mine, WriteMode.OVERWRITE, {"id": 20, "region": "eu"}, OF_US)


@pytest.mark.parametrize("mode", [*MODES, WriteMode.APPEND])
def test_what_was_not_read_and_what_moves_no_row_does_not_matter(
    location: str, monkeypatch: pytest.MonkeyPatch, mode: WriteMode
) -> None:
    pennon.open(location).append([{"id": 5, "region": "us"}])
    mine = pennon.open(location)

    def others() -> None:
        pennon.open(location).delete("region = 'nowhere'")
        merge(location, ASIA)
        pennon.open(location).maintenance.compact()

    behind_the_look(monkeypatch, others)
    write(mine, mode, {"id": 20, "region": "eu"}, OF_US)
    assert (20, "eu") in rows(location)


@pytest.mark.parametrize("mode", [*MODES, WriteMode.APPEND])
def test_by_snapshot_isolation_nothing_that_was_read_matters(
    location: str, mode: WriteMode
) -> None:
    pennon.open(location).set_properties({"write.isolation": "snapshot"})
    mine = pennon.open(location)
    pennon.open(location).delete("id = 2")
    write(mine, mode, {"id": 20, "region": "eu"}, OF_US)
    assert (20, "eu") in rows(location)


@pytest.mark.parametrize("is_blind", [True, False])
def test_appended_rows_that_were_read_need_their_version(location: str, *, is_blind: bool) -> None:
    mine = pennon.open(location)
    target = table_of(mine).stored.target
    pennon.open(location).append([US])
    pennon.open(location).maintenance.expire_snapshots(dt.datetime.now(dt.UTC), 1)
    mode, identity = WriteMode.APPEND, CommitIdentity.fresh()
    with contextlib.ExitStack() as refused:
        if not is_blind:
            refused.enter_context(pytest.raises(WriteConflict, match="has expired meanwhile"))
        PartitionedTable.open_base("t", target, "", mode, identity, is_blind=is_blind)


def test_the_history_tells_rows_of_the_table_from_others(location: str) -> None:
    write(pennon.open(location), WriteMode.APPEND, EU, OF_US)
    assert pennon.open(location).history()[-1].operation == "insert"
