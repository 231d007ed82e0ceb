"""Writes of plain Lance datasets that are refused, or whose end nobody knows."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.catalog.layouts import plain_commits
from pennon.catalog.write_mode import WriteMode
from pennon.errors import WriteConflict
from pennon.namespace.row_source import batches_of
from pennon.namespace.row_write import write_rows


def test_the_files_of_a_write_go_when_it_is_refused_and_stay_when_it_may_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "people.lance"
    lance.write_dataset(pa.table({"id": [1, 2]}), str(place))
    table = pennon.open(str(place))._table

    def overwrite() -> int:
        return write_rows(table, WriteMode.OVERWRITE, [], batches_of([{"id": 7}]))

    def files() -> set[Path]:
        return set((place / "data").iterdir())

    overwrite()
    there = files()
    with pytest.raises(WriteConflict):
        overwrite()
    assert files() == there

    def lost(*_: object) -> int:
        raise ConnectionError

    monkeypatch.setattr(plain_commits, "_commit", lost)
    with pytest.raises(ConnectionError):
        overwrite()
    assert len(files()) == len(there) + 1
