"""Columns that a runtime filter may be made of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import pennon
from pennon.planning.runtime_filter import filter_columns


def test_a_row_change_is_never_filtered_by_a_column_that_is_null_in_a_partition(
    tmp_path: Path,
) -> None:
    schema = pa.schema({"id": pa.int64(), "dep": pa.string()})
    table = pennon.create(tmp_path / "t", schema, ["dep"])
    table.append([{"id": 1, "dep": "a"}, {"id": 2, "dep": "b"}])
    assert filter_columns(table.scan().plan(), ["dep"], is_row_change=True) == ("dep",)
    table.append([{"id": 3}])
    plan = table.scan().plan()
    assert filter_columns(plan, ["dep"], is_row_change=True) == ()
    assert filter_columns(plan, ["dep"]) == ("dep",)
