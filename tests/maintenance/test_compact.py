"""Compaction: the same rows in fewer files, and no writer beside it ever notices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pennon.catalog.configured_catalog import Catalog
from pennon.cli import main
from pennon.maintenance.checks.check import check
from pennon.maintenance.compact import compact
from pennon.maintenance.procedures import call
from pennon.manifest import Snapshot
from pennon.manifest.versions.history import history
from pennon.transaction import Committed, Conflicted, Transaction
from transaction.lake import append, latest, make, regions, stage


def fragmented(tmp_path: Path) -> Snapshot:
    snapshot = make(tmp_path)
    for number in range(4):
        snapshot = append(
            snapshot, {number * 10: "eu", number * 10 + 1: "us", number * 10 + 2: None}
        )
    return snapshot


def fragments(snapshot: Snapshot) -> list[int]:
    return snapshot.leaves().table["num_fragments"].to_pylist()


def test_the_rows_stay_and_the_files_become_few(tmp_path: Path) -> None:
    snapshot = fragmented(tmp_path)
    before = regions(snapshot)
    done = compact(snapshot.location)
    assert (done.leaves, done.files_before, done.files_after, done.num_rows) == (3, 12, 3, 12)
    assert regions(latest(snapshot)) == regions(snapshot) == before
    assert fragments(latest(snapshot)) == [1, 1, 1]
    assert history(snapshot.location)[-1].operation in ("compact", "maintenance")
    assert check(snapshot.location).is_valid
    assert compact(snapshot.location).leaves == 0


def test_a_condition_chooses_partitions(tmp_path: Path) -> None:
    snapshot = fragmented(tmp_path)
    assert compact(snapshot.location, where="region = 'eu'").leaves == 1
    assert sorted(fragments(latest(snapshot))) == [1, 4, 4]


@pytest.mark.parametrize("kind", ["append", "replace", "truncate", "drop"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_write_based_on_what_was_compacted_goes_on(tmp_path: Path, kind: str, times: int) -> None:
    snapshot = fragmented(tmp_path)
    (leaf,) = [
        each["object_id"]
        for each in snapshot.leaves().table.to_pylist()
        if each["partition_field_region"] == "eu"
    ]
    transaction = Transaction(snapshot)
    if kind in ("append", "replace"):
        getattr(transaction, kind)(stage(snapshot, {99: "eu"}))
    else:
        getattr(transaction, kind)([leaf])
    compact(snapshot.location)
    if times == 2:
        append(latest(snapshot), {55: "us"})
        Transaction(latest(snapshot))
        rewritten = Transaction(latest(snapshot), operation="compact")
        rewritten.rewrite(stage(latest(snapshot), dict.fromkeys(regions(snapshot)["eu"], "eu")))
        assert isinstance(rewritten.commit(), Committed)
    assert isinstance(transaction.commit(), Committed)
    expected = {"append": [0, 10, 20, 30, 99], "replace": [99], "truncate": []}
    assert regions(latest(snapshot)).get("eu") == expected.get(kind)
    assert check(snapshot.location).is_valid


def test_a_compaction_yields_to_a_write(tmp_path: Path) -> None:
    snapshot = fragmented(tmp_path)
    rewrite = Transaction(snapshot, operation="compact")
    rewrite.rewrite(stage(snapshot, dict.fromkeys(regions(snapshot)["eu"], "eu")))
    append(snapshot, {77: "eu"})
    assert isinstance(rewrite.commit(), Conflicted)
    overwrite = Transaction(snapshot)
    overwrite.replace(stage(snapshot, {99: "eu"}))
    assert isinstance(overwrite.commit(), Conflicted)
    assert regions(latest(snapshot))["eu"] == [0, 10, 20, 30, 77]


def test_writers_beside_compactions_lose_nothing(tmp_path: Path) -> None:
    base = fragmented(tmp_path)

    def write() -> None:
        for number in range(100, 110):
            append(latest(base), {number: "eu"})

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(write)
        while not writing.done():
            compact(base.location)
        writing.result()
    compact(base.location)
    assert regions(latest(base))["eu"] == [0, 10, 20, 30, *range(100, 110)]
    assert check(base.location).is_valid


def test_the_command_and_the_procedure_do_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = fragmented(tmp_path)
    arguments = {"table": snapshot.location, "where": "region = 'eu'"}
    _, ((leaves, *_),) = call(Catalog("lance", str(tmp_path)), "compact", arguments)
    assert leaves == 1
    assert main(["compact", snapshot.location]) == 0
    assert "2 leaves" in capsys.readouterr().out
    assert fragments(latest(snapshot)) == [1, 1, 1]
