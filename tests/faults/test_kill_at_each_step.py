"""A process that is killed between the steps of a commit leaves the state before it or after it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from tests.transaction.lake import append, latest, make, regions

# Kills itself on the way into the step that is named, and where it says "after", behind it.
KILLED = """
import os, signal, sys
import pyarrow as pa
from pennon.leaf import WriteTarget, write_partitions
from pennon.manifest import Snapshot
from pennon.transaction import Transaction, strong, weak
from pennon.transaction.staging import leaf_preparation

location, moment, step, id_ = sys.argv[1:]
module, name = {
    "create": (leaf_preparation, "create_leaf"),
    "detached": (leaf_preparation, "append_fragments"),
    "manifest": (strong, "commit_leaves"),
    "weak_manifest": (weak, "commit_leaves"),
    "weak_append": (weak, "append_fragments"),
}[step]
original = getattr(module, name)

def killed(*arguments, **keywords):
    if moment == "after":
        original(*arguments, **keywords)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(module, name, killed)
snapshot = Snapshot.open(location)
rows = pa.record_batch({"id": [int(id_), int(id_) + 1], "region": ["new", "eu"]})
staged = write_partitions([rows], WriteTarget(snapshot.location, snapshot.version, 1))
transaction = Transaction(snapshot)
transaction.append(staged)
transaction.commit()
"""


def kill(location: str, moment: str, step: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, location, moment, step, "100"], check=False, timeout=120
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.spec(
    "Multi-Partition Transaction (Strong) 2", "Multi-Partition Transaction (Strong) 5"
)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", ["create", "detached", "manifest"])
def test_strong_commit_killed_at_a_step(tmp_path, step, moment):
    base = append(make(tmp_path), {1: "eu"})
    kill(base.location, moment, step)
    is_committed = (step, moment) == ("manifest", "after")
    expected = {"eu": [1, 101], "new": [100]} if is_committed else {"eu": [1]}
    assert regions(latest(base)) == expected
    retried = regions(append(latest(base), {200: "new", 201: "eu"}))
    assert retried == {
        "eu": sorted([*expected["eu"], 201]),
        "new": sorted([*expected.get("new", []), 200]),
    }


@pytest.mark.spec("Multi-Partition Transaction (Weak) 1")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", ["weak_manifest", "weak_append"])
def test_weak_commit_killed_at_a_step_never_leaves_rows_beside_the_manifest(tmp_path, step, moment):
    base = append(make(tmp_path, strong=False), {1: "eu"})
    kill(base.location, moment, step)
    left = regions(latest(base))
    assert left["eu"] in ([1], [1, 101])
    assert left.get("new", []) in ([], [100])
    retried = regions(append(latest(base), {200: "new"}))
    assert retried == {"eu": left["eu"], "new": [*left.get("new", []), 200]}
