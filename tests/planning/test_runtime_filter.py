"""Columns that a runtime filter may be made of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import pennon
from pennon.planning.runtime_filter import filter_columns, filtered


def test_a_row_change_is_filtered_by_what_partitions_have_as_it_stands(tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.int64(), "dep": pa.string()})
    table = pennon.create(tmp_path / "t", schema, ["dep", "bucket(2, id)"])
    table.append([{"id": 1, "dep": "a"}, {"id": 2, "dep": "b"}, {"id": 3}])
    plan = table.scan().plan()
    assert filter_columns(plan, ["dep", "id"], is_row_change=True) == ("dep",)
    assert filter_columns(plan, ["dep", "id"]) == ("dep", "id")
    kept = filtered(plan, ["(dep IN ('a')) OR (dep IS NULL)"], "UTC")
    assert sorted(map(str, kept.table["partition_field_dep"].to_pylist())) == ["None", "a"]
