"""The older draft reads as a table: every row is found, and no leaf too many is read."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DescribeNamespaceRequest,
    ListNamespacesRequest,
)
from lance_namespace.errors import UnsupportedOperationError
from tests.draft.older_draft import CASES, ROWS, Row, make, murmur

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import alter
from pennon.catalog.ddl import table_ddl as tables
from pennon.catalog.directory import Directory
from pennon.catalog.tables.loaded_table import load
from pennon.cli import main
from pennon.draft.evidence import chosen_readings, examine, readings
from pennon.errors import (
    CorruptJson,
    DraftLayout,
    DraftNotReadable,
    LeafMissing,
    LeafTypeMismatch,
    MigrationRefused,
    NotPartitionedNamespace,
    PennonError,
)
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.migrate import migrate
from pennon.manifest.draft import DraftLeaf, read_draft
from pennon.namespace import read_plan
from pennon.planning import plan_scan
from pennon.spec import NamespaceSchema

Found = tuple[list[object], int]


def ids(location: str, predicate: str | None = None, version: int | None = None) -> Found:
    """The ids that a predicate finds, and the leaves that it reads."""
    plan = pennon.open(location, version).scan(predicate).plan()
    return sorted(read_plan(plan).to_arrow()["id"].to_pylist()), plan.table.num_rows


def state(location: str) -> set[Path]:
    return {path for path in Path(location).rglob("*") if path.is_file()}


@pytest.mark.parametrize("above", ["", "root"])
@pytest.mark.parametrize("case", CASES)
def test_each_function_prunes_and_nothing_is_written(tmp_path: Path, case: str, above: str) -> None:
    column, name, predicate, wanted = CASES[case]
    location = make(tmp_path, [column], lambda row: [name(row)], above=above)
    before = state(location)
    assert ids(location)[0] == list(range(10))
    assert ids(location, predicate) == wanted
    assert "pennon migrate" in str(check(location).findings[0]) or above
    assert state(location) == before


def test_levels_of_several_columns_prune_together(tmp_path: Path) -> None:
    columns: list[Row] = [
        {"name": "ts", "function": "year"},
        {"name": "ts", "function": "month"},
        {"name": "country", "function": "identity"},
    ]

    def name(row: Row) -> list[str]:
        ts = row["ts"]
        assert isinstance(ts, dt.datetime)
        country = row["country"] or "__HIVE_DEFAULT_PARTITION__"
        return [f"ts_year={ts.year}", f"ts_month={ts.month:02}", f"country={country}"]

    location = make(tmp_path, columns, name)
    late = "ts >= TIMESTAMP '2025-12-10 00:00:00' AND ts < TIMESTAMP '2025-12-11 00:00:00'"
    assert ids(location, late + " AND country = 'US'") == ([0, 1, 5, 6], 1)
    assert ids(location, "ts < TIMESTAMP '2025-02-01 00:00:00'") == ([3, 4, 8, 9], 2)
    assert ids(location, "country IS NULL") == ([3, 8], 1)


TEXTS = ["null", "a$b", "a+b", "a b", "50%25", "50%", "", "=", "None", "ä/ö", None]


@pytest.mark.parametrize("spelling", ["plain", "quoted"])
def test_every_text_of_a_name_finds_its_rows(tmp_path: Path, spelling: str) -> None:
    """Texts that stand for NULL elsewhere, separators, and percent signs that may be escapes."""
    rows = [{**ROWS[0], "id": at, "country": text} for at, text in enumerate(TEXTS)]

    def name(row: Row) -> list[str]:
        text = "\\N" if row["country"] is None else str(row["country"])
        return ["country=" + (text.replace("%", "%25") if spelling == "quoted" else text)]

    column: list[Row] = [{"name": "country", "function": "identity"}]
    location = make(tmp_path, column, name, rows=rows)
    assert ids(location)[0] == list(range(len(TEXTS)))
    for at, text in enumerate(TEXTS):
        predicate = "country IS NULL" if text is None else f"country = '{text}'"
        found, leaves = ids(location, predicate)
        assert found == [at]
        # Of NULL's own name nobody knows what it says: that one leaf is always read.
        assert leaves <= 2


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ({"name": "n", "function": "zorder"}, "n=1"),
        ({"name": "ts", "function": "year"}, "ts_year=1999"),
        ({"name": "n", "function": "bucket[4]"}, "n_bucket=2"),
        ({"name": "n", "function": "hash"}, "n_hash=00000001"),
        ({"name": "country", "function": "identity"}, "country=US"),
        ({"name": "country", "function": "identity"}, "nation"),
    ],
)
def test_names_that_the_rows_contradict_prune_nothing(
    tmp_path: Path, column: Row, name: str
) -> None:
    location = make(tmp_path, [column], lambda _: [name], above="root")
    assert ids(location) == (list(range(10)), 1)
    assert ids(location, "n = -25") == ([4, 9], 1)
    assert ids(location, "country IS NULL") == ([3, 8], 1)
    assert ids(location, "ts > TIMESTAMP '2025-12-10 05:30:00'")[0] == [1, 2, 6, 7]


def test_rows_of_another_writer_are_seen_and_may_take_the_meaning_away(tmp_path: Path) -> None:
    column, name, predicate, wanted = CASES["bucket"]
    location = make(tmp_path, [column], lambda row: [name(row)])
    assert ids(location, predicate) == wanted
    leaf = lance.dataset(f"{location}/00000000_leaf.lance")
    rows = pa.Table.from_pylist([{**ROWS[2], "id": 10}], leaf.schema)
    leaf.insert(rows)
    assert ids(location, predicate)[0] == [*wanted[0], 10]


def test_a_hash_that_was_not_seen_whole_needs_many_hits_and_no_null(tmp_path: Path) -> None:
    schema = NamespaceSchema.with_fresh_ids(pa.schema({"n": pa.int32()}))
    (column,) = read_draft(
        make(tmp_path, [CASES["bucket"][0]], lambda row: [CASES["bucket"][1](row)])
    ).columns
    known = [readings(column, schema)]
    numbers = [n for n in range(400) if abs(murmur(n)) % 4 == 1]
    leaf = DraftLeaf("n_bucket=1", "leaf", ("1",))

    def chosen(numbers: list[int | None], most_rows: int) -> int | None:
        rows = pa.table({"n": pa.array(numbers, pa.int32())})
        dataset = lance.write_dataset(rows, str(tmp_path / "leaf"), mode="overwrite")
        found = examine(dataset, leaf, known, schema, most_rows)
        return chosen_readings([column], known, {"leaf": found})[0]

    assert chosen([*numbers], 1000) == 0
    assert chosen([*numbers], 50) == 0
    assert chosen([*numbers], 5) is None
    assert chosen([*numbers, None], 50) is None
    assert chosen([*numbers, None], 1000) is None
    assert chosen([*numbers[:3]], 1000) == 0


def test_a_migration_that_stated_ids_does_not_hide_columns(tmp_path: Path) -> None:
    column: list[Row] = [{"name": "ts", "function": "year"}]
    refused = make(tmp_path / "refused", column, lambda _: ["ts_year=1999"])
    with pytest.raises(MigrationRefused):
        migrate(refused)
    assert ids(refused, "country = 'CN'") == ([2, 7], 1)
    done = make(tmp_path / "done", column, lambda _: ["ts_year=2025"])
    before = pennon.open(done).version
    migrate(done)
    assert ids(done, "country = 'CN'", before) == ([2, 7], 1)


def test_what_the_metadata_does_not_tell_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    column: list[Row] = [{"name": "m", "function": "year"}]
    location = make(tmp_path / "a", column, lambda _: ["m=1"])
    with pytest.raises(DraftNotReadable, match="names no known column"):
        pennon.open(location)
    location = make(tmp_path / "b", [CASES["hash"][0]], lambda _: ["m=1"], above="first")
    manifest = lance.dataset(f"{location}/__manifest")
    text = '{"lance.partitioning.enabled":"true"}'
    second = {"object_id": "second", "object_type": "namespace", "metadata": text}
    manifest.insert(pa.Table.from_pylist([second], manifest.schema))
    assert main(["describe", location]) == 1
    assert f"it holds several: first, second. Name one of them, as {location}/first" in (
        capsys.readouterr().err
    )
    assert ids(f"{location}/first")[0] == list(range(10))


@pytest.mark.parametrize(
    ("key", "text", "condition", "message"),
    [
        ("schema", '{"fields": [', CorruptJson, r"partitioning\.schema of .* line 1"),
        ("schema", None, DraftNotReadable, r"it has no lance\.partitioning\.schema"),
        ("partition-columns", None, DraftNotReadable, "it has no lance.*columns"),
        ("partition-columns", "{}", DraftNotReadable, "is no array"),
        ("partition-columns", '["country"]', DraftNotReadable, "has 'country', which names no"),
        ("enabled", "false", NotPartitionedNamespace, "It holds tables: open one of them"),
    ],
)
def test_a_damaged_property_is_named(
    tmp_path: Path, key: str, text: str | None, condition: type[PennonError], message: str
) -> None:
    column: list[Row] = [{"name": "country", "function": "identity"}]
    location = make(tmp_path, column, lambda row: [f"country={row['country']}"])
    manifest = lance.dataset(f"{location}/__manifest")
    manifest.update_metadata({f"lance.partitioning.{key}": text})
    with pytest.raises(condition, match=message):
        pennon.open(location)


def test_a_leaf_that_is_gone_or_unreadable_is_named(tmp_path: Path) -> None:
    column: list[Row] = [{"name": "country", "function": "identity"}]
    location = make(tmp_path, column, lambda row: [f"country={row['country'] or 'null'}"])
    other = pa.table({"id": ["x"], "country": [1]})
    lance.write_dataset(other, f"{location}/00000001_leaf.lance", mode="overwrite")
    plan = pennon.open(location).scan("country = 'a/b c'").plan()
    places = [partition.location for partition in plan.partitions]
    assert places == ["00000001_leaf.lance", "00000003_leaf.lance"]
    with pytest.raises(LeafTypeMismatch, match=r"leaf 00000001_leaf\.lance"):
        read_plan(plan).to_arrow()
    shutil.rmtree(f"{location}/00000001_leaf.lance")
    with pytest.raises(LeafMissing, match=r"leaf 00000001_leaf\.lance"):
        pennon.open(location).scan().plan()


def test_the_catalog_lists_a_namespace_of_the_draft_as_a_table_that_is_only_read(
    tmp_path: Path,
) -> None:
    column, name, predicate, wanted = CASES["epoch day"]
    make(tmp_path / "lake", [column], lambda row: [name(row)], above="orders")
    catalog = Catalog("lance", str(tmp_path / "lake"))
    directory = Directory(catalog)
    assert "orders" in directory.tables(())
    assert directory.namespaces(()) == []
    table = load(catalog, ("orders",))
    plan = plan_scan(table.snapshot, predicate)
    assert (sorted(read_plan(plan).to_arrow()["id"].to_pylist()), plan.table.num_rows) == wanted
    change = [{"change": "set_property", "property": "a", "value": "b"}]
    for refused in (
        lambda: tables.drop(catalog, ("orders",)),
        lambda: tables.rename(catalog, ("orders",), ("new",)),
        lambda: alter.alter_table(catalog, ("orders",), change),
        lambda: table.stored.check_writable("write to"),
    ):
        with pytest.raises(DraftLayout, match="pennon migrate"):
            refused()
    assert "orders" in directory.tables(())


def test_lance_namespace_answers_for_a_draft_and_refuses_changes(tmp_path: Path) -> None:
    column, name, *_ = CASES["truncate"]
    location = make(tmp_path, [column], lambda row: [name(row)])
    client = lance_namespace.connect("pennon", {"root": location})
    described = client.describe_namespace(DescribeNamespaceRequest(id=[]))
    assert described.properties["lance.partitioning.enabled"] == "true"
    assert client.list_namespaces(ListNamespacesRequest(id=[])).namespaces == []
    with pytest.raises(UnsupportedOperationError, match="pennon migrate"):
        client.create_namespace(CreateNamespaceRequest(id=["n_trunc=990"]))
    outer = make(tmp_path / "lake", [column], lambda row: [name(row)], above="orders")
    client = lance_namespace.connect("pennon", {"root": outer})
    with pytest.raises(UnsupportedOperationError, match="pennon migrate"):
        client.create_namespace(CreateNamespaceRequest(id=["orders", "n_trunc=990"]))
