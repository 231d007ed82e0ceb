"""Columns as an older Arrow of the JVM sends them, which Lance would read wrongly."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from pennon.worker.requests.data_plane import with_offsets

# No offset at all, and behind it memory that is none of the column's.
NO_OFFSET = pa.py_buffer(b"\xfe" * 64).slice(0, 0)
TWO_EMPTY = pa.py_buffer(b"\0" * 12)
NO_TEXTS = pa.Array.from_buffers(pa.string(), 0, [None, NO_OFFSET, pa.py_buffer(b"")])
NO_LISTS = pa.Array.from_buffers(pa.list_(pa.string()), 0, [None, NO_OFFSET], children=[NO_TEXTS])
ENTRIES = pa.StructArray.from_arrays(
    [NO_TEXTS, pa.array([], pa.int32())],
    fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int32())],
)
CASES = {
    "map": (pa.map_(pa.string(), pa.int32()), ENTRIES),
    "list": (pa.list_(pa.string()), NO_TEXTS),
    "list of lists": (pa.list_(pa.list_(pa.string())), NO_LISTS),
}


@pytest.mark.parametrize("case", CASES)
def test_a_column_without_values_gets_its_offset(case: str, tmp_path: Path) -> None:
    kind, child = CASES[case]
    sent = pa.Array.from_buffers(kind, 2, [None, TWO_EMPTY], children=[child])
    table = pa.table({"id": [1, 2], "c": with_offsets(sent)})
    lance.write_dataset(table, tmp_path / "leaf")
    assert lance.dataset(tmp_path / "leaf").to_table().to_pylist() == [
        {"id": 1, "c": []},
        {"id": 2, "c": []},
    ]


def test_a_column_with_values_is_passed_on() -> None:
    column = pa.array([["a"], None, []], pa.list_(pa.string()))
    assert with_offsets(column) is column
