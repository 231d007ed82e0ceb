"""Columns that a runtime filter may be made of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.leaf.read.row_keys import RowKeys
from pennon.planning.splits import filter_columns, filtered


def test_a_row_change_is_filtered_by_what_partitions_have_as_it_stands(tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.int64(), "dep": pa.string()})
    table = pennon.create(tmp_path / "t", schema, ["dep", "bucket(2, id)"])
    table.append([{"id": 1, "dep": "a"}, {"id": 2, "dep": "b"}, {"id": 3}])
    plan = table.scan().plan()
    assert filter_columns(plan, ["dep", "id"], is_row_change=True) == ("dep",)
    assert filter_columns(plan, ["dep", "id"]) == ("dep", "id")
    kept = filtered(plan, [], [RowKeys("dep", (), ("a",), has_null=True)], "UTC")
    assert sorted(map(str, kept.table["partition_field_dep"].to_pylist())) == ["None", "a"]


TUPLES: dict[pa.DataType, tuple[list, str]] = {
    pa.int16(): ([1, -2, 3], "numbers"),
    pa.int64(): ([1, -2, 1 << 40], "numbers"),
    pa.date32(): ([1, -2, 20_000], "numbers"),
    pa.timestamp("us", "UTC"): ([1, -2, 1 << 50], "numbers"),
    pa.timestamp("us"): ([1, -2, 1 << 50], "numbers"),
    pa.utf8(): (["a", "it's", "\\"], "texts"),
    pa.decimal128(9, 2): (["1.50", "-2.00", "0.00"], "texts"),
    pa.bool_(): (["true", "false"], "texts"),
}


@pytest.mark.parametrize("data_type", TUPLES, ids=str)
def test_values_of_every_type_keep_their_partitions_alone(
    tmp_path: Path, data_type: pa.DataType
) -> None:
    values, kind = TUPLES[data_type]
    arrays = {"numbers": pa.int64(), "texts": pa.utf8()}
    column = pa.array(values, arrays[kind])
    column = column.cast(pa.int32()).cast(data_type) if data_type == pa.date32() else column
    table = pennon.create(tmp_path / "t", pa.schema({"k": data_type}), ["k"])
    table.append(
        pa.table({"k": pa.concat_arrays([column.cast(data_type), pa.nulls(1, data_type)])})
    )
    plan = table.scan().plan()
    assert plan.table.num_rows == len(values) + 1

    def kept(chosen: list, *, has_null: bool) -> int:
        keys = {"numbers": (), "texts": (), kind: tuple(chosen)}
        found = RowKeys("k", keys["numbers"], keys["texts"], has_null=has_null)
        return filtered(plan, [], [found], "America/New_York").table.num_rows

    assert [kept(values[:1], has_null=False), kept(values[:1], has_null=True)] == [1, 2]
    assert [kept([], has_null=False), kept([], has_null=True)] == [0, 1]
    assert kept(values, has_null=False) == len(values)


def test_of_many_values_the_range_decides(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"k": pa.int64()}), ["truncate(10000, k)"])
    table.append([{"k": key} for key in (-1, 9_000, 24_000, 30_000)])
    many = tuple(range(5_000, 25_000))
    kept = filtered(table.scan().plan(), [], [RowKeys("k", many, (), has_null=False)], "UTC")
    assert sorted(kept.table.to_pydict()["partition_field_k_trunc"]) == [0, 20_000]


def test_values_of_a_type_that_is_not_compared_drop_nothing(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"k": pa.float64()}), ["k"])
    table.append([{"k": 0.5}, {"k": 1.0}])
    plan = table.scan().plan()
    kept = filtered(plan, [], [RowKeys("k", (0,), (), has_null=False)], "UTC")
    assert kept.table.num_rows == 2
    assert filtered(plan, [], [RowKeys("_rowaddr", (), (), has_null=False)], "UTC") == plan
