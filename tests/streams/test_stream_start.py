"""Where a stream begins: at a version or a time, which may have expired or be to come."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.streams.follower import Follower

import pennon
from pennon.errors import StreamOptionRefused
from pennon.streams import StreamOptions

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema({"id": pa.int64(), "k": pa.int32()})


def append(table: pennon.PartitionedNamespace, *ids: int) -> None:
    """Add rows, one commit each."""
    for id_ in ids:
        table.append([{"id": id_, "k": id_ % 3}])


@pytest.fixture
def table(tmp_path: Path) -> pennon.PartitionedNamespace:
    """Five rows, each in a version of its own."""
    made = pennon.create(
        str(tmp_path / "t"), SCHEMA, ["k"], properties={"write.compaction.enabled": "false"}
    )
    append(made, 1, 2, 3, 4, 5)
    return made


def starting(**options: str) -> StreamOptions:
    return StreamOptions.of(options, "t")


def versions(table: pennon.PartitionedNamespace) -> dict[int, dt.datetime]:
    return {entry.version: entry.committed_at for entry in table.history()}


def test_a_first_version_that_cannot_be_compared_is_refused_by_its_own_number(
    table: pennon.PartitionedNamespace,
) -> None:
    newest = max(versions(table))
    table.maintenance.expire_snapshots(dt.datetime.now(dt.UTC), retain_last=3)
    oldest = newest - 2
    expired = rf"startingVersion = '{oldest}'.*version {oldest - 1} has expired"
    with pytest.raises(StreamOptionRefused, match=rf"{expired}.*Write {oldest + 1} or later"):
        Follower(table.location, starting(startingVersion=str(oldest)))
    assert Follower(table.location, starting(startingVersion=str(oldest + 1))).read() == [4, 5]
    whole = Follower(table.location, starting(startingVersion="1"))
    assert sorted(whole.read()) == [1, 2, 3, 4, 5]


def test_a_first_version_is_counted_from_behind_those_that_a_tag_keeps(
    table: pennon.PartitionedNamespace,
) -> None:
    newest = max(versions(table))
    table.create_tag("kept", newest - 4)
    table.maintenance.expire_snapshots(dt.datetime.now(dt.UTC), retain_last=2)
    with pytest.raises(StreamOptionRefused, match=f"Write {newest} or later"):
        Follower(table.location, starting(startingVersion=str(newest - 1)))


def test_a_first_version_that_is_to_come_is_the_next_one(
    table: pennon.PartitionedNamespace,
) -> None:
    newest = max(versions(table))
    with pytest.raises(
        StreamOptionRefused, match=f"newest version is {newest}. Write {newest + 1}, or latest"
    ):
        Follower(table.location, starting(startingVersion="1000"))
    follower = Follower(table.location, starting(startingVersion=str(newest + 1)))
    append(table, 6)
    assert follower.read() == [6]


def test_a_time_whose_versions_have_expired_is_refused(
    table: pennon.PartitionedNamespace,
) -> None:
    times = versions(table)
    newest = max(times)
    table.create_tag("kept", newest - 4)
    table.maintenance.expire_snapshots(dt.datetime.now(dt.UTC), retain_last=2)
    for moment in ("2000-01-01", times[newest - 3].isoformat(), times[newest - 1].isoformat()):
        with pytest.raises(StreamOptionRefused, match="versions of that time have expired") as told:
            Follower(table.location, starting(startingTimestamp=moment))
        assert f"Write {times[newest].isoformat(sep=' ')} or later" in str(told.value)
    latest = starting(startingTimestamp=times[newest].isoformat(sep=" "))
    assert Follower(table.location, latest).read() == [5]


def test_rows_of_commits_before_the_stated_time_are_never_read(
    table: pennon.PartitionedNamespace,
) -> None:
    begins = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=4)
    follower = Follower(table.location, starting(startingTimestamp=begins.isoformat()))
    append(table, 6, 7)
    table.delete("id = 1")
    assert follower.read() == []
    follower = follower.again()
    append(table, 8)
    # With its checkpoint a stream begins where it was, whatever the option says by now.
    follower.options = starting(startingTimestamp="2099-01-01")
    time.sleep(max(0, (begins - dt.datetime.now(dt.UTC)).total_seconds()))
    append(table, 9)
    assert follower.read() == [9]
    follower = follower.again()
    assert follower.position.awaited is None
    append(table, 10)
    assert follower.read() == [10]


def test_a_stream_that_waits_for_its_time_keeps_its_place_in_the_checkpoint(
    table: pennon.PartitionedNamespace,
) -> None:
    options = starting(startingTimestamp="2099-01-01", maxVersionsPerTrigger="1")
    follower = Follower(table.location, options)
    assert follower.end() == follower.position
    append(table, 6, 7)
    places = [follower.position.version]
    for _ in range(2):
        assert follower.read() == []
        follower = follower.again()
        places.append(follower.position.version)
    assert places == [places[0], places[0] + 1, places[0] + 2]
