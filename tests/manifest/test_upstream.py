"""What upstream's directory namespace makes of a namespace of ours, and cannot do to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeTableRequest,
    DropTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
)

from pennon.manifest import LeafChange, Snapshot, commit_leaves, create, leaf_name
from pennon.manifest.format.rows import BASE_COLUMNS
from pennon.spec import NamespaceSchema, spec_of
from pennon.transforms.registry import from_sql

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = NamespaceSchema.with_fresh_ids(pa.schema({"id": pa.int64(), "region": pa.utf8()}))


@pytest.fixture
def leaf(tmp_path: Path) -> LeafChange:
    spec = spec_of(SCHEMA, [from_sql("identity", [{"column": ["region"]}])])
    snapshot = create(str(tmp_path), SCHEMA, spec)
    name = leaf_name(snapshot.salt, 1, [pa.scalar("US")])
    rows = pa.table({"id": [1, 2], "region": ["US", "US"]})
    dataset = lance.write_dataset(rows, str(tmp_path / name.directory))
    values, order = {"region": pa.scalar("US")}, "0 int64 ASC NULLS FIRST"
    made = LeafChange(name.object_id, name.directory, values, dataset.version, 2, order=order)
    commit_leaves(snapshot, [made])
    return made


@pytest.mark.spec(
    "Partitioned Namespace 1",
    "Physical Layout and Naming 2",
    "Physical Layout and Naming 4",
    "Physical Layout and Naming 5",
    "Physical Layout and Naming 6",
)
def test_upstream_lists_spec_versions_partitions_and_tables(
    tmp_path: Path, leaf: LeafChange
) -> None:
    upstream = lance_namespace.connect("dir", {"root": str(tmp_path)})
    _, partition, table = leaf.object_id.split("$")

    def namespaces(path: list[str]) -> list[str]:
        return list(upstream.list_namespaces(ListNamespacesRequest(id=path)).namespaces)

    assert namespaces([]) == ["v1"]
    assert namespaces(["v1"]) == [partition]
    tables = upstream.list_tables(ListTablesRequest(id=["v1", partition])).tables
    assert list(tables) == [table]
    described = upstream.describe_table(DescribeTableRequest(id=["v1", partition, table]))
    assert lance.dataset(described.location).count_rows() == 2


def test_the_writer_guard_refuses_upstreams_changes(tmp_path: Path, leaf: LeafChange) -> None:
    upstream = lance_namespace.connect("dir", {"root": str(tmp_path)})
    changes: list[Callable[[], object]] = [
        lambda: upstream.create_namespace(CreateNamespaceRequest(id=["v9"])),
        lambda: upstream.declare_table(DeclareTableRequest(id=["v1", "stray"])),
        lambda: upstream.drop_table(DropTableRequest(id=leaf.object_id.split("$"))),
        lambda: upstream.deregister_table(DeregisterTableRequest(id=leaf.object_id.split("$"))),
    ]
    before = Snapshot.open(str(tmp_path)).version
    for change in changes:
        with pytest.raises(Exception, match="writer feature flags 4611686018427387904"):
            change()
    after = Snapshot.open(str(tmp_path))
    assert after.version == before
    assert after.leaves().table["object_id"].to_pylist() == [leaf.object_id]


@pytest.mark.spec("Manifest Table Schema 4", "Manifest Table Schema 5", "Manifest Table Schema 6")
def test_our_first_columns_are_exactly_those_that_upstream_makes(tmp_path: Path) -> None:
    upstream = lance_namespace.connect("dir", {"root": str(tmp_path)})
    upstream.create_namespace(CreateNamespaceRequest(id=["any"]))
    theirs = lance.dataset(str(tmp_path / "__manifest")).schema
    assert theirs.equals(pa.schema(BASE_COLUMNS), check_metadata=True)
