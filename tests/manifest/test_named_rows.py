"""What a commit keeps of its own rows for the next one: what a scan of that version gives."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from tests.transaction.lake import append, latest, make, stage

from pennon.manifest import Snapshot
from pennon.manifest.commits.manifest_commit import existing_rows
from pennon.manifest.dataset import select as table_versions
from pennon.manifest.leaves import leaf_rows as named_rows
from pennon.transaction import Committed, Transaction


def check_kept(snapshot: Snapshot) -> tuple[int, int]:
    """Compare what is kept of a version with a scan of it; gives how much was kept."""
    rows = vars(named_rows)["_ROWS"]._cache.peek(snapshot.key) or {}
    for name, kept in rows.items():
        read = existing_rows(snapshot.manifest, [name])
        assert kept.sort_by("object_id").to_pylist() == read.to_pylist(), name
    numbers = vars(table_versions)["_NUMBERS"]._cache.peek(snapshot.key) or {}
    for leaf, number in numbers.items():
        found = vars(table_versions)["_version_rows"](snapshot.manifest, [leaf])["number"]
        assert number == max(found.to_pylist(), default=0), leaf
    return len(rows), len(numbers)


def test_what_is_kept_behind_commits_is_what_the_manifest_has(tmp_path: Path) -> None:
    """Random commits, of old snapshots too; the manifest merges its fragments meanwhile."""
    chance = random.Random(5)  # noqa: S311 - a test's chance
    base = snapshot = append(make(tmp_path), {0: "r0", 1: None})
    kept = []
    for number in range(2, 32):
        at = chance.choice([base, snapshot, snapshot, snapshot])
        leaves = at.leaves().table["object_id"].to_pylist()
        transaction = Transaction(at)
        kind = chance.choice(["append", "append", "append", "replace", "drop"])
        if kind == "drop":
            transaction.drop([chance.choice(leaves)])
        else:
            rows = {number: f"r{chance.randrange(4)}", 100 + number: None}
            getattr(transaction, kind)(stage(at, rows))
        is_made = isinstance(transaction.commit(), Committed)
        snapshot = latest(base)
        num_kept = check_kept(snapshot)
        if is_made:
            kept.append(num_kept)
    # Nothing is kept over a merge of fragments: others may have committed between its steps.
    assert sum(bool(rows and numbers) for rows, numbers in kept) > 15


def test_a_commit_behind_another_of_the_same_process_reads_no_leaf_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = latest(append(append(make(tmp_path), {0: "eu", 1: "us"}), {2: "eu"}))

    def read(manifest: object, names: list[str]) -> dict[str, pa.Table]:
        raise AssertionError(names)

    monkeypatch.setattr(named_rows, "_read", read)
    for number in range(3, 6):
        append(snapshot, {number: "eu"})
        snapshot = latest(snapshot)
