"""ADD COLUMN … DEFAULT and NOT NULL, and promoted columns, over leaves that were written before."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.catalog.test_column_changes import changed, rows
from tests.transaction.lake import append, latest, make, read, regions, stage

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import alter
from pennon.catalog.partitioning import FieldChange
from pennon.errors import UnsupportedTableChange
from pennon.manifest import Snapshot
from pennon.planning import plan_scan
from pennon.transaction import Committed, Transaction

STRUCT = {
    "type": "struct",
    "fields": [
        {"name": "x", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "y", "type": "string", "nullable": True, "metadata": {}},
    ],
}
ARRAY = {"type": "array", "elementType": "integer", "containsNull": True}
MAP = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}


def written(tmp_path: Path, *, strong: bool = True) -> Snapshot:
    return append(make(tmp_path, strong=strong), {1: "eu", 2: "us"})


def with_default(snapshot: Snapshot, kind: object, value: object, **more: object) -> Snapshot:
    """Run ADD COLUMN c <kind> DEFAULT <value>."""
    return changed(snapshot, "add_column", "c", type=kind, default="?", initial=value, **more)


@pytest.mark.parametrize(
    ("kind", "value", "literal", "other"),
    [
        ("boolean", True, "TRUE", "FALSE"),
        ("byte", -128, "CAST(-128 AS TINYINT)", "CAST(1 AS TINYINT)"),
        ("long", 2**62, str(2**62), "5"),
        ("float", 0.5, "CAST(0.5 AS FLOAT)", "CAST(0.25 AS FLOAT)"),
        ("double", "-Infinity", "CAST('-Infinity' AS DOUBLE)", "CAST(0 AS DOUBLE)"),
        ("decimal(10,2)", "12.34", "CAST('12.34' AS DECIMAL(10,2))", "CAST('1' AS DECIMAL(10,2))"),
        ("string", "it's ä😀\\", "'it\\'s ä😀\\\\'", "''"),
        ("binary", "00ff", "X'00FF'", "X'00'"),
        ("date", -719162, "DATE '0001-01-01'", "DATE '1970-01-01'"),
        ("timestamp", -1, "TIMESTAMP '1969-12-31 23:59:59.999999+00:00'", "TIMESTAMP '1970-01-01'"),
        (
            "timestamp_ntz",
            1,
            "TIMESTAMP_NTZ '1970-01-01 00:00:00.000001'",
            "TIMESTAMP_NTZ '2000-01-01'",
        ),
    ],
)
@pytest.mark.spec("Schema 2", "reading 10")
def test_older_rows_have_the_default_in_rows_and_in_filters(
    tmp_path: Path, kind: str, value: object, literal: str, other: str
) -> None:
    snapshot = with_default(written(tmp_path), kind, value)
    for predicate, count in (
        (f"c = {literal}", 2),
        (f"c <=> {literal}", 2),
        (f"c = {other}", 0),
        (f"c IN ({other}, {literal})", 2),
        (f"c <> {literal}", 0),
        ("c IS NULL", 0),
        ("c IS NOT NULL", 2),
        (f"c = {other} OR region = 'eu'", 1),
        (f"NOT (c = {literal} AND id = 1)", 1),
    ):
        assert len(rows(snapshot, predicate)) == count, predicate
    wanted = [row["c"] for row in rows(snapshot)]
    snapshot = append(snapshot, pa.record_batch({"id": [3], "region": ["eu"]}))
    assert [row["c"] for row in rows(snapshot)] == [*wanted, None]
    assert [row["id"] for row in rows(snapshot, f"c = {literal}")] == [1, 2]
    assert [row["id"] for row in rows(snapshot, "c IS NULL")] == [3]


@pytest.mark.parametrize(
    ("kind", "value", "read_as", "inside"),
    [
        (STRUCT, {"x": 1, "y": None}, {"x": 1, "y": None}, "c.x = 1 AND c.y IS NULL"),
        (ARRAY, [1, None], [1, None], "c IS NOT NULL"),
        (MAP, {"keys": ["k"], "values": [2**40]}, [("k", 2**40)], "c IS NOT NULL"),
    ],
)
def test_a_default_may_be_nested(
    tmp_path: Path, kind: object, value: object, read_as: object, inside: str
) -> None:
    snapshot = with_default(written(tmp_path), kind, value)
    assert [row["c"] for row in rows(snapshot, inside)] == [read_as] * 2
    assert rows(snapshot, "c IS NULL") == []
    snapshot = append(snapshot, pa.record_batch({"id": [3], "region": ["eu"]}))
    assert [row["c"] for row in rows(snapshot)] == [read_as, read_as, None]


@pytest.mark.parametrize("strong", [True, False])
def test_a_leaf_that_is_written_again_states_the_default_itself(
    tmp_path: Path, *, strong: bool
) -> None:
    snapshot = with_default(written(tmp_path, strong=strong), "integer", 5)
    assert all("c" not in row for row in read(snapshot))
    batch = pa.record_batch({"id": [3], "region": ["eu"], "c": pa.array([None], pa.int32())})
    snapshot = append(snapshot, batch)
    regions(snapshot)  # the manifest's numbers of rows, bytes and fragments are those of the files
    by_lance = {row["id"]: row.get("c", "no column") for row in read(snapshot)}
    assert by_lance == {1: 5, 2: "no column", 3: None}


def test_the_default_of_older_rows_never_changes(tmp_path: Path) -> None:
    snapshot = with_default(written(tmp_path), "integer", 5)
    for more in ({"default": "8"}, {"default": None}):
        snapshot = changed(snapshot, "update_default", "c", **more)
        assert [row["c"] for row in rows(snapshot)] == [5, 5]
    snapshot = changed(snapshot, "update_type", "c", type='"double"')
    assert [row["c"] for row in rows(snapshot, "c = CAST(5 AS DOUBLE)")] == [5.0, 5.0]
    snapshot = changed(snapshot, "rename_column", "c", new_name="d")
    assert [row["d"] for row in rows(snapshot, "d > CAST(4 AS DOUBLE)")] == [5.0, 5.0]
    snapshot = changed(snapshot, "delete_column", "d")
    snapshot = changed(snapshot, "add_column", "d", type='"double"')
    assert [row["d"] for row in rows(snapshot)] == [None, None]


def test_a_float_default_is_the_float_after_promotion(tmp_path: Path) -> None:
    value = pa.scalar(0.1, pa.float32()).as_py()
    snapshot = with_default(written(tmp_path), "float", value)
    snapshot = changed(snapshot, "update_type", "c", type='"double"')
    assert {row["c"] for row in rows(snapshot)} == {value} != {0.1}


def test_the_fields_of_a_default_follow_their_ids(tmp_path: Path) -> None:
    snapshot = with_default(written(tmp_path), STRUCT, {"x": 1, "y": "z"})
    with pytest.raises(UnsupportedTableChange, match="ALTER COLUMN c DROP DEFAULT first"):
        changed(snapshot, "rename_column", "c", "x", new_name="z")
    snapshot = changed(snapshot, "update_default", "c", default=None)
    snapshot = changed(snapshot, "rename_column", "c", "x", new_name="w")
    snapshot = changed(snapshot, "delete_column", "c", "y")
    snapshot = changed(snapshot, "add_column", "c", "y", type='"integer"')
    snapshot = changed(snapshot, "update_type", "c", "w", type='"long"')
    assert [row["c"] for row in rows(snapshot, "c.w = 1")] == [{"w": 1, "y": None}] * 2


@pytest.mark.spec("Partition Expression 1", "Partition Pruning 1")
def test_a_partition_field_of_a_column_with_a_default_prunes_no_older_row(tmp_path: Path) -> None:
    snapshot = with_default(written(tmp_path), "integer", 5)
    alter.alter_partitioning(
        Catalog("lance", str(tmp_path)),
        (snapshot.location,),
        FieldChange("add", {"function": "identity", "arguments": [{"column": ["c"]}]}),
    )
    snapshot = latest(snapshot)
    new = pa.record_batch(
        {"id": [3, 4, 5], "region": ["eu"] * 3, "c": pa.array([5, 6, None], pa.int32())}
    )
    snapshot = append(snapshot, new)
    for predicate, ids in (("c = 5", [1, 2, 3]), ("c = 6", [4]), ("c IS NULL", [5])):
        assert [row["id"] for row in rows(snapshot, predicate)] == ids
    assert len(plan_scan(snapshot, "c = 6 AND region = 'eu'").partitions) == 2


@pytest.mark.parametrize("is_first", [True, False])
def test_rows_that_were_written_before_the_column_get_its_default(
    tmp_path: Path, *, is_first: bool
) -> None:
    """A write that began before ADD COLUMN commits after it, before or after another one."""
    base = written(tmp_path)
    early = stage(base, {3: "eu", 4: "asia"})
    snapshot = with_default(base, "integer", 5)
    late = pa.record_batch({"id": [6], "region": ["eu"], "c": pa.array([7], pa.int32())})
    if not is_first:
        append(snapshot, late)
    transaction = Transaction(base)
    transaction.append(early)
    assert isinstance(transaction.commit(), Committed)
    if is_first:
        append(latest(snapshot), late)
    found = {row["id"]: row["c"] for row in rows(latest(snapshot))}
    assert found == {1: 5, 2: 5, 3: 5, 4: 5, 6: 7}


def test_columns_are_filled_and_promoted_beside_deleted_rows(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.utf8()), ("v", pa.int32())])
    ids = list(range(1, 6))
    batch = pa.record_batch([pa.array(ids), ["eu"] * 5, pa.array(ids, pa.int32())], schema=schema)
    snapshot = append(make(tmp_path, schema, strong=False), batch)
    (leaf,) = snapshot.leaves().table.to_pylist()
    lance.dataset(f"{snapshot.location}/{leaf['location']}").delete("id IN (1, 4)")
    snapshot = with_default(snapshot, "string", "d")
    snapshot = changed(snapshot, "update_type", "v", type='"long"')
    new = pa.record_batch({"id": [6], "region": ["eu"], "v": [2**40]})
    snapshot = append(snapshot, new)
    assert [(row["id"], row["v"], row["c"]) for row in rows(snapshot)] == [
        (2, 2, "d"),
        (3, 3, "d"),
        (5, 5, "d"),
        (6, 2**40, None),
    ]
    assert [row["id"] for row in rows(snapshot, "v >= 5")] == [5, 6]


@pytest.mark.spec("Schema 6", "reading 10")
def test_a_promoted_column_takes_wide_values_in_partitions_that_are_there(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.utf8()), ("v", pa.int8())])
    batch = pa.record_batch([pa.array([1]), ["eu"], pa.array([1], pa.int8())], schema=schema)
    snapshot = append(make(tmp_path, schema), batch)
    older = snapshot
    for at, (kind, value) in enumerate((("short", 2**14), ("integer", 2**30), ("long", 2**62))):
        snapshot = changed(snapshot, "update_type", "v", type=f'"{kind}"')
        snapshot = append(
            snapshot, pa.record_batch({"id": [at + 2], "region": ["eu"], "v": [value]})
        )
    assert [row["v"] for row in rows(snapshot)] == [1, 2**14, 2**30, 2**62]
    assert [row["id"] for row in rows(snapshot, "v > 20000")] == [3, 4]
    assert [row["v"] for row in rows(older)] == [1]


@pytest.mark.spec("reading 11")
def test_not_null_comes_with_a_value_or_without_rows(tmp_path: Path) -> None:
    empty = make(tmp_path)
    snapshot = changed(empty, "add_column", "n", type='"integer"', nullable=False)
    batch = pa.record_batch({"id": [1], "region": ["eu"], "n": pa.array([1], pa.int32())})
    snapshot = append(snapshot, batch)
    with pytest.raises(UnsupportedTableChange, match="Add it with a DEFAULT"):
        changed(snapshot, "add_column", "m", type='"integer"', nullable=False)
    snapshot = with_default(snapshot, "integer", 5, nullable=False)
    snapshot = append(snapshot, pa.record_batch({"id": [2], "region": ["eu"], "n": [2], "c": [3]}))
    assert [(row["n"], row["c"]) for row in rows(snapshot)] == [(1, 5), (2, 3)]


@pytest.mark.parametrize(
    ("kind", "column", "why"),
    [
        ("delete_column", ("m", "key", "a"), "keys of a stored map"),
        ("delete_column", ("m", "value"), "its column is made of it"),
        ("delete_column", ("s", "x"), "only field of s"),
        ("rename_column", ("l", "element"), "no name of its own"),
        ("add_column", ("l", "x"), "not a struct"),
        ("update_default", ("s", "x"), "for a whole column"),
    ],
)
def test_nested_changes_that_lose_something_are_refused(
    tmp_path: Path, kind: str, column: tuple[str, ...], why: str
) -> None:
    key = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("region", pa.utf8()),
            ("m", pa.map_(key, pa.int32())),
            ("s", pa.struct([("x", pa.int32())])),
            ("l", pa.list_(pa.int32())),
        ]
    )
    snapshot = make(tmp_path, schema)
    more = {"type": '"integer"', "new_name": "n", "default": "1"}
    with pytest.raises(UnsupportedTableChange, match=why):
        changed(snapshot, kind, *column, **more)
