"""Writers that commit at the same moment: every row of every successful commit once, no other."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.present import present
from tests.transaction.lake import append, latest, make, regions, stage

from pennon.transaction import Committed, Conflicted, Transaction

WRITER = """
import sys
import pyarrow as pa
from pennon.leaf import WriteTarget, write_partitions
from pennon.manifest import Snapshot
from pennon.transaction import Transaction
snapshot = Snapshot.open(sys.argv[1])
rows = pa.record_batch({"id": [int(sys.argv[2]), int(sys.argv[2]) + 100], "region": ["new", "eu"]})
staged = write_partitions([rows], WriteTarget(snapshot.location, snapshot.version, 1))
print("staged", flush=True)
sys.stdin.readline()
transaction = Transaction(snapshot)
transaction.append(staged)
print(type(transaction.commit()).__name__)
"""


@pytest.mark.spec("Multi-Partition Transaction (Strong) 5")
def test_ten_threads_append_to_the_same_new_partition(tmp_path):
    base = make(tmp_path)

    def write(number: int) -> object:
        transaction = Transaction(base)
        transaction.append(stage(base, {number: "new", number + 100: f"own{number}"}))
        return transaction.commit()

    with ThreadPoolExecutor(10) as pool:
        outcomes = list(pool.map(write, range(10)))
    assert all(isinstance(outcome, Committed) for outcome in outcomes)
    found = regions(latest(base))
    assert found.pop("new") == list(range(10))
    assert found == {f"own{number}": [number + 100] for number in range(10)}


@pytest.mark.spec("Single-Partition Transaction 1")
def test_ten_threads_append_in_weak_mode(tmp_path):
    base = make(tmp_path, strong=False)

    def write(number: int) -> object:
        transaction = Transaction(base)
        transaction.append(stage(base, {number: "new"}))
        return transaction.commit()

    with ThreadPoolExecutor(10) as pool:
        outcomes = list(pool.map(write, range(10)))
    assert all(isinstance(outcome, Committed) for outcome in outcomes)
    assert regions(latest(base)) == {"new": list(range(10))}


@pytest.mark.spec("Commit Behavior 2", "Commit Behavior 4")
def test_processes_that_all_staged_before_any_committed(tmp_path):
    base = append(make(tmp_path), {1000: "eu"})
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, base.location, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for writer in writers:
        assert present(writer.stdout).readline() == "staged\n"
    for writer in writers:
        present(writer.stdin).write("go\n")
        present(writer.stdin).flush()
    assert [writer.communicate(timeout=120)[0] for writer in writers] == ["Committed\n"] * 4
    assert regions(latest(base)) == {"new": [0, 1, 2, 3], "eu": [100, 101, 102, 103, 1000]}


@pytest.mark.parametrize("attempt", range(3))
def test_replace_races_append_and_one_wins_whole(tmp_path, attempt):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    appending, replacing = Transaction(base), Transaction(base)
    appending.append(stage(base, {10: "eu", 20: "us"}))
    replacing.replace(stage(base, {30: "eu", 40: "us"}))
    with ThreadPoolExecutor(2) as pool:
        commits = [pool.submit(transaction.commit) for transaction in (appending, replacing)]
        appended, replaced = (commit.result() for commit in commits)
    assert isinstance(appended, Committed)
    found = regions(latest(base))
    if isinstance(replaced, Committed):
        assert found == {"eu": [10, 30], "us": [20, 40]}
    else:
        assert isinstance(replaced, Conflicted)
        assert replaced.partition.startswith("region=")
        assert found == {"eu": [1, 10], "us": [2, 20]}


def test_failed_replace_can_be_aborted_without_touching_the_winner(tmp_path):
    base = append(make(tmp_path), {1: "eu"})
    staged = stage(base, {9: "eu"})
    transaction = Transaction(base)
    transaction.replace(staged)
    append(base, {2: "eu"})
    assert isinstance(transaction.commit(), Conflicted)
    transaction.abort(staged)
    assert regions(latest(base)) == {"eu": [1, 2]}
    leaf = Path(base.location) / staged[0].location / "data"
    assert len(list(leaf.iterdir())) == 2
