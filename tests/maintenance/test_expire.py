# ruff: noqa: S311 - a generator that repeats
"""Expiring versions: what a kept version reads stays, and nothing else that was recorded does."""

from __future__ import annotations

import os
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.separate_process import run_script
from tests.transaction.lake import append, changed, latest, make, regions, stage

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.cli import main
from pennon.errors import NotPartitionedNamespace, ProcedureArgument, SnapshotNotFound
from pennon.maintenance import expire as expire_module
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.expire import expire
from pennon.maintenance.leaves.leaf_files import detached_versions
from pennon.maintenance.procedures import call
from pennon.manifest import Snapshot
from pennon.manifest.dataset.storage import open_manifest, version_numbers
from pennon.manifest.versions import history as module
from pennon.manifest.versions.tags import expiring
from pennon.namespace import Scan

Rows = dict[str | None, list[int]]


def later() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=1)


def versions(snapshot: Snapshot) -> list[int]:
    return version_numbers(open_manifest(snapshot.location))


def read(location: str, version: int) -> Rows:
    return regions(Snapshot.open(location, version))


def files_below(snapshot: Snapshot) -> set[str]:
    root = Path(snapshot.location)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def lost_and_recorded(snapshot: Snapshot) -> tuple[set[int], set[int]]:
    """Detached versions on disk, and those that the manifest records."""
    on_disk = {
        version
        for leaf in snapshot.leaves().table.to_pylist()
        for version in detached_versions(f"{snapshot.location}/{leaf['location']}", {})
    }
    rows = lance.dataset(f"{snapshot.location}/__manifest").to_table(
        filter="object_type = 'table_version'"
    )
    return on_disk, set(rows["read_version"].to_pylist())


@pytest.mark.usefixtures("without_grace")
@pytest.mark.spec("reading 6")
@pytest.mark.parametrize("seed", range(4))
def test_what_a_kept_version_reads_stays_and_no_other_version_does(
    tmp_path: Path, seed: int
) -> None:
    random, snapshot = Random(seed), make(tmp_path)
    past: dict[int, Rows] = {}
    for step in range(14):
        rows = {step * 10 + at: random.choice(["eu", "us", None]) for at in range(3)}
        ids = snapshot.leaves().table["object_id"].to_pylist()
        kind = random.choice(["append", "append", "replace", "drop"])
        if kind == "drop" and ids:
            snapshot = changed(snapshot, kind, random.sample(ids, 1))
        else:
            name = "append" if kind == "append" else "replace"
            snapshot = changed(snapshot, name, stage(snapshot, rows))
        past[snapshot.version] = regions(snapshot)
    retained, stored = random.choice([1, 3, 6]), files_below(snapshot)
    listed = expire(snapshot.location, older_than=later(), retain_last=retained, dry_run=True)
    assert files_below(snapshot) == stored
    done = expire(snapshot.location, older_than=later(), retain_last=retained)
    assert done == listed
    assert {path for path in stored - files_below(snapshot) if "__manifest" not in path} == set(
        done.files
    )
    kept = sorted(past)[-retained:]
    assert set(done.versions) >= set(past) - set(kept)
    assert {version: read(snapshot.location, version) for version in kept} == {
        version: past[version] for version in kept
    }
    now = latest(snapshot)
    needed = {
        row["read_version"]
        for version in versions(now)
        for row in Snapshot.open(now.location, version).leaves().table.to_pylist()
    }
    on_disk, _ = lost_and_recorded(now)
    assert on_disk <= needed
    again = expire(snapshot.location, older_than=datetime(2020, 1, 1, tzinfo=UTC))
    assert (again.versions, again.leaf_versions, again.num_files) == ([], 0, 0)
    assert [
        finding for finding in check(now.location).findings if finding.severity == "violation"
    ] == []
    assert Scan(append(now, {999: "eu"}), "id = 999").to_arrow().num_rows == 1


READ_ONLY = """
import datetime as dt, os, sys
from pathlib import Path
import pyarrow as pa
import pennon

table = pennon.create(Path(sys.argv[1]) / "t", pa.schema({"id": pa.int64()}))
for number in range(3):
    table.append([{"id": number}])
table.maintenance.expire_snapshots(retain_last=100)  # imports all that it needs
table.create_tag("x")
table.drop_tag("x")
for path in [Path(sys.argv[1]), *Path(sys.argv[1]).rglob("*")]:
    path.chmod(0o777 if "_refs" in path.parts else 0o555 if path.is_dir() else 0o444)
if os.getuid() == 0:  # whom nothing is forbidden
    os.setresuid(65534, 65534, 65534)
try:
    print(table.maintenance.expire_snapshots(dt.datetime.now(dt.UTC)))
except pennon.errors.StorageFailure as error:
    print(error)
"""


def test_a_folder_that_is_only_read_is_an_error() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        said = run_script(READ_ONLY, folder)
        assert "Cannot delete a file of" in said
        assert "Permission denied" in said


@pytest.mark.usefixtures("without_grace")
def test_files_go_and_records_with_them(tmp_path: Path) -> None:
    snapshot = make(tmp_path)
    for step in range(5):
        snapshot = changed(snapshot, "replace", stage(snapshot, {step: "eu"}))
    (leaf,) = snapshot.leaves().table.to_pylist()
    data = Path(snapshot.location) / leaf["location"] / "data"
    assert len(list(data.iterdir())) == 5
    done = expire(snapshot.location, older_than=later())
    assert (done.leaf_versions, done.num_files, done.notes) == (4, 12, [])
    assert len(list(data.iterdir())) == 1
    on_disk, recorded = lost_and_recorded(latest(snapshot))
    assert on_disk == recorded == {leaf["read_version"]}
    with pytest.raises(SnapshotNotFound):
        Snapshot.open(snapshot.location, 3)
    assert regions(latest(snapshot)) == {"eu": [4]}


def test_what_commits_are_compared_with_stays_for_an_hour_of_the_storage(tmp_path: Path) -> None:
    snapshot = append(append(append(make(tmp_path), {1: "eu"}), {2: "eu"}), {3: "eu"})
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    present = [int(entry["version"]) for entry in manifest.versions()]
    done = expire(snapshot.location, older_than=later())
    assert done.versions == present[:-1]
    assert "a writer that stands still" in done.notes[0]
    with pytest.raises(SnapshotNotFound, match="it has expired"):
        Snapshot.open(snapshot.location, present[-2])
    assert [int(entry["version"]) for entry in manifest.versions()][:-1] == present
    past = time.time() - 3601
    for path in Path(manifest.uri, "_versions").glob("*.manifest"):
        os.utime(path, (past, past))
    assert expire(snapshot.location, older_than=later()).notes == []
    assert len(manifest.versions()) == 1
    assert regions(latest(snapshot)) == {"eu": [1, 2, 3]}


@pytest.mark.parametrize(
    "look", ["version_numbers", "_present", "named_versions", "recorded_versions"]
)
def test_what_is_committed_between_an_expirys_looks_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    snapshot = append(append(make(tmp_path), {0: "eu"}), {1: "eu"})
    real, ids = vars(expire_module)[look], [0, 1]

    def followed(*arguments: Any) -> Any:
        seen = real(*arguments)
        ids.append(len(ids))
        append(latest(snapshot), {ids[-1]: "eu"})
        return seen

    monkeypatch.setattr(expire_module, look, followed)
    assert expire(snapshot.location, older_than=later()).leaf_versions
    assert regions(latest(snapshot)) == {"eu": ids}


def test_what_a_stopped_run_left_is_deleted_by_the_next(tmp_path: Path) -> None:
    snapshot = make(tmp_path)
    for step in range(4):
        snapshot = changed(snapshot, "replace", stage(snapshot, {step: "eu"}))
    (leaf,) = snapshot.leaves().table.to_pylist()
    old = versions(snapshot)[:-1]
    lance.dataset(f"{snapshot.location}/__manifest").cleanup_old_versions(versions=old)
    data = Path(snapshot.location) / leaf["location"] / "data"
    needed = lance.dataset(str(data.parent), version=leaf["read_version"]).get_fragments()
    lost = {path.name for path in data.iterdir()} - {
        fragment.data_files()[0].path for fragment in needed
    }
    (data / lost.pop()).unlink()
    done = expire(snapshot.location, older_than=datetime(2020, 1, 1, tzinfo=UTC))
    assert (done.versions, done.leaf_versions) == ([], 3)
    assert len(list(data.iterdir())) == 1
    assert regions(latest(snapshot)) == {"eu": [3]}


def test_young_versions_tags_and_running_writes_are_left_alone(tmp_path: Path) -> None:
    first = append(make(tmp_path), {1: "eu"})
    second = changed(first, "replace", stage(first, {2: "eu"}))
    third = changed(second, "replace", stage(second, {3: "eu"}))
    (leaf,) = third.leaves().table.to_pylist()
    place = f"{third.location}/{leaf['location']}"
    assert expire(third.location).versions == []
    # another writer has committed to the leaf, and not yet to the manifest
    now = lance.dataset(place, version=leaf["read_version"])
    rows = pa.table({"id": [7], "region": ["eu"]}, schema=now.schema)
    fragments = lance.fragment.write_fragments(rows, place, schema=now.schema, mode="append")
    running = lance.LanceDataset.commit(
        now, lance.LanceOperation.Append(fragments), read_version=now.version, detached=True
    )
    lance.dataset(f"{third.location}/__manifest").tags.create("audit", first.version)
    done = expire(third.location, older_than=later())
    assert first.version not in done.versions
    assert second.version in done.versions
    assert done.leaf_versions == 1
    assert read(third.location, first.version) == {"eu": [1]}
    assert lance.dataset(place, version=running.version).to_table()["id"].to_pylist() == [3, 7]
    assert regions(latest(third)) == {"eu": [3]}


def test_leaves_with_branches_are_not_touched_and_told(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {1: "eu"})
    (leaf,) = snapshot.leaves().table.to_pylist()
    old = lance.dataset(f"{snapshot.location}/{leaf['location']}", version=leaf["read_version"])
    snapshot = changed(snapshot, "replace", stage(snapshot, {2: "eu"}))
    lance.dataset(f"{snapshot.location}/{leaf['location']}").create_branch("audit")
    done = expire(snapshot.location, older_than=later())
    assert done.leaf_versions == 0
    assert "has branches" in done.notes[0]
    assert old.to_table()["id"].to_pylist() == [1]


@pytest.mark.usefixtures("without_grace")
def test_a_history_that_is_read_beside_an_expiry_tells_of_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = make(tmp_path)
    for number in range(20):
        snapshot = append(snapshot, {number: "eu"})
    reading = vars(module)["_maker"]

    def behind_an_expiry(*arguments: object) -> object:
        monkeypatch.setattr(module, "_maker", reading)
        assert expire(snapshot.location, older_than=later(), retain_last=2).versions
        return reading(*arguments)

    monkeypatch.setattr(module, "_maker", behind_an_expiry)
    monkeypatch.setattr(module, "_MAX_THREADS", 1)
    told = [entry.version for entry in module.history(snapshot.location)]
    assert set(told) >= {version for version in versions(snapshot) if version <= snapshot.version}
    assert len(told) < snapshot.version


@pytest.mark.usefixtures("without_grace")
def test_two_expiries_at_once_both_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = make(tmp_path)
    for number in range(4):
        snapshot = append(snapshot, {number: "eu"})
    real, oldest_of_other = lance.LanceDataset.cleanup_old_versions, snapshot.version - 2

    def beside_another(dataset: lance.LanceDataset, **named: Any) -> None:
        monkeypatch.setattr(lance.LanceDataset, "cleanup_old_versions", real)
        with expiring(dataset, oldest_of_other, table="t"):
            real(dataset, **named)

    monkeypatch.setattr(lance.LanceDataset, "cleanup_old_versions", beside_another)
    done = expire(snapshot.location, older_than=later())
    assert oldest_of_other in done.versions
    assert min(versions(snapshot)) == snapshot.version
    assert regions(latest(snapshot)) == {"eu": [0, 1, 2, 3]}
    assert check(snapshot.location).is_valid


def test_weak_namespaces_lose_versions_of_the_manifest_only(tmp_path: Path) -> None:
    snapshot = append(append(make(tmp_path, strong=False), {1: "eu"}), {2: "us"})
    done = expire(snapshot.location, older_than=later())
    assert (len(done.versions) > 0, done.leaf_versions) == (True, 0)
    assert regions(latest(snapshot)) == {"eu": [1], "us": [2]}


def test_what_is_no_partitioned_namespace_is_refused(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "x" / "__manifest"))
    with pytest.raises(NotPartitionedNamespace):
        expire(str(tmp_path / "x"))


@pytest.mark.usefixtures("without_grace")
def test_the_command_and_the_procedure_do_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = make(tmp_path)
    for step in range(4):
        snapshot = changed(snapshot, "replace", stage(snapshot, {step: "eu"}))
    command = ["expire", snapshot.location, "--retain-last", "2", "--older-than", "2999-01-01"]
    assert main([*command, "--dry-run"]) == 0
    listed = capsys.readouterr().out
    assert "4 versions to expire, 2 versions of leaves to delete, 6 files" in listed
    assert listed.count("\n") == 4 + 6 + 1
    assert main(command) == 0
    assert "4 versions expired, 2 versions of leaves deleted, 6 files" in capsys.readouterr().out
    micros = 32_472_144_000_000_000
    catalog = Catalog("lance", str(tmp_path))
    arguments = {"table": snapshot.location, "older_than": micros}
    planned = call(catalog, "expire_snapshots", {**arguments, "dry_run": True})
    names = [row["name"] for row in planned.schema["fields"]]  # type: ignore[attr-defined]
    told = dict(zip(names, planned.rows[0], strict=True))
    assert (told["expired_versions"], told["versions"]) == (2, "5, 6")
    assert str(told["files"]).count("\n") == 2
    rows = call(catalog, "expire_snapshots", arguments).rows
    assert dict(zip(names, rows[0], strict=True))["deleted_leaf_versions"] == 1
    assert (rows[0][:4], rows[0][4:]) == (planned.rows[0][:4], (None, None, ""))
    assert regions(latest(snapshot)) == {"eu": [3]}
    with pytest.raises(ProcedureArgument, match="at least 1"):
        call(catalog, "expire_snapshots", {"table": snapshot.location, "retain_last": 0})
    with pytest.raises(SystemExit):
        main(["expire", snapshot.location, "--retain-last", "0"])


def test_metadata_tables_after_an_expiry_tell_of_the_versions_that_are_left(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.string())])

    def rows(first: int, regions_: list[str]) -> pa.Table:
        ids = range(first, first + len(regions_))
        return pa.table({"id": ids, "region": regions_}, schema)

    path = str(tmp_path / "t")
    table = pennon.create(path, schema, ["region"])
    table.append(rows(0, ["a", "a", "b", "c"]))
    table.add_partition_field("bucket(2, id)")
    table.append(rows(10, ["a", "d"]))
    table.delete("region = 'c'")
    table.create_tag("keep")
    kept = table.version
    table.append(rows(20, ["e", "e"]))
    expired = expire(path, older_than=later(), retain_last=1)
    assert expired.versions
    table = pennon.open(path)
    assert table.metadata("snapshots")["snapshot_id"].to_pylist() == [kept, table.version]
    assert table.metadata("history")["snapshot_id"].to_pylist() == [kept, table.version]
    refs = table.metadata("refs")
    assert dict(zip(refs["name"].to_pylist(), refs["snapshot_id"].to_pylist(), strict=True)) == {
        "main": table.version,
        "keep": kept,
    }
    for seen, counted in ((table, 7), (pennon.open(path, "keep"), 5)):
        partitions = seen.metadata("partitions")
        assert sum(partitions["record_count"].to_pylist()) == counted == seen.scan().count_rows()
        assert set(partitions["spec_version"].to_pylist()) == {1, 2}
        assert sum(seen.metadata("files")["record_count"].to_pylist()) == counted
        assert set(seen.metadata("specs")["spec_version"].to_pylist()) == {1, 2}
        changed_in = partitions["last_updated_snapshot_id"].to_pylist()
        assert set(changed_in) <= {None, kept, table.version}
    tuples = table.metadata("partitions")["partition"].to_pylist()
    assert {row["region"] for row in tuples} == {"a", "b", "d", "e"}
