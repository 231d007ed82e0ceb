"""Whole partitions are overwritten and deleted; what would divide one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from tests.present import present
from tests.transaction.lake import SCHEMA, append, latest, make, read, regions, stage

import pennon
from pennon.catalog.layouts.stored_table import (
    overlapped_partitions,
    replace_rows,
    whole_partitions,
)
from pennon.errors import NotWholePartitions, OverlapsOlderPartition, WriteConflict
from pennon.manifest import Snapshot, change_root, create
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.transaction import Committed, Conflicted, Transaction
from pennon.transaction.concurrency.conflicts import ROWS_CHANGED
from pennon.transforms.identity import Identity


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    return append(make(tmp_path), {1: "eu", 2: "us", 3: None, 4: "eu"})


def overwritten(snapshot: Snapshot, rows: Mapping[int, str | None], *predicates: str) -> Snapshot:
    transaction = Transaction(snapshot)
    whole = whole_partitions(snapshot, "t", predicates, action="overwrite")
    replace_rows(transaction, stage(snapshot, rows), whole)
    outcome = transaction.commit()
    assert isinstance(outcome, Committed)
    return outcome.snapshot


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        ((), {"eu": [9], "asia": [8]}),
        (("`region` <=> 'eu'",), {"eu": [9], "us": [2], None: [3], "asia": [8]}),
        (("`region` IS NULL",), {"eu": [1, 4, 9], "us": [2], "asia": [8]}),
        (("`region` > 'f'",), {"eu": [1, 4, 9], None: [3], "asia": [8]}),
        (("`region` = 'eu'", "FALSE"), {"eu": [1, 4, 9], "us": [2], None: [3], "asia": [8]}),
        (("NOT (`region` <=> 'us')",), {"us": [2], "eu": [9], "asia": [8]}),
    ],
)
def test_an_overwrite_takes_the_partitions_of_its_condition(
    base: Snapshot, predicates: tuple[str, ...], expected: dict[str | None, list[int]]
) -> None:
    assert regions(overwritten(base, {9: "eu", 8: "asia"}, *predicates)) == expected
    assert regions(base) == {"eu": [1, 4], "us": [2], None: [3]}


@pytest.mark.parametrize("is_append", [False, True])
def test_rows_that_come_to_a_new_partition_meanwhile_refuse_its_overwrite(
    base: Snapshot, *, is_append: bool
) -> None:
    """Two overwrites of a partition that was not there left the rows of both."""
    mine, theirs = Transaction(base), Transaction(base)
    replace_rows(mine, stage(base, {9: "asia"}), ())
    if is_append:
        theirs.append(stage(base, {8: "asia"}))
    else:
        replace_rows(theirs, stage(base, {8: "asia"}), ())
    assert isinstance(theirs.commit(), Committed)
    assert mine.commit() == Conflicted("region=asia", ROWS_CHANGED)
    assert regions(latest(base))["asia"] == [8]


@pytest.mark.parametrize("condition", [None, "region IN ('eu', 'new')"])
def test_a_key_that_a_merge_moved_meanwhile_is_not_there_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str | None
) -> None:
    """The overwrite takes no partition that was made since; the merge has read what it takes."""
    table = pennon.create(str(tmp_path / "t"), SCHEMA, ["region"])
    table.append([{"id": 1, "region": "eu"}])
    commit = Transaction.commit

    def behind_others(transaction: Transaction) -> object:
        monkeypatch.setattr(Transaction, "commit", commit)
        theirs = pennon.open(table.location)
        theirs.append([{"id": 9, "region": "appended"}])
        rows = [{"id": 5, "region": "new"}]
        theirs.merge(rows, on="id").when_not_matched_insert_all().execute()
        return commit(transaction)

    ours = pennon.open(table.location)
    monkeypatch.setattr(Transaction, "commit", behind_others)
    with pytest.raises(WriteConflict, match="region=(new|appended): a statement that read"):
        ours.overwrite([{"id": 5, "region": "eu"}], condition)
    assert sorted(pennon.open(table.location).scan().to_arrow()["id"].to_pylist()) == [1, 5, 9]
    ours = pennon.open(table.location)
    ours.overwrite([{"id": 5, "region": "eu"}], condition)
    left = pennon.open(table.location).scan().to_arrow()["id"].to_pylist()
    assert sorted(left) == ([5] if condition is None else [5, 9])


def test_rows_beside_the_condition_take_none_away_in_weak_mode(tmp_path: Path) -> None:
    """Another writer makes the partition meanwhile, and the condition is not about it."""
    base = append(make(tmp_path, strong=False), {1: "eu"})
    transaction = Transaction(base)
    whole = whole_partitions(base, "t", ["`region` = 'eu'"], action="overwrite")
    replace_rows(transaction, stage(base, {9: "asia", 8: "eu"}), whole)
    append(base, {7: "asia"})
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [8], "asia": [7, 9]}


@pytest.mark.parametrize("predicate", ["`id` = 1", "`region` = 'eu' AND `id` > 0", "rand() < 1"])
def test_a_condition_that_divides_a_partition_is_refused(base: Snapshot, predicate: str) -> None:
    with pytest.raises(NotWholePartitions, match=r"by region\.") as caught:
        whole_partitions(base, "lance.t", [predicate], action="delete")
    assert "region=" in caught.value.parameters["partition"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # the older spec is finer: its partitions go as wholes
        (("region", "id"), ("region",), {2, 9}),
        (("id", "region"), ("region",), {2, 9}),
        # fields that come back under their ids mean the same
        (("region",), ("region",), {2, 9}),
    ],
)
def test_a_dynamic_overwrite_replaces_the_rows_of_older_specs(
    tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...], expected: set[int]
) -> None:
    snapshot = two_specs(tmp_path, first, second, {1: "eu", 2: "us", 4: "eu"})
    staged = stage(snapshot, {9: "eu"})
    transaction = Transaction(snapshot)
    gone = [*(part.object_id for part in staged), *overlapped_partitions(snapshot, "t", staged)]
    replace_rows(transaction, staged, gone)
    assert isinstance(transaction.commit(), Committed)
    assert {row["id"] for row in read(latest(snapshot))} == expected


def test_a_dynamic_overwrite_replaces_older_partitions_of_its_tuples_alone(tmp_path: Path) -> None:
    """Each value of the rows stands in another tuple, too, whose partition stays."""
    before = [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (None, "a"), (None, None)]
    written = [(1, "b"), (2, "a"), (None, None)]
    schema = pa.schema({"k": pa.int64(), "s": pa.string(), "n": pa.int64()})
    table = pennon.create(tmp_path / "t", schema, ["k", "s", "n"])
    table.append([{"k": k, "s": s, "n": 0} for k, s in before])
    table.drop_partition_field("n")
    table.overwrite_partitions([{"k": k, "s": s, "n": 9} for k, s in written])
    rows = {(row["k"], row["s"]): row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert rows == {values: 9 if values in written else 0 for values in before}


@pytest.mark.parametrize(("first", "second"), [(("region",), ("region", "id")), ((), ("region",))])
def test_a_dynamic_overwrite_of_a_part_of_an_older_partition_is_refused(
    tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    snapshot = two_specs(tmp_path, first, second, {1: "eu"})
    with pytest.raises(OverlapsOlderPartition, match="of spec version 1"):
        overlapped_partitions(snapshot, "t", stage(snapshot, {1: "eu"}))
    if first:
        assert overlapped_partitions(snapshot, "t", stage(snapshot, {1: "us"})) == ()


def test_partitions_of_days_that_python_does_not_have_are_refused_and_replaced(
    tmp_path: Path,
) -> None:
    """Dates go beyond the year 9999, and nothing that compares or names partitions may fail."""
    numbers = pa.array([4_000_000, 5_000_000], pa.int32())
    rows = pa.table({"id": [1, 2], "day": numbers.cast(pa.date32())})
    table = pennon.create(str(tmp_path / "late"), rows.schema, ["day"])
    table.append(rows)
    with pytest.raises(NotWholePartitions, match=r"partition day=\d{5}-\d\d-\d\d may hold both"):
        table.overwrite(rows, "id = 1")
    table.add_partition_field("bucket(4, id)")
    with pytest.raises(OverlapsOlderPartition, match="partition day=12921-08-18 of spec version 1"):
        table.overwrite_partitions(rows.slice(0, 1))
    table.drop_partition_field("bucket(4, id)")
    table.overwrite_partitions(pa.table({"id": [9], "day": rows["day"].slice(0, 1)}))
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [2, 9]


def two_specs(
    folder: Path, first: tuple[str, ...], second: tuple[str, ...], rows: dict[int, str]
) -> Snapshot:
    """A namespace whose rows are under the first spec and whose current spec is the second."""
    schema = NamespaceSchema.with_fresh_ids(SCHEMA)
    made = create(str(folder / "ns"), schema, PartitionSpec(1, fields_of(schema, first)))
    append(made, rows)
    change_root(latest(made), spec=PartitionSpec(2, fields_of(schema, second)))
    return latest(made)


def fields_of(schema: NamespaceSchema, names: tuple[str, ...]) -> tuple[PartitionField, ...]:
    columns = [present(schema.field_by_path([name])) for name in names]
    return tuple(
        PartitionField(column.field.name, (column.id,), Identity(), None, column.field.type)
        for column in columns
    )
