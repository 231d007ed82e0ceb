"""Processes that make indexes beside writers, killed: no index is lost, and no row is wrong."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.torture import index_races
from tests.torture.searches import check_answers, made

import pennon
from pennon.errors import IndexNotFound

# Kills itself on the way into the step that is named, and where it says "after", behind it.
KILLED = """
import os, signal, sys
import pennon
from pennon.search import index_upkeep
from pennon.transaction import strong
from pennon.transaction.staging import leaf_preparation

location, statement, moment, step = sys.argv[1:]
module, name = {
    "definition": (index_upkeep, "change_root"),
    "built": (index_upkeep, "build_segment"),
    "detached": (leaf_preparation, "reindexed"),
    "manifest": (strong, "commit_leaves"),
}[step]
original = getattr(module, name)

def killed(*arguments, **keywords):
    if moment == "after":
        original(*arguments, **keywords)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(module, name, killed)
table = pennon.open(location)
table.drop_index("n_idx") if statement == "drop" else table.create_index("n", "BTREE", min_bytes=0)
"""
EXHAUSTIVE = bool(os.environ.get("PENNON_EXHAUSTIVE"))
STEPS = [
    (statement, moment, step)
    for statement in ("create", "drop")
    for step in ("definition", "built", "detached", "manifest")
    for moment in ("before", "after")
    if (statement, step) != ("drop", "built")
]
IN_SHORT = [("create", "after", "built"), ("create", "before", "manifest"), STEPS[9]]


@pytest.mark.parametrize("killed_at", STEPS if EXHAUSTIVE else IN_SHORT, ids="-".join)
def test_an_index_that_was_killed_at_a_step_is_completed_or_dropped(
    tmp_path: Path, killed_at: tuple[str, str, str]
) -> None:
    drawn = random.Random(1)  # noqa: S311 - test data
    table = made(tmp_path, drawn)
    if killed_at[0] == "drop":
        table.create_index("n", "BTREE", min_bytes=0)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "t"), *killed_at]
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    table = pennon.open(tmp_path / "t")
    check_answers(table, drawn)
    assert table.maintenance.check().is_valid
    # The name is of another column now; what was left of the index is in nobody's way.
    for column in ("id", "n"):
        try:
            table.drop_index("n_idx")
        except IndexNotFound:
            assert not table.indexes()
        table.create_index(column, "BTREE", "n_idx", min_bytes=0)
        check_answers(table, drawn)
        listed = table.metadata("indexes").to_pylist()
        assert [(row["column"], row["rows_not_indexed"]) for row in listed] == [(column, 0)] * 2


def test_indexes_and_writers_that_race_and_are_killed(capfd: pytest.CaptureFixture[str]) -> None:
    """`make torture-indexes` does it at length."""
    assert (
        index_races.main(["--appends", "2", "--kills", "1", "--statements", "2", "--seed", "3"])
        == 0
    )
    assert "no index lost, no row wrong" in capfd.readouterr().out
