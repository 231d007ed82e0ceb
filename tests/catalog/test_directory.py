"""Namespaces and tables on real folders; upstream's DirectoryNamespace sees the same."""

from __future__ import annotations

import os
import re
from itertools import product
from pathlib import Path
from typing import Any

import lance
import lance_namespace as upstream
import pyarrow as pa
import pytest
from tests.present import present

import pennon
from pennon.catalog.columns.spark_types import spark_schema
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import alter
from pennon.catalog.ddl import table_ddl as tables
from pennon.catalog.ddl.register import register_table
from pennon.catalog.directory import Directory
from pennon.catalog.layouts.stored_table import replace_partitioned
from pennon.catalog.tables.loaded_table import load
from pennon.errors import (
    InvalidColumnName,
    NamespaceAlreadyExists,
    NamespaceChangeRefused,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PathNotTable,
    PennonError,
    RegistrationRefused,
    RootNotUsable,
    StorageFailure,
    TableAlreadyExists,
    TableNotFound,
    UnknownImplementation,
    UnknownTransform,
    UnsupportedColumnType,
    UnsupportedTableChange,
    WriteConflict,
)
from pennon.maintenance.procedures import call
from pennon.manifest.dataset.storage import open_manifest

ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
REGION = {"name": "region", "type": "string", "nullable": True, "metadata": {}}
BY_REGION = {"function": "identity", "arguments": [{"column": ["region"]}]}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog("lance", str(tmp_path / "lake"))
    Directory(made).create_namespace(("shop",), {"owner": "ops"}, if_not_exists=False)
    return made


def names_in(catalog: Catalog) -> list[str]:
    return sorted(path.name for path in Path(catalog.root).iterdir())


def create(
    catalog: Catalog, *name: str, mode: str = "create", fields=(ID, REGION), by=(BY_REGION,)
):
    return tables.create(
        catalog,
        name,
        schema={"type": "struct", "fields": list(fields)},
        transforms=list(by),
        properties={"comment": "c", "quality": "high"},
        mode=mode,
    )


def test_a_default_namespace_is_there_without_being_made_and_stored_with_its_first_table(
    tmp_path: Path,
) -> None:
    options = {"defaultNamespace": "default"}
    catalog = Catalog("lance", str(tmp_path / "lake"), options=options)
    directory, default = Directory(catalog), ("default",)
    # As of a lake that is only read, nothing is written by looking.
    assert directory.properties(default) == {}
    assert directory.namespaces(()) == [default]
    assert not directory.tables(default)
    assert not directory.namespaces(default)
    with pytest.raises(NamespaceNotFound, match="did you mean default"):
        directory.properties(("defaults",))
    with pytest.raises(TableNotFound, match="there are no tables"):
        directory.registration(("default", "t"))
    assert not Path(catalog.root).exists()
    directory.create_namespace(default, {}, if_not_exists=True)
    with pytest.raises(NamespaceAlreadyExists):
        directory.create_namespace(default, {}, if_not_exists=False)
    for name in ("t", "u"):
        create(catalog, "default", name)
    assert Directory(Catalog("lance", catalog.root)).tables(default) == ["t", "u"]
    directory.alter_namespace(default, {"owner": "ops"}, [])
    assert directory.properties(default) == {"owner": "ops"}
    assert directory.namespaces(()) == [default]
    assert tables.drop_namespace(catalog, default, cascade=True)
    assert directory.tables(default) == []
    directory.create_namespace(("default", "eu"), {}, if_not_exists=False)
    assert directory.namespaces(default) == [("default", "eu")]


def test_namespaces_are_those_of_upstream(catalog: Catalog) -> None:
    directory = Directory(catalog)
    directory.create_namespace(("shop", "eu"), {}, if_not_exists=False)
    directory.create_namespace(("shop",), {}, if_not_exists=True)
    with pytest.raises(NamespaceAlreadyExists, match=r"IF NOT EXISTS \(exist_ok=True in Python\)"):
        directory.create_namespace(("shop",), {}, if_not_exists=False)
    assert directory.namespaces(()) == [("shop",)]
    assert directory.namespaces(("shop",)) == [("shop", "eu")]
    assert directory.properties(("shop",)) == {"owner": "ops"}
    theirs = upstream.connect("dir", {"root": catalog.root})
    assert theirs.list_namespaces(upstream.ListNamespacesRequest(id=["shop"])).namespaces == ["eu"]
    theirs.create_namespace(upstream.CreateNamespaceRequest(id=["theirs"]))
    assert directory.namespaces(()) == [("shop",), ("theirs",)]
    with pytest.raises(NamespaceNotFound, match="did you mean shop"):
        directory.properties(("shp",))


def test_a_table_whose_name_a_namespace_has_is_told_so(catalog: Catalog) -> None:
    with pytest.raises(TableNotFound, match=r"table lance\.shop: it is a namespace"):
        Directory(catalog).registration(("shop",))
    with pytest.raises(TableNotFound, match=r"table lance\.shops: there are no tables"):
        Directory(catalog).registration(("shops",))
    create(catalog, "shop", "orders")
    with pytest.raises(TableNotFound, match=r"table lance\.orders: did you mean shop\.orders\."):
        Directory(catalog).registration(("orders",))


def test_a_partitioned_namespace_is_a_table_here_and_a_namespace_there(catalog: Catalog) -> None:
    table = create(catalog, "shop", "orders")
    directory = Directory(catalog)
    assert directory.tables(("shop",)) == ["orders"]
    assert directory.namespaces(("shop",)) == []
    with pytest.raises(NamespaceNotFound):
        directory.properties(("shop", "orders"))
    theirs = upstream.connect("dir", {"root": catalog.root})
    request = upstream.DescribeNamespaceRequest(id=["shop", "orders"])
    location = theirs.describe_namespace(request).properties["location"]
    assert f"{catalog.root}/{location}" == table.snapshot.location
    inside = upstream.connect("dir", {"root": table.snapshot.location})
    assert inside.list_namespaces(upstream.ListNamespacesRequest(id=[])).namespaces == ["v1"]


def test_upstream_tables_are_plain_tables(catalog: Catalog) -> None:
    theirs = upstream.connect("dir", {"root": catalog.root})
    place = theirs.declare_table(upstream.DeclareTableRequest(id=["shop", "plain"])).location
    lance.write_dataset(pa.table({"a": [1]}), place)
    assert Directory(catalog).tables(("shop",)) == ["plain"]
    table = load(catalog, ("shop", "plain"))
    assert (table.snapshot.layout, table.partitioning) == ("plain", ())
    with pytest.raises(UnsupportedTableChange, match="plain Lance dataset"):
        tables.rename(catalog, ("shop", "plain"), ("shop", "other"))
    assert tables.drop(catalog, ("shop", "plain"))
    assert Directory(catalog).tables(("shop",)) == []


def test_a_creation_that_fails_leaves_nothing(catalog: Catalog) -> None:
    before = names_in(catalog)
    with pytest.raises(UnknownTransform, match="bucket"):
        create(
            catalog,
            "shop",
            "orders",
            by=[{"function": "zorder", "arguments": [{"column": ["id"]}]}],
        )
    variant = {"name": "v", "type": "variant", "nullable": True, "metadata": {}}
    with pytest.raises(UnsupportedColumnType, match="v: type variant"):
        create(catalog, "shop", "orders", fields=[ID, variant], by=[])
    with pytest.raises(InvalidColumnName, match="`a_b`"):
        create(catalog, "shop", "orders", fields=[ID, {**ID, "name": "a.b"}], by=[])
    with pytest.raises(NamespaceNotFound):
        create(catalog, "nowhere", "orders")
    assert names_in(catalog) == before
    create(catalog, "shop", "orders")
    with pytest.raises(TableAlreadyExists):
        create(catalog, "shop", "orders")
    with pytest.raises(TableAlreadyExists, match="a namespace"):
        create(catalog, "shop")


def test_drop_deletes_the_files_and_replace_the_old_ones(catalog: Catalog) -> None:
    first = create(catalog, "shop", "orders").snapshot.location
    second = create(catalog, "shop", "orders", mode="replace", fields=[ID], by=[]).snapshot.location
    assert (Path(first).exists(), Path(second).exists()) == (False, True)
    assert load(catalog, ("shop", "orders")).snapshot.schema.arrow.names == ["id"]
    with pytest.raises(TableNotFound, match="did you mean orders"):
        create(catalog, "shop", "order", mode="replace")
    create(catalog, "shop", "new", mode="create_or_replace")
    assert tables.drop(catalog, ("shop", "orders"))
    assert not Path(second).exists()
    assert not tables.drop(catalog, ("shop", "orders"))
    with pytest.raises(NamespaceNotEmpty, match="new"):
        tables.drop_namespace(catalog, ("shop",), cascade=False)
    assert tables.drop_namespace(catalog, ("shop",), cascade=True)
    assert names_in(catalog) == ["__manifest"]


def test_a_replaced_name_moves_once_and_upstream_sees_it(catalog: Catalog) -> None:
    first = create(catalog, "shop", "orders").snapshot.location
    directory, client = Directory(catalog), upstream.connect("dir", {"root": catalog.root})
    new = create(catalog, "shop", "staged").snapshot.location
    replace_partitioned(directory, ("shop", "orders"), first, new)
    assert directory.registration(("shop", "orders")).location == new
    described = client.describe_namespace(upstream.DescribeNamespaceRequest(id=["shop", "orders"]))
    assert f"{catalog.root}/{described.properties['location']}" == new
    with pytest.raises(WriteConflict, match="another writer replaced or dropped the table"):
        replace_partitioned(directory, ("shop", "orders"), first, new)
    assert directory.tables(("shop",)) == ["orders", "staged"]


def test_rename_keeps_the_files_and_refuses_a_name_that_is_taken(catalog: Catalog) -> None:
    location = create(catalog, "shop", "orders").snapshot.location
    create(catalog, "shop", "taken")
    with pytest.raises(TableAlreadyExists):
        tables.rename(catalog, ("shop", "orders"), ("shop", "taken"))
    tables.rename(catalog, ("shop", "orders"), ("shop", "sales"))
    assert load(catalog, ("shop", "sales")).snapshot.location == location
    assert Directory(catalog).tables(("shop",)) == ["sales", "taken"]


def test_a_path_is_a_table(catalog: Catalog, tmp_path: Path) -> None:
    path = str(tmp_path / "elsewhere")
    with pytest.raises(TableNotFound, match=path):
        load(catalog, (path,))
    create(catalog, path)
    assert load(catalog, (path,)).partitioning == (BY_REGION,)
    assert load(catalog, (f"file://{path}/",)).snapshot.location == path
    assert tables.drop(catalog, (path,))
    assert not Path(path).exists()
    file = tmp_path / "notes.txt"
    file.write_text("no table")
    with pytest.raises(PathNotTable, match="file"):
        load(catalog, (str(file),))


@pytest.mark.parametrize(
    ("root", "why"),
    [("missing/deep", "does not exist"), ("file", "not a folder"), ("sealed", "written")],
)
def test_a_root_that_cannot_be_used_is_named(tmp_path: Path, root: str, why: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "sealed").mkdir(mode=0o500)
    if root == "sealed" and os.access(tmp_path / "sealed", os.W_OK):
        pytest.skip("the superuser may write everywhere")
    catalog = Catalog("lance", str(tmp_path / root))
    with pytest.raises(RootNotUsable, match=f"{why}.*, after --root .*, or in pennon.connect"):
        Directory(catalog).create_namespace(("a",), {}, if_not_exists=False)


def test_a_store_that_does_not_answer_is_told_without_sources_of_its_client() -> None:
    store = {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_endpoint": "http://127.0.0.1:9",
        "allow_http": "true",
        "region": "us-east-1",
        "client_max_retries": "0",
    }
    place = "s3://no-such-bucket/lake"
    with pytest.raises(StorageFailure) as refused:
        Directory(Catalog("lance", place, storage=store)).namespaces(())
    with pytest.raises(StorageFailure) as closed:
        open_manifest(place, storage_options=store)
    for failed in (refused, closed):
        message = str(failed.value)
        assert "Check the address, the network and the storage options" in message
        assert "http://127.0.0.1:9/no-such-bucket" in message
        assert not re.search(r"\.rs:|DirectoryNamespace|source:", message)


def test_an_unknown_implementation_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownImplementation, match="hive9"):
        Directory(Catalog("lance", str(tmp_path), "hive9")).namespaces(())


def change(kind: str, *column: str, **more: object) -> dict[str, object]:
    return {"change": kind, "column": list(column), **more}


def test_alter_changes_columns_and_properties(catalog: Catalog) -> None:
    create(catalog, "shop", "orders")
    ids = {
        field.path: field.id for field in load(catalog, ("shop", "orders")).snapshot.schema.fields
    }
    table = alter.alter_table(
        catalog,
        ("shop", "orders"),
        [
            {"change": "set_property", "property": "quality", "value": "low"},
            {"change": "set_property", "property": "comment", "value": "new"},
            change(
                "add_column",
                "x",
                type='"double"',
                nullable=True,
                comment="added",
                position={"first": True},
            ),
            change("rename_column", "region", new_name="area"),
            change("update_comment", "id", comment="key"),
        ],
    )
    schema = table.snapshot.schema
    assert schema.arrow.names == ["x", "id", "area"]
    assert (
        present(schema.field_by_path(["area"])).id,
        present(schema.field_by_path(["x"])).id,
    ) == (
        ids["region",],
        2,
    )
    assert table.properties["quality"] == "low"
    assert table.properties["comment"] == "new"
    columns: Any = spark_schema(table.snapshot.schema.arrow)["fields"]
    assert columns[1]["metadata"] == {"comment": "key"}
    assert table.partitioning == ({"function": "identity", "arguments": [{"column": ["area"]}]},)
    removed: list[dict[str, object]] = [
        {"change": "remove_property", "property": "quality"},
        change("delete_column", "x"),
    ]
    table = alter.alter_table(catalog, ("shop", "orders"), removed)
    assert "quality" not in table.properties
    added = alter.alter_table(
        catalog, ("shop", "orders"), [change("add_column", "y", type='"long"')]
    )
    assert present(added.snapshot.schema.field_by_path(["y"])).id == 3


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (change("update_type", "region", type='"binary"'), "not every value"),
        (change("update_type", "id", type='"integer"'), "int64"),
        (change("update_nullability", "id", nullable=False), "may be NULL"),
        (change("add_column", "id", type='"long"'), "there is such a column"),
        (change("rename_column", "id", new_name="region"), "there is a column region"),
        (change("rename_column", "nope", new_name="x"), "id, region"),
        ({"change": "set_property", "property": "location", "value": "/x"}, "fixed"),
    ],
)
def test_alter_refuses_what_is_not_safe(catalog: Catalog, refused: dict, why: str) -> None:
    create(catalog, "shop", "orders")
    version = load(catalog, ("shop", "orders")).snapshot.version
    with pytest.raises(PennonError, match=why):
        alter.alter_table(catalog, ("shop", "orders"), [refused])
    assert load(catalog, ("shop", "orders")).snapshot.version == version


def test_properties_of_a_namespace_change_whatever_is_in_it(catalog: Catalog) -> None:
    directory = Directory(catalog)
    directory.alter_namespace(("shop",), {"a": "b", "c": "it's"}, ["owner"])
    create(catalog, "shop", "orders")
    directory.alter_namespace(("shop",), {"a": "d"}, ["c"])
    assert Directory(catalog).properties(("shop",)) == {"a": "d"}
    assert directory.tables(("shop",)) == ["orders"]
    with pytest.raises(NamespaceChangeRefused, match="a catalog's root has none"):
        directory.alter_namespace((), {"a": "d"}, [])
    with pytest.raises(NamespaceChangeRefused, match="below the catalog's root, not at /elsewhere"):
        directory.alter_namespace(("shop",), {"location": "/elsewhere"}, [])
    with pytest.raises(NamespaceChangeRefused, match="Leave LOCATION out"):
        directory.create_namespace(("n",), {"location": "/elsewhere"}, if_not_exists=True)
    assert directory.namespaces(()) == [("shop",)]


def test_a_table_that_is_there_gets_a_name_and_no_second_one(catalog: Catalog) -> None:
    """As after another client has forgotten a table: its files stay, and the name comes back."""
    made = create(catalog, "shop", "orders")
    location = made.snapshot.location
    Directory(catalog).deregister(("shop", "orders"))
    lake = pennon.connect(catalog.root)
    assert lake.list_tables() == []
    again = lake.register_table("shop.again", Path(location).name)
    again.append([{"id": 1, "region": "eu"}])
    assert load(catalog, ("shop", "again")).snapshot.location == location
    Directory(catalog).create_namespace(("beside",), {}, if_not_exists=False)
    folder, link = Path(location), Path(catalog.root) / "link"
    link.symlink_to(folder)
    ways = (location, f"./{folder.name}", f"{folder.parent}/no/../{folder.name}/", folder.as_uri())
    for parent, path in product(("shop", "beside"), (*ways, str(link))):
        with pytest.raises(RegistrationRefused, match=r"it has the name lance\.shop\.again"):
            register_table(catalog, (parent, "other"), path)
    with pytest.raises(TableAlreadyExists, match="shop.again"):
        register_table(catalog, ("shop", "again"), location)
    with pytest.raises(TableNotFound, match=r"shop\.other: nothing readable is at .*nowhere"):
        register_table(catalog, ("shop", "other"), "nowhere")


def test_of_two_names_given_at_once_none_stays_beside_the_other(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes between the first one's look for a name and its registration."""
    made = pennon.create(f"{catalog.root}/parted", pa.schema({"id": pa.int64()}))
    held = Directory.register
    waiting = ["second"]

    def register(directory: Directory, identifier: tuple[str, ...], location: str) -> None:
        while waiting:
            register_table(catalog, ("shop", waiting.pop()), made.location)
        held(directory, identifier, location)

    monkeypatch.setattr(Directory, "register", register)
    with pytest.raises(RegistrationRefused, match=r"it has the name lance\.shop\.second"):
        register_table(catalog, ("shop", "first"), made.location)
    assert Directory(catalog).tables(("shop",)) == ["second"]
    assert load(catalog, ("shop", "second")).snapshot.location == made.location


def test_a_plain_dataset_gets_a_name_below_the_root_alone(tmp_path: Path, catalog: Catalog) -> None:
    rows = pa.table({"id": [1, 2]})
    lance.write_dataset(rows, f"{catalog.root}/loose")
    lance.write_dataset(rows, str(tmp_path / "elsewhere"))
    row = call(catalog, "register_table", {"table": "shop.loose", "path": "loose"}).rows[0]
    assert row == ("lance.shop.loose", f"{catalog.root}/loose", 1)
    assert pennon.connect(catalog.root).load_table("shop.loose").scan().to_arrow().equals(rows)
    lance.write_dataset(rows, f"{catalog.root}/folder/inside")
    made = pennon.create(f"{catalog.root}/parted", rows.schema)
    made.append(rows)
    leaf = next(Path(made.location).glob("*$dataset"))
    for path in (str(tmp_path / "elsewhere"), "folder/inside"):
        with pytest.raises(RegistrationRefused, match="has to be right below the root"):
            register_table(catalog, ("shop", "far"), path)
    with pytest.raises(PathNotTable, match="it is a partition of the table"):
        register_table(catalog, ("shop", "far"), str(leaf))
    with pytest.raises(RegistrationRefused, match="manifest of a namespace"):
        register_table(catalog, ("shop", "far"), "__manifest")
    with pytest.raises(RegistrationRefused, match="has its name in a namespace"):
        register_table(catalog, ("far",), "loose")
    outside = pennon.create(tmp_path / "outside", rows.schema)
    assert register_table(catalog, ("shop", "out"), outside.location).name == "lance.shop.out"
