"""Opened leaves are kept, and never beyond the files that they were opened from."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import lance
import pyarrow as pa

from pennon.leaf import forget_leaves, open_leaf

if TYPE_CHECKING:
    from pathlib import Path


def test_a_leaf_made_again_at_its_old_place_is_read_anew(tmp_path: Path):
    place = tmp_path / "leaf"
    lance.write_dataset(pa.table({"a": [1, 2, 3]}), place)
    assert open_leaf(str(tmp_path), "leaf", 1).to_table()["a"].to_pylist() == [1, 2, 3]
    shutil.rmtree(place)
    lance.write_dataset(pa.table({"b": ["other"]}), place)
    forget_leaves()
    assert open_leaf(str(tmp_path), "leaf", 1).to_table().to_pylist() == [{"b": "other"}]


def test_a_leaf_whose_newest_version_is_asked_for_gives_later_rows(tmp_path: Path):
    place = tmp_path / "leaf"
    lance.write_dataset(pa.table({"a": [1]}), place)
    assert open_leaf(str(tmp_path), "leaf").count_rows() == 1
    lance.write_dataset(pa.table({"a": [2]}), place, mode="append")
    assert open_leaf(str(tmp_path), "leaf").count_rows() == 2
    shutil.rmtree(place)
    lance.write_dataset(pa.table({"a": [7, 8, 9]}), place)
    lance.write_dataset(pa.table({"a": [10]}), place, mode="append")
    rows = open_leaf(str(tmp_path), "leaf").to_table()["a"].to_pylist()
    assert rows == [7, 8, 9, 10]
