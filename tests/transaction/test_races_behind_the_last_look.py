"""Others commit between a statement's last look at the table and its own commit."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.transaction.lake import SCHEMA, stage

import pennon
from pennon.errors import WriteConflict
from pennon.manifest import Snapshot
from pennon.manifest.commits import manifest_commit
from pennon.manifest.commits import root_change as turn
from pennon.manifest.commits.manifest_commit import (
    ConcurrentChange,
    ManifestCommitted,
    ManifestOutcome,
)
from pennon.manifest.format.properties import TURN
from pennon.manifest.format.rows import CommitIdentity
from pennon.manifest.versions.history import history
from pennon.transaction import Committed, strong
from pennon.transaction.staging.staged import Append

if TYPE_CHECKING:
    from collections.abc import Callable

EU, US = {"id": 1, "region": "eu"}, {"id": 5, "region": "us"}
NEW, HERE = {"id": 5, "region": "new"}, {"id": 5, "region": "eu"}
SOME = "region IN ('eu', 'us', 'new')"


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(pennon.create(str(tmp_path / "t"), SCHEMA, ["region"]).location)


def rows(location: str) -> list[tuple[int, str]]:
    found = pennon.open(location).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["region"]) for row in found)


def merge(location: str, *source: dict[str, object]) -> None:
    merging = pennon.open(location).merge(list(source), on="id")
    merging.when_not_matched_insert_all().execute()


def behind_the_look(
    monkeypatch: pytest.MonkeyPatch, others: Callable[[], object]
) -> list[ManifestOutcome]:
    """Let others commit when the next commit has looked; the outcomes of its tries come to be."""
    commit_leaves = manifest_commit.commit_leaves
    tries: list[ManifestOutcome] = []

    def held(*args: Any, **named: Any) -> ManifestOutcome:
        if not tries:
            with monkeypatch.context() as free:
                free.setattr(strong, "commit_leaves", commit_leaves)
                others()
        tries.append(commit_leaves(*args, **named))
        return tries[-1]

    monkeypatch.setattr(strong, "commit_leaves", held)
    return tries


@pytest.mark.parametrize("condition", [None, SOME, "id > 0 OR region IS NOT NULL"])
def test_of_two_overwrites_that_make_different_partitions_one_is_refused(
    location: str, monkeypatch: pytest.MonkeyPatch, condition: str | None
) -> None:
    mine, theirs = pennon.open(location), pennon.open(location)
    behind_the_look(monkeypatch, lambda: theirs.overwrite([NEW], condition))
    with pytest.raises(WriteConflict, match="region=new: a statement that read what this one"):
        mine.overwrite([US], condition)
    assert rows(location) == [(5, "new")]


@pytest.mark.parametrize("condition", [None, SOME])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_key_that_a_merge_adds_and_an_overwrite_is_there_once(
    location: str, monkeypatch: pytest.MonkeyPatch, condition: str | None, *, is_first: bool
) -> None:
    pennon.open(location).append([EU])
    mine, theirs = pennon.open(location), pennon.open(location)
    if is_first:
        behind_the_look(monkeypatch, lambda: merge(location, NEW))
        with pytest.raises(WriteConflict, match="region=new"):
            mine.overwrite([HERE], condition)
        assert rows(location) == [(1, "eu"), (5, "new")]
    else:
        behind_the_look(monkeypatch, lambda: theirs.overwrite([HERE], condition))
        with pytest.raises(WriteConflict, match="region=eu"):
            merge(location, NEW)
        assert rows(location) == [(5, "eu")]


def test_rows_that_a_merge_made_of_deleted_partitions_refuse_their_delete(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found the key of a row that goes and added no second one: it came first, or read less."""
    pennon.open(location).append([EU])
    mine = pennon.open(location)
    behind_the_look(monkeypatch, lambda: merge(location, EU, NEW))
    with pytest.raises(WriteConflict, match="region=new"):
        mine.delete("region IS NOT NULL OR id > 0")
    assert rows(location) == [(1, "eu"), (5, "new")]


@pytest.mark.parametrize("condition", [None, SOME])
def test_rows_that_are_appended_stay_behind_an_overwrite(
    location: str, monkeypatch: pytest.MonkeyPatch, condition: str | None
) -> None:
    """Another statement on other partitions before takes nothing from that."""
    pennon.open(location).append([EU, {"id": 2, "region": None}])
    mine = pennon.open(location)

    def others() -> None:
        if condition is not None:
            pennon.open(location).delete("region IS NULL")
        pennon.open(location).append([NEW])

    behind_the_look(monkeypatch, others)
    mine.overwrite([US], condition)
    assert rows(location) == [(5, "new"), (5, "us")]


@pytest.mark.parametrize(
    ("by", "is_new"), [("day", True), ("day", False), ("bucket(4, day)", True)]
)
def test_overwrites_of_one_partition_each_do_not_come_in_each_others_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str, *, is_new: bool
) -> None:
    days = pa.table({"id": [1, 2], "day": [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]})
    place = str(pennon.create(str(tmp_path / "days"), days.schema, [by]).location)
    if not is_new:
        pennon.open(place).append(days)
    mine, theirs = pennon.open(place), pennon.open(place)
    second = "day = DATE '2026-01-02'"
    tries = behind_the_look(monkeypatch, lambda: theirs.overwrite(days.slice(1), second))
    mine.overwrite(days.slice(0, 1), "day = DATE '2026-01-01'")
    assert [type(attempt) for attempt in tries] == [ManifestCommitted]
    assert sorted(pennon.open(place).scan().to_arrow()["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("value", ["0.0", "-0.0"])
def test_a_number_that_two_partitions_have_is_not_one_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """0.0 = -0.0, and each has a partition of its own."""
    zeros = pa.table({"id": [1, 2], "x": [0.0, -0.0]})
    place = str(pennon.create(str(tmp_path / "zeros"), zeros.schema, ["x"]).location)
    mine, theirs = pennon.open(place), pennon.open(place)
    behind_the_look(monkeypatch, lambda: theirs.overwrite(zeros.slice(1), f"x = {value}"))
    with pytest.raises(WriteConflict):
        mine.overwrite(zeros.slice(0, 1), f"x = {value}")
    assert pennon.open(place).scan().to_arrow()["id"].to_pylist() == [2]


def test_rows_beside_the_condition_leave_its_partition_open(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = pennon.open(location), pennon.open(location)
    behind_the_look(monkeypatch, lambda: theirs.overwrite([NEW], "region = 'new'"))
    with pytest.raises(WriteConflict, match="region=new"):
        mine.overwrite([US], "region = 'new'")
    assert rows(location) == [(5, "new")]


def test_the_first_commit_of_a_spec_is_seen_by_those_who_looked_before(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the specs that there were, the overwrite has every partition of its condition."""
    mine = pennon.open(location)

    def others() -> None:
        pennon.open(location).drop_partition_field("region")
        pennon.open(location).overwrite([HERE], "region = 'eu'")

    behind_the_look(monkeypatch, others)
    with pytest.raises(WriteConflict, match="the only partition: a statement that read"):
        mine.overwrite([HERE], "region = 'eu'")
    assert rows(location) == [(5, "eu")]


def test_a_commit_that_others_always_come_before_gets_its_turn(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes longer from its look to its commit than the others, which never stop."""
    pennon.open(location).append([EU])
    commit_leaves = manifest_commit.commit_leaves
    tries: list[Any] = []
    others: list[Any] = []
    monkeypatch.setattr(turn, "_LASTS_SECONDS", 60)

    def append(number: int) -> object:
        base = Snapshot.open(location)
        changes = {part.object_id: Append((part,)) for part in stage(base, {number: "eu"})}
        identity = CommitIdentity.fresh()  # as another process has it, which waits in no queue
        return strong.commit_strong(base, changes, identity, "append")

    def behind_another(*args: Any, **named: Any) -> ManifestOutcome:
        if threading.current_thread() is threading.main_thread():
            others.append(pool.submit(append, 100 + len(tries)))
            wait(others, timeout=2)
            tries.append(commit_leaves(*args, **named))
            return tries[-1]
        return commit_leaves(*args, **named)

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(strong, "commit_leaves", behind_another)
        pennon.open(location).append([NEW, HERE])
        assert [type(tried) for tried in tries] == [ConcurrentChange] * 3 + [ManifestCommitted]
        assert all(isinstance(other.result(60), Committed) for other in others)
    assert rows(location) == [
        (1, "eu"),
        (5, "eu"),
        (5, "new"),
        *[(number, "eu") for number in range(100, 104)],
    ]
    assert TURN not in Snapshot.open(location).manifest.metadata
    told = [entry.operation for entry in history(location)]
    assert told.count("append") == 6
    assert "alter" not in told[2:]
