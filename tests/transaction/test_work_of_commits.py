"""What commits over many partitions do: once what need not be done again, and no square of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tests.transaction.lake import append, latest, make, read, stage

from pennon.catalog.layouts.stored_table import replace_rows
from pennon.manifest.commits.manifest_commit import commit_leaves
from pennon.transaction import Committed, Transaction, strong
from pennon.transaction.staging.leaf_preparation import prepare_leaves

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from pennon.manifest import Snapshot


def test_a_commit_that_others_come_before_redoes_only_the_leaves_they_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try of a writer of many partitions is as short as what lies between two commits."""
    snapshot = append(make(tmp_path), {id_: f"r{id_}" for id_ in range(12)})
    others = [{100: "r3"}, {101: "r5", 102: "r6"}, {103: "elsewhere"}][::-1]
    prepared: list[int] = []

    def behind_another(*arguments: Any, **named: Any) -> object:
        if others:
            rows = others.pop()
            with monkeypatch.context() as theirs:
                theirs.setattr(strong, "commit_leaves", commit_leaves)
                theirs.setattr(strong, "prepare_leaves", prepare_leaves)
                append(latest(snapshot), rows)
        return commit_leaves(*arguments, **named)

    def noted(base: Snapshot, states: Any, changes: Any) -> object:
        prepared.append(len(changes))
        return prepare_leaves(base, states, changes)

    mine = Transaction(snapshot)
    mine.append(stage(snapshot, {200 + id_: f"r{id_}" for id_ in range(12)}))
    monkeypatch.setattr(strong, "commit_leaves", behind_another)
    monkeypatch.setattr(strong, "prepare_leaves", noted)
    assert isinstance(mine.commit(), Committed)
    ids = {row["id"] for row in read(latest(snapshot))}
    assert ids == {*range(12), *range(200, 212), 100, 101, 102, 103}
    assert prepared == [12, 1, 2]


def test_whole_partitions_are_overwritten_and_dropped_in_linear_work(tmp_path: Path) -> None:
    def calls(run: Callable[[], object]) -> int:
        made = 0

        def counted(*_: object) -> None:
            nonlocal made
            made += 1

        sys.setprofile(counted)
        try:
            run()
        finally:
            sys.setprofile(None)
        return made

    def work(number: int) -> list[int]:
        rows = {id_: f"r{id_}" for id_ in range(number)}
        snapshot = append(make(tmp_path / str(number)), rows)
        transactions = Transaction(snapshot), Transaction(snapshot)
        there = snapshot.leaves().table["object_id"].to_pylist()
        replace_rows(transactions[0], stage(snapshot, rows), there)
        counts = [calls(transactions[0].commit)]
        dropping = Transaction(latest(snapshot))
        dropping.drop(there)
        return [*counts, calls(dropping.commit)]

    work(5)  # imports
    few, many = work(20), work(80)
    for less, more in zip(few, many, strict=True):
        assert more < 4.5 * less
