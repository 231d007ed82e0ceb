"""The batches of a stream over a table that lives: each added row once, nothing that only moved."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.streams.follower import ALL, Follower

import pennon
from pennon.errors import (
    MalformedMessage,
    StreamColumnsChanged,
    StreamOptionRefused,
    StreamPositionExpired,
    StreamSourceChanged,
    StreamSourceRefused,
)
from pennon.manifest import Snapshot
from pennon.streams import StreamOptions, StreamPosition, batch_end, planned_batch

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema({"id": pa.int64(), "k": pa.int32()})


def make(tmp_path: Path, **properties: str) -> pennon.PartitionedNamespace:
    return pennon.create(
        str(tmp_path / "t"),
        SCHEMA,
        ["k"],
        properties={"write.compaction.enabled": "false", **properties},
    )


def rows_of(*ids: int) -> list[dict[str, object]]:
    return [{"id": id_, "k": id_ % 3} for id_ in ids]


@pytest.mark.parametrize("seed", range(4))
def test_every_row_comes_once_beside_upkeep_and_evolution(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - test data
    table = make(tmp_path)
    table.append(rows_of(*range(10)))
    follower = Follower(table.location)
    highest = 10
    for step in range(24):
        match chance.choice(["append", "append", "append", "compact", "alter", "spec", "read"]):
            case "append":
                count = chance.randint(1, 6)
                table.append(rows_of(*range(highest, highest + count)))
                highest += count
            case "compact":
                table.maintenance.compact()
            case "alter":
                table.add_column(f"c{step}", pa.int64(), default=chance.choice([None, 7]))
            case "spec":
                table.add_partition_field(f"bucket({step + 2}, id)", f"b{step}")
                table.maintenance.rewrite_partitions()
            case _:
                follower.read()
    follower.read()
    assert sorted(follower.ids) == list(range(highest))


def test_a_batch_is_the_same_however_often_it_is_planned(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(rows_of(1, 2))
    follower = Follower(table.location)
    follower.read()
    table.append(rows_of(3))
    again = Follower(table.location)
    again.position = follower.position
    end = batch_end(Snapshot.open(table.location), follower.position, ALL)
    table.append(rows_of(4))
    plan = [
        planned_batch(again.began, again.position, end, ALL, num_tasks=1, max_bytes=1 << 20)[0]
        for _ in range(2)
    ]
    assert plan[0] == plan[1]
    assert plan[0].num_rows == 1
    assert sorted(again.read()) == [3, 4]


def test_changed_rows_are_told_with_what_changed_them(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(rows_of(1, 2, 3, 4))
    follower = Follower(table.location)
    skipping = Follower(table.location, StreamOptions(skips_changes=True))
    follower.read()
    skipping.read()
    table.delete("id = 4")
    with pytest.raises(StreamSourceChanged, match="its delete removed or changed rows"):
        follower.read()
    table.append(rows_of(5))
    assert skipping.read() == [5]


def test_a_stream_that_paused_too_long_is_told_so(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(rows_of(1))
    follower = Follower(table.location)
    follower.read()
    for id_ in range(2, 6):
        table.append(rows_of(id_))
    table.maintenance.expire_snapshots(dt.datetime.now(dt.UTC), retain_last=1)
    with pytest.raises(StreamPositionExpired, match="Start anew with another checkpoint"):
        follower.read()


def test_columns_that_are_other_ones_are_told(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(rows_of(1))
    follower = Follower(table.location)
    follower.read()
    table.alter_column("k", type=pa.int64())
    table.append(rows_of(2))
    with pytest.raises(StreamColumnsChanged, match=r"column k is int64 by now.*Start the stream"):
        follower.read()
    assert follower.again().read() == [2]
    assert Follower(table.location).read() == [1, 2]


def test_an_unfinished_batch_is_read_in_columns_that_came_since(tmp_path: Path) -> None:
    """It ends before the version that the stream begins at when it is started again."""
    table = pennon.create(
        str(tmp_path / "t"), SCHEMA.append(pa.field("s", pa.struct({"a": pa.int32()}))), ["k"]
    )
    table.append([{"id": 1, "k": 1, "s": {"a": 1}}])
    follower = Follower(table.location)
    first = follower.end()
    follower.read()
    table.append([{"id": 2, "k": 1, "s": {"a": 2}}])
    end = follower.end()
    table.add_column("more", pa.utf8())
    table.add_column("s.b", pa.utf8())
    table.alter_column("k", type=pa.int64())
    table.alter_column("s.a", type=pa.int64())
    assert follower.again().read(end) == [2]
    assert Follower(table.location).read(first) == [1]


def test_a_column_that_was_dropped_ends_a_stream_and_not_one_that_is_started_again(
    tmp_path: Path,
) -> None:
    table = make(tmp_path)
    table.add_column("more", pa.utf8())
    table.append(rows_of(1))
    follower = Follower(table.location)
    follower.read()
    table.append(rows_of(2))
    end = follower.end()
    table.drop_column("more")
    with pytest.raises(StreamColumnsChanged, match="column more was dropped"):
        follower.read()
    assert follower.again().read(end) == [2]


def test_a_table_that_names_no_versions_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path, transaction="weak")
    with pytest.raises(StreamSourceRefused, match="leaves open at which versions"):
        Follower(table.location)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"startingVersion": "first"}, "a whole number from 1 on"),
        ({"startingVersion": "3", "startingTimestamp": "2025-01-01"}, "Leave one of them out"),
        ({"startingTimestamp": "noon"}, "it is no time"),
        ({"skipChangeCommits": "yes"}, "Write true or false"),
        ({"maxVersionsPerTrigger": "0"}, "one version at least"),
        ({"ignoreDeletes": "true"}, "Write skipChangeCommits"),
        ({"stream-from-timestamp": "1"}, "Write startingTimestamp"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(StreamOptionRefused, match=why):
        StreamOptions.of(options, "lance.shop.orders")


def test_a_stream_begins_at_the_time_that_is_stated(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(rows_of(1))
    table.append(rows_of(2))
    second = table.history()[-1].committed_at.isoformat()
    options = StreamOptions.of({"startingTimestamp": second}, "t")
    assert Follower(table.location, options).read() == [2]
    early = StreamOptions.of({"startingTimestamp": "2000-01-01"}, "t", "Asia/Tokyo")
    assert sorted(Follower(table.location, early).read()) == [1, 2]


def test_the_position_of_another_source_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="that of another source"):
        StreamPosition.from_json('{"seqNum": 3}')
