"""Names of columns and fields at every door without Spark: they work, or are refused there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pennon
from pennon.catalog.columns.spark_types import spark_schema
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import table_ddl
from pennon.errors import InvalidColumnName, UnknownColumn, UnsupportedTableChange
from pennon.leaf.read.metadata_columns import METADATA_COLUMNS, PARTITION, SPEC_VERSION
from pennon.manifest import create as create_manifest
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pennon import PartitionedNamespace

INT = pa.int32()
OF_ROWS = [column.name for column in (*METADATA_COLUMNS, PARTITION, SPEC_VERSION)]
OF_LANCE = ["_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]
OF_SPARK = ["__row_operation", "__row_id", "__row_from_source", "__row_from_target"]
NO_COLUMN = ["", "*", "a.b", "a`b", *OF_ROWS, *OF_LANCE, *OF_SPARK, "__original_row_id__leaf"]
ODD = [" ", "a b", "**", 'a"b', "it's", "a\\b", "größe", "1", "_file", "_score", "__row_of_source"]


def table_of(place: Path, *columns: pa.Field, by: tuple[str, ...] = ()) -> PartitionedNamespace:
    return pennon.create(str(place), pa.schema([pa.field("id", pa.int64()), *columns]), by)


def of_spark(place: Path, column: pa.Field) -> None:
    table_ddl.create(
        Catalog("lance", str(place)),
        (str(place / "of_spark"),),
        schema=json.dumps(spark_schema(pa.schema([column]))),
        transforms=[],
        properties={},
        mode="create",
    )


def doors(place: Path) -> list[Callable[[pa.Field], object]]:
    """Each takes a column: CREATE in Python and of Spark, ADD COLUMN, RENAME for its name alone."""
    table = table_of(place / "old", pa.field("old", INT))

    def altered(column: pa.Field) -> None:
        table.add_column(f"`{column.name.replace('`', '``')}`", column.type)

    return [
        lambda column: table_of(place / "new", column),
        lambda column: of_spark(place, column),
        altered,
        lambda column: table.rename_column("old", column.name),
    ]


@pytest.mark.parametrize("name", NO_COLUMN)
def test_a_name_that_no_column_can_have_is_refused_at_every_door(tmp_path: Path, name: str) -> None:
    for take in doors(tmp_path):
        for spelled in dict.fromkeys([name, name.upper(), name.title()]):
            with pytest.raises(InvalidColumnName, match="Choose another name"):
                take(pa.field(spelled, INT))


@pytest.mark.parametrize(
    "struct",
    [
        pa.struct([("", INT)]),
        pa.struct([("a", INT), ("A", INT)]),
        pa.struct([("s", pa.struct([("a", INT), ("a", INT)]))]),
    ],
)
def test_fields_without_a_name_or_with_a_siblings_are_refused_at_every_door(
    tmp_path: Path, struct: pa.DataType
) -> None:
    *bringing_types, _ = doors(tmp_path)
    for take in bringing_types:
        for kind in (struct, pa.list_(struct), pa.map_(pa.string(), pa.struct([("v", struct)]))):
            with pytest.raises(InvalidColumnName, match="'c"):
                take(pa.field("c", kind))
    table = table_of(tmp_path / "t", pa.field("s", pa.struct([("a", INT), ("b", INT)])))
    for refused in (
        lambda: table.add_column("s.``", INT),
        lambda: table.add_column("s.A", INT),
        lambda: table.rename_column("s.b", ""),
        lambda: table.rename_column("s.b", "A"),
    ):
        with pytest.raises((InvalidColumnName, UnsupportedTableChange)):
            refused()


@pytest.mark.parametrize("name", ODD)
def test_every_other_name_of_a_column_works(tmp_path: Path, name: str) -> None:
    table = table_of(tmp_path / "t", pa.field(name, INT), by=(f"bucket(2, `{name}`)",))
    table.append([{"id": at, name: at * 10} for at in (1, 2, 3)])
    assert table.scan(f"`{name}` = 20", columns=[f"`{name}`"]).to_arrow().to_pylist() == [
        {name: 20}
    ]
    table.update({name: f"`{name}` + 1"}, f"`{name}` = 10")
    table.merge([{"id": 2, name: 20}], on=["id", name]).when_matched_delete().execute()
    table.delete(f"`{name}` = 30")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, name: 11}]
    table.rename_column(f"`{name}`", "plain")
    table.rename_column("plain", name)
    assert table.scan(f"`{name}` > 0").count_rows() == 1


@pytest.mark.parametrize("name", ["a.b", "a`b", "*", " ", "it's", "_RowId", "__row_operation"])
def test_a_field_can_have_any_name(tmp_path: Path, name: str) -> None:
    path = f"s.`{name.replace('`', '``')}`"
    table = table_of(tmp_path / "t", pa.field("s", pa.struct([("r", INT)])))
    table.append([{"id": 1, "s": {"r": 1}}, {"id": 2, "s": None}])
    table.add_column(path, INT)
    table.append([{"id": 3, "s": {"r": 3, name: 30}}, {"id": 4, "s": {"r": 4, name: 40}}])
    table.update({"id": f"{path} + 1"}, f"{path} = 30")
    table.merge(table.scan("id = 4"), on="id").when_matched_update_all().execute()
    table.maintenance.compact()
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "s": {"r": 1, name: None}},
        {"id": 2, "s": None},
        {"id": 4, "s": {"r": 4, name: 40}},
        {"id": 31, "s": {"r": 3, name: 30}},
    ]
    table.add_partition_field(f"bucket(2, {path})")
    table.append([{"id": 5, "s": {"r": 5, name: 50}}])
    table.maintenance.analyze(columns=[path])
    assert table.scan(f"{path} = 50").to_arrow()["id"].to_pylist() == [5]
    with pytest.raises(UnknownColumn, match="s, which is read as a whole"):
        table.scan(columns=[path]).to_arrow()
    table.alter_column(path, type=pa.int64(), comment="wide")
    table.append([{"id": 6, "s": {"r": 6, name: 1 << 40}}])
    table.rename_column(path, "plain.name")
    assert table.scan("s.`plain.name` > 50").to_arrow()["id"].to_pylist() == [6]
    table.replace_partition_field("bucket(2, s.`plain.name`)", "bucket(2, id)")
    table.drop_column("s.`plain.name`")
    table.append([{"id": 7, "s": {"r": 7}}])
    kept = table.scan("id BETWEEN 5 AND 7").to_arrow()["s"].to_pylist()
    assert sorted(kept, key=repr) == [{"r": 5}, {"r": 6}, {"r": 7}]


@pytest.mark.parametrize("depth", ["list", "map"])
def test_a_field_with_a_dot_is_added_inside_of_lists_and_maps(tmp_path: Path, depth: str) -> None:
    struct = pa.struct([("r", INT)])
    kind = pa.list_(struct) if depth == "list" else pa.map_(pa.string(), struct)
    within = "c.element" if depth == "list" else "c.value"

    def value(fields: dict[str, object]) -> list[object]:
        return [fields] if depth == "list" else [("k", fields)]

    table = table_of(tmp_path / "t", pa.field("c", kind))
    table.append([{"id": 1, "c": value({"r": 1})}])
    table.add_column(f"{within}.`t.u`", pa.struct([("v.w", INT)]))
    table.append([{"id": 2, "c": value({"r": 2, "t.u": {"v.w": 3}})}])
    table.rename_column(f"{within}.`t.u`.`v.w`", "x.y")
    table.append([{"id": 3, "c": value({"r": 3, "t.u": {"x.y": 4}})}])
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [row["c"] for row in rows] == [
        value({"r": 1, "t.u": None}),
        value({"r": 2, "t.u": {"x.y": 3}}),
        value({"r": 3, "t.u": {"x.y": 4}}),
    ]


@pytest.mark.parametrize("name", ["_leaf", "_LEAF_version", "_RowAddr", *OF_SPARK])
def test_rows_of_another_clients_table_with_such_a_column_are_read_and_not_changed(
    tmp_path: Path, name: str
) -> None:
    columns = NamespaceSchema.with_fresh_ids(pa.schema({name: pa.int32(), "v": pa.int32()}))
    create_manifest(str(tmp_path / "t"), columns, PartitionSpec(1, ()), {}, strong=True)
    table = pennon.open(str(tmp_path / "t"))
    table.append([{name: 1, "v": 1}])
    for changed in (
        lambda: table.update({"v": 2}),
        lambda: table.merge([{name: 1, "v": 3}], on="v").when_matched_update_all().execute(),
    ):
        with pytest.raises(UnsupportedTableChange, match=f"its column {name} .* Rename the column"):
            changed()
    assert table.scan(f"`{name}` = 1").to_arrow().to_pylist() == [{name: 1, "v": 1}]
    table.rename_column(name, "place")
    table.update({"v": 2}, where="place = 1")
    assert table.scan().to_arrow().to_pylist() == [{"place": 1, "v": 2}]
