"""Vacuum removes what nobody can read and nothing else; a rollback brings a version back."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pytest
from tests.transaction.lake import append, changed, latest, make, regions, stage

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl.table_ddl import drop
from pennon.cli import main
from pennon.errors import SnapshotNotFound, StorageFailure
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.expire import expire, named_versions
from pennon.maintenance.procedures import call
from pennon.maintenance.rollback import rollback
from pennon.maintenance.vacuum import vacuum
from pennon.manifest import Snapshot
from pennon.manifest.dataset.storage import open_manifest
from pennon.manifest.versions.history import history, unseen_rows
from pennon.transaction import Committed, Transaction

# Dies between the leaves' detached commits and the manifest's: known and new leaves, files staged.
KILLED = """
import os, signal, sys
import pyarrow as pa
from pennon.leaf import WriteTarget, write_partitions
from pennon.manifest import Snapshot
from pennon.transaction import Transaction, strong

def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

strong.commit_leaves = killed
snapshot = Snapshot.open(sys.argv[1])
rows = pa.record_batch({"id": [100, 101], "region": ["new", "eu"]})
transaction = Transaction(snapshot)
transaction.append(write_partitions([rows], WriteTarget(snapshot.location, snapshot.version, 1)))
transaction.commit()
"""


def later() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=1)


def files(snapshot: Snapshot) -> set[str]:
    root = Path(snapshot.location)
    found = (path for path in root.rglob("*") if path.is_file() and "__manifest" not in str(path))
    return {str(path.relative_to(root)) for path in found}


def test_what_killed_writers_left_goes_and_every_version_stays(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {1: "eu", 2: "us"})
    past = {snapshot.version: regions(snapshot)}
    for kind in ("append", "replace", "append"):
        snapshot = changed(snapshot, kind, stage(snapshot, {10 + len(past): "eu"}))
        past[snapshot.version] = regions(snapshot)
    snapshot = changed(snapshot, "drop", snapshot.leaves().table["object_id"].to_pylist()[:1])
    past[snapshot.version] = regions(snapshot)
    clean = files(snapshot)
    for _ in range(2):
        arguments = [sys.executable, "-c", KILLED, snapshot.location]
        assert subprocess.run(arguments, check=False, timeout=120).returncode != 0
    stage(snapshot, {7: "eu", 8: "never"})
    left = files(snapshot) - clean
    assert vacuum(snapshot.location).files == []
    listed = vacuum(snapshot.location, older_than=later(), dry_run=True)
    assert files(snapshot) == clean | left
    done = vacuum(snapshot.location, older_than=later())
    assert set(done.files) == set(listed.files) == left
    assert (done.num_bytes, len(done.leaves)) == (listed.num_bytes, 2)
    assert files(snapshot) == clean
    assert {version: regions(Snapshot.open(snapshot.location, version)) for version in past} == past
    assert vacuum(snapshot.location, older_than=later()).files == []
    assert check(snapshot.location).is_valid
    assert regions(append(latest(snapshot), {9: "new"}))["new"] == [9]


def test_a_write_that_runs_keeps_its_files_by_their_age(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {1: "eu"})
    time.sleep(0.05)
    limit = datetime.now(UTC)
    time.sleep(0.05)
    staged = stage(snapshot, {2: "eu", 3: "new"})
    assert vacuum(snapshot.location, older_than=limit).files == []
    transaction = Transaction(snapshot)
    transaction.append(staged)
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(snapshot)) == {"eu": [1, 2], "new": [3]}


def test_a_folder_that_its_writer_removes_meanwhile_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = append(make(tmp_path), {1: "eu"})
    stage(snapshot, {2: "refused", 3: "never"})
    strays = {path for path in Path(snapshot.location).iterdir() if path.name.endswith("$dataset")}
    walk = Path.rglob
    removed: list[Path] = []

    def walked(folder: Path, pattern: str) -> Iterator[Path]:
        if folder in strays and not removed:
            removed.append(folder)
            shutil.rmtree(folder)
        return walk(folder, pattern)

    monkeypatch.setattr(Path, "rglob", walked)
    done = vacuum(snapshot.location, older_than=later())
    assert (len(removed), len(done.leaves)) == (1, 1)
    assert check(snapshot.location).is_valid


def test_leaves_of_expired_versions_go_as_a_whole(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {1: "eu", 2: "us"})
    ids = snapshot.leaves().table["object_id"].to_pylist()
    snapshot = changed(snapshot, "drop", ids[:1])
    expire(snapshot.location, older_than=later())
    done = vacuum(snapshot.location, older_than=later())
    assert len(done.leaves) == 1
    assert len(regions(latest(snapshot))) == 1
    assert check(snapshot.location).is_valid


def test_a_rollback_brings_rows_back_and_loses_no_version(tmp_path: Path) -> None:
    first = append(make(tmp_path), {1: "eu", 2: "us"})
    second = append(changed(first, "drop", ["v1$nothing"]), {3: "new"})
    late = stage(second, {4: "new"})
    version = rollback(first.location, first.version)
    assert version > second.version
    assert regions(latest(first)) == regions(first)
    assert regions(Snapshot.open(first.location, second.version)) == regions(second)
    assert history(first.location)[-1].operation == "rollback"
    transaction = Transaction(second)
    transaction.append(late)
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(first)) == {"eu": [1], "us": [2], "new": [4]}
    assert check(first.location).is_valid
    with pytest.raises(SnapshotNotFound):
        rollback(first.location, 999)


def test_the_commands_and_the_procedures_do_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = append(make(tmp_path), {1: "eu"})
    stage(snapshot, {2: "eu"})
    catalog = Catalog("lance", str(tmp_path))
    arguments = {"table": snapshot.location, "older_than": 2**52}
    ((count, _, _, listed, _),) = call(catalog, "vacuum", {**arguments, "dry_run": True}).rows
    assert (count, str(listed).endswith(".lance")) == (1, True)
    assert main(["vacuum", snapshot.location, "--older-than", "2999-01-01"]) == 0
    assert "1 files" in capsys.readouterr().out
    append(snapshot, {3: "eu"})
    rows = call(catalog, "rollback", {"table": snapshot.location, "version": snapshot.version}).rows
    assert regions(Snapshot.open(snapshot.location, int(str(rows[0][0])))) == {"eu": [1]}
    assert main(["rollback", snapshot.location, "--version", str(snapshot.version + 1)]) == 0
    assert regions(latest(snapshot)) == {"eu": [1, 3]}


def test_a_dropped_table_leaves_nothing(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {1: "eu", 2: "us"})
    changed(snapshot, "drop", snapshot.leaves().table["object_id"].to_pylist())
    stage(latest(snapshot), {8: "never"})
    assert files(snapshot)
    (tmp_path / "root").mkdir()
    assert drop(Catalog("lance", str(tmp_path / "root")), (snapshot.location,))
    assert not Path(snapshot.location).exists()


def test_versions_that_expire_while_they_are_read_are_left_out(tmp_path: Path) -> None:
    """An expire in another process removes versions that this one has listed, or opened."""
    snapshot = append(append(append(make(tmp_path), {1: "eu"}), {2: "us"}), {3: "eu"})
    older = open_manifest(snapshot.location, snapshot.version - 1)
    expected = named_versions(snapshot.location, [snapshot.version], {})
    seen: set[tuple[str, ...]] = set()
    expire(snapshot.location, older_than=datetime.now(UTC) + timedelta(minutes=1))
    condition = "object_type = 'table'"
    gone = unseen_rows(snapshot.location, older, seen, condition, with_deletions=True)
    assert gone is None or gone.num_rows
    listed = range(1, snapshot.version + 1)
    assert expected <= named_versions(snapshot.location, listed, {})
    assert vacuum(snapshot.location, dry_run=True).notes == []
    assert regions(latest(snapshot)) == {"eu": [1, 3], "us": [2]}


def test_a_version_that_a_killed_expiry_left_without_its_files_is_no_obstacle(
    tmp_path: Path,
) -> None:
    snapshot = make(tmp_path)
    for number in range(9):  # until a commit merges the fragments of the manifest
        snapshot = append(snapshot, {number: "eu"})
    newest = latest(snapshot)

    def paths(version: int) -> set[str]:
        manifest = open_manifest(snapshot.location, version)
        return {file.path for one in manifest.get_fragments() for file in one.data_files()}

    older = [number for number in range(3, newest.version) if paths(number) - paths(newest.version)]
    gone = min(paths(older[0]) - paths(newest.version))
    (Path(snapshot.location) / "__manifest" / "data" / gone).unlink()
    vacuum(snapshot.location, older_than=later())
    assert regions(latest(snapshot)) == {"eu": list(range(9))}
    present = min(paths(newest.version))
    (Path(snapshot.location) / "__manifest" / "data" / present).unlink()
    with pytest.raises(StorageFailure):
        vacuum(snapshot.location, older_than=later())


def test_a_version_that_an_expiry_removes_while_it_is_looked_at_stops_no_vacuum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = append(make(tmp_path), {1: "eu"})
    snapshot = append(first, {2: "eu"})
    [older] = first.leaves().table["read_version"].to_pylist()
    read = lance.LanceDataset.read_transaction

    def removed(dataset: lance.LanceDataset, version: int) -> object:
        if version == older:
            monkeypatch.setattr(lance.LanceDataset, "read_transaction", read)
            expire(snapshot.location, older_than=later())
        return read(dataset, version)

    monkeypatch.setattr(lance.LanceDataset, "read_transaction", removed)
    assert "left alone" in str(vacuum(snapshot.location, older_than=later()).notes)
    assert regions(latest(snapshot)) == {"eu": [1, 2]}
    assert check(snapshot.location).is_valid
