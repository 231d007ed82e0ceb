"""The specification's appendices as they stand: read, planned over and grouped word for word."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import datafusion
import lance
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from pennon.grouping.key_grouping import report
from pennon.manifest import LeafChange, Snapshot, commit_leaves, create, leaf_name
from pennon.manifest.format.names import ObjectId
from pennon.planning import plan_scan
from pennon.planning.scan_plan import ScanPlan
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.spec.functions import common_functions, layout_of
from pennon.transforms.bucket import Bucket

if TYPE_CHECKING:
    from collections.abc import Sequence

GOLDEN = Path(__file__).parent / "golden"
COLUMNS = {
    "object_id": pa.string(),
    "object_type": pa.string(),
    "location": pa.string(),
    "metadata": pa.string(),
    "base_objects": pa.list_(pa.string()),
    "read_version": pa.uint64(),
    "partition_field_event_date": pa.date32(),
    "partition_field_event_year": pa.int32(),
    "partition_field_country": pa.string(),
}


def text(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8")


def rows_of(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text(name).splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def manifest_table(rows: Sequence[dict[str, str]]) -> pa.Table:
    """Make the table that an appendix shows, NULL where it says so."""
    directories = {line.split("_", 1)[1]: line for line in text("appendix_b.txt").splitlines()}
    columns = {}
    for name, kind in COLUMNS.items():
        shown = [row.get(name) for row in rows]
        if name == "location":
            shown = [directories.get(row["object_id"]) for row in rows]
        read: Callable[[str], object] = int if pa.types.is_integer(kind) else str
        read = dt.date.fromisoformat if pa.types.is_date(kind) else read
        values = [None if text_ in (None, "NULL") else read(text_) for text_ in shown]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


def namespace_of(location: Path, table: pa.Table) -> Snapshot:
    dataset = lance.write_dataset(table, str(location / "__manifest"))
    appendix_a = json.loads(text("appendix_a.json"))
    dataset.update_metadata({key: json.dumps(value) for key, value in appendix_a.items()})
    return Snapshot.open(str(location))


@pytest.mark.spec("Appendix A 1", "Appendix A 2", "Appendix A 4")
def test_a_namespace_made_of_appendix_a_keeps_its_metadata(tmp_path: Path) -> None:
    appendix_a = json.loads(text("appendix_a.json"))
    specs = [
        PartitionSpec.from_json(json.dumps(appendix_a[key]), key)
        for key in ("partition_spec_v1", "partition_spec_v2")
    ]
    schema = NamespaceSchema.from_json(json.dumps(appendix_a["schema"]))
    for spec in specs:
        made = create(str(tmp_path / spec.key), schema, spec)
        written = lance.dataset(f"{made.location}/__manifest").metadata
        assert json.loads(written[spec.key]) == appendix_a[spec.key]
        assert json.loads(written["schema"]) == appendix_a["schema"]


@pytest.mark.spec("Appendix A 3", "Manifest Table Schema 1", "Manifest Table Schema 2")
def test_the_manifest_has_the_three_columns_of_appendix_a(tmp_path: Path) -> None:
    snapshot = namespace_of(tmp_path, manifest_table(rows_of("appendix_c.tsv")))
    found = {
        field.column: snapshot.partition_type(field.field_id)
        for spec in snapshot.specs.values()
        for field in spec.fields
    }
    assert found == {
        "partition_field_event_date": pa.date32(),
        "partition_field_event_year": pa.int32(),
        "partition_field_country": pa.string(),
    }


@pytest.mark.spec("Appendix B 1", "Appendix B 2", "Appendix B 3")
def test_a_namespace_of_ours_lies_on_disk_as_appendix_b_shows(tmp_path: Path) -> None:
    appendix_a = json.loads(text("appendix_a.json"))
    spec = PartitionSpec.from_json(json.dumps({**appendix_a["partition_spec_v2"], "id": 1}))
    schema = NamespaceSchema.from_json(json.dumps(appendix_a["schema"]))
    snapshot = create(str(tmp_path), schema, spec)
    values = [pa.scalar(2025, pa.int32()), pa.scalar("US")]
    name = leaf_name(snapshot.salt, 1, values)
    leaf = lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / name.directory))
    by_id = dict(zip(("event_year", "country"), values, strict=True))
    commit_leaves(snapshot, [LeafChange(name.object_id, name.directory, by_id, leaf.version, 1)])

    directories = sorted(path.name for path in tmp_path.iterdir())
    assert directories == sorted(["__manifest", name.directory])
    assert {"data", "_versions"} <= {path.name for path in (tmp_path / "__manifest").iterdir()}
    directory_hash, object_id = name.directory.split("_", 1)
    assert object_id == name.object_id
    shown = {line.split("_", 1)[0] for line in text("appendix_b.txt").splitlines()}
    assert {len(text_) for text_ in shown} == {len(directory_hash)}


@pytest.mark.spec("Appendix C 1", "Appendix C 2", "Appendix C 3", "reading 1", "reading 3")
def test_the_table_of_appendix_c_is_read(tmp_path: Path) -> None:
    snapshot = namespace_of(tmp_path, manifest_table(rows_of("appendix_c.tsv")))
    found = snapshot.leaves().table
    by_leaf = dict(
        zip(found["object_id"].to_pylist(), found["read_version"].to_pylist(), strict=True)
    )
    assert by_leaf == {
        "v1$k7m2n9p4q8r5s3t6$dataset": 11120734598765432152,
        "v2$e9f0g1h2i3j4k5l6$m7n8o9p0q1r2s3t4$dataset": 1,
    }


@pytest.mark.spec("Appendix C 4", "Manifest Table Schema 9")
def test_the_rows_of_appendix_c_inherit_the_values_above_them() -> None:
    rows = {row["object_id"]: row for row in rows_of("appendix_c.tsv")}
    values = [name for name in COLUMNS if name.startswith("partition_field_")]
    for object_id, row in rows.items():
        above = rows.get(object_id.rpartition("$")[0])
        if above is None or row["object_type"] == "table_version":
            continue
        inherited = [value for value in values if above[value] != "NULL"]
        assert [row[name] for name in inherited] == [above[name] for name in inherited]
        assert ObjectId.parse(object_id) is not None


def appendix_d(location: Path) -> Snapshot:
    """Make the manifest of Appendix D: its two leaves, and one more that it must not find."""
    other = {"object_id": "v2$e9f0g1h2i3j4k5l6$zzzzzzzzzzzzzzzz$dataset", "object_type": "table"}
    values = [
        {"partition_field_event_date": "2025-12-10"},
        {"partition_field_event_year": "2025", "partition_field_country": "US"},
        {"partition_field_event_year": "2025", "partition_field_country": "DE"},
    ]
    shown = [{**row, "object_type": "table"} for row in rows_of("appendix_d.tsv")]
    rows = [{**row, **own} for row, own in zip([*shown, other], values, strict=True)]
    table = manifest_table([{**row, "metadata": "{}"} for row in rows])
    return namespace_of(location, table)


@pytest.mark.spec("Appendix D 1", "Appendix D 2", "Appendix D 3", "Partition Pruning 4")
def test_the_query_of_appendix_d_is_planned_as_its_sql_finds(tmp_path: Path) -> None:
    snapshot = appendix_d(tmp_path)
    where = parse_one(text("appendix_d_query.sql"), dialect="spark").find(exp.Where)
    assert where is not None
    plan = plan_scan(snapshot, where.this.sql(dialect="spark"))
    planned = [
        {
            "object_id": partition.object_id,
            "location": partition.location,
            "read_version": str(partition.version),
        }
        for partition in plan.partitions
    ]
    assert planned == rows_of("appendix_d.tsv")

    context = datafusion.SessionContext()
    manifest = lance.dataset(f"{snapshot.location}/__manifest").to_table()
    context.register_record_batches("__manifest", [manifest.to_batches()])
    ran = context.sql(text("appendix_d.sql") + " ORDER BY object_id").to_pylist()
    assert [{name: str(value) for name, value in row.items()} for row in ran] == planned


# --- Appendix F ------------------------------------------------------------------------------

ORDERS = NamespaceSchema.with_fresh_ids(pa.schema({"id": pa.int64(), "customer_id": pa.int64()}))
CUSTOMERS = NamespaceSchema.with_fresh_ids(pa.schema({"id": pa.int64(), "name": pa.string()}))


def bucketed(
    location: Path, schema: NamespaceSchema, column: str, buckets: int, field_id: str
) -> Snapshot:
    """Make a namespace with one leaf in every bucket of a column."""
    source = schema.field_by_path([column])
    assert source is not None
    field = PartitionField(field_id, (source.id,), Bucket(buckets), None, pa.int32())
    snapshot = create(str(location), schema, PartitionSpec(1, (field,)))
    changes = []
    for bucket in range(buckets):
        value = pa.scalar(bucket, pa.int32())
        name = leaf_name(snapshot.salt, 1, [value])
        changes.append(LeafChange(name.object_id, name.directory, {field_id: value}, 1, 1))
    commit_leaves(snapshot, changes)
    return Snapshot.open(str(location))


@pytest.fixture
def orders(tmp_path: Path) -> Snapshot:
    return bucketed(tmp_path / "orders", ORDERS, "customer_id", 16, "customer_bucket")


@pytest.fixture
def customers(tmp_path: Path) -> Snapshot:
    return bucketed(tmp_path / "customers", CUSTOMERS, "id", 8, "id_bucket")


def buckets_of(plan: ScanPlan, field_id: str) -> list[int]:
    return plan.table[f"partition_field_{field_id}"].to_pylist()


@pytest.mark.spec(
    "Appendix F 1", "Appendix F 2", "Appendix F 3", "Appendix F 5", "Transform Compatibility 2"
)
def test_orders_and_customers_group_as_the_table_of_appendix_f(
    orders: Snapshot, customers: Snapshot
) -> None:
    left, right = plan_scan(orders, None), plan_scan(customers, None)
    query = parse_one(text("appendix_f_query.sql"), dialect="spark")
    on = query.find(exp.EQ)
    assert on is not None
    joined = [(side.this.name,) for side in (on.this, on.expression)]
    reported = [
        report(snapshot, plan, [column])
        for snapshot, plan, column in zip((orders, customers), (left, right), joined, strict=True)
    ]
    assert [offered.keys[0]["function"] for offered in reported if offered] == ["bucket", "bucket"]

    layouts = [
        layout_of(snapshot.specs, snapshot.schema, plan.table)
        for snapshot, plan in ((orders, left), (customers, right))
    ]
    finer, coarser = (layout.functions[0] for layout in layouts)
    assert finer.grouping.reduces_to(coarser.grouping)
    assert not coarser.grouping.reduces_to(finer.grouping)
    common = common_functions(
        [type(finer)(finer.grouping, coarser.source_ids)], list(layouts[1].functions)
    )
    assert [str(offered.grouping) for offered in common] == ["bucket(8, col0)"]

    of_orders = finer.grouping.reduce(
        pa.array(buckets_of(left, "customer_bucket"), pa.int32()), coarser.grouping
    )
    matching: dict[int, list[int]] = defaultdict(list)
    for own, group in zip(buckets_of(left, "customer_bucket"), of_orders.to_pylist(), strict=True):
        matching[group].append(own)
    found = [
        {
            "customers bucket": str(bucket),
            "orders buckets": ", ".join(map(str, sorted(matching[bucket]))),
        }
        for bucket in sorted(buckets_of(right, "id_bucket"))
    ]
    assert found == rows_of("appendix_f.tsv")


@pytest.mark.spec("Appendix F 4")
def test_the_manifest_queries_of_appendix_f_find_what_is_planned(
    orders: Snapshot, customers: Snapshot
) -> None:
    for snapshot, name, field_id in (
        (orders, "orders", "customer_bucket"),
        (customers, "customers", "id_bucket"),
    ):
        context = datafusion.SessionContext()
        context.sql(f"CREATE SCHEMA {name}")
        manifest = lance.dataset(f"{snapshot.location}/__manifest").to_table()
        schema = context.catalog().schema(name)
        other = datafusion.SessionContext()
        other.register_record_batches("rows", [manifest.to_batches()])
        schema.register_table("__manifest", other.table("rows"))
        ran = context.sql(text(f"appendix_f_{name}.sql")).to_pylist()
        plan = plan_scan(snapshot, None)
        planned = [
            {
                f"partition_field_{field_id}": partition.values[field_id],
                "location": partition.location,
                "read_version": partition.version,
            }
            for partition in plan.partitions
        ]
        assert sorted(ran, key=str) == sorted(planned, key=str)


@pytest.mark.spec("Appendix F 5", "Hash Functions 5")
def test_rows_that_join_are_in_matching_buckets() -> None:
    keys = pa.array([*range(-2000, 2000), 2**63 - 1, -(2**63), None])
    of_orders, of_customers = Bucket(16).apply([keys]), Bucket(8).apply([keys])
    for order, customer in zip(of_orders.to_pylist(), of_customers.to_pylist(), strict=True):
        assert customer is None if order is None else order % 8 == customer
