"""A table whose name is about to be another one's, made of its rows: nobody writes in between."""

from __future__ import annotations

import contextlib
import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.transaction.lake import SCHEMA
from tests.transaction.test_races_behind_the_last_look import behind_the_look, rows

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import table_ddl
from pennon.catalog.ddl.alter import alter_table
from pennon.catalog.ddl.register import unchanged_since_read
from pennon.catalog.tables.loaded_table import Table, load
from pennon.errors import (
    StorageFailure,
    TableNotFound,
    TransactionModeChanged,
    UnsupportedTableChange,
    WriteConflict,
)
from pennon.manifest.commits import root_change
from pennon.manifest.commits import root_change as stated_commit
from pennon.manifest.commits.mode_commit import begin_change
from pennon.manifest.format.properties import REPLACED, ChangeNotice

if TYPE_CHECKING:
    from collections.abc import Callable

EU, US = {"id": 1, "region": "eu"}, {"id": 2, "region": "us"}


@pytest.fixture
def location(tmp_path: Path) -> str:
    table = pennon.create(str(tmp_path / "t"), SCHEMA, ["region"])
    table.append([EU])
    return str(table.location)


def loaded(location: str) -> Table:
    return load(Catalog("lance", location), (location,))


def test_an_append_that_has_looked_already_is_refused(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = [(location, pennon.open(location).version)]
    with contextlib.ExitStack() as replacing:
        tries = behind_the_look(
            monkeypatch,
            lambda: replacing.enter_context(unchanged_since_read(loaded(location), read)),
        )
        with pytest.raises(TransactionModeChanged, match="another table is being put in its place"):
            pennon.open(location).append([US])
        assert len(tries) == 1
        assert rows(location) == [(1, "eu")]


def test_an_append_that_was_first_is_seen(location: str) -> None:
    read = [(location, pennon.open(location).version)]
    table = loaded(location)
    pennon.open(location).append([US])
    with (
        pytest.raises(WriteConflict, match=r"partition region=us: .* made it meanwhile"),
        unchanged_since_read(table, read),
    ):
        pytest.fail("the name would move")
    pennon.open(location).append([EU])
    assert rows(location) == [(1, "eu"), (1, "eu"), (2, "us")]


@pytest.mark.parametrize("change", ["add_column", "drop_column"])
def test_columns_that_changed_since_the_table_was_read_are_a_conflict(
    location: str, change: str
) -> None:
    pennon.open(location).add_column("x", pa.int32())
    read = [(location, pennon.open(location).version)]
    table = loaded(location)
    if change == "add_column":
        pennon.open(location).add_column("y", pa.int32())
    else:
        pennon.open(location).drop_column("x")
    with (
        pytest.raises(WriteConflict, match="another commit changed its columns meanwhile"),
        unchanged_since_read(table, read),
    ):
        pytest.fail("the name would move")


def before_columns_are_committed(
    monkeypatch: pytest.MonkeyPatch, others: Callable[[], object]
) -> None:
    """Let others commit when the next change of columns has looked."""
    commit = stated_commit.commit_metadata

    def held(*args: Any) -> Any:
        monkeypatch.setattr(root_change, "commit_metadata", commit)
        others()
        return commit(*args)

    monkeypatch.setattr(root_change, "commit_metadata", held)


def test_a_column_is_not_added_to_a_table_whose_name_moves(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was acknowledged, and went with the table."""
    read = [(location, pennon.open(location).version)]
    with contextlib.ExitStack() as replacing:
        before_columns_are_committed(
            monkeypatch,
            lambda: replacing.enter_context(unchanged_since_read(loaded(location), read)),
        )
        for _ in range(2):  # it has looked before, and behind
            with pytest.raises(TransactionModeChanged, match="another table is being put in its"):
                pennon.open(location).add_column("x", pa.int32())
        assert pennon.open(location).schema.names == ["id", "region"]


@pytest.mark.parametrize("of", [[], [EU]])
def test_a_column_is_added_to_the_table_that_has_got_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: list[dict[str, object]]
) -> None:
    """It was acknowledged, in a folder that it had made anew where the replaced table had been."""
    lake = pennon.connect(str(tmp_path))
    old, new = lake.create_table("t", SCHEMA), lake.create_table("made", SCHEMA)
    old.append(of)
    catalog = Catalog("lance", str(tmp_path))

    def replaced() -> None:
        read = [(old.location, old.refresh().version)]
        table_ddl.publish(catalog, ("t",), new.location, "replace", read)

    before_columns_are_committed(monkeypatch, replaced)
    column = {"change": "add_column", "column": ["x"], "type": '"integer"'}
    changed = alter_table(catalog, ("t",), [column])
    assert changed.snapshot.location == new.location
    assert "x" in pennon.open(new.location).schema.names


def test_rows_made_of_a_table_that_another_has_replaced_do_not_replace_that_one(
    tmp_path: Path,
) -> None:
    """Both statements were acknowledged, and the rows of the first were gone."""
    lake, catalog = pennon.connect(str(tmp_path)), Catalog("lance", str(tmp_path))
    old = lake.create_table("t", SCHEMA)
    read = [(old.location, old.version)]
    mine, theirs = lake.create_table("mine", SCHEMA), lake.create_table("theirs", SCHEMA)
    theirs.append([US])
    table_ddl.publish(catalog, ("t",), theirs.location, "replace", read)
    with pytest.raises(WriteConflict, match=r"lance\.t: .* was replaced or dropped meanwhile"):
        table_ddl.publish(catalog, ("t",), mine.location, "create_or_replace", read)
    assert rows(lake.load_table("t").location) == [(2, "us")]


def test_a_column_is_not_added_to_a_table_that_is_dropped_meanwhile(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog("lance", location)
    before_columns_are_committed(monkeypatch, lambda: table_ddl.drop(catalog, (location,)))
    with pytest.raises(TableNotFound):
        pennon.open(location).add_column("x", pa.int32())
    assert not [path for path in Path(location).rglob("*") if path.is_file()]


def test_what_goes_wrong_while_the_name_moves_lets_writers_go_on(location: str) -> None:
    read = [(location, pennon.open(location).version)]
    with pytest.raises(OSError, match="full"), unchanged_since_read(loaded(location), read):
        raise OSError("full")
    pennon.open(location).append([US])
    assert rows(location) == [(1, "eu"), (2, "us")]


def test_a_version_that_is_gone_is_not_known_to_be_the_same(location: str) -> None:
    read = [(location, pennon.open(location).version)]
    pennon.open(location).set_properties({"a": "b"})
    now = dt.datetime.now(dt.UTC)
    pennon.open(location).maintenance.expire_snapshots(older_than=now, retain_last=1)
    with (
        pytest.raises(WriteConflict, match="which it read, has expired"),
        unchanged_since_read(loaded(location), read),
    ):
        pytest.fail("the name would move")


def test_a_replacement_that_was_interrupted_is_ended_by_what_the_error_says(location: str) -> None:
    begin_change(pennon.open(location).snapshot, REPLACED)
    with pytest.raises(TransactionModeChanged, match=r"set_transaction_mode\('.*', 'strong'\)"):
        pennon.open(location).append([US])
    assert rows(location) == [(1, "eu")]
    pennon.open(location).maintenance.set_transaction_mode("strong")
    pennon.open(location).append([US])
    assert rows(location) == [(1, "eu"), (2, "us")]


def test_a_weak_table_is_not_replaced_by_its_own_rows(tmp_path: Path) -> None:
    """Rows that others had added meanwhile were lost."""
    table = pennon.create(
        str(tmp_path / "t"), SCHEMA, ["region"], properties={"transaction": "weak"}
    )
    location = str(table.location)
    with (
        pytest.raises(UnsupportedTableChange, match="set_transaction_mode"),
        unchanged_since_read(loaded(location), [(location, table.version)]),
    ):
        pytest.fail("the name would move")
    with unchanged_since_read(loaded(location), []):
        pass


def test_a_replacement_whose_time_is_half_over_does_not_move_the_name(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may soon take it for dead."""
    read = [(location, pennon.open(location).version)]
    monkeypatch.setattr(ChangeNotice, "is_nearly_over", lambda self: self.target == REPLACED)
    with (
        pytest.raises(StorageFailure, match="others may write again"),
        unchanged_since_read(loaded(location), read),
    ):
        pytest.fail("the name would move")
    pennon.open(location).append([US])
    assert rows(location) == [(1, "eu"), (2, "us")]
