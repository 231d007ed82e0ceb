"""Creation and changes of the root: what a crash leaves, races, columns, properties."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from pennon.errors import InternalError, NamespaceExists, PennonError, ReservedProperty
from pennon.manifest import (
    ConcurrentChange,
    LeafChange,
    ManifestCommitted,
    Snapshot,
    change_root,
    commit_leaves,
    create,
    leaf_name,
)
from pennon.manifest.commits import root_change
from pennon.spec import NamespaceSchema, add_field, drop_field, spec_of
from pennon.transforms.registry import TransformCall, from_sql

ARROW = pa.schema({"id": pa.int32(), "ts": pa.timestamp("us", "UTC"), "region": pa.utf8()})
SCHEMA = NamespaceSchema.with_fresh_ids(ARROW)


def call(function: str, *arguments: object) -> TransformCall:
    described = [
        {"column": [argument]} if isinstance(argument, str) else {"literal": argument}
        for argument in arguments
    ]
    return from_sql(function, described)


def made(tmp_path: Path, *calls: TransformCall, **options: object) -> Snapshot:
    location = str(tmp_path / "namespace")
    return create(location, SCHEMA, spec_of(SCHEMA, calls), **options)  # type: ignore[arg-type]


@pytest.mark.spec(
    "Metadata Definition 2",
    "Metadata Definition 3",
    "Physical Layout and Naming 1",
    "reading 8",
    "reading 13",
)
def test_metadata_is_json_text_and_documented_keys(tmp_path: Path) -> None:
    snapshot = made(tmp_path, call("identity", "region"), properties={"owner": "ops"}, comment="c")

    metadata = lance.dataset(f"{snapshot.location}/__manifest").metadata
    assert set(metadata) == {
        "schema",
        "partition_spec_v1",
        "pennon.salt",
        "pennon.transaction",
        "pennon.comment",
        "pennon.property.owner",
        "lance.namespace.manifest.writer_feature_flags",
    }
    assert json.loads(metadata["partition_spec_v1"])["fields"][0]["result_type"] == {"type": "utf8"}
    assert [row["metadata"] for row in json.loads(metadata["schema"])["fields"]] == [
        {"lance:field_id": str(number)} for number in range(3)
    ]
    assert (snapshot.properties, snapshot.comment) == ({"owner": "ops"}, "c")
    assert snapshot.salt.hex() == metadata["pennon.salt"]
    assert metadata["pennon.salt"] not in repr(snapshot)


@pytest.mark.spec("Schema 3", "Schema 5", "reading 12")
def test_the_ids_of_a_fresh_schema_are_those_that_lance_gives_a_leaf(tmp_path: Path) -> None:
    nested = pa.schema(
        {
            "a": pa.int64(),
            "m": pa.map_(pa.utf8(), pa.struct({"x": pa.int8()})),
            "vector": pa.list_(pa.float32(), 4),
            "boxes": pa.list_(pa.struct({"q": pa.int32()}), 2),
            "s": pa.struct({"x": pa.int32(), "l": pa.list_(pa.struct({"z": pa.int8()}))}),
            "last": pa.int8(),
        }
    )
    leaf = lance.write_dataset(nested.empty_table(), str(tmp_path / "leaf"))
    by_lance: list[tuple[str, int]] = []

    def walk(field: object) -> None:
        by_lance.append((field.name(), field.id()))  # type: ignore[attr-defined]
        for child in field.children():  # type: ignore[attr-defined]
            walk(child)

    for column in leaf.lance_schema.fields():
        walk(column)
    ours = [(field.path[-1], field.id) for field in NamespaceSchema.with_fresh_ids(nested).fields]
    assert ours == [row for row in by_lance if row[0] != "entries"]


def test_creating_twice_is_refused_and_an_interrupted_creation_is_completed(tmp_path: Path) -> None:
    snapshot = made(tmp_path)
    with pytest.raises(NamespaceExists, match="namespace"):
        made(tmp_path)

    # A crash between the two commits of creation leaves the table without its metadata.
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    manifest.update_metadata({}, replace=True)
    assert made(tmp_path).specs[1].fields == ()


def test_of_racing_creators_one_wins(tmp_path: Path) -> None:
    def attempt(_: int) -> Snapshot | PennonError:
        try:
            return made(tmp_path, call("identity", "region"))
        except NamespaceExists as error:
            return error

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(attempt, range(4)))
    winners = [outcome for outcome in outcomes if isinstance(outcome, Snapshot)]
    assert len(winners) == 1
    assert Snapshot.open(winners[0].location).salt == winners[0].salt


def test_a_namespace_dropped_and_made_again_is_not_the_old_one(tmp_path: Path) -> None:
    import shutil

    first = made(tmp_path, call("identity", "region"))
    shutil.rmtree(first.location)
    second = made(tmp_path, call("bucket", 4, "id"))
    assert first.version == second.version
    assert Snapshot.open(second.location).specs == second.specs


@pytest.mark.spec("Manifest Table Schema 3", "Partition Evolution 1", "reading 39")
def test_a_new_spec_adds_columns_and_old_snapshots_do_not_know_it(tmp_path: Path) -> None:
    first = made(tmp_path, call("months", "ts"))
    spec = add_field(first.specs, first.schema, call("days", "ts"))
    outcome = change_root(first, spec=spec)

    assert isinstance(outcome, ManifestCommitted)
    latest = Snapshot.open(first.location)
    assert latest.version == outcome.version
    assert latest.current_spec == spec
    assert latest.partition_type("ts_day") == pa.int32()
    assert set(Snapshot.open(first.location, version=first.version).specs) == {1}
    with pytest.raises(InternalError, match="never change"):
        change_root(latest, spec=spec)


def test_a_crash_between_columns_and_metadata_leaves_the_namespace_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(tmp_path, call("months", "ts"))
    spec = add_field(first.specs, first.schema, call("days", "ts"))

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as crash:
        crash.setattr(root_change, "commit_metadata", die)
        with pytest.raises(Killed):
            change_root(first, spec=spec)

    between = Snapshot.open(first.location)
    assert between.specs == first.specs
    assert between.leaves().table.num_rows == 0
    assert isinstance(change_root(between, spec=spec), ManifestCommitted)
    assert Snapshot.open(first.location).current_spec == spec


def test_two_changes_of_the_spec_do_not_both_become_v2(tmp_path: Path) -> None:
    base = made(tmp_path, call("months", "ts"))
    days = add_field(base.specs, base.schema, call("days", "ts"))
    bucket = add_field(base.specs, base.schema, call("bucket", 8, "id"))
    none = drop_field(base.specs, base.schema, call("months", "ts"))
    assert isinstance(change_root(base, spec=days), ManifestCommitted)
    assert isinstance(change_root(base, spec=bucket), ConcurrentChange)
    # Dropping needs no column: the metadata alone has to notice.
    assert isinstance(change_root(base, spec=none), ConcurrentChange)
    assert isinstance(change_root(base, schema=SCHEMA), ConcurrentChange)
    # Properties do not concern the spec.
    assert isinstance(change_root(base, properties={"a": "1"}), ManifestCommitted)
    latest = Snapshot.open(base.location)
    assert latest.current_spec == days
    assert latest.properties == {"a": "1"}


@pytest.mark.spec("reading 18")
def test_a_promoted_source_widens_the_column_in_the_next_spec_and_keeps_values(
    tmp_path: Path,
) -> None:
    first = made(tmp_path, call("identity", "id"))
    value = pa.scalar(7, pa.int32())
    name = leaf_name(first.salt, 1, [value])
    old = LeafChange(name.object_id, name.directory, {"id": value}, 1 << 63)
    assert isinstance(commit_leaves(first, [old]), ManifestCommitted)

    base = Snapshot.open(first.location)
    wider = ARROW.set(0, pa.field("id", pa.int64(), metadata=base.schema.arrow.field(0).metadata))
    columns = [wider.field(0), *list(base.schema.arrow)[1:]]
    schema = base.schema.evolved(pa.schema(columns))
    spec = add_field(base.specs, schema, call("identity", "region"))
    assert isinstance(change_root(base, schema=schema, spec=spec), ManifestCommitted)

    latest = Snapshot.open(first.location)
    assert latest.partition_type("id") == pa.int64()
    assert latest.current_spec.fields[0].result_type == pa.int64()
    assert latest.specs[1].fields[0].result_type == pa.int32()
    assert latest.leaves().table["partition_field_id"].to_pylist() == [7]
    big = pa.scalar(2**40, pa.int64())
    names = leaf_name(latest.salt, 2, [big, pa.scalar("x")])
    new = LeafChange(
        names.object_id, names.directory, {"id": big, "region": pa.scalar("x")}, 1 << 63
    )
    assert isinstance(commit_leaves(latest, [new]), ManifestCommitted)
    found = Snapshot.open(first.location).leaves().table["partition_field_id"].to_pylist()
    assert sorted(found) == [7, 2**40]


def test_properties_are_set_and_removed_and_ours_are_not_for_users(tmp_path: Path) -> None:
    first = made(tmp_path, properties={"a": "1", "b": "2"}, comment="old")
    change_root(first, properties={"c": "3"}, removed_properties=["a", "nowhere"], comment="")
    latest = Snapshot.open(first.location)
    assert latest.properties == {"b": "2", "c": "3"}
    assert latest.comment is None
    with pytest.raises(ReservedProperty, match=r"pennon\.salt"):
        change_root(latest, properties={"pennon.salt": "00"})


def test_leaves_are_removed_without_any_other_change(tmp_path: Path) -> None:
    first = made(tmp_path)
    name = leaf_name(first.salt, 1, [])
    commit_leaves(first, [LeafChange(name.object_id, name.directory, {}, 1 << 63)])
    base = Snapshot.open(first.location)
    assert isinstance(commit_leaves(base, [], removed=[name.object_id]), ManifestCommitted)
    assert Snapshot.open(first.location).leaves().table.num_rows == 0
