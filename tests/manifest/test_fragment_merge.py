"""Merging the fragments of ``__manifest`` behind commits: few are left, no version changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.transaction.lake import append, latest, make, regions, stage

from pennon.maintenance.checks.check_manifest import check
from pennon.manifest import Snapshot
from pennon.manifest.commits import manifest_commit
from pennon.manifest.commits.manifest_commit import keep_small
from pennon.manifest.versions.history import history
from pennon.transaction import Committed, Transaction


def fragments(snapshot: Snapshot) -> int:
    return len(lance.dataset(f"{snapshot.location}/__manifest").get_fragments())


def test_many_commits_leave_few_fragments_and_every_version_as_it_was(tmp_path: Path) -> None:
    base = snapshot = append(make(tmp_path), {0: "r0"})
    late = stage(base, {1000: "r0", 1001: "new"})
    past = {}
    for number in range(1, 30):
        snapshot = append(snapshot, {number: f"r{number % 3}"})
        past[snapshot.version] = regions(snapshot)
    assert fragments(snapshot) < 16
    for version, rows in past.items():
        assert regions(Snapshot.open(base.location, version)) == rows
    transaction = Transaction(base)
    transaction.append(late)
    assert isinstance(transaction.commit(), Committed)
    rows = regions(latest(base))
    assert rows["new"] == [1001]
    assert sorted(number for ids in rows.values() for number in ids) == [*range(30), 1000, 1001]
    assert check(base.location).is_valid
    versions = Path(base.location, "__manifest", "_versions").glob("*.manifest")
    sizes = sorted(version.stat().st_size for version in versions)
    assert sizes[len(sizes) // 2] < 4096  # and no filter of 32 kB in each
    assert sum(entry.operation == "append" for entry in history(base.location)) == 31


def test_what_a_writer_knows_of_the_table_outlives_a_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the rows of every leaf anew behind each merge, and the more the longer it wrote."""
    snapshot = append(make(tmp_path), {number: f"r{number}" for number in range(3)})
    for number in range(3):
        snapshot = append(snapshot, {number: f"r{number}"})
    scanned: list[int] = []
    to_table = lance.LanceDataset.to_table

    def noted(dataset: lance.LanceDataset, *args: Any, **named: Any) -> pa.Table:
        if dataset.uri.endswith("__manifest"):
            scanned.append(dataset.version)
        return to_table(dataset, *args, **named)

    monkeypatch.setattr(lance.LanceDataset, "to_table", noted)
    begun = snapshot.version
    for number in range(30):
        snapshot = append(snapshot, {number: f"r{number % 3}"})
    assert latest(snapshot).version > begun + 30
    assert scanned == []


def test_a_merge_that_another_commit_came_before_has_other_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the writer knows of his version does not hold in that one."""
    monkeypatch.setattr(manifest_commit, "keep_small", lambda _: False)
    snapshot = make(tmp_path)
    for number in range(9):
        snapshot = append(snapshot, {number: f"r{number}"})
    mine = lance.dataset(f"{snapshot.location}/__manifest")
    with_theirs = append(snapshot, {9: "new"})
    assert not keep_small(mine)
    assert mine.version > with_theirs.version  # it was merged all the same
    assert fragments(snapshot) < 5


def test_merges_of_small_fragments_leave_the_large_as_it_is(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {number: f"r{number}" for number in range(40)})
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    large = max(manifest.get_fragments(), key=lambda fragment: fragment.metadata.physical_rows)
    for number in range(20):
        snapshot = append(snapshot, {number: f"r{number % 3}"})
    newest = lance.dataset(f"{snapshot.location}/__manifest").get_fragments()
    assert large.fragment_id in {fragment.fragment_id for fragment in newest}
    assert len(newest) < 12


def test_merges_beside_racing_writers_lose_no_commit(tmp_path: Path) -> None:
    base = append(make(tmp_path), {0: "r0"})

    def write(writer: int) -> None:
        for number in range(8):
            append(latest(base), {writer * 100 + number: f"r{writer}"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(1, 5)))
    expected = {f"r{at}": [at * 100 + number for number in range(8)] for at in range(1, 5)}
    assert regions(latest(base)) == {"r0": [0], **expected}
    assert fragments(base) < 24
    assert check(base.location).is_valid
