"""A column that needs a value comes while rows without one are being written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.transaction.test_races_behind_the_last_look import behind_the_look

import pennon
from pennon.errors import UnsupportedTableChange, WriteConflict
from pennon.manifest import Snapshot
from pennon.manifest.commits import mode_commit
from pennon.manifest.format.properties import NamedAt
from pennon.namespace import PartitionedNamespace
from pennon.transaction import mode_change as writer_fence
from pennon.transaction import weak

ROW = {"id": 1, "region": "eu", "place": {"x": 5}}
SCHEMA = pa.schema({"id": pa.int64(), "region": pa.string(), "place": pa.struct({"x": pa.int32()})})


def during_the_write(
    table: PartitionedNamespace, write: Callable[[object], int], others: Callable[[], object]
) -> int:
    """Let others commit when the rows have been read and are not committed."""

    def batches() -> object:
        yield pa.Table.from_pylist([ROW], SCHEMA)
        others()

    return write(batches())


@pytest.mark.parametrize("column", ["n", "place.n"])
@pytest.mark.parametrize("before", ["new", "emptied", "dropped"])
def test_rows_without_a_column_that_needs_a_value_are_a_conflict(
    tmp_path: Path, before: str, column: str
) -> None:
    """They were committed, and no row of the table could be read any more."""
    table = pennon.create(tmp_path / "t", SCHEMA, ["region"])
    if before != "new":
        table.append([ROW])
        table.delete("id = 1" if before == "emptied" else "region = 'eu'")
    other = pennon.open(table.location)
    for write in (table.append, table.overwrite, table.overwrite_partitions):
        with pytest.raises(WriteConflict, match=f"column {column}, which is NOT NULL, was added"):
            during_the_write(
                table, write, lambda: other.add_column(column, pa.int32(), nullable=False)
            )
        other.drop_column(column)
    assert table.scan().count_rows() == 0
    table.append([ROW])
    assert table.scan().to_arrow().to_pylist() == [ROW]


def test_rows_without_a_column_that_has_a_default_get_it(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA, ["region"])
    other = pennon.open(table.location)
    during_the_write(
        table,
        table.append,
        lambda: other.add_column("n", pa.int32(), nullable=False, default=3),
    )
    assert table.refresh().scan().to_arrow().to_pylist() == [{**ROW, "n": 3}]


def test_a_conflict_over_a_column_names_the_table_not_its_folder(tmp_path: Path) -> None:
    lake = pennon.connect(tmp_path / "lake")
    lake.create_namespace("shop")
    table = lake.create_table("shop.orders", SCHEMA, ["region"])
    table.add_column("n", pa.int32())
    other = lake.load_table("shop.orders")
    with pytest.raises(WriteConflict, match="column n changed from int32 to int64") as raised:
        during_the_write(table, table.append, lambda: other.alter_column("n", type=pa.int64()))
    assert raised.value.parameters["table"] == table.name
    assert table.name.endswith("shop.orders")


@pytest.mark.parametrize("is_added_first", [False, True])
def test_a_column_that_needs_a_value_and_rows_without_it_never_both_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_added_first: bool
) -> None:
    """Each has looked for the other already when that one commits."""
    table = pennon.create(tmp_path / "t", SCHEMA, ["region"])
    other = pennon.open(table.location)
    if is_added_first:
        behind_the_look(monkeypatch, lambda: other.add_column("n", pa.int32(), nullable=False))
        with pytest.raises(WriteConflict, match="column n, which is NOT NULL, was added"):
            table.append([ROW])
        assert table.refresh().scan().count_rows() == 0
        return
    begun = mode_commit.begin_change

    def begin_change(snapshot: Snapshot, target: str, named_at: NamedAt | None = None) -> str:
        other.append([ROW])
        return begun(snapshot, target, named_at)

    monkeypatch.setattr(writer_fence, "begin_change", begin_change)
    with pytest.raises(UnsupportedTableChange, match="rows that are stored already"):
        table.add_column("n", pa.int32(), nullable=False)
    monkeypatch.undo()
    table.append([ROW])
    assert table.scan().to_arrow().to_pylist() == [ROW, ROW]


@pytest.mark.parametrize("is_emptied", [False, True])
@pytest.mark.parametrize("step", ["_registered", "_opened", "_changed_layout", "_apply"])
def test_a_weak_writer_and_a_column_that_needs_a_value_never_both_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, *, is_emptied: bool
) -> None:
    """The rows were committed to the leaf, and no row of the table could be read any more."""
    properties = {"transaction": "weak"}
    table = pennon.create(tmp_path / "t", SCHEMA, ["region"], properties=properties)
    if is_emptied:
        table.append([ROW])
        table.delete("id = 1")
    other = pennon.open(table.location)
    original = getattr(weak, step)

    def behind(*args: Any, **named: Any) -> Any:
        with monkeypatch.context() as free:
            free.setattr(weak, step, original)
            other.add_column("n", pa.int32(), nullable=False)
        monkeypatch.setattr(weak, step, original)
        return original(*args, **named)

    monkeypatch.setattr(weak, step, behind)
    with pytest.raises(WriteConflict, match="column n, which is NOT NULL, was added"):
        table.append([ROW])
    assert table.refresh().scan().count_rows() == 0
    table.append([{**ROW, "n": 3}])
    assert table.scan().to_arrow().to_pylist() == [{**ROW, "n": 3}]


def test_no_column_that_needs_a_value_comes_where_a_weak_writer_was_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"transaction": "weak"}
    table = pennon.create(tmp_path / "t", SCHEMA, ["region"], properties=properties)
    other = pennon.open(table.location)
    begun = mode_commit.begin_change

    def begin_change(snapshot: Snapshot, target: str, named_at: NamedAt | None = None) -> str:
        other.append([ROW])
        return begun(snapshot, target, named_at)

    monkeypatch.setattr(writer_fence, "begin_change", begin_change)
    with pytest.raises(UnsupportedTableChange, match="rows that are stored already"):
        table.add_column("n", pa.int32(), nullable=False)
    other.append([ROW])
    assert table.refresh().scan().to_arrow().to_pylist() == [ROW, ROW]
