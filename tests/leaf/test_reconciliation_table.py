"""The older draft's table of schema consistency, row by row: reads, then writes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.transaction.lake import append, latest, make, stage

from pennon.errors import (
    LeafSchemaMismatch,
    LeafTypeMismatch,
    WriteColumnUnknown,
)
from pennon.manifest import ManifestCommitted, Snapshot, change_root
from pennon.namespace import Scan

COLUMNS = [("id", pa.int64()), ("region", pa.utf8())]


def with_leaf(tmp_path: Path, *more: tuple[str, pa.DataType], value: object = None) -> Snapshot:
    """Make a namespace of one leaf with one row."""
    schema = pa.schema([*COLUMNS, *more])
    row = {"id": 1, "region": "eu"} | {name: value for name, _ in more}
    return append(make(tmp_path, schema), pa.RecordBatch.from_pylist([row], schema))


def evolved(snapshot: Snapshot, *columns: pa.Field) -> Snapshot:
    """Change the namespace schema alone; the leaf stays as it is."""
    outcome = change_root(snapshot, schema=snapshot.schema.evolved(pa.schema(columns)))
    assert isinstance(outcome, ManifestCommitted)
    return latest(snapshot)


def read(snapshot: Snapshot) -> list[dict]:
    return Scan(snapshot).to_arrow().sort_by("id").to_pylist()


def row(**values: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": 2, "region": "eu"} | values])


def stored(snapshot: Snapshot) -> pa.Table:
    (leaf,) = snapshot.leaves().table.to_pylist()
    uri = f"{snapshot.location}/{leaf['location']}"
    return lance.dataset(uri, version=leaf["read_version"]).to_table().sort_by("id")


@pytest.mark.spec("Schema Consistency of the Draft 1")
def test_a_column_that_the_leaf_lacks_reads_null(tmp_path: Path) -> None:
    base = with_leaf(tmp_path)
    snapshot = evolved(base, *base.schema.arrow, pa.field("n", pa.int32()))
    assert read(snapshot) == [{"id": 1, "region": "eu", "n": None}]


@pytest.mark.spec("Schema Consistency of the Draft 2")
def test_a_column_of_the_leaf_alone_is_not_read(tmp_path: Path) -> None:
    base = with_leaf(tmp_path, ("v", pa.int32()), value=5)
    assert read(evolved(base, *list(base.schema.arrow)[:2])) == [{"id": 1, "region": "eu"}]


@pytest.mark.spec("Schema Consistency of the Draft 3")
def test_the_namespaces_type_is_read_or_the_conversion_is_an_error(tmp_path: Path) -> None:
    base = with_leaf(tmp_path, ("v", pa.int32()), value=5)
    *others, column = base.schema.arrow
    for kind, value in ((pa.int64(), 5), (pa.float64(), 5.0)):
        snapshot = evolved(latest(base), *others, column.with_type(kind))
        table = Scan(snapshot).to_arrow()
        assert (table.schema.field("v").type, table["v"].to_pylist()) == (kind, [value])
    snapshot = evolved(latest(base), *others, column.with_type(pa.date32()))
    with pytest.raises(LeafTypeMismatch, match=r"column v of leaf .*int32.*date32"):
        read(snapshot)


@pytest.mark.spec("Schema Consistency of the Draft 4")
def test_no_value_is_lost_that_the_leaf_has_no_column_for(tmp_path: Path) -> None:
    """A column of the namespace is added to the leaf in the same commit; any other is refused."""
    base = with_leaf(tmp_path)
    with pytest.raises(WriteColumnUnknown, match="column n to"):
        stage(base, row(n=7))
    snapshot = evolved(base, *base.schema.arrow, pa.field("n", pa.int64()))
    snapshot = append(snapshot, row(n=7))
    assert [row_["n"] for row_ in read(snapshot)] == [None, 7]
    assert stored(snapshot)["n"].to_pylist() == [None, 7]
    required = pa.field("m", pa.int64(), nullable=False)
    snapshot = evolved(snapshot, *snapshot.schema.arrow, required)
    with pytest.raises(LeafSchemaMismatch, match="column m to leaf"):
        append(snapshot, row(m=8))


@pytest.mark.spec("Schema Consistency of the Draft 5")
def test_a_column_of_the_leaf_alone_is_written_null_or_refused(tmp_path: Path) -> None:
    base = with_leaf(tmp_path, ("v", pa.int32()), value=5)
    snapshot = append(evolved(base, *list(base.schema.arrow)[:2]), row())
    assert stored(snapshot)["v"].to_pylist() == [5, None]


@pytest.mark.spec("Schema Consistency of the Draft 5")
def test_a_required_column_of_the_leaf_alone_is_an_error(tmp_path: Path) -> None:
    """NOT NULL is kept of a column that others made; it goes with one that the table dropped."""
    required = pa.field("v", pa.int32(), nullable=False)
    schema = pa.schema([*COLUMNS, required])
    first = pa.RecordBatch.from_pylist([{"id": 1, "region": "eu", "v": 5}], schema)
    base = append(make(tmp_path, schema, strong=False), first)
    snapshot = evolved(base, *list(base.schema.arrow)[:2])
    assert read(append(snapshot, row())) == [
        {"id": 1, "region": "eu"},
        {"id": 2, "region": "eu"},
    ]
    (leaf,) = snapshot.leaves().table.to_pylist()
    dataset = lance.dataset(f"{snapshot.location}/{leaf['location']}")
    dataset.delete("v IS NULL")
    dataset.alter_columns({"path": "v", "nullable": False})  # type: ignore[dict-item]
    dataset.update_field_metadata({"v": {"lance:field_id": "999"}})
    with pytest.raises(LeafSchemaMismatch, match="column v to leaf .*NOT NULL"):
        stage(snapshot, row())


@pytest.mark.spec("Schema Consistency of the Draft 6")
def test_values_are_converted_to_the_leafs_type_or_refused(tmp_path: Path) -> None:
    base = with_leaf(tmp_path, ("v", pa.int32()), value=5)
    *others, column = base.schema.arrow
    snapshot = append(evolved(base, *others, column.with_type(pa.int64())), row(v=6))
    assert stored(snapshot)["v"].type == pa.int32()
    assert [row_["v"] for row_ in read(snapshot)] == [5, 6]
    with pytest.raises(LeafSchemaMismatch, match=r"column v to leaf .*int32.*int64"):
        stage(snapshot, row(v=2**40))


# The same six rows for a field of a struct, of a list's items and of a map's values

POINT = [("x", pa.int32()), ("y", pa.int32())]


def container(kind: str, fields: list[tuple[str, pa.DataType]]) -> pa.DataType:
    inner = pa.struct(fields)
    of = {"struct": inner, "list": pa.list_(inner), "map": pa.map_(pa.utf8(), inner)}
    return of[kind]


def held(kind: str, point: object) -> object:
    """A value that holds one point."""
    return {"struct": point, "list": [point], "map": [("k", point)]}[kind]


def reshaped(snapshot: Snapshot, kind: str, *fields: pa.Field) -> Snapshot:
    """Change the fields of the points in the namespace schema alone."""
    *others, column = snapshot.schema.arrow
    inner = pa.struct(fields)
    if kind == "struct":
        data_type = inner
    elif kind == "list":
        data_type = pa.list_(column.type.value_field.with_type(inner))
    else:
        item = column.type.item_field.with_type(inner)
        data_type = pa.map_(column.type.key_field, item)
    return evolved(snapshot, *others, column.with_type(data_type))


def points_of(snapshot: Snapshot, kind: str) -> tuple[Snapshot, list[pa.Field]]:
    column = snapshot.schema.arrow.field("p").type
    inner = {"struct": column, "list": getattr(column, "value_type", None)}.get(kind)
    return snapshot, list(inner if inner is not None else column.item_type)


def made(tmp_path: Path, kind: str) -> tuple[Snapshot, list[pa.Field]]:
    value = held(kind, {"x": 1, "y": 2})
    return points_of(with_leaf(tmp_path, ("p", container(kind, POINT)), value=value), kind)


def nested_row(kind: str, fields: list[tuple[str, pa.DataType]], point: object) -> pa.RecordBatch:
    schema = pa.schema([*COLUMNS, ("p", container(kind, fields))])
    row = {"id": 2, "region": "eu", "p": held(kind, point)}
    return pa.RecordBatch.from_pylist([row], schema)


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
@pytest.mark.spec("Schema Consistency of the Draft 1", "Schema Consistency of the Draft 4")
def test_a_nested_field_that_the_leaf_lacks_reads_null_and_is_added(
    tmp_path: Path, kind: str
) -> None:
    base, fields = made(tmp_path, kind)
    snapshot = reshaped(base, kind, *fields, pa.field("z", pa.utf8()))
    assert [row_["p"] for row_ in read(snapshot)] == [held(kind, {"x": 1, "y": 2, "z": None})]
    wide = [*POINT, ("z", pa.utf8())]
    with pytest.raises(WriteColumnUnknown, match=r"column p.*\.z to"):
        stage(base, nested_row(kind, wide, {"x": 3, "y": 4, "z": "5"}))
    snapshot = append(snapshot, nested_row(kind, wide, {"x": 3, "y": 4, "z": "5"}))
    assert [row_["p"] for row_ in read(snapshot)] == [
        held(kind, {"x": 1, "y": 2, "z": None}),
        held(kind, {"x": 3, "y": 4, "z": "5"}),
    ]
    assert len(stored(snapshot)) == 2


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
@pytest.mark.spec("Schema Consistency of the Draft 2", "Schema Consistency of the Draft 5")
def test_a_nested_field_of_the_leaf_alone_is_not_read_and_written_null(
    tmp_path: Path, kind: str
) -> None:
    base, fields = made(tmp_path, kind)
    snapshot = reshaped(base, kind, fields[0])
    assert [row_["p"] for row_ in read(snapshot)] == [held(kind, {"x": 1})]
    snapshot = append(snapshot, nested_row(kind, POINT[:1], {"x": 3}))
    assert [row_["p"] for row_ in read(snapshot)] == [held(kind, {"x": 1}), held(kind, {"x": 3})]
    if kind == "struct":
        assert stored(snapshot)["p"].to_pylist() == [{"x": 1, "y": 2}, {"x": 3, "y": None}]


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
@pytest.mark.spec("Schema Consistency of the Draft 3", "Schema Consistency of the Draft 6")
def test_a_nested_field_of_another_type_is_converted_both_ways_or_refused(
    tmp_path: Path, kind: str
) -> None:
    base, fields = made(tmp_path, kind)
    snapshot = reshaped(base, kind, fields[0].with_type(pa.int64()), fields[1])
    wide = [("x", pa.int64()), POINT[1]]
    snapshot = append(snapshot, nested_row(kind, wide, {"x": 3, "y": 4}))
    assert [row_["p"] for row_ in read(snapshot)] == [
        held(kind, {"x": 1, "y": 2}),
        held(kind, {"x": 3, "y": 4}),
    ]
    assert "int32" in str(stored(snapshot)["p"].type)
    with pytest.raises(LeafSchemaMismatch, match="column p to leaf .*int32.*int64"):
        stage(snapshot, nested_row(kind, wide, {"x": 2**40, "y": 0}))
    snapshot = reshaped(latest(base), kind, fields[0].with_type(pa.date32()), fields[1])
    with pytest.raises(LeafTypeMismatch, match=r"column p.*\.x of leaf .*int32.*date32"):
        read(snapshot)


@pytest.mark.parametrize(
    ("narrow", "wide", "value"),
    [
        (pa.int8(), pa.int16(), -128),
        (pa.int8(), pa.int64(), 127),
        (pa.int16(), pa.int32(), -32768),
        (pa.int32(), pa.int64(), -(2**31)),
        (pa.float32(), pa.float64(), 0.5),
        (pa.decimal128(5, 2), pa.decimal128(22, 2), Decimal("-999.99")),
        (pa.decimal128(5, 2), pa.decimal128(38, 10), Decimal("-999.99")),
        (pa.int32(), pa.decimal128(12, 2), 2**31 - 1),
        (pa.date32(), pa.timestamp("us"), dt.date(1969, 12, 31)),
    ],
)
@pytest.mark.spec("Schema Consistency of the Draft 3", "Schema 6")
def test_every_promotion_reads_old_rows_and_appends_to_them(
    tmp_path: Path, narrow: pa.DataType, wide: pa.DataType, value: object
) -> None:
    base = with_leaf(tmp_path, ("v", narrow), value=value)
    *others, column = base.schema.arrow
    snapshot = evolved(base, *others, column.with_type(wide))
    expected = pa.scalar(value, narrow).cast(wide).as_py()
    assert [row_["v"] for row_ in read(snapshot)] == [expected]
    given = pa.record_batch({"id": [2], "region": ["eu"], "v": pa.array([expected], wide)})
    snapshot = append(snapshot, given)
    assert [row_["v"] for row_ in read(snapshot)] == [expected, expected]
    assert stored(snapshot)["v"].type == narrow
