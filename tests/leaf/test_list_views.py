"""Rows that hold list views: Arrow's libraries give them, and no leaf stores them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import WriteColumnUnknown, WriteTypeMismatch
from pennon.leaf.schema.file_layout import without_views

OUT_OF_ORDER = pa.ListViewArray.from_arrays(
    pa.array([2, 0, None, 0, 1], pa.int32()),
    pa.array([2, 2, 1, 1, 0], pa.int32()),
    pa.array([10, 20, 30, 40]),
)
LISTS = [[1], [2, 3], None, [], [4]]
STRUCT = {"l": pa.list_view(pa.int32()), "n": pa.int8()}


def views(kind: pa.DataType, of: Sequence[object]) -> pa.Array:
    return pa.array(of, kind)


CASES = {
    "out of order": (pa.list_(pa.int64()), OUT_OF_ORDER),
    "large": (pa.list_(pa.int64()), views(pa.large_list_view(pa.int64()), LISTS)),
    "narrower": (pa.list_(pa.int64()), views(pa.list_view(pa.int32()), LISTS)),
    "texts": (
        pa.list_(pa.string()),
        views(pa.large_list_view(pa.string()), [["a"], [None], None, ["b", ""]]),
    ),
    "struct": (
        pa.struct({"l": pa.list_(pa.int64()), "n": pa.int64()}),
        views(pa.struct(STRUCT), [{"l": one, "n": 1} for one in LISTS] + [None]),
    ),
    "view of views": (
        pa.list_(pa.list_(pa.int64())),
        views(pa.list_view(pa.large_list_view(pa.int64())), [LISTS, None, [None], LISTS]),
    ),
    "list of views": (
        pa.list_(pa.list_(pa.int64())),
        views(pa.list_(pa.list_view(pa.int64())), [LISTS, None, [], [[7]]]),
    ),
    "large list of views": (
        pa.list_(pa.list_(pa.int64())),
        views(pa.large_list(pa.list_view(pa.int64())), [LISTS, None, [], [[7]]]),
    ),
    "fixed list of views": (
        pa.list_(pa.list_(pa.int64())),
        views(pa.list_(pa.list_view(pa.int64()), 2), [[[1], None], None, [[2, 3], []]]),
    ),
    "map to views": (
        pa.map_(pa.string(), pa.list_(pa.int64())),
        views(pa.map_(pa.string(), pa.list_view(pa.int64())), [{"a": [1, 2]}, None, {"b": None}]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_views_are_stored_as_lists(tmp_path: Path, name: str) -> None:
    stored, given = CASES[name]
    for number, array in enumerate((given, given[1:], given[1:3], given[:0])):
        rows = pa.table({"id": pa.array(range(len(array)), pa.int64()), "c": array})
        table = pennon.create(tmp_path / str(number), pa.schema({"id": pa.int64(), "c": stored}))
        table.append(rows)
        read = table.scan().to_arrow().sort_by("id")
        assert read["c"].to_pylist() == array.to_pylist()
        read.validate(full=True)
        lists = without_views(array)
        lists.validate(full=True)
        assert lists.to_pylist() == array.to_pylist()


def test_what_a_view_holds_beyond_its_column_is_refused(tmp_path: Path) -> None:
    stored = pa.list_(pa.struct({"a": pa.int64()}))
    table = pennon.create(tmp_path / "t", pa.schema({"c": stored}))
    given = pa.list_view(pa.struct({"a": pa.int64(), "b": pa.int64()}))
    with pytest.raises(WriteColumnUnknown, match="b"):
        table.append(pa.table({"c": pa.array([[{"a": 1, "b": 2}]], given)}))
    with pytest.raises(WriteTypeMismatch, match="CAST"):
        table.append(pa.table({"c": pa.array([["x"]], pa.list_view(pa.string()))}))


def test_rows_without_a_view_are_not_copied() -> None:
    lists = pa.array([[1], None])
    assert without_views(lists) is lists
