"""Strong mode: one commit over many partitions, and every one of them readable by Lance alone."""

from __future__ import annotations

import datetime as dt
import re
import threading
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from sqlglot import parse_one
from tests.transaction.lake import append, latest, make, read, regions, stage

import pennon
from pennon.errors import (
    InternalError,
    LeafFolderTaken,
    LeafMissing,
    LeafSchemaMismatch,
    PartitionValueOverflow,
    StorageFailure,
    WriteConflict,
)
from pennon.leaf.write.leaf_commit import append_fragments
from pennon.maintenance.vacuum import vacuum
from pennon.manifest import Snapshot, change_root
from pennon.transaction import Committed, Conflicted, Transaction
from pennon.transaction.staging import leaf_preparation


@pytest.mark.spec("Physical Layout and Naming 6", "Partitioned Namespace 2")
def test_rows_of_every_type_come_back_through_lance_alone(tmp_path):
    moment = dt.datetime(1582, 10, 4, 1, 2, 3, 4)  # noqa: DTZ001
    rows = pa.record_batch(
        {
            "k": pa.array(["a", "b", None, "a"]),
            "b": pa.array([True, None, False, None]),
            "i": pa.array([1, None, -(2**31), 2], pa.int32()),
            "f": pa.array([float("-inf"), None, -0.0, 1.5], pa.float32()),
            "d": pa.array([Decimal("1.25"), None, Decimal("-9.99"), None], pa.decimal128(12, 2)),
            "t": pa.array([moment, None, moment, None], pa.timestamp("us")),
            "z": pa.array([moment.replace(tzinfo=dt.UTC)] * 4, pa.timestamp("us", "UTC")),
            "day": pa.array([dt.date(1, 1, 1), None, None, dt.date(9999, 12, 31)]),
            "bin": pa.array([b"", None, b"\x00", b"x"]),
            "l": pa.array([["a", None], None, [], ["b"]]),
            "m": pa.array([[("k", 1)], None, [], [("q", None)]], pa.map_(pa.utf8(), pa.int64())),
            "s": pa.array([{"x": {"y": [1]}}, None, {"x": None}, {"x": {"y": None}}]),
        }
    )
    snapshot = append(make(tmp_path, rows.schema, "k"), rows)
    found = sorted(read(snapshot), key=repr)
    assert found == sorted(rows.to_pylist(), key=repr)


@pytest.mark.spec(
    "Schema 1",
    "Multi-Partition Transaction (Strong) 2",
    "Read Behavior 3",
    "reading 7",
    "reading 9",
)
def test_each_leaf_is_read_at_its_version_and_main_stays_empty(tmp_path):
    first = append(make(tmp_path), {1: "eu", 2: "us", 3: None})
    second = append(first, {4: "eu", 5: "asia"})
    assert regions(first) == {"eu": [1], "us": [2], None: [3]}
    assert regions(second) == {"eu": [1, 4], "us": [2], None: [3], "asia": [5]}
    for leaf in second.leaves().table.to_pylist():
        main = lance.dataset(f"{second.location}/{leaf['location']}")
        assert main.count_rows() == 0
        assert main.schema.field("region").metadata == {b"lance:field_id": b"1"}
        assert leaf["read_version"] >= 2**63


@pytest.mark.spec(
    "Commit Behavior 1", "Commit Behavior 3", "Conflict Resolution 1", "Conflict Resolution 4"
)
def test_appends_of_one_leaf_from_an_old_snapshot_are_rebased(tmp_path):
    base = append(make(tmp_path), {1: "eu"})
    mine, theirs = stage(base, {2: "eu", 3: "new"}), stage(base, {4: "eu", 5: "new"})
    for staged in (theirs, mine):
        transaction = Transaction(base)
        transaction.append(staged)
        assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [1, 2, 4], "new": [3, 5]}


def test_replace_makes_the_content_exactly_the_rows(tmp_path):
    base = append(append(make(tmp_path), {1: "eu", 2: "us"}), {3: "eu"})
    transaction = Transaction(base)
    transaction.replace(stage(base, {4: "eu", 5: "new"}))
    committed = transaction.commit()
    assert isinstance(committed, Committed)
    assert regions(committed.snapshot) == {"eu": [4], "us": [2], "new": [5]}
    assert regions(base) == {"eu": [1, 3], "us": [2]}


def test_dropped_partition_comes_back_empty_of_old_rows(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    leaf = next(
        row for row in base.leaves().table.to_pylist() if row["partition_field_region"] == "eu"
    )
    transaction = Transaction(base)
    transaction.drop([leaf["object_id"]])
    dropped = transaction.commit()
    assert isinstance(dropped, Committed)
    assert regions(dropped.snapshot) == {"us": [2]}
    assert regions(append(dropped.snapshot, {3: "eu"})) == {"us": [2], "eu": [3]}


@pytest.mark.spec("Conflict Resolution 2", "Conflict Resolution 4")
@pytest.mark.parametrize("kind", ["replace", "drop"])
def test_replacing_what_another_appended_to_is_a_conflict_that_names_the_partition(tmp_path, kind):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    eu = next(
        row for row in base.leaves().table.to_pylist() if row["partition_field_region"] == "eu"
    )
    transaction = Transaction(base)
    if kind == "replace":
        transaction.replace(stage(base, {9: "eu"}))
    else:
        transaction.drop([eu["object_id"]])
    append(base, {3: "eu"})
    outcome = transaction.commit()
    assert isinstance(outcome, Conflicted)
    assert outcome.partition == "region=eu"
    assert regions(latest(base)) == {"eu": [1, 3], "us": [2]}


@pytest.mark.spec("Conflict Resolution 3")
def test_replacing_one_partition_commutes_with_an_append_to_another(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    transaction = Transaction(base)
    transaction.replace(stage(base, {9: "eu"}))
    append(base, {3: "us"})
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [9], "us": [2, 3]}


def evolved(snapshot: Snapshot, columns: list[pa.Field]) -> Snapshot:
    change_root(snapshot, schema=snapshot.schema.evolved(pa.schema(columns)))
    return latest(snapshot)


@pytest.mark.spec("reading 10")
def test_column_added_to_the_namespace_is_added_to_a_leaf_by_its_next_write(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    wider = evolved(
        base, [*base.schema.arrow, pa.field("note", pa.struct([("x", pa.list_(pa.utf8()))]))]
    )
    rows = pa.record_batch({"id": [3, 4], "region": ["eu", "new"], "note": [{"x": ["a"]}, None]})
    after = append(wider, rows)
    assert sorted(read(after), key=repr) == sorted(
        [
            {"id": 1, "region": "eu", "note": None},
            {"id": 2, "region": "us"},
            {"id": 3, "region": "eu", "note": {"x": ["a"]}},
            {"id": 4, "region": "new", "note": None},
        ],
        key=repr,
    )
    again = append(after, pa.record_batch({"id": [5], "region": ["eu"], "note": [{"x": None}]}))
    assert len(read(again)) == 5


def test_rows_written_before_a_column_was_added_still_commit(tmp_path):
    base = append(make(tmp_path), {1: "eu"})
    staged = stage(base, {2: "eu", 3: "new"})
    evolved(base, [*base.schema.arrow, pa.field("n", pa.int8())])
    transaction = Transaction(base)
    transaction.append(staged)
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [1, 2], "new": [3]}


@pytest.mark.spec("Schema 5", "reading 9")
def test_renamed_and_promoted_columns_keep_the_leafs_own_schema(tmp_path):
    schema = pa.schema([("id", pa.int32()), ("region", pa.utf8())])
    base = append(
        make(tmp_path, schema), pa.record_batch({"id": pa.array([1], pa.int32()), "region": ["eu"]})
    )
    arrow = base.schema.arrow
    wider = evolved(base, [arrow.field(1), arrow.field(0).with_name("key").with_type(pa.int64())])
    after = append(wider, pa.record_batch({"key": [2], "region": ["eu"]}))
    assert sorted(row["id"] for row in read(after)) == [1, 2]


@pytest.mark.spec("reading 9")
def test_leaf_of_another_client_is_appended_to_by_its_own_numbers(tmp_path):
    """Columns in another order, one unknown to the namespace, on main, found by tuple."""
    base = make(tmp_path)
    foreign = pa.table({"extra": [True], "region": ["eu"], "id": pa.array([1], pa.int64())})
    dataset = lance.write_dataset(foreign, f"{base.location}/ffff0000_v1$foreign$dataset")
    ids: dict[str, dict[str, str | None]] = {
        "region": {"lance:field_id": "1"},
        "id": {"lance:field_id": "0"},
    }
    dataset.update_field_metadata(ids)
    from pennon.manifest import LeafChange, commit_leaves

    commit_leaves(
        base,
        [
            LeafChange(
                "v1$foreign$dataset",
                "ffff0000_v1$foreign$dataset",
                {"region": pa.scalar("eu")},
                dataset.version,
            )
        ],
    )
    after = append(latest(base), {2: "eu"})
    assert len(after.leaves().table) == 1
    assert regions(after) == {"eu": [1, 2]}
    assert after.leaves().table["num_rows"].to_pylist() == [2]


@pytest.mark.spec("Partition Evolution 2", "Evolution Scenarios 1", "Physical Layout and Naming 2")
def test_new_spec_version_makes_leaves_of_its_own(tmp_path):
    from pennon.spec import PartitionSpec

    base = append(make(tmp_path), {1: "eu"})
    change_root(base, spec=PartitionSpec(2, ()))
    after = append(latest(base), {2: "eu", 3: "us"})
    assert len(after.leaves().table) == 2
    assert sorted(row["id"] for row in read(after)) == [1, 2, 3]


def test_abort_removes_files_and_the_directory_of_a_new_partition(tmp_path):
    base = append(make(tmp_path), {1: "eu"})
    staged = stage(base, {2: "eu", 3: "new"})
    before = {
        path for path in Path(base.location).rglob("*.lance") if "__manifest" not in str(path)
    }
    Transaction(base).abort(staged)
    after = {path for path in Path(base.location).rglob("*.lance") if "__manifest" not in str(path)}
    assert len(before) == 3
    assert len(after) == 1
    new = next(part for part in staged if part.values.column(0)[0].as_py() == "new")
    assert not (Path(base.location) / new.location).exists()
    assert regions(latest(base)) == {"eu": [1]}


def test_abort_after_a_commit_removes_nothing(tmp_path):
    base = make(tmp_path)
    staged = stage(base, {1: "eu"})
    transaction = Transaction(base)
    transaction.append(staged)
    transaction.commit()
    transaction.abort(staged)
    assert regions(latest(base)) == {"eu": [1]}


def test_missing_leaf_is_an_error_and_the_table_stays_as_it_was(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    staged = stage(base, {3: "eu", 4: "us"})
    eu = next(part.location for part in staged if part.values.column(0)[0].as_py() == "eu")
    from pennon.leaf import forget_leaves

    forget_leaves()
    (Path(base.location) / eu / "_versions").rename(tmp_path / "away")
    transaction = Transaction(base)
    transaction.append(staged)
    with pytest.raises(LeafMissing, match="v1"):
        transaction.commit()
    (tmp_path / "away").rename(Path(base.location) / eu / "_versions")
    assert regions(latest(base)) == {"eu": [1], "us": [2]}


def test_one_transaction_cannot_append_to_and_replace_the_same_partition(tmp_path):
    base = make(tmp_path)
    transaction = Transaction(base)
    transaction.append(stage(base, {1: "eu"}))
    with pytest.raises(InternalError, match="two ways"):
        transaction.replace(stage(base, {2: "eu"}))


def test_transaction_without_changes_commits_nothing(tmp_path):
    base = make(tmp_path)
    assert Transaction(base).commit() == Committed(base.version, base)
    assert latest(base).version == base.version


def test_value_that_a_narrower_leaf_cannot_store_names_leaf_and_column(tmp_path):
    schema = pa.schema([("id", pa.int32()), ("region", pa.utf8())])
    rows = pa.record_batch({"id": pa.array([1], pa.int32()), "region": ["eu"]})
    base = append(make(tmp_path, schema), rows)
    arrow = base.schema.arrow
    wider = evolved(base, [arrow.field(0).with_type(pa.int64()), arrow.field(1)])
    with pytest.raises(LeafSchemaMismatch, match=r"column id to leaf .*int32.*int64"):
        stage(wider, pa.record_batch({"id": [2**40], "region": ["eu"]}))


@pytest.mark.parametrize(("region", "is_conflict"), [("eu", False), ("wide", True), ("new", True)])
def test_rows_of_a_column_that_was_widened_meanwhile_are_added_or_a_conflict(
    tmp_path, region, is_conflict
):
    schema = pa.schema([("id", pa.int32()), ("region", pa.utf8())])
    rows = pa.record_batch({"id": pa.array([1, 1], pa.int32()), "region": ["eu", "wide"]})
    base = append(make(tmp_path, schema), rows)
    mine = Transaction(base)
    mine.append(stage(base, pa.record_batch({"id": pa.array([2], pa.int32()), "region": [region]})))
    theirs = pennon.open(base.location)
    theirs.alter_column("id", type=pa.int64())
    theirs.append([{"id": 2**40, "region": "wide"}])
    if is_conflict:
        why = "the type of column id changed from int32 to int64 meanwhile"
        with pytest.raises(WriteConflict, match=f"{why}. Nothing of it is visible. Run the"):
            mine.commit()
    else:
        assert isinstance(mine.commit(), Committed)
    found = regions(latest(base))
    assert found == {"eu": [1] if is_conflict else [1, 2], "wide": [1, 2**40]}


@pytest.mark.spec("reading 18", "reading 24")
def test_partition_value_that_the_manifest_cannot_hold_is_refused_not_wrapped(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("region", pa.int32())])
    rows = pa.record_batch({"id": [1], "region": pa.array([1], pa.int32())})
    base = append(make(tmp_path, schema), rows)
    arrow = base.schema.arrow
    wider = evolved(base, [arrow.field(0), arrow.field(1).with_type(pa.int64())])
    with pytest.raises(PartitionValueOverflow, match="partition field region.*int32"):
        stage(wider, pa.record_batch({"id": [1], "region": [2**40]}))


@pytest.mark.parametrize("region", ["eu", "new"])
@pytest.mark.parametrize("num_tasks", [1, 20])  # many files of a folder are listed
def test_rows_whose_files_a_vacuum_took_are_refused(tmp_path, region, num_tasks):
    base = append(make(tmp_path), {1: "eu"})
    transaction = Transaction(base)
    for number in range(num_tasks):
        transaction.append(stage(base, {number: region}))
    vacuum(base.location, older_than=dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1))
    with pytest.raises(WriteConflict, match="files of its new rows are gone"):
        transaction.commit()
    assert regions(latest(base)) == {"eu": [1]}


def test_many_tasks_write_one_partition(tmp_path):
    base = make(tmp_path)
    transaction = Transaction(base)
    for number in range(20):
        transaction.append(stage(base, {number: "eu"}))
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": list(range(20))}


def test_nothing_is_written_on_top_of_files_that_are_gone(tmp_path):
    base = append(append(make(tmp_path), {1: "eu", 2: "us"}), {3: "eu"})
    eu = next(
        row for row in base.leaves().table.to_pylist() if row["partition_field_region"] == "eu"
    )
    dataset = lance.dataset(f"{base.location}/{eu['location']}", eu["read_version"])
    oldest = dataset.get_fragments()[0].metadata.files[0].path
    Path(base.location, eu["location"], "data", oldest).unlink()
    with pytest.raises(LeafMissing, match=f"leaf {re.escape(eu['location'])} of table .*/ns at"):
        append(base, {4: "eu"})
    append(base, {5: "us"})
    mended = Transaction(latest(base))
    mended.replace(stage(base, {6: "eu"}))
    assert isinstance(mended.commit(), Committed)
    assert regions(latest(base)) == {"eu": [6], "us": [2, 5]}


@pytest.mark.parametrize(
    "foreign",
    [{"id": ["a text"], "region": [3]}, {"other": [1.5]}, {"id": [5], "other": [1.5]}],
    ids=["other types", "other columns", "one column more"],
)
@pytest.mark.parametrize("strong", [True, False], ids=["strong", "weak"])
def test_a_deleted_partition_whose_folder_another_tool_wrote_over_is_written_again(
    tmp_path, strong, foreign
):
    base = append(make(tmp_path, strong=strong), {1: "eu", 2: "us"})
    leaf = base.leaves(parse_one("partition_field_region = 'eu'")).table.to_pylist()[0]
    transaction = Transaction(base)
    transaction.drop([leaf["object_id"]])
    transaction.commit()
    lance.write_dataset(pa.table(foreign), f"{base.location}/{leaf['location']}", mode="overwrite")
    append(latest(base), {7: "eu"})
    assert sorted(row["id"] for row in read(latest(base))) == [2, 7]
    if strong:
        assert sorted(row["id"] for row in read(base)) == [1, 2]


@pytest.mark.parametrize("strong", [True, False], ids=["strong", "weak"])
def test_rows_of_another_writer_in_the_folder_of_a_leaf_to_be_made_stay(tmp_path, strong):
    base = make(tmp_path, strong=strong)
    staged = stage(base, {7: "eu"})
    uri = f"{base.location}/{staged[0].location}"
    lance.write_dataset(pa.table({"id": [5], "other": [1.5]}), uri)
    transaction = Transaction(base)
    transaction.append(staged)
    with pytest.raises(LeafFolderTaken, match="with 1 rows and the columns id, other"):
        transaction.commit()
    assert lance.dataset(uri).to_table().to_pylist() == [{"id": 5, "other": 1.5}]
    lance.dataset(uri).delete("true")
    transaction = Transaction(base)
    transaction.append(staged)
    assert isinstance(transaction.commit(), Committed)
    assert [row["id"] for row in read(latest(base))] == [7]


def test_leaves_on_a_store_are_committed_together_or_not_at_all(tmp_path, monkeypatch):
    """An address with a scheme stands for a store: more leaves at once than on a disk."""
    made = make(tmp_path)
    store = Snapshot.open(f"file://{made.location}")
    meeting, commit = threading.Barrier(16), append_fragments
    fails = False

    def together(dataset, staged, schema):
        meeting.wait(timeout=60)  # breaks where they come one after the other
        if fails and staged[0].values.column(0)[0].as_py() == "r7":
            raise OSError("the store refused")
        return commit(dataset, staged, schema)

    monkeypatch.setattr(leaf_preparation, "append_fragments", together)
    rows = {at: f"r{at}" for at in range(16)}
    after = append(store, rows)
    assert regions(after) == {f"r{at}": [at] for at in range(16)}
    fails = True
    with pytest.raises(StorageFailure, match="the store refused"):
        append(after, {at + 100: region for at, region in rows.items()})
    assert latest(after).version == after.version
    assert len(read(latest(after))) == 16
