"""Writes of plain Lance datasets that are refused, or whose end nobody knows."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.transaction.lake import table_of

import pennon
from pennon.catalog.configured_catalog import WriteMode
from pennon.catalog.layouts import plain_table as plain_commits
from pennon.catalog.layouts.plain_snapshot import PlainSnapshot
from pennon.catalog.layouts.plain_table import PlainTable
from pennon.errors import WriteConflict
from pennon.manifest.format.rows import CommitIdentity
from pennon.namespace.rows.row_write import batches_of, write_rows


def test_the_files_of_a_write_go_when_it_is_refused_and_stay_when_it_may_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "people.lance"
    lance.write_dataset(pa.table({"id": [1, 2]}), str(place))
    table = table_of(pennon.open(str(place)))

    def overwrite() -> int:
        return write_rows(table, WriteMode.OVERWRITE, [], batches_of([{"id": 7}]))

    def files() -> set[Path]:
        return set((place / "data").iterdir())

    overwrite()
    there = files()
    with pytest.raises(WriteConflict):
        overwrite()
    assert files() == there

    def lost(*_: object, **__: object) -> int:
        raise ConnectionError

    monkeypatch.setattr(plain_commits, "_commit", lost)
    with pytest.raises(ConnectionError):
        overwrite()
    assert len(files()) == len(there) + 1


def test_a_change_of_rows_that_another_try_has_made_between_two_looks_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "people.lance")
    lance.write_dataset(pa.table({"id": [1, 2]}), place, enable_stable_row_ids=True)
    stored = table_of(pennon.open(place)).stored
    assert isinstance(stored, PlainTable)
    staged = stored.stage_unordered(batches_of([{"id": 7}])).texts
    identity = CommitIdentity("one")
    looked = plain_commits._made_before

    def held(snapshot: PlainSnapshot, commit_id: str) -> int | None:
        """The first try lands behind the first look of the second."""
        monkeypatch.setattr(plain_commits, "_made_before", looked)
        before = looked(snapshot, commit_id)
        stored.change_rows(WriteMode.MERGE, (), staged, (), identity)
        return before

    monkeypatch.setattr(plain_commits, "_made_before", held)
    assert stored.change_rows(WriteMode.MERGE, (), staged, (), identity) == 2
    stored.abort(place, {}, staged, identity)
    assert sorted(lance.dataset(place).to_table()["id"].to_pylist()) == [1, 2, 7]


def test_a_change_of_rows_that_a_slower_try_may_still_make_keeps_its_files(tmp_path: Path) -> None:
    place = str(tmp_path / "people.lance")
    lance.write_dataset(pa.table({"id": [1, 2]}), place, enable_stable_row_ids=True)
    stored = table_of(pennon.open(place)).stored
    assert isinstance(stored, PlainTable)
    staged = stored.stage_unordered(batches_of([{"id": 7}])).texts
    lance.write_dataset(pa.table({"id": [3]}), place, mode="append")
    before = set(Path(place, "data").iterdir())
    with pytest.raises(WriteConflict):
        stored.change_rows(WriteMode.MERGE, (), staged, (), CommitIdentity("one"))
    stored.abort(place, {}, staged, CommitIdentity("one"))
    assert set(Path(place, "data").iterdir()) == before
