"""ALTER TABLE on columns over leaves that were written before it."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.present import present
from tests.transaction.lake import append, latest, make, regions, stage

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import alter
from pennon.catalog.partitioning import FieldChange
from pennon.errors import (
    InvalidColumnName,
    PartitionSourceDropped,
    UnsupportedColumnType,
    UnsupportedTableChange,
)
from pennon.manifest import Snapshot, change_root, create
from pennon.namespace import Scan, read_plan
from pennon.planning import plan_scan
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.transforms.bucket import Bucket
from pennon.transforms.calendar import Day
from pennon.transforms.identity import Identity
from pennon.transforms.registry import parse_transform
from pennon.transforms.transform import Transform
from pennon.transforms.truncate import Truncate


def changed(snapshot: Snapshot, kind: str, *column: str, **more: object) -> Snapshot:
    """Run one ALTER TABLE and open what it left."""
    catalog = Catalog("lance", str(Path(snapshot.location).parent))
    change = {"change": kind, "column": list(column), **more}
    alter.alter_table(catalog, (snapshot.location,), [change])
    return latest(snapshot)


def rows(snapshot: Snapshot, predicate: str | None = None, key: str = "id") -> list[dict]:
    return sorted(
        Scan(snapshot, predicate).to_arrow().to_pylist(),
        key=lambda row: (row[key] is None, row[key]),
    )


def written(tmp_path: Path) -> Snapshot:
    return append(make(tmp_path), {1: "eu", 2: "us"})


@pytest.mark.spec("Schema 2", "Schema 4", "reading 10")
def test_an_added_column_is_null_in_older_rows_and_kept_in_new_ones(tmp_path: Path) -> None:
    snapshot = changed(written(tmp_path), "add_column", "n", type='"integer"')
    assert rows(snapshot, "n IS NULL", "id") == rows(snapshot)
    batch = pa.record_batch({"id": [3], "region": ["eu"], "n": pa.array([7], pa.int32())})
    snapshot = append(snapshot, batch)
    assert [row["n"] for row in rows(snapshot)] == [None, None, 7]
    assert [row["id"] for row in rows(snapshot, "n = 7 AND region = 'eu'")] == [3]


@pytest.mark.spec("Schema 4", "Schema 5", "reading 9")
def test_a_dropped_column_that_comes_back_shows_no_old_values(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.utf8()), ("v", pa.int64())])
    batch = pa.record_batch({"id": [1], "region": ["eu"], "v": [5]})
    snapshot = append(make(tmp_path, schema), batch)
    snapshot = changed(changed(snapshot, "delete_column", "v"), "add_column", "v", type='"long"')
    assert rows(snapshot) == [{"id": 1, "region": "eu", "v": None}]
    assert rows(snapshot, "v = 5") == []
    snapshot = append(snapshot, pa.record_batch({"id": [2], "region": ["eu"], "v": [6]}))
    assert [row["v"] for row in rows(snapshot)] == [None, 6]


@pytest.mark.spec("Schema 3", "Schema 5", "reading 9")
def test_a_leaf_made_after_a_column_was_dropped_is_what_it_says(tmp_path: Path) -> None:
    point = pa.struct([("x", pa.int32()), ("t", pa.utf8())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("region", pa.utf8()),
            ("a", pa.utf8()),
            ("b", pa.utf8()),
            ("p", point),
            ("c", pa.utf8()),
        ]
    )
    snapshot = changed(make(tmp_path, schema), "delete_column", "a")
    row = {"id": 1, "region": "eu", "b": "of b", "p": {"x": 5, "t": "of p"}, "c": "of c"}
    rest = pa.schema([field for field in schema if field.name != "a"])
    snapshot = append(snapshot, pa.RecordBatch.from_pylist([row], rest))
    assert rows(snapshot) == [row]
    (leaf,) = snapshot.leaves().table.to_pylist()
    plain = lance.dataset(f"{snapshot.location}/{leaf['location']}", version=leaf["read_version"])
    assert plain.to_table().to_pylist() == [row]
    assert plain.schema.equals(snapshot.schema.arrow, check_metadata=True)


@pytest.mark.spec("Schema 5", "Schema 6", "reading 11")
def test_columns_renamed_into_each_other_keep_their_values(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.utf8()), ("v", pa.utf8())])
    batch = pa.record_batch({"id": [1], "region": ["eu"], "v": ["x"]})
    snapshot = append(make(tmp_path, schema), batch)
    for old, new in (("region", "t"), ("v", "region"), ("t", "v")):
        snapshot = changed(snapshot, "rename_column", old, new_name=new)
    snapshot = append(snapshot, pa.record_batch({"id": [2], "region": ["y"], "v": ["eu"]}))
    assert rows(snapshot, "v = 'eu'") == [
        {"id": 1, "v": "eu", "region": "x"},
        {"id": 2, "v": "eu", "region": "y"},
    ]
    assert len(snapshot.leaves().table) == 1
    with pytest.raises(InvalidColumnName, match="`a_b`"):
        changed(snapshot, "rename_column", "v", new_name="a.b")
    with pytest.raises(InvalidColumnName, match="`a_b`"):
        changed(snapshot, "add_column", "a.b", type='"integer"')


@pytest.mark.spec("Schema 4", "reading 9", "reading 12")
def test_fields_of_structs_are_added_dropped_and_renamed(tmp_path: Path) -> None:
    point = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    schema = pa.schema([("id", pa.int64()), ("region", pa.utf8()), ("p", point)])
    batch = pa.record_batch(
        {"id": [1, 2], "region": ["eu", "eu"], "p": pa.array([{"x": 1, "y": 2}, None], point)}
    )
    snapshot = append(make(tmp_path, schema), batch)
    snapshot = changed(snapshot, "rename_column", "p", "x", new_name="z")
    assert [row["p"] for row in rows(snapshot)] == [{"z": 1, "y": 2}, None]
    snapshot = changed(snapshot, "delete_column", "p", "y")
    assert [row["p"] for row in rows(snapshot)] == [{"z": 1}, None]
    snapshot = changed(snapshot, "add_column", "p", "y", type='"integer"')
    assert [row["p"] for row in rows(snapshot)] == [{"z": 1, "y": None}, None]
    assert rows(snapshot, "p.y = 2") == []
    new = pa.array([{"z": 3, "y": 4}], pa.struct([("z", pa.int32()), ("y", pa.int32())]))
    batch = pa.record_batch({"id": [3, 4], "region": ["eu", "us"], "p": pa.repeat(new[0], 2)})
    snapshot = append(snapshot, batch)
    assert [row["p"] for row in rows(snapshot)] == [
        {"z": 1, "y": None},
        None,
        *[{"z": 3, "y": 4}] * 2,
    ]
    assert [row["id"] for row in rows(snapshot, "p.y = 4")] == [3, 4]
    assert [row["id"] for row in rows(snapshot, "p.y IS NULL")] == [1, 2]


@pytest.mark.parametrize(
    ("narrow", "kind", "wide", "value"),
    [
        (pa.int32(), '"long"', pa.int64(), 2**40),
        (pa.float32(), '"double"', pa.float64(), 0.1),
        (pa.decimal128(5, 2), '"decimal(22,2)"', pa.decimal128(22, 2), 12345678),
    ],
)
@pytest.mark.spec("Partition Expression 6", "Schema 6", "reading 10", "reading 18")
def test_a_promoted_partition_column_gets_a_wider_spec(
    tmp_path: Path, narrow: pa.DataType, kind: str, wide: pa.DataType, value: object
) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", narrow)])
    old = pa.record_batch({"id": [1, 2], "region": pa.array([2, None], pa.int8()).cast(wide)})
    old = old.cast(schema)
    before = append(make(tmp_path, schema), old)
    snapshot = changed(before, "update_type", "region", type=kind)
    assert sorted(snapshot.specs) == [1, 2]
    assert snapshot.specs[1] == before.specs[1]
    assert snapshot.current_spec.fields[0].field_id == "region"
    assert snapshot.current_spec.fields[0].result_type == wide
    new = pa.record_batch({"id": [3, 4], "region": pa.array([value, 2]).cast(wide)})
    snapshot = append(snapshot, new)
    assert [row["id"] for row in rows(snapshot)] == [1, 2, 3, 4]
    assert rows(snapshot)[2]["region"] == pa.scalar(value).cast(wide).as_py()
    for predicate, ids in (("region = 2", [1, 4]), ("region IS NULL", [2])):
        assert [row["id"] for row in rows(snapshot, predicate)] == ids
    assert len(plan_scan(snapshot, "region = 2").partitions) == 2
    assert Scan(snapshot, "region > 100000").to_arrow()["id"].to_pylist() == (
        [] if value == 0.1 else [3]
    )


def by(tmp_path: Path, kind: pa.DataType, transform: Transform, value: pa.DataType) -> Snapshot:
    schema = NamespaceSchema.with_fresh_ids(pa.schema([("id", pa.int64()), ("k", kind)]))
    spec = PartitionSpec(1, (PartitionField("k_part", (1,), transform, None, value),))
    return create(str(tmp_path / "ns"), schema, spec)


@pytest.mark.spec("Partition Expression 6", "reading 18")
def test_a_bucket_of_a_promoted_column_keeps_its_spec_and_its_rows(tmp_path: Path) -> None:
    snapshot = by(tmp_path, pa.int32(), Bucket(8), pa.int32())
    old = pa.record_batch({"id": range(50), "k": pa.array(range(50), pa.int32())})
    snapshot = append(snapshot, old)
    snapshot = changed(snapshot, "update_type", "k", type='"long"')
    assert list(snapshot.specs) == [1]
    leaves = len(snapshot.leaves().table)
    snapshot = append(snapshot, pa.record_batch({"id": range(50, 100), "k": range(50)}))
    assert len(snapshot.leaves().table) == leaves
    for number in range(50):
        plan = plan_scan(snapshot, f"k = {number}")
        assert len(plan.partitions) == 1
        assert sorted(read_plan(plan).to_arrow()["id"].to_pylist()) == [number, number + 50]


@pytest.mark.parametrize(
    ("kind", "transform", "result", "wanted"),
    [
        (pa.date32(), Day(), pa.int32(), '"timestamp_ntz"'),
        (pa.decimal128(5, 2), Truncate(10), pa.decimal128(5, 2), '"decimal(12,4)"'),
        (pa.int32(), Bucket(8), pa.int32(), '"decimal(12,0)"'),
    ],
)
def test_a_promotion_that_may_move_rows_is_refused(
    tmp_path: Path, kind: pa.DataType, transform: Transform, result: pa.DataType, wanted: str
) -> None:
    snapshot = by(tmp_path, kind, transform, result)
    with pytest.raises(UnsupportedTableChange, match="the partition field k_part of spec version"):
        changed(snapshot, "update_type", "k", type=wanted)


@pytest.mark.spec("Partition Expression 7", "reading 21")
def test_a_column_of_an_older_spec_alone_is_dropped(tmp_path: Path) -> None:
    snapshot = written(tmp_path)
    with pytest.raises(UnsupportedTableChange, match="DROP PARTITION FIELD region first"):
        changed(snapshot, "delete_column", "region")
    alter.alter_partitioning(
        Catalog("lance", str(tmp_path)),
        (snapshot.location,),
        FieldChange("drop", field=parse_transform("region")),
    )
    snapshot = changed(latest(snapshot), "delete_column", "region")
    snapshot = append(snapshot, pa.record_batch({"id": [3]}))
    assert rows(snapshot) == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert regions(snapshot) == {"eu": [1], "us": [2], None: [3]}


def test_a_struct_is_not_dropped_with_a_field_that_partitions(tmp_path: Path) -> None:
    place = pa.struct([("region", pa.utf8()), ("floor", pa.int32())])
    known = NamespaceSchema.with_fresh_ids(pa.schema([("id", pa.int64()), ("place", place)]))
    region = present(known.field_by_path(["place", "region"]))
    by_region = PartitionField("region", (region.id,), Identity(), None, pa.utf8())
    snapshot = create(str(tmp_path / "ns"), known, PartitionSpec(1, (by_region,)))
    with pytest.raises(UnsupportedTableChange, match="drop column place.region"):
        changed(snapshot, "delete_column", "place")
    assert changed(snapshot, "delete_column", "place", "floor").schema.field_by_id(region.id)


@pytest.mark.spec("Partition Expression 7", "reading 21")
def test_after_others_dropped_a_partition_column_writes_wait_for_a_new_spec(
    tmp_path: Path,
) -> None:
    snapshot = written(tmp_path)
    change_root(snapshot, schema=snapshot.schema.evolved(snapshot.schema.arrow.remove(1)))
    snapshot = latest(snapshot)
    assert rows(snapshot) == [{"id": 1}, {"id": 2}]
    batch = pa.record_batch({"id": [3]})
    with pytest.raises(PartitionSourceDropped, match="DROP PARTITION FIELD region"):
        stage(snapshot, batch)
    catalog = Catalog("lance", str(tmp_path))
    alter.alter_partitioning(
        catalog, (snapshot.location,), FieldChange("drop", field=parse_transform("region"))
    )
    snapshot = append(latest(snapshot), batch)
    assert rows(snapshot) == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert regions(snapshot) == {"eu": [1], "us": [2], None: [3]}


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.spec("reading 11")
def test_not_null_is_dropped_and_never_set(tmp_path: Path, *, nullable: bool) -> None:
    snapshot = written(tmp_path)
    if not nullable:
        with pytest.raises(UnsupportedTableChange, match="stored already may be NULL"):
            changed(snapshot, "update_nullability", "region", nullable=False)
        again = changed(snapshot, "update_nullability", "id", nullable=False)
        assert again.schema.arrow.equals(snapshot.schema.arrow, check_metadata=True)
        return
    snapshot = changed(snapshot, "update_nullability", "id", nullable=True)
    batch = pa.record_batch({"id": pa.array([None], pa.int64()), "region": ["asia"]})
    snapshot = append(snapshot, batch)
    assert [row["id"] for row in rows(snapshot)] == [1, 2, None]
    there = pa.record_batch({"id": pa.array([None], pa.int64()), "region": ["eu"]})
    snapshot = append(snapshot, there)
    assert [row["id"] for row in rows(snapshot, "region = 'eu'")] == [1, None]
    assert [row["region"] for row in rows(snapshot, "id IS NULL", "region")] == ["asia", "eu"]


def test_a_struct_without_a_field_and_a_move_behind_itself_are_refused(tmp_path: Path) -> None:
    snapshot = written(tmp_path)
    with pytest.raises(UnsupportedColumnType, match="column s: type struct<> "):
        changed(snapshot, "add_column", "s", type={"type": "struct", "fields": []})
    with pytest.raises(UnsupportedTableChange, match="does not stand behind itself"):
        changed(snapshot, "update_position", "id", position={"after": "id"})


def test_a_default_of_new_rows_is_not_one_of_older_rows(tmp_path: Path) -> None:
    snapshot = changed(written(tmp_path), "add_column", "n", type='"integer"')
    snapshot = changed(snapshot, "update_default", "n", default="5")
    column = snapshot.schema.field_by_path(["n"])
    assert column is not None
    assert (column.field.metadata or {})[b"CURRENT_DEFAULT"] == b"5"
    assert [row["n"] for row in rows(snapshot)] == [None, None]
