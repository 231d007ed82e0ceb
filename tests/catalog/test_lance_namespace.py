"""``lance_namespace.connect("pennon", …)``: held to the appendix, to upstream and to the files."""

from __future__ import annotations

import inspect
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import lance_namespace as upstream
import pyarrow as pa
import pytest
from lance_namespace import errors as upstream_errors
from tests.manifest.handmade import NOWHERE, SALES_EARLY, US, Handmade, appendix_c

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.directory import Directory
from pennon.catalog.upstream.namespace_alias import IMPLEMENTATION

GOLDEN = Path(__file__).parent.parent / "golden"
MISSING = ["v1", "0000000000000000"]
ANSWERED = {
    "namespace_id",
    "list_namespaces",
    "describe_namespace",
    "namespace_exists",
    "list_tables",
    "list_all_tables",
    "describe_table",
    "table_exists",
    "count_table_rows",
    "query_table",
    "explain_table_query_plan",
    "analyze_table_query_plan",
    "get_table_stats",
    "list_table_indices",
    "describe_table_index_stats",
    "list_table_versions",
    "describe_table_version",
    "list_table_tags",
    "get_table_tag_version",
    "list_table_branches",
    "describe_transaction",
}
OPERATIONS = {
    name
    for name, method in vars(upstream.LanceNamespace).items()
    if inspect.isfunction(method) and not name.startswith("_")
}


@pytest.fixture
def handmade(tmp_path: Path) -> Handmade:
    return appendix_c(tmp_path)


@pytest.fixture
def lake(tmp_path: Path, handmade: Handmade) -> Path:
    """A catalog that has the handmade namespace as ``shop.orders`` and a plain table beside it."""
    client = upstream.connect("dir", {"root": str(tmp_path)})
    client.create_namespace(upstream.CreateNamespaceRequest(id=["shop"], properties={"a": "b"}))
    client.create_table(upstream.CreateTableRequest(id=["shop", "plain"]), rows_as_stream())
    Directory(Catalog("lance", str(tmp_path))).register(("shop", "orders"), handmade.location)
    return tmp_path


def rows_as_stream() -> bytes:
    table = pa.table({"id": [1, 2]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def pennon_at(root: object) -> Any:
    return upstream.connect("pennon", {"root": str(root)})


def properties(client: Any, path: list[str]) -> dict[str, str]:
    request = upstream.DescribeNamespaceRequest(id=path)
    return dict(client.describe_namespace(request).properties)


def children(client: Any, path: list[str]) -> list[str]:
    return list(client.list_namespaces(upstream.ListNamespacesRequest(id=path)).namespaces)


def tables(client: Any, path: list[str]) -> list[str]:
    return list(client.list_tables(upstream.ListTablesRequest(id=path)).tables)


def described(client: Any, path: list[str], **more: Any) -> Any:
    return client.describe_table(upstream.DescribeTableRequest(id=path, **more))


def levels(client: Any, path: list[str]) -> Iterator[list[str]]:
    yield path
    for child in children(client, path):
        yield from levels(client, [*path, child])


@pytest.mark.spec(
    "Appendix E 1",
    "Appendix E 2",
    "Runtime Namespace Properties 1",
    "Runtime Namespace Properties 2",
)
@pytest.mark.parametrize("above", [[], ["shop", "orders"]], ids=["root", "registered"])
def test_describing_namespaces_answers_appendix_e_word_for_word(
    lake: Path, handmade: Handmade, above: list[str]
) -> None:
    client = pennon_at(lake if above else handmade.location)
    examples = json.loads((GOLDEN / "appendix_e.json").read_text(encoding="utf-8"))
    assert len(examples) == 4
    for example in examples:
        assert properties(client, [*above, *example["namespace"]]) == example["properties"]
        joined = "$".join(example["namespace"])
        assert properties(client, [*above, joined]) == example["properties"]


@pytest.mark.spec("reading 36")
def test_a_partition_of_null_shows_no_value(handmade: Handmade) -> None:
    client = pennon_at(handmade.location)
    assert properties(client, NOWHERE.split("$")[:-1]) == {}
    assert properties(client, ["sales"]) == {}


@pytest.mark.spec("Metadata Definition 2", "Metadata Definition 3")
def test_the_root_shows_schema_and_specs_as_they_are_stored(lake: Path, handmade: Handmade) -> None:
    stored = lance.dataset(f"{handmade.location}/__manifest").metadata
    assert set(stored) == {"schema", "partition_spec_v1", "partition_spec_v2"}
    assert properties(pennon_at(handmade.location), []) == stored
    registered = properties(pennon_at(lake), ["shop", "orders"])
    assert registered.pop("location") == handmade.location
    assert registered.pop("pennon.partitioned_namespace") == "v1"
    assert registered == stored


@pytest.mark.spec("reading 41")
def test_names_and_locations_are_upstreams_at_every_level(lake: Path, handmade: Handmade) -> None:
    inner = upstream.connect("dir", {"root": handmade.location})
    at_root, registered = pennon_at(handmade.location), pennon_at(lake)
    found = []
    for path in levels(inner, []):
        below = ["shop", "orders", *path]
        assert children(at_root, path) == children(registered, below) == children(inner, path)
        assert tables(at_root, path) == tables(registered, below) == tables(inner, path)
        registered.namespace_exists(upstream.NamespaceExistsRequest(id=below))
        for name in tables(inner, path):
            location = described(inner, [*path, name]).location
            assert described(at_root, [*path, name]).location == location
            assert described(registered, [*below, name]).location == location
            registered.table_exists(upstream.TableExistsRequest(id=[*below, name]))
            found.append("$".join([*path, name]))
    assert set(found) == {*handmade.rows, "sales$orders"}
    every = at_root.list_all_tables(upstream.ListTablesRequest(id=[])).tables
    assert every == sorted(found)
    under_catalog = registered.list_all_tables(upstream.ListTablesRequest(id=[])).tables
    assert under_catalog == sorted(["shop$plain", *(f"shop$orders${name}" for name in found)])


@pytest.mark.spec("Read Behavior 3")
def test_a_leaf_is_described_and_counted_at_the_version_that_is_read(handmade: Handmade) -> None:
    client = pennon_at(handmade.location)
    for leaf, version in handmade.read_versions.items():
        answer = described(client, leaf.split("$"))
        assert answer.version == version
        read = lance.dataset(answer.location, version=answer.version).to_table().to_pylist()
        assert read == handmade.rows[leaf]
        counted = client.count_table_rows(upstream.CountTableRowsRequest(id=leaf.split("$")))
        assert counted.count == len(handmade.rows[leaf])
    filtered = upstream.CountTableRowsRequest(id=SALES_EARLY.split("$"), predicate="id > 2")
    assert client.count_table_rows(filtered).count == 1


def test_a_weak_namespace_reads_the_latest_of_main(tmp_path: Path) -> None:
    weak = appendix_c(tmp_path, with_read_version=False)
    client = pennon_at(weak.location)
    for leaf, rows in weak.rows.items():
        assert described(client, leaf.split("$")).version is None
        counted = client.count_table_rows(upstream.CountTableRowsRequest(id=leaf.split("$")))
        assert counted.count == len(rows)


def test_the_detailed_description_has_the_leafs_own_schema(handmade: Handmade) -> None:
    client = pennon_at(handmade.location)
    detailed = described(client, US.split("$"), load_detailed_metadata=True)
    assert detailed.version == handmade.read_versions[US]
    fields = [
        (field.name, field.nullable, field.type.type, field.metadata)
        for field in detailed.var_schema.fields
    ]
    assert fields == [
        ("id", False, "int64", {"lance:field_id": "0"}),
        ("event_date", True, "date32", {"lance:field_id": "1"}),
        ("country", True, "utf8", {"lance:field_id": "2"}),
    ]
    stated = described(client, US.split("$"), load_detailed_metadata=True, version=1)
    assert stated.version == 1


def test_what_upstream_would_read_at_another_version_is_refused(handmade: Handmade) -> None:
    client = pennon_at(handmade.location)
    for operation in ("query_table", "get_table_stats", "list_table_indices"):
        with pytest.raises(upstream_errors.UnsupportedOperationError) as refused:
            getattr(client, operation)({"id": SALES_EARLY.split("$")})
        assert str(handmade.read_versions[SALES_EARLY]) in str(refused.value)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_are_the_whole_in_pieces(lake: Path, limit: int) -> None:
    client = pennon_at(lake)
    asks = {
        "namespaces": (client.list_namespaces, upstream.ListNamespacesRequest, 3),
        "tables": (client.list_all_tables, upstream.ListTablesRequest, 5),
    }
    for names, (ask, request, count) in asks.items():
        whole = getattr(ask(request(id=["shop", "orders"])), names)
        assert len(whole) == count
        pieces: list[str] = []
        token = None
        while True:
            answer = ask(request(id=["shop", "orders"], limit=limit, page_token=token))
            page, token = getattr(answer, names), answer.page_token
            assert len(page) <= limit
            pieces += page
            if not token:
                break
        assert pieces == whole


def test_missing_names_are_upstreams_errors(lake: Path) -> None:
    client = pennon_at(lake)
    for path in (MISSING, ["shop", "orders", *MISSING], ["shop", "none"], ["shop", "plain"]):
        for ask, request in (
            (client.describe_namespace, upstream.DescribeNamespaceRequest),
            (client.namespace_exists, upstream.NamespaceExistsRequest),
            (client.list_namespaces, upstream.ListNamespacesRequest),
            (client.list_tables, upstream.ListTablesRequest),
            (client.list_all_tables, upstream.ListTablesRequest),
        ):
            with pytest.raises(upstream_errors.NamespaceNotFoundError):
                ask(request(id=path))
    for path in (["shop", "orders"], ["shop", "none"], ["shop", "orders", "v1"]):
        with pytest.raises(upstream_errors.TableNotFoundError):
            described(client, path)
        with pytest.raises(upstream_errors.TableNotFoundError):
            client.table_exists(upstream.TableExistsRequest(id=path))
    with pytest.raises(upstream_errors.InvalidInputError):
        client.describe_namespace(upstream.DescribeNamespaceRequest())


def test_every_operation_of_the_interface_is_answered_or_refused(
    lake: Path, handmade: Handmade
) -> None:
    client = pennon_at(lake)
    assert set(vars(type(client))) >= OPERATIONS
    before = tree(lake)
    inside = [["v1"], ["v9"], SALES_EARLY.split("$"), ["sales", "orders"], []]
    for operation in sorted(OPERATIONS - ANSWERED):
        for path in inside:
            names = ["shop", "orders", *path]
            change: dict[str, object] = {"id": names}
            request = change
            if operation.startswith("batch_create"):
                request = {"entries": [change]}
            if operation == "batch_commit_tables":
                request = {"operations": [{"declare_table": change}]}
            with pytest.raises(upstream_errors.UnsupportedOperationError) as refused:
                getattr(client, operation)(request)
            assert f"Cannot {operation} {'$'.join(names)}: it belongs to" in str(refused.value)
            assert handmade.location in str(refused.value)
    moved_in = upstream.RenameTableRequest(
        id=["shop", "plain"], new_namespace_id=["shop", "orders", "v1"], new_table_name="dataset"
    )
    with pytest.raises(upstream_errors.UnsupportedOperationError):
        client.rename_table(moved_in)
    assert tree(lake) == before


def tree(root: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


def test_outside_partitioned_namespaces_everything_is_upstreams(lake: Path) -> None:
    client, plain = pennon_at(lake), upstream.connect("dir", {"root": str(lake)})
    client.create_namespace(upstream.CreateNamespaceRequest(id=["new"], properties={"k": "v"}))
    client.create_table(upstream.CreateTableRequest(id=["new", "t"]), rows_as_stream())
    assert children(client, []) == children(plain, []) == ["new", "shop"]
    assert properties(client, ["new"]) == properties(plain, ["new"]) == {"k": "v"}
    assert described(client, ["new", "t"]) == described(plain, ["new", "t"])
    counted = client.count_table_rows(upstream.CountTableRowsRequest(id=["new", "t"]))
    assert counted.count == 2
    client.drop_table(upstream.DropTableRequest(id=["new", "t"]))
    client.drop_namespace(upstream.DropNamespaceRequest(id=["new"]))
    assert children(plain, []) == ["shop"]


def test_a_damaged_manifest_is_an_invalid_state(handmade: Handmade) -> None:
    lance.dataset(f"{handmade.location}/__manifest").drop_columns(["partition_field_country"])
    with pytest.raises(upstream_errors.InvalidTableStateError, match="partition_field_country"):
        properties(pennon_at(handmade.location), ["v1"])


def test_storage_options_are_never_shown(tmp_path: Path) -> None:
    client = upstream.connect(
        "pennon", {"root": str(tmp_path), "storage.aws_secret_access_key": "hush"}
    )
    assert "hush" not in f"{client!r} {client.namespace_id()}"
    with pytest.raises(ValueError, match="the property 'root' is missing"):
        upstream.connect("pennon", {})


@pytest.mark.parametrize(
    "program",
    [
        "import pennon, lance_namespace as n; n.connect('pennon', {'root': '.'})",
        "import lance_namespace as n, pennon; n.connect('pennon', {'root': '.'})",
        f"import lance_namespace as n; n.connect('{IMPLEMENTATION}', {{'root': '.'}})",
        "import sys, pennon; assert 'lance_namespace' not in sys.modules",
    ],
    ids=["before", "after", "class path", "lean"],
)
def test_importing_pennon_enters_the_name(program: str, tmp_path: Path) -> None:
    path = str(Path(__file__).parents[2] / "python")
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {program}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
