"""The older draft's table of schema consistency, row by row: reads, then writes."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from pennon.errors import LeafSchemaMismatch, LeafTypeMismatch, WriteColumnUnknown
from pennon.manifest import ManifestCommitted, Snapshot, change_root
from pennon.planning import plan_scan
from transaction.lake import append, latest, make, stage

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
    return plan_scan(snapshot).to_arrow().sort_by("id").to_pylist()


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
        table = plan_scan(snapshot).to_arrow()
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
    assert [each["n"] for each in read(snapshot)] == [None, 7]
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
    dataset.alter_columns({"path": "v", "nullable": False})
    dataset.update_field_metadata({"v": {"lance:field_id": "999"}})
    with pytest.raises(LeafSchemaMismatch, match="column v to leaf .*NOT NULL"):
        stage(snapshot, row())


@pytest.mark.spec("Schema Consistency of the Draft 6")
def test_values_are_converted_to_the_leafs_type_or_refused(tmp_path: Path) -> None:
    base = with_leaf(tmp_path, ("v", pa.int32()), value=5)
    *others, column = base.schema.arrow
    snapshot = append(evolved(base, *others, column.with_type(pa.int64())), row(v=6))
    assert stored(snapshot)["v"].type == pa.int32()
    assert [each["v"] for each in read(snapshot)] == [5, 6]
    with pytest.raises(LeafSchemaMismatch, match=r"column v to leaf .*int32.*int64"):
        stage(snapshot, row(v=2**40))
