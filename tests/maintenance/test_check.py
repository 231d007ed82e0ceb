"""``pennon check`` on sound namespaces, and on each damage that the specification forbids."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.manifest import handmade
from tests.transaction import lake

import pennon
from pennon.cli import main
from pennon.errors import IndexFilesMissing
from pennon.leaf import forget_leaves
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.checks.findings import Severity
from pennon.manifest import Snapshot
from pennon.manifest.commits.root_change import change_root


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    made = lake.append(lake.make(tmp_path), {1: "eu", 2: "us", 3: None})
    return lake.append(made, {4: "eu"})


def problems(location: str) -> list[str]:
    return [str(violation) for violation in check(location).violations]


def manifest(snapshot: Snapshot) -> lance.LanceDataset:
    return lance.dataset(f"{snapshot.location}/__manifest")


def leaf(snapshot: Snapshot, region: str) -> dict[str, object]:
    rows = snapshot.leaves().table.to_pylist()
    return next(row for row in rows if row["partition_field_region"] == region)


def test_a_namespace_of_ours_has_no_finding(snapshot: Snapshot) -> None:
    report = check(snapshot.location)
    assert [*report.findings] == []
    assert (report.leaves, report.rows) == (3, 4)


def test_a_namespace_made_after_the_text_has_no_violation(tmp_path: Path) -> None:
    report = check(handmade.appendix_c(tmp_path).location)
    assert report.violations == ()
    assert (report.leaves, report.rows) == (4, 8)
    assert any("'view'" in finding.where for finding in report.findings)
    assert check(handmade.appendix_c(tmp_path / "weak", with_read_version=False).location).is_valid


@pytest.mark.spec("Partition Spec 1", "Manifest Table Schema 9")
def test_a_row_in_the_wrong_partition_is_found(snapshot: Snapshot) -> None:
    sql = {"partition_field_region": "'de'"}
    manifest(snapshot).update(sql, where="partition_field_region = 'us' AND object_type = 'table'")
    found = problems(snapshot.location)
    assert any("rows with region = us, the manifest records de" in message for message in found)
    assert any("differs from its parent's value" in message for message in found)


def renamed(snapshot: Snapshot) -> None:
    path = leaf(snapshot, "us")["object_id"]
    manifest(snapshot).update({"object_id": "'v1$UPPER$dataset'"}, where=f"object_id = '{path}'")


def orphaned(snapshot: Snapshot) -> None:
    path = str(leaf(snapshot, "us")["object_id"]).removesuffix("$dataset")
    manifest(snapshot).delete(f"object_id = '{path}'")


def doubled(snapshot: Snapshot) -> None:
    rows = manifest(snapshot).to_table(filter="object_id = 'v1'")
    manifest(snapshot).insert(rows)


def without_leaf(snapshot: Snapshot) -> None:
    shutil.rmtree(f"{snapshot.location}/{leaf(snapshot, 'us')['location']}")


def at_another_version(snapshot: Snapshot) -> None:
    path = leaf(snapshot, "us")["object_id"]
    manifest(snapshot).update({"read_version": "999"}, where=f"object_id = '{path}'")


def without_schema(snapshot: Snapshot) -> None:
    manifest(snapshot).update_metadata({"schema": None})


def with_cut_json(snapshot: Snapshot) -> None:
    manifest(snapshot).update_metadata({"partition_spec_v1": '{"id":1,"fie'})


def with_row_metadata(snapshot: Snapshot) -> None:
    path = leaf(snapshot, "us")["object_id"]
    manifest(snapshot).update({"metadata": "'{'"}, where=f"object_id = '{path}'")


def with_reused_field(snapshot: Snapshot) -> None:
    spec = json.loads(snapshot.metadata["partition_spec_v1"])
    spec["id"] = 2
    spec["fields"][0]["source_ids"] = [0]
    spec["fields"][0]["result_type"] = {"type": "int64"}
    manifest(snapshot).update_metadata({"partition_spec_v2": json.dumps(spec)})


def with_another_id(snapshot: Snapshot) -> None:
    spec = json.loads(snapshot.metadata["partition_spec_v1"])
    spec["id"] = 2
    spec["fields"][0]["field_id"] = "other"
    manifest(snapshot).update_metadata({"partition_spec_v2": json.dumps(spec)})


def with_random_expression(snapshot: Snapshot) -> None:
    field = {
        "field_id": "r",
        "source_ids": [0],
        "expression": "col0 + random()",
        "result_type": {"type": "float64"},
    }
    text = json.dumps({"id": 2, "fields": [field]})
    manifest(snapshot).update_metadata({"partition_spec_v2": text})


def with_swapped_ids(snapshot: Snapshot) -> None:
    path = f"{snapshot.location}/{leaf(snapshot, 'us')['location']}"
    lance.write_dataset(pa.table({"id": ["us"], "region": [2]}), path, mode="overwrite")
    name = leaf(snapshot, "us")["object_id"]
    manifest(snapshot).update({"read_version": "NULL"}, where=f"object_id LIKE '{name}%'")


DAMAGES: list[tuple[Callable[[Snapshot], None], str, str]] = [
    (renamed, "not 16 characters", "Partition Namespace Naming"),
    (orphaned, "parent namespace", "Physical Layout and Naming"),
    (doubled, "2 rows have this object_id", "Manifest Table Schema"),
    (without_leaf, "files are not there", "Transaction"),
    (at_another_version, "version 999", "Transaction"),
    (without_schema, "the key is missing", "Metadata Definition"),
    (with_cut_json, "line 1, column", "Metadata Definition"),
    (with_row_metadata, "metadata is no JSON", "Manifest Table Schema"),
    (with_reused_field, "uses this field id for another", "Partition Spec, Partition Field ID"),
    (with_another_id, "derives the same under field id 'region'", "Partition Spec, Field ID Reuse"),
    (with_random_expression, "random", "Partition Expression"),
    (with_swapped_ids, "is stored as", "Schema"),
]


@pytest.mark.spec(
    "Metadata Definition", "Physical Layout and Naming", "Manifest Table Schema", "Schema"
)
@pytest.mark.parametrize(
    ("damage", "problem", "section"), DAMAGES, ids=[damage[0].__name__ for damage in DAMAGES]
)
def test_every_damage_is_told_with_its_section(
    snapshot: Snapshot,
    damage: Callable[[Snapshot], None],
    problem: str,
    section: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(snapshot)
    assert main(["check", snapshot.location, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    found = [finding for finding in told["findings"] if finding["severity"] == Severity.VIOLATION]
    assert any(problem in row["problem"] and row["section"] == section for row in found), found


@pytest.mark.spec("reading 33")
def test_two_leaves_of_one_tuple_are_a_warning(tmp_path: Path) -> None:
    made = handmade.appendix_c(tmp_path)
    dataset = lance.dataset(f"{made.location}/__manifest")
    date = {"partition_field_event_date": "DATE '2025-12-10'"}
    dataset.update(date, where=f"object_id LIKE '{handmade.SALES_LATE.removesuffix('$dataset')}%'")
    rows = [str(finding) for finding in check(made.location).findings]
    assert any(
        name.startswith("warning") and "has the partition values of" in name for name in rows
    )


@pytest.mark.spec("reading 41")
def test_strays_are_notes_and_the_command_says_what_it_did(
    snapshot: Snapshot, capsys: pytest.CaptureFixture[str]
) -> None:
    lance.write_dataset(pa.table({"a": [1]}), f"{snapshot.location}/stray.lance")
    assert main(["check", snapshot.location]) == 0
    told = capsys.readouterr().out
    assert "note: directory stray.lance" in told
    # The address of an object store, though its store is this disk.
    report = check(f"file-object-store://{snapshot.location}")
    assert "directory stray.lance" in [finding.where for finding in report.findings]
    assert "3 leaves, 4 rows checked, 0 violations" in told


def indexed(path: Path) -> pennon.PartitionedNamespace:
    table = pennon.create(path, pa.schema({"part": pa.string(), "n": pa.int64(), "m": pa.int64()}))
    table.append([{"part": "a", "n": at, "m": -at} for at in range(50)])
    table.create_index("n", "BTREE", "i", min_bytes=0)
    return table


def told(table: pennon.PartitionedNamespace) -> str:
    return "\n".join(map(str, check(table.snapshot.location).findings))


def test_indexes_without_files_are_named_and_built_anew(tmp_path: Path) -> None:
    table = indexed(tmp_path / "t")
    assert told(table) == ""
    (files,) = tmp_path.glob("t/*/_indices")
    shutil.rmtree(files)
    forget_leaves()
    with pytest.raises(IndexFilesMissing, match="CALL refresh_indexes with the name of the index"):
        pennon.open(tmp_path / "t").scan("n = 7").to_arrow()
    assert not check(table.snapshot.location).is_valid
    assert "files of its index i are gone; refresh_indexes of i builds it anew" in told(table)
    table.refresh_indexes("i")
    assert told(table) == ""
    assert table.scan("n = 7").to_arrow()["m"].to_pylist() == [-7]


def test_what_the_manifest_says_of_indexes_is_compared_with_the_leaves(tmp_path: Path) -> None:
    table = indexed(tmp_path / "t")
    rows = manifest(table.snapshot).to_table(filter="object_type = 'table'")
    metadata = json.loads(rows["metadata"][0].as_py())
    recorded = json.loads(metadata["indexes"])
    recorded["indexes"][0]["rows"] = 49
    text = json.dumps({**metadata, "indexes": json.dumps(recorded)}).replace("'", "''")
    manifest(table.snapshot).update({"metadata": f"'{text}'"}, where="object_type = 'table'")
    wrong = "records 49 rows in index i, the version to read has 50; refresh_indexes of i records"
    assert wrong in told(table)
    table = pennon.open(tmp_path / "t")
    table.refresh_indexes("i")
    assert told(table) == ""


def test_an_index_that_is_not_as_defined_is_named_and_built_anew(tmp_path: Path) -> None:
    """As a process leaves it that was killed when it dropped one and another made one."""
    table = indexed(tmp_path / "t")
    (index,) = table.indexes()
    change_root(table.snapshot, indexes={index.key: None})
    assert "its index i is none of the table's; drop_index takes it out" in told(table)
    m = dataclasses.replace(index, field_id=index.field_id + 1)
    change_root(table.refresh().snapshot, indexes={index.key: m.to_json()})
    wrong = "its index i is BTree of n, not as defined; refresh_indexes of i builds it anew"
    assert wrong in told(table)
    table.refresh().refresh_indexes("i")
    assert told(table) == ""
    assert table.metadata("indexes")["column"].to_pylist() == ["m"]


def test_definitions_of_indexes_have_a_column(tmp_path: Path) -> None:
    table = indexed(tmp_path / "t")
    (index,) = table.indexes()
    nowhere = dataclasses.replace(index, name="nowhere", field_id=99)
    texts = {nowhere.key: nowhere.to_json(), "pennon.index.odd": "{}"}
    change_root(table.snapshot, indexes=texts)
    wrong = "BTREE has no column with the id 99 to be of: nothing is built; drop_index of nowhere"
    assert wrong in told(table)
    assert "pennon.index.odd: it defines no index that can be understood" in told(table)
    table.refresh().drop_index("nowhere")
    assert "nowhere" not in told(table)
