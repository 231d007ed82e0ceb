"""Appends that wait for each other: one commit, and each with an answer of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.present import present
from tests.transaction.lake import append, latest, make, regions, stage

from pennon.errors import CommitGivenUp
from pennon.maintenance.expire import expire
from pennon.manifest.commits.commit_lookup import give_up
from pennon.manifest.format.rows import CommitIdentity
from pennon.manifest.versions.history import history
from pennon.transaction import Committed, Conflicted, Transaction
from pennon.transaction import transaction as group_commit
from pennon.transaction.staging.staged import Append


def test_appends_that_wait_are_one_commit_and_each_can_be_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first commit is held until nine others wait; two of these have the same id."""
    base = append(make(tmp_path), {1: "eu"})
    names = ["a", "b", "c", "d", "e", "f", "g", "h", "h", "i"]
    staged = [stage(base, {10 + ord(name): "eu", 300 + ord(name): name}) for name in names]
    entered, held = threading.Event(), threading.Event()
    commit_strong = vars(group_commit)["commit_strong"]

    def holding(*arguments: object) -> object:
        entered.set()
        held.wait(60)
        return commit_strong(*arguments)

    monkeypatch.setattr(group_commit, "commit_strong", holding)

    def commit(at: int) -> object:
        transaction = Transaction(base, CommitIdentity(names[at], user=str(at)))
        transaction.append(staged[at])
        return transaction.commit()

    with ThreadPoolExecutor(10) as pool:
        commits = [pool.submit(commit, 0)]
        assert entered.wait(60)
        commits += [pool.submit(commit, at) for at in range(1, 10)]
        (queue,) = group_commit._queues.values()
        wait_for(lambda: len(queue.waiting) == 9)
        held.set()
        outcomes = [commit_.result() for commit_ in commits]
    assert all(isinstance(outcome, Committed) for outcome in outcomes)
    made = [
        entry for entry in history(base.location) if entry.record and entry.operation == "append"
    ]
    assert len(made) == 3, "the one that was first, the group, and before these the base"
    assert present(made[-1].record).added_rows == 16
    expected = {"eu": sorted([1, *(10 + ord(name) for name in set(names))])}
    expected |= {name: [300 + ord(name)] for name in set(names)}
    assert regions(latest(base)) == expected
    monkeypatch.setattr(group_commit, "commit_strong", commit_strong)
    assert all(isinstance(commit(at), Committed) for at in range(10))
    assert regions(latest(base)) == expected
    assert not group_commit._queues


def test_a_group_that_one_spoils_is_committed_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = append(make(tmp_path), {1: "eu"})
    staged = [stage(base, {10 + at: "eu"}) for at in range(4)]
    give_up(base.location, CommitIdentity("2"))
    waiting = [
        group_commit._Waiting(
            base, {part.object_id: Append((part,)) for part in staged[at]}, CommitIdentity(str(at))
        )
        for at in range(4)
    ]
    group_commit._commit(waiting)
    assert all(waiter.is_alone and waiter.outcome is None for waiter in waiting)
    assert regions(latest(base)) == {"eu": [1]}
    for waiter in waiting:
        if waiter.identity.id == "2":
            with pytest.raises(CommitGivenUp):
                group_commit.commit_append(waiter.base, waiter.changes, waiter.identity)
        else:
            group_commit.commit_append(waiter.base, waiter.changes, waiter.identity)
    assert regions(latest(base)) == {"eu": [1, 10, 11, 13]}


@pytest.mark.parametrize("is_expired", [False, True])
def test_rows_written_for_a_leaf_that_was_adopted_elsewhere_meanwhile_are_refused(
    tmp_path: Path, *, is_expired: bool
) -> None:
    """Beside another write of a newer base, and where the own base has expired."""
    base = append(make(tmp_path), {1: "asia"})
    mine = stage(base, {1: "eu"})
    (part,) = stage(base, {2: "eu"})
    place = "0000000000000000_adopted"
    Path(base.location, part.location).rename(Path(base.location, place))
    adopted = Transaction(base)
    adopted.append([replace(part, location=place)])
    assert isinstance(adopted.commit(), Committed)
    newest = latest(base)
    others = stage(newest, {3: "us"})
    waiting = [
        group_commit._Waiting(snapshot, {one.object_id: Append((one,))}, CommitIdentity(str(at)))
        for at, (snapshot, (one,)) in enumerate([(base, mine), (newest, others)])
    ]
    if is_expired:
        expire(base.location, older_than=datetime.now(UTC) + timedelta(days=1))
    else:
        group_commit._commit(waiting)
    outcomes = [
        group_commit.commit_append(waiter.base, waiter.changes, waiter.identity)
        for waiter in waiting
    ]
    assert isinstance(outcomes[0], Conflicted)
    assert isinstance(outcomes[1], Committed)
    assert regions(latest(base)) == {"asia": [1], "eu": [2], "us": [3]}


def wait_for(condition: Callable[[], object]) -> object:
    for _ in range(6000):
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError
