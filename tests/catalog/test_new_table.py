"""What a new table may be called and may be, and that refusals leave nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pennon
from pennon.catalog.columns.spark_types import spark_schema
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import table_ddl
from pennon.catalog.ddl.alter import alter_table
from pennon.catalog.directory import Directory
from pennon.errors import (
    InvalidTableName,
    NewTableRefused,
    RowChangeModeRefused,
    TablePropertyRefused,
    UnsupportedColumnType,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pennon.catalog.tables.loaded_table import Table


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog("lance", str(tmp_path / "lake"))
    Directory(made).create_namespace(("ns",), {}, if_not_exists=False)
    return made


def create(catalog: Catalog, *name: str, column: str = "id", **properties: str) -> Table:
    return table_ddl.create(
        catalog,
        name or ("ns", "t"),
        schema=pa.schema({column: pa.int64()}),
        transforms=[],
        properties=properties,
        mode="create",
    )


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"provider": "iceberg"}, "its format would be iceberg"),
        ({"external": "true", "location": "/elsewhere"}, "DROP TABLE deletes"),
        ({"hive.stored-as": "ORC"}, "its files would be stored as ORC"),
        ({"transaction": "strongish"}, "'transaction' = 'strongish' is neither strong nor weak"),
    ],
)
def test_what_no_table_can_be_is_refused(
    catalog: Catalog, properties: dict[str, str], why: str
) -> None:
    with pytest.raises(NewTableRefused, match=why):
        create(catalog, **properties)
    assert Directory(catalog).tables(("ns",)) == []


@pytest.mark.parametrize(
    "kind", [pa.struct([]), pa.list_(pa.struct([])), pa.struct({"b": pa.struct([])})]
)
def test_a_struct_without_a_field_is_refused_before_its_nulls_are_lost(
    catalog: Catalog, kind: pa.DataType
) -> None:
    for schema in (pa.schema({"a": kind}), spark_schema(pa.schema({"a": kind}))):
        with pytest.raises(UnsupportedColumnType, match=r"column a\S*: type struct<> "):
            table_ddl.create(
                catalog,
                ("ns", "t"),
                schema=schema,
                transforms=[],
                properties={},
                mode="create",
            )


@pytest.mark.parametrize("command", ["delete", "update", "merge"])
def test_a_way_to_change_rows_that_there_is_not_is_refused_where_it_is_set(
    catalog: Catalog, command: str
) -> None:
    name = f"write.{command}.mode"
    with pytest.raises(RowChangeModeRefused, match=f"{name} = 'sometimes'"):
        create(catalog, **{name: "sometimes"})
    create(catalog)
    setting = {"change": "set_property", "property": name, "value": "sometimes"}
    with pytest.raises(RowChangeModeRefused, match="neither 'merge-on-read' nor 'copy-on-write'"):
        alter_table(catalog, ("ns", "t"), [setting])
    table = alter_table(catalog, ("ns", "t"), [{**setting, "value": "Copy-on-write"}])
    assert table.snapshot.properties[name] == "Copy-on-write"


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("write.format.default", "parquet", "Leave it out: files are Lance's"),
        ("format-version", "2", "the format has one version"),
        ("gc.enabled", "false", "expire_snapshots or vacuum"),
        ("write.isolaton", "snapshot", r"Write write\.isolation if"),
        ("delta.appendOnly", "true", "Leave it out"),
        ("write.compaction.enabled", "perhaps", "neither 'true' nor 'false'"),
        ("write.statistics.columns", "nope", r"no column nope has statistics\. Write a number, or"),
    ],
)
def test_a_property_that_another_format_acts_upon_is_refused_with_what_to_write_instead(
    catalog: Catalog, name: str, value: str, advice: str
) -> None:
    with pytest.raises(TablePropertyRefused, match=advice):
        create(catalog, **{name: value})
    create(catalog, team="sales", **{"write.merge.mode": "copy-on-write", "team.write.x": "1"})
    setting = {"change": "set_property", "property": name, "value": value}
    with pytest.raises(TablePropertyRefused, match=advice):
        alter_table(catalog, ("ns", "t"), [setting])
    # Tables of earlier releases may have it: it can be taken away.
    alter_table(catalog, ("ns", "t"), [{"change": "remove_property", "property": name}])


@pytest.mark.parametrize("name", ["", "..", "we;ird/na", "a$b", "a\nb"])
def test_names_that_cannot_be_typed_or_stored_are_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidTableName):
        create(catalog, "ns", name)
    create(catalog)
    with pytest.raises(InvalidTableName):
        table_ddl.rename(catalog, ("ns", "t"), ("ns", name))


@pytest.mark.parametrize("name", ["a table", "größe", "a.b", "1st", "order's"])
def test_other_odd_names_work(catalog: Catalog, name: str) -> None:
    create(catalog, "ns", name)
    assert Directory(catalog).tables(("ns",)) == [name]


def test_a_new_name_may_begin_with_the_catalog(catalog: Catalog) -> None:
    create(catalog)
    table_ddl.rename(catalog, ("ns", "t"), ("lance", "ns", "u"))
    assert Directory(catalog).tables(("ns",)) == ["u"]


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI"])
def test_a_collation_of_all_columns_to_come_is_refused_where_it_is_set(
    catalog: Catalog, collation: str
) -> None:
    """As DEFAULT COLLATION of a table: no string could be added to it any more."""
    with pytest.raises(TablePropertyRefused, match=f"COLLATE {collation} in queries"):
        create(catalog, collation=collation)
    create(catalog)
    setting = {"change": "set_property", "property": "collation", "value": collation}
    with pytest.raises(TablePropertyRefused, match="compared by their bytes"):
        alter_table(catalog, ("ns", "t"), [setting])
    alter_table(catalog, ("ns", "t"), [{**setting, "value": "UTF8_BINARY"}])


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.string_view(), pa.string()),
        (pa.list_(pa.field("x", pa.string_view(), nullable=False)), None),
        (pa.map_(pa.string_view(), pa.decimal32(5, 2)), pa.map_(pa.string(), pa.decimal128(5, 2))),
        (pa.struct({"a": pa.large_list(pa.binary_view())}), None),
        (pa.decimal64(12, 2), pa.decimal128(12, 2)),
        (pa.list_(pa.float32(), 2), pa.list_(pa.float32(), 2)),
    ],
)
def test_values_of_forms_that_lance_lacks_are_stored_in_another(
    tmp_path: Path, given: pa.DataType, stored: pa.DataType | None
) -> None:
    """A table of a data frame of Polars, whose texts are views, was made and took no row."""
    values = pa.array([None], given)
    table = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64(), "v": given}), ["id"])
    table.append(pa.table({"id": [1], "v": values}))
    assert table.scan().to_arrow()["v"].to_pylist() == [None]
    if stored is not None:
        assert table.schema.field("v").type == stored
