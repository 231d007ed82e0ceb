"""Folders of ``<name>.lance`` without a ``__manifest``: what upstream lists there, Pennon reads."""

from __future__ import annotations

from pathlib import Path

import lance
import lance_namespace
import pyarrow as pa
from lance_namespace import DescribeTableRequest, ListTablesRequest

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import table_ddl as tables
from pennon.catalog.directory import Directory
from pennon.catalog.layouts.plain_snapshot import PlainSnapshot
from pennon.catalog.tables.loaded_table import load
from pennon.namespace import Scan

ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
BY_ID = {"function": "identity", "arguments": [{"column": ["id"]}]}


def make(root: Path) -> Catalog:
    for name, rows in {"orders": [1, 2, 3], "people": [4]}.items():
        lance.write_dataset(pa.table({"id": rows}), str(root / f"{name}.lance"))
    (root / "notes").mkdir()
    (root / "notes.txt").write_text("no dataset")
    (root / "empty.lance").mkdir()
    return Catalog("lance", str(root))


def ids(catalog: Catalog, name: str, predicate: str | None = None) -> list[int]:
    snapshot = load(catalog, (name,)).snapshot
    assert isinstance(snapshot, PlainSnapshot)
    return sorted(Scan(snapshot, predicate).to_arrow()["id"].to_pylist())


def test_a_listing_without_a_manifest_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    catalog = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    upstream = lance_namespace.connect("dir", {"root": str(tmp_path)})
    listed = upstream.list_tables(ListTablesRequest(id=[])).tables
    assert Directory(catalog).tables(()) == sorted(listed)
    assert {"orders", "people"} <= set(listed)
    assert Directory(catalog).namespaces(()) == []
    assert ids(catalog, "orders", "id >= 2") == [2, 3]
    assert ids(catalog, "people") == [4]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_of_pennon_beside_them_leaves_them_where_they_are(tmp_path: Path) -> None:
    catalog = make(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.lance/**/*")}
    schema = {"type": "struct", "fields": [ID]}
    tables.create(
        catalog, ("new",), schema=schema, transforms=[BY_ID], properties={}, mode="create"
    )
    assert (tmp_path / "__manifest").is_dir()
    assert {"new", "orders", "people"} <= set(Directory(catalog).tables(()))
    assert ids(catalog, "orders") == [1, 2, 3]
    tables.drop(catalog, ("new",))
    assert ids(catalog, "people") == [4]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.lance/**/*")} == before
    upstream = lance_namespace.connect("dir", {"root": str(tmp_path)})
    described = upstream.describe_table(DescribeTableRequest(id=["orders"]))
    assert lance.dataset(described.location).count_rows() == 3
    tables.drop(catalog, ("people",))
    assert not (tmp_path / "people.lance").exists()
    assert "people" not in Directory(catalog).tables(())
