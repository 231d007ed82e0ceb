"""Compaction behind commits: many small appends leave few files, and no writer notices."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.transaction.lake import append, latest, make, regions

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl.table_ddl import drop
from pennon.errors import StorageFailure
from pennon.maintenance import background as behind_commits
from pennon.maintenance import background as small_files
from pennon.maintenance.background import compact_small_files
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.compact import rewrite_leaves
from pennon.manifest import change_root
from pennon.manifest.versions.history import history
from pennon.transaction import Transaction

SCHEMA = pa.schema({"id": pa.int64(), "region": pa.utf8()})

# Appends in a process that ends at once: what is due is done before it ends.
APPENDS = """
import sys, pennon
table = pennon.open(sys.argv[1])
for number in range(20):
    table.append([{"id": number, "region": region} for region in sys.argv[2:]])
"""


def files(snapshot) -> int:
    return sum(snapshot.leaves().table["num_fragments"].to_pylist())


@pytest.mark.parametrize("regions_of_all", [["eu"], ["eu", "us", "asia"]])
def test_many_appends_of_a_process_leave_few_files(
    tmp_path: Path, regions_of_all: list[str]
) -> None:
    path = str(tmp_path / "table")
    table = pennon.create(path, SCHEMA, partition_by=["region"])
    told = subprocess.run(
        [sys.executable, "-c", APPENDS, path, *regions_of_all],
        check=True,
        timeout=300,
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert not told.stderr
    table.refresh()
    assert files(table.snapshot) < 16 * len(regions_of_all)
    ids = [id_ for id_ in range(20) for _ in regions_of_all]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ids
    assert any(entry.operation == "compact" for entry in history(path))
    assert check(path).is_valid


def fragmented(tmp_path: Path):
    snapshot = make(tmp_path)
    for number in range(17):
        snapshot = append(snapshot, {number: "eu", 100 + number: "us"})
    return snapshot


def test_only_many_small_files_are_put_together(tmp_path: Path) -> None:
    snapshot = fragmented(tmp_path)
    before = regions(snapshot)
    leaves = snapshot.leaves().table["object_id"].to_pylist()
    assert compact_small_files(snapshot.location, leaves, {}) == 2
    assert files(latest(snapshot)) == 2
    assert compact_small_files(snapshot.location, leaves, {}) == 0
    assert regions(latest(snapshot)) == before


def test_a_table_property_switches_it_off(tmp_path: Path) -> None:
    snapshot = fragmented(tmp_path)
    change_root(snapshot, properties={"write.compaction.enabled": "false"})
    leaves = snapshot.leaves().table["object_id"].to_pylist()
    assert compact_small_files(snapshot.location, leaves, {}) == 0


def test_its_failure_is_not_the_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done = threading.Event()

    def fail(*_: object) -> int:
        done.set()
        raise StorageFailure(
            verb="write to", location="here", problem="the disk is full", advice="x"
        )

    monkeypatch.setattr(behind_commits, "compact_small_files", fail)
    table = pennon.create(str(tmp_path / "table"), SCHEMA, partition_by=["region"])
    table.append([{"id": 1, "region": "eu"}])
    assert done.wait(60)
    table.append([{"id": 2, "region": "eu"}])
    assert table.scan().count_rows() == 2


@pytest.mark.parametrize("when", ["before its look", "before its first write", "before its commit"])
def test_a_table_that_is_dropped_meanwhile_is_no_failure_and_leaves_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    when: str,
) -> None:
    snapshot = fragmented(tmp_path)
    leaves = snapshot.leaves().table["object_id"].to_pylist()

    def dropping(real: Callable[..., object]) -> Callable[..., object]:
        def dropped_first(*arguments: object) -> object:
            drop(Catalog("lance", str(tmp_path)), (snapshot.location,))
            return real(*arguments)

        return dropped_first

    background = behind_commits._Background()
    if when == "before its look":
        drop(Catalog("lance", str(tmp_path)), (snapshot.location,))
    elif when == "before its first write":
        monkeypatch.setattr(small_files, "rewrite_leaves", dropping(rewrite_leaves))
    else:
        monkeypatch.setattr(Transaction, "commit", dropping(Transaction.commit))
    with caplog.at_level("INFO"):
        background.touch(snapshot.location, leaves, {})
        background.end()
    assert [record.getMessage() for record in caplog.records] == []
    assert not Path(snapshot.location).exists()


def test_a_process_that_gets_no_thread_writes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And compacts as soon as it gets one."""
    background = behind_commits._Background()
    asked: list[str] = []
    done = threading.Event()

    def compact(location: str, *_: object) -> int:
        asked.append(location)
        done.set()
        return 0

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(behind_commits, "compact_small_files", compact)
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refuse)
        background.touch(str(tmp_path), ["v1$a$dataset"], {})
    background.touch(str(tmp_path), ["v1$b$dataset"], {})
    assert done.wait(60)
    assert asked == [str(tmp_path)]
