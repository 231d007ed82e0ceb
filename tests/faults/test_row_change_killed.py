"""A process that is killed while it changes rows leaves the table as it was, or changed."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from tests.transaction.lake import append, latest, make, regions

# Kills itself before or after the step that is named.
KILLED = """
import os, signal, sys
import pennon
from pennon.manifest.commits import manifest_commit
from pennon.transaction import strong
from pennon.transaction.staging import leaf_preparation

location, moment, step = sys.argv[1:]
module, name = {
    "deletion": (leaf_preparation, "change_rows"),
    "commit": (strong, "commit_leaves"),
    "exclusive": (manifest_commit, "exclusive"),
}[step]
original = getattr(module, name)

def killed(*arguments, **keywords):
    done = original(*arguments, **keywords) if moment == "after" else None
    os.kill(os.getpid(), signal.SIGKILL)
    return done

setattr(module, name, killed)
pennon.open(location).delete("id IN (1, 3)")
"""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", ["deletion", "exclusive", "commit"])
def test_a_delete_is_there_as_a_whole_or_not_at_all(tmp_path, step, moment):
    base = append(make(tmp_path), {1: "eu", 2: "eu", 3: "us", 4: "us"})
    done = subprocess.run(
        [sys.executable, "-c", KILLED, base.location, moment, step], check=False, timeout=120
    )
    assert done.returncode == -signal.SIGKILL
    is_committed = (step, moment) == ("commit", "after")
    before = {"eu": [2], "us": [4]} if is_committed else {"eu": [1, 2], "us": [3, 4]}
    assert regions(latest(base)) == before
    after = regions(append(latest(base), {5: "eu"}))
    assert after == {"eu": [*before["eu"], 5], "us": before["us"]}
