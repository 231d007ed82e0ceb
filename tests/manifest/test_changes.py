"""Changes of rows, applied to the rows of the first version, give the rows of every later one."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import (
    ChangeRangeReversed,
    ChangesNotKept,
    ChangesNotPaired,
    SnapshotNotFound,
    UnknownColumn,
    UnsupportedTableChange,
)
from pennon.metadata_tables.changes_table import CHANGES
from pennon.metadata_tables.metadata_table import Selection
from pennon.namespace import PartitionedNamespace

SCHEMA = pa.schema(
    {"id": pa.int64(), "k": pa.string(), "f": pa.float64(), "tags": pa.list_(pa.int8())}
)
Row = tuple[str, ...]


def rows(drawn: random.Random, count: int) -> list[dict[str, object]]:
    return [
        {
            "id": drawn.randrange(30),
            "k": drawn.choice([None, "a", "b"]),
            "f": drawn.choice([None, 0.5, float("nan")]),
            "tags": drawn.choice([None, [], [1, None]]),
        }
        for _ in range(count)
    ]


def counted(table: pa.Table, names: list[str]) -> Counter[Row]:
    return Counter(tuple(repr(row.get(name)) for name in names) for row in table.to_pylist())


def assert_replayed(table: PartitionedNamespace, start: int) -> None:
    """Apply the changes commit by commit, and compare with a scan of each version."""
    names = table.schema.names
    found = table.changes(start)
    state = counted(table.scan(version=start).to_arrow(), names)
    for version in range(start + 1, table.version + 1):
        mine = found.filter(pa.compute.equal(found["_commit_version"], version))
        kinds = mine["_change_type"]
        gone = counted(mine.filter(pa.compute.equal(kinds, "delete")), names)
        come = counted(mine.filter(pa.compute.equal(kinds, "insert")), names)
        assert not gone - state
        assert not gone & come
        state = state - gone + come
        assert state == counted(table.scan(version=version).to_arrow(), names)


@pytest.mark.parametrize("layout", ["partitioned", "plain"])
def test_changes_lead_from_each_version_to_the_next(tmp_path: Path, layout: str) -> None:
    drawn = random.Random(len(layout))  # noqa: S311 - test data
    first = pa.Table.from_pylist(rows(drawn, 40), SCHEMA)
    if layout == "plain":
        lance.write_dataset(first, str(tmp_path / "t"))
        table = pennon.open(tmp_path / "t")
    else:
        table = pennon.create(tmp_path / "t", SCHEMA, ["k"])
        table.append(first)
    start = table.version
    table.delete("id < 5")
    table.append(rows(drawn, 20))
    table.update({"f": 1.5, "k": "'b'"}, "id > 20")
    table.update({"k": "k"})
    if layout == "partitioned":
        table.overwrite_partitions([{"id": 7, "k": "a"}])
        table.add_partition_field("bucket(2, id)")
        table.add_column("more", pa.int32(), default=4)
    merge = table.merge(pa.table({"id": [7, 99], "k": ["b", None]}), "id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    for _ in range(3):
        table.append(rows(drawn, 5))
    if layout == "partitioned":
        before = table.version
        table.maintenance.compact()
        assert table.changes(before).num_rows == 0
        table.maintenance.rollback(start + 1)
    table.overwrite(rows(drawn, 3))
    assert_replayed(table, start)


def test_updates_are_told_by_a_key(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA, ["k"])
    start = table.append([{"id": 1, "k": "a"}, {"id": 2, "k": None}, {"id": 3, "k": "b"}])
    table.create_tag("start")
    merge = table.merge([{"id": 2, "k": "b"}, {"id": 4, "k": "b"}], "id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table.delete("id = 1")
    found = table.changes("start", key=["ID"]).select(["id", "k", "_change_type"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (2, None, "update_preimage"),
        *sorted([(2, "b", "update_postimage"), (4, "b", "insert")]),
        (1, "a", "delete"),
    ]
    table.append([{"id": 3, "k": "a"}])
    table.update({"f": 2.0}, "id = 3")
    with pytest.raises(ChangesNotPaired):
        table.changes(start, key=["id"])
    assert table.changes(start).num_rows == 9
    table.drop_tag("start")
    table.maintenance.expire_snapshots(datetime.now(UTC) + timedelta(minutes=1))
    with pytest.raises(SnapshotNotFound):
        table.changes(start)


def test_commits_of_expired_versions_are_neither_told_as_later_ones_nor_left_out(
    tmp_path: Path,
) -> None:
    """A tag keeps an early version, so that there is one before those that are asked for."""
    table = pennon.create(str(tmp_path / "t"), SCHEMA, partition_by=["k"])
    for number in range(5):
        table.append([{"id": number, "k": "a"}])
        if not number:
            table.create_tag("early")
    first, last = table.version - 4, table.version
    table.maintenance.expire_snapshots(datetime.now(UTC) + timedelta(minutes=1), retain_last=3)

    def told(condition: str) -> list[int]:
        selection = Selection((), (condition,))
        return [
            id_
            for part in CHANGES.rows(table.snapshot, selection)
            for id_ in part["id"].to_pylist()
        ]

    assert told(f"_commit_version > {last - 1}") == [4]
    assert told(f"_commit_version > {last}") == []
    assert sorted(told(f"_commit_version > {first}")) == [1, 2, 3, 4]
    with pytest.raises(SnapshotNotFound):
        told(f"_commit_version >= {last - 2}")


def test_versions_that_hold_no_rows_tell_no_changes(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA, properties={"transaction": "weak"})
    table.append([{"id": 1}])
    with pytest.raises(ChangesNotKept):
        table.changes(table.version - 1)


def test_a_column_that_needs_a_value_leaves_the_changes_as_they_are(tmp_path: Path) -> None:
    """Writers were kept away before the first row; afterwards the statement is refused at once."""
    table = pennon.create(tmp_path / "t", SCHEMA, partition_by=["k"])
    first = table.version
    table.add_column("n", pa.int32(), nullable=False)
    last = table.append([{"id": 1, "k": "a", "n": 5}])
    with pytest.raises(UnsupportedTableChange, match="rows that are stored already"):
        table.add_column("m", pa.int32(), nullable=False)
    assert table.refresh().version == last
    assert table.changes(first)["n"].to_pylist() == [5]


def test_partitions_that_are_read_at_a_branch_tell_no_changes(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA, partition_by=["k"])
    table.append([{"id": 1, "k": "a"}])
    table.append([{"id": 2, "k": "a"}])
    (place,) = table.snapshot.leaves().table["location"].to_pylist()
    lance.dataset(f"{table.location}/{place}").create_branch("late")
    manifest = lance.dataset(f"{table.location}/__manifest")
    manifest.add_columns([pa.field("read_branch", pa.utf8())])
    changed = {"read_branch": "'late'", "read_version": "NULL"}
    manifest.update(changed, where=f"location = '{place}'")
    version = table.version
    assert table.refresh().version > version
    with pytest.raises(ChangesNotKept):
        table.changes(version)


def test_a_column_of_the_feeds_own_name_is_refused(tmp_path: Path) -> None:
    table = pennon.create(str(tmp_path / "t"), pa.schema({"_change_type": pa.string()}))
    version = table.append([{"_change_type": "a"}])
    with pytest.raises(UnsupportedTableChange, match=r"read the changes of table .*_change_type"):
        table.changes(version - 1)


def test_a_range_that_runs_backwards_and_a_key_that_is_not_there_are_refused(
    tmp_path: Path,
) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA, ["k"])
    first = table.append([{"id": 1}])
    last = table.append([{"id": 2}])
    with pytest.raises(ChangeRangeReversed, match=f"version {last} to version {first}"):
        table.changes(last, first)
    with pytest.raises(UnknownColumn, match="column absent: the table has id, k, f, tags"):
        table.changes(first, key=["absent"])
