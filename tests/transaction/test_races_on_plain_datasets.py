"""Statements that race on a plain dataset: what they leave is what some serial order leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.transaction.lake import table_of

import pennon
from pennon.catalog.configured_catalog import WriteMode
from pennon.errors import WriteConflict
from pennon.manifest.format.rows import CommitIdentity
from pennon.namespace import PartitionedNamespace
from pennon.namespace.rows.row_write import batches_of

EVERY_ROW = [["true"]]
CHANGED = "another commit changed the dataset in a way that does not commute"


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    location = str(tmp_path / "people.lance")
    lance.write_dataset(pa.table({"id": [1, 2]}), location, enable_stable_row_ids=request.param)
    return location


def ids(place: str) -> list[int]:
    found: list[int] = lance.dataset(place).to_table()["id"].to_pylist()
    return sorted(found)


def write(table: PartitionedNamespace, mode: WriteMode, *new: int, reads: bool = True) -> int:
    """Write rows that were made of those of the version that is open."""
    stored = table_of(table).stored
    staged = stored.stage_unordered(batches_of([{"id": number} for number in new])).texts
    identity = CommitIdentity.fresh()
    return stored.commit(mode, (), staged, identity, EVERY_ROW if reads else ())


@pytest.mark.parametrize(
    "other",
    [
        lambda table: table.delete("id = 1"),
        lambda table: table.delete("true"),
        lambda table: table.update({"id": "id + 5"}),
        lambda table: table.overwrite([{"id": 7}]),
        lambda table: write(table, WriteMode.APPEND, 7),
    ],
    ids=["delete", "empty", "update", "overwrite", "insert"],
)
def test_rows_made_of_rows_that_others_change_are_a_conflict(
    place: str, other: Callable[[PartitionedNamespace], object]
) -> None:
    mine = pennon.open(place)
    other(pennon.open(place))
    before = ids(place)
    with pytest.raises(WriteConflict, match=CHANGED):
        write(mine, WriteMode.APPEND, 20)
    assert ids(place) == before


def test_rows_that_others_append_come_behind_those_made_of_the_table(place: str) -> None:
    mine, blind = pennon.open(place), pennon.open(place)
    stored = table_of(blind).stored
    pennon.open(place).append([{"id": 3}])
    write(mine, WriteMode.APPEND, 20)
    staged = stored.stage_unordered(batches_of([{"id": 4}])).texts
    stored.commit(WriteMode.APPEND, (), staged, CommitIdentity.fresh())
    assert ids(place) == [1, 2, 3, 4, 20]


def test_what_replaces_rows_that_others_have_read_is_a_conflict(place: str) -> None:
    """Their rows would stay beside those that replace what they were made of."""
    mine = pennon.open(place)
    write(pennon.open(place), WriteMode.APPEND, 20)
    with pytest.raises(WriteConflict, match=CHANGED):
        write(mine, WriteMode.OVERWRITE, 30, reads=False)
    assert ids(place) == [1, 2, 20]


def test_of_two_that_overwrite_an_empty_dataset_one_is_refused(place: str) -> None:
    """The rows of both were there, which no order gives."""
    pennon.open(place).delete("true")
    mine = pennon.open(place)
    pennon.open(place).append([{"id": 3}])
    write(pennon.open(place, mine.version), WriteMode.OVERWRITE, 10, reads=False)
    with pytest.raises(WriteConflict, match=CHANGED):
        write(mine, WriteMode.OVERWRITE, 30, reads=False)
    assert ids(place) == [3, 10]


def test_of_two_that_overwrite_rows_of_a_condition_one_is_refused(place: str) -> None:
    """The dataset is empty, so that neither finds a row to take out."""
    pennon.open(place).delete("true")
    mine, theirs = table_of(pennon.open(place)).stored, pennon.open(place)
    staged = mine.stage_unordered(batches_of([{"id": 6}])).texts
    theirs.overwrite([{"id": 5}], "id > 3")
    with pytest.raises(WriteConflict, match=CHANGED):
        mine.commit(WriteMode.OVERWRITE, ["id > 3"], staged, CommitIdentity.fresh())
    assert ids(place) == [5]


def test_an_append_beside_a_change_of_rows_is_added(place: str) -> None:
    mine = pennon.open(place)
    pennon.open(place).update({"id": "id + 5"}, "id = 1")
    write(mine, WriteMode.APPEND, 30, reads=False)
    assert ids(place) == [2, 6, 30]


def test_an_append_beside_an_added_column_is_a_conflict(place: str) -> None:
    """Its rows would have no value in a column whose others have one."""
    stored = table_of(pennon.open(place)).stored
    staged = stored.stage_unordered(batches_of([{"id": 30}])).texts
    lance.dataset(place).add_columns({"v": "1"})
    with pytest.raises(WriteConflict, match=CHANGED):
        stored.commit(WriteMode.APPEND, (), staged, CommitIdentity.fresh())
    assert ids(place) == [1, 2]
