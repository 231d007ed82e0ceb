"""Tags that others move, make and drop while versions expire, and what a killed expiry leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.separate_process import run_script

import pennon
from pennon.errors import RollbackRefused, SnapshotNotFound, TagRefused
from pennon.manifest.format import properties as running_process
from pennon.manifest.table_layout import TableLayout
from pennon.manifest.versions import tags
from pennon.manifest.versions import tags as expiry_notice
from pennon.manifest.versions import tags as set_tag
from pennon.namespace import PartitionedNamespace

pytestmark = pytest.mark.usefixtures("without_grace")
SHORT = timedelta(milliseconds=1)


def later() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=1)


@pytest.fixture(params=["partitioned", "plain"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A table of five versions, with one row more in each."""
    location = tmp_path / "t"
    rows = [{"id": number} for number in range(4)]
    if request.param == "plain":
        for row in rows:
            lance.write_dataset(pa.Table.from_pylist([row]), location, mode="append")
    else:
        table = pennon.create(location, pa.schema({"id": pa.int64()}))
        for row in rows:
            table.append([row])
    return str(location)


def tagged(place: str) -> dict[str, int]:
    return {name: tag.version for name, tag in pennon.open(place).tags().items()}


def overdue(place: str) -> None:
    pennon.open(place).create_tag("q1", version=2, retain=SHORT)
    time.sleep(0.01)


def before_first(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]):
    """Do something once, before the first call of a function."""
    real = getattr(owner, name)
    steps = [act]

    def interrupted(*arguments: Any, **named: Any) -> Any:
        if steps:
            steps.pop()()
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, interrupted)


def move(place: str) -> int:
    table = pennon.open(place)
    return table.create_tag("q1", version=3, replace=True, retain=timedelta(days=30))


def test_a_tag_that_is_moved_while_versions_expire_holds_its_new_version(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    overdue(place)
    expected = pennon.open(place, 3).scan().to_arrow()
    before_first(monkeypatch, expiry_notice, "expiring_name", lambda: move(place))
    done = pennon.open(place).maintenance.expire_snapshots(later())
    assert done.tags == []
    assert tagged(place) == {"q1": 3}
    assert 2 in done.versions
    assert 3 not in done.versions
    assert pennon.open(place, "q1").scan().to_arrow().equals(expected)


def test_a_tag_that_is_moved_as_it_is_dropped_is_made_again(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expiry has looked at it for the last time, and drops it by its name."""
    overdue(place)
    with ThreadPoolExecutor(1) as pool:
        moves: list[Future[int]] = []

        def moved() -> None:
            moves.append(pool.submit(move, place))
            while tagged(place)["q1"] != 3:
                time.sleep(0.01)

        before_first(monkeypatch, tags, "drop_tag", moved)
        done = pennon.open(place).maintenance.expire_snapshots(retain_last=100)
        assert (done.tags, moves[0].result(60)) == (["q1"], 3)
    (tag,) = pennon.open(place).tags().values()
    assert (tag.name, tag.version, tag.retain) == ("q1", 3, timedelta(days=30))


def test_a_tag_that_is_dropped_before_it_is_told_how_long_it_holds_is_made_again(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pennon.open(place)
    drop = partial(table.snapshot.manifest.tags.delete, "q1")
    before_first(monkeypatch, tags, "stated_retention", drop)
    assert table.create_tag("q1", retain=timedelta(days=30)) == table.version
    (tag,) = pennon.open(place).tags().values()
    assert (tag.name, tag.retain) == ("q1", timedelta(days=30))


def test_a_tag_that_another_expiry_drops_first_is_no_error(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    overdue(place)
    other = pennon.open(place).maintenance

    def drop_first() -> None:
        assert other.expire_snapshots(retain_last=100).tags == ["q1"]

    before_first(monkeypatch, tags, "drop_tag", drop_first)
    done = pennon.open(place).maintenance.expire_snapshots(retain_last=100)
    assert (done.tags, done.versions, tagged(place)) == ([], [], {})


def test_a_dry_run_tells_which_tags_and_versions_would_go_and_drops_none(place: str) -> None:
    overdue(place)
    told = pennon.open(place).maintenance.expire_snapshots(later(), dry_run=True)
    assert (told.tags, tagged(place)) == (["q1"], {"q1": 2})
    done = pennon.open(place).maintenance.expire_snapshots(later())
    assert (done.tags, done.versions) == (told.tags, told.versions)


KILLED = """
import datetime as dt, os, sys
import lance
import pennon
from pennon.maintenance import expire

expire.writer_grace = lambda _: dt.timedelta(0)
lance.LanceDataset.cleanup_old_versions = lambda *_, **__: os._exit(0)
later = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1)
pennon.open(sys.argv[1]).maintenance.expire_snapshots(later)
"""


def test_what_a_killed_expiry_announced_keeps_nobody_waiting(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_script(KILLED, place)
    assert all(tag.is_of_expiry for tag in pennon.open(place).tags().values())
    assert len(tagged(place)) == 1
    monkeypatch.setattr(expiry_notice, "_WAITS_SECONDS", 0)
    table = pennon.open(place)
    there = 2 if table.snapshot.layout is TableLayout.PLAIN else table.version - 1
    if there > 2:  # what is announced of a partitioned table has expired
        with pytest.raises(SnapshotNotFound):
            table.create_tag("there", version=2)
    else:
        table.create_tag("there", version=there)
        assert tagged(place) == {"there": there}


def test_the_next_expiry_drops_what_a_killed_one_announced(place: str) -> None:
    run_script(KILLED, place)
    (notice,) = tagged(place)
    assert pennon.open(place).maintenance.expire_snapshots(retain_last=100).tags == [notice]
    assert tagged(place) == {}


def test_an_expiry_of_another_machine_is_waited_for_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table: PartitionedNamespace = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64()}))
    for number in range(3):
        table.append([{"id": number}])
    manifest = pennon.open(table.location).snapshot.manifest
    monkeypatch.setattr(expiry_notice, "_WAITS_SECONDS", 0)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(running_process, "_machine", lambda: "0123456789abcdef")
        expiry = expiry_notice.expiring(manifest, 4, table="t")
        expiry.__enter__()
    (notice,) = table.tags()
    why = f"versions before 4 are being expired at this moment, as its tag {notice} says since 20"
    with pytest.raises(TagRefused, match=why):
        table.create_tag("old", version=2)
    with pytest.raises(RollbackRefused, match=why):
        table.maintenance.rollback(2)
    assert list(table.tags()) == [notice]
    table.create_tag("newest", version=4)
    expiry.__exit__(None, None, None)
    table.create_tag("old", version=2)
    assert list(table.tags()) == ["newest", "old"]


def test_a_tag_that_others_drop_each_time_is_refused(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = vars(set_tag)["wait_for_expiry"]

    def dropped(dataset: lance.LanceDataset, *arguments: Any, **named: Any) -> object:
        dataset.checkout_version(dataset.version).tags.delete("q1")
        return real(dataset, *arguments, **named)

    monkeypatch.setattr(set_tag, "wait_for_expiry", dropped)
    with pytest.raises(TagRefused, match="another process drops it each time"):
        pennon.open(place).create_tag("q1")
