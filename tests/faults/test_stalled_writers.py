"""A writer that stands still at any step of its commit, while others commit, compact and expire."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.torture import pauses
from tests.torture.stalled_writer import SCHEMA, OtherProcess, Statement, stalled_at_each_step

import pennon
from pennon.catalog.configured_catalog import WriteMode
from pennon.catalog.layouts.partitioned_table import PartitionedTable
from pennon.leaf import WriteTarget, write_partitions
from pennon.maintenance.adopt import adopt
from pennon.maintenance.expire import expire
from pennon.manifest import Snapshot
from pennon.manifest.format.rows import CommitIdentity

ROWS = pa.Table.from_pylist([{"id": at, "part": at % 2, "v": 0} for at in range(6)], SCHEMA)
NEW = pa.Table.from_pylist([{"id": 99, "part": 0, "v": 1}, {"id": 98, "part": 7, "v": 1}], SCHEMA)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def others() -> Iterator[OtherProcess]:
    with OtherProcess() as process:
        yield process


def same(ids: set[int]) -> set[int]:
    return ids


def without_0(ids: set[int]) -> set[int]:
    return ids - {0}


def with_new(ids: set[int]) -> set[int]:
    return ids | {98, 99}


def expire_all(place: str) -> object:
    return expire(place, older_than=datetime.now(UTC) + timedelta(minutes=1), retain_last=1)


def roll_back(place: str) -> object:
    table = pennon.open(place)
    before = table.version
    table.append(NEW)
    return table.maintenance.rollback(before)


def commit_of_spark(epoch: int | None) -> Statement:
    """What Spark's driver asks its worker for, twice, as where the first answer is lost."""

    def commit(place: str) -> None:
        snapshot = Snapshot.open(place)
        target = WriteTarget(place, snapshot.version, 1)
        staged = [part.to_json() for part in write_partitions(NEW.to_batches(), target)]
        identity = CommitIdentity("q", epoch=epoch)
        for _ in range(2):
            table = PartitionedTable("t", snapshot)
            table.commit(WriteMode.APPEND, [], staged, identity)

    return commit


def adopt_dataset(place: str) -> None:
    source = f"{place}-{next(_numbers)}.lance"
    lance.write_dataset(NEW.slice(1), source)
    adopt(Snapshot.open(place), source, {"part": "7"}, move=True)


STATEMENTS: dict[str, tuple[Statement, Callable[[set[int]], set[int]]]] = {
    "append": (lambda place: pennon.open(place).append(NEW), with_new),
    "overwrite": (lambda place: pennon.open(place).overwrite(NEW), lambda _: {98, 99}),
    "delete": (lambda place: pennon.open(place).delete("id = 0"), without_0),
    "delete a partition": (
        lambda place: pennon.open(place).delete("part = 1"),
        lambda ids: {at for at in ids if at % 2 == 0},
    ),
    "update": (lambda place: pennon.open(place).update({"v": "v + 1"}, where="id < 3"), same),
    "merge": (
        lambda place: pennon.open(place).merge(NEW, "id").when_not_matched_insert_all().execute(),
        with_new,
    ),
    "compact": (lambda place: pennon.open(place).maintenance.compact(), same),
    "expire": (expire_all, same),
    "append of spark": (commit_of_spark(None), with_new),
    "append of a stream": (commit_of_spark(3), with_new),
    "adopt": (adopt_dataset, lambda ids: ids | {98}),
    "tag": (lambda place: pennon.open(place).create_tag("t"), same),
    "column": (lambda place: pennon.open(place).add_column("more", pa.int64()), same),
    "field": (lambda place: pennon.open(place).add_partition_field("bucket(2, id)"), same),
    "rewrite": (lambda place: pennon.open(place).maintenance.rewrite_partitions(), same),
    "weak": (lambda place: pennon.open(place).maintenance.set_transaction_mode("weak"), same),
    "index": (lambda place: pennon.open(place).create_index("id", "BTREE", min_bytes=0), same),
    "analyze": (lambda place: pennon.open(place).maintenance.analyze(), same),
}
AT_LENGTH = pytest.mark.skipif(
    not os.environ.get("PENNON_EXHAUSTIVE"), reason="two minutes: part of `make torture-pauses`"
)
IN_SHORT = ("append", "merge", "delete a partition", "compact", "expire")


def make(folder: Path, layout: str) -> str:
    place = str(folder / f"t{next(_numbers)}")
    if layout == "plain":
        for at in range(0, 6, 2):
            lance.write_dataset(ROWS.slice(at, 2), place, mode="append" if at else "create")
        return place
    table = pennon.create(place, SCHEMA, ["part"])
    if layout == "weak":
        table.maintenance.set_transaction_mode("weak")
    for at in range(0, 6, 2):
        pennon.open(place).append(ROWS.slice(at, 2))
    return place


@pytest.mark.parametrize("statement", IN_SHORT)
def test_a_writer_that_stands_still_loses_nothing_and_doubles_nothing(
    tmp_path: Path, others: OtherProcess, statement: str
) -> None:
    run, expected = STATEMENTS[statement]
    assert stalled_at_each_step(lambda: make(tmp_path, "strong"), run, expected, others) == []


@AT_LENGTH
@pytest.mark.parametrize("statement", sorted(set(STATEMENTS) - set(IN_SHORT)))
def test_so_does_every_other_statement(
    tmp_path: Path, others: OtherProcess, statement: str
) -> None:
    run, expected = STATEMENTS[statement]
    assert stalled_at_each_step(lambda: make(tmp_path, "strong"), run, expected, others) == []


@AT_LENGTH
@pytest.mark.parametrize("layout", ["weak", "plain"])
@pytest.mark.parametrize("statement", ["append", "delete", "update", "compact", "expire"])
def test_so_does_one_of_a_table_whose_leaves_are_committed_to_by_lance(
    tmp_path: Path, others: OtherProcess, statement: str, layout: str
) -> None:
    run, expected = STATEMENTS[statement]
    assert stalled_at_each_step(lambda: make(tmp_path, layout), run, expected, others) == []


def test_writers_that_are_stopped_at_random_lose_nothing() -> None:
    assert pauses.main(["--seconds", "4", "--seed", "7"]) == 0
