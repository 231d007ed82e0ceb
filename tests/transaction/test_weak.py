"""Weak mode: commits on main, in an order from which the same commit can be made again."""

from __future__ import annotations

import lance
import pytest
from tests.transaction.lake import append, latest, make, regions, stage
from tests.transaction.test_row_changes import change

from pennon.transaction import Committed, Conflicted, Transaction
from pennon.transaction.concurrency.conflicts import ROWS_CHANGED


@pytest.mark.spec("Multi-Partition Transaction (Weak) 3")
def test_rows_are_on_main_and_the_manifest_names_no_version(tmp_path):
    after = append(append(make(tmp_path, strong=False), {1: "eu", 2: None}), {3: "eu"})
    assert regions(after) == {"eu": [1, 3], None: [2]}
    for leaf in after.leaves().table.to_pylist():
        assert leaf["read_version"] is None
        assert lance.dataset(f"{after.location}/{leaf['location']}").count_rows() > 0


@pytest.mark.spec("Multi-Partition Transaction (Weak) 1")
def test_the_same_commit_made_twice_adds_its_rows_once(tmp_path):
    base = append(make(tmp_path, strong=False), {1: "eu"})
    staged = stage(base, {2: "eu", 3: "new"})
    for _ in range(2):
        transaction = Transaction(base)
        transaction.append(staged)
        assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [1, 2], "new": [3]}


def test_replace_and_drop(tmp_path):
    base = append(make(tmp_path, strong=False), {1: "eu", 2: "us", 3: "asia"})
    ids = {
        row["partition_field_region"]: row["object_id"] for row in base.leaves().table.to_pylist()
    }
    transaction = Transaction(base)
    transaction.replace(stage(base, {4: "eu"}))
    transaction.drop([ids["asia"], ids["us"]])
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [4]}


def test_dropped_partition_comes_back_empty_of_old_rows(tmp_path):
    base = append(make(tmp_path, strong=False), {1: "eu"})
    transaction = Transaction(base)
    transaction.drop(base.leaves().table["object_id"].to_pylist())
    transaction.commit()
    assert regions(append(latest(base), {2: "eu"})) == {"eu": [2]}


def test_rows_come_to_a_partition_that_was_dropped_since_they_were_written(tmp_path):
    base = append(make(tmp_path, strong=False), {1: "eu", 2: "us", 3: "asia"})
    ids = {
        row["partition_field_region"]: row["object_id"] for row in base.leaves().table.to_pylist()
    }
    adding, replacing, changing = (
        Transaction(base),
        Transaction(base),
        change(base, {3}, {6: "asia"}),
    )
    adding.append(stage(base, {4: "eu"}))
    replacing.replace(stage(base, {5: "us"}))
    dropping = Transaction(base)
    dropping.drop(ids.values())
    assert isinstance(dropping.commit(), Committed)
    assert isinstance(adding.commit(), Committed)
    assert isinstance(replacing.commit(), Committed)
    assert changing.commit() == Conflicted("region=asia", ROWS_CHANGED)
    assert regions(latest(base)) == {"eu": [4], "us": [5]}
