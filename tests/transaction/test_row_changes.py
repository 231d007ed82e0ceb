"""Single rows go and come: exactly those, at their place, and against other commits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.present import present
from tests.transaction.lake import append, latest, make, read, regions, stage

from pennon.errors import InternalError, UnknownIsolation
from pennon.leaf import dataset as leaf_dataset
from pennon.leaf.changes.deleted_rows import DeletedRows, collect_deleted
from pennon.leaf.changes.row_changes import change_rows
from pennon.leaf.read.metadata_columns import METADATA_COLUMNS
from pennon.leaf.read.source import LeafSource
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.compact import compact
from pennon.maintenance.expire import expire
from pennon.manifest import Snapshot, change_root
from pennon.spec.write_properties import check_isolation, isolation
from pennon.transaction import Committed, Conflicted, Transaction

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


COPIES = {f"write.{statement}.mode": "copy-on-write" for statement in ("delete", "update", "merge")}


def found(snapshot: Snapshot, ids: Collection[int]) -> list[DeletedRows]:
    """The row ids of some ids, as a scan gives them to Spark."""
    rows = []
    for leaf in snapshot.leaves().table.to_pylist():
        version = leaf["read_version"]
        dataset = lance.dataset(f"{snapshot.location}/{leaf['location']}", version=version)
        for batch in LeafSource(dataset).batches(
            pa.schema([*snapshot.schema.arrow, *METADATA_COLUMNS])
        ):
            mask = [id_ in ids for id_ in batch["id"].to_pylist()]
            rows.append(
                batch.select([metadata_column.name for metadata_column in METADATA_COLUMNS]).filter(
                    mask
                )
            )
    return collect_deleted(rows)


def change(
    snapshot: Snapshot,
    gone: Collection[int],
    new: dict[int, str | None] | None = None,
    read: Sequence[Sequence[str]] = (),
    command: str | None = None,
) -> Transaction:
    transaction = Transaction(snapshot, None, command)
    transaction.change_rows(found(snapshot, gone), stage(snapshot, new) if new else [], read)
    return transaction


def test_a_row_moves_to_another_partition_in_one_commit(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "eu", 3: "us", 4: None})
    outcome = change(base, {2, 4}, {2: "us", 4: "new"}).commit()
    assert isinstance(outcome, Committed)
    assert outcome.snapshot.version == base.version + 1
    assert regions(outcome.snapshot) == {"eu": [1], "us": [2, 3], "new": [4]}
    assert regions(base) == {"eu": [1, 2], "us": [3], None: [4]}


@pytest.mark.parametrize("is_first", [False, True], ids=["behind", "before"])
def test_rows_appended_beside_the_last_row_that_goes_stay(tmp_path, is_first):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    change_, other = change(base, {1}), Transaction(base)
    other.append(stage(base, {3: "eu"}))
    for transaction in (other, change_) if is_first else (change_, other):
        assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [3], "us": [2]}
    assert isinstance(change(latest(base), {3}).commit(), Committed)
    assert regions(latest(base)) == {"us": [2]}
    append(latest(base), {4: "eu"})
    assert regions(latest(base)) == {"eu": [4], "us": [2]}
    assert check(base.location).is_valid


def test_many_writers_empty_and_fill_one_partition(tmp_path):
    base = append(make(tmp_path), {0: "eu", 1: "us"})

    def write(number):
        for at in range(5):
            id_ = 10 * number + at + 10
            append(latest(base), {id_: "eu"})
            if at % 2:
                now = latest(base)
                while not isinstance(change(now, {id_, id_ - 1}).commit(), Committed):
                    now = latest(base)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert regions(latest(base)) == {"eu": [0, 14, 24, 34, 44], "us": [1]}
    assert isinstance(change(latest(base), {0, 14, 24, 34, 44}).commit(), Committed)
    assert regions(latest(base)) == {"us": [1]}
    assert check(base.location).is_valid


@pytest.mark.parametrize("copies", [False, True], ids=["marked", "copied"])
@pytest.mark.parametrize("count", [1, 700, 20_000, 34_000, 39_999])
def test_exactly_the_rows_go_that_are_named(tmp_path, count, copies):
    numbers = np.random.default_rng(count)
    uri = str(tmp_path / "leaf")
    lance.write_dataset(pa.table({"id": np.arange(40_000)}), uri, max_rows_per_file=15_000)
    leaf = lance.dataset(uri)
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"lance:field_id": "0"})])
    left = np.arange(40_000)
    for share in (count // 2, count - count // 2):  # the second time there are vectors already
        gone = numbers.choice(left, share, replace=False)
        batches = list(LeafSource(leaf).batches(pa.schema([*schema, *METADATA_COLUMNS])))
        ids = [batch.filter(pa.array(np.isin(batch["id"].to_numpy(), gone))) for batch in batches]
        for deleted in collect_deleted(ids):
            leaf = change_rows(leaf, deleted, (), schema, copies=copies)
        left = np.setdiff1d(left, gone)
        assert np.array_equal(np.sort(leaf.to_table()["id"].to_numpy()), left)
    assert leaf.count_rows() == len(left)
    assert not copies or not any(
        fragment.metadata.deletion_file for fragment in leaf.get_fragments()
    )


def test_rows_with_blobs_are_copied_as_others_are(tmp_path):
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table({"id": [1, 2, 3], "blob": [b"a", b"b" * 100_000, None]})
    rows = rows.cast(pa.schema([pa.field("id", pa.int64()), blob]))
    leaf = lance.write_dataset(rows, str(tmp_path / "leaf"))
    deleted = DeletedRows("leaf", leaf.version, np.array([0]))
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"lance:field_id": "0"})])
    after = change_rows(leaf, deleted, (), schema, copies=True)
    assert after.to_table(columns=["id"])["id"].to_pylist() == [2, 3]
    assert present(after.take_blobs("blob", indices=[0])[0]).read() == b"b" * 100_000
    assert not any(fragment.metadata.deletion_file for fragment in after.get_fragments())


def test_rows_of_a_leaf_that_is_not_there_are_refused(tmp_path):
    base = append(make(tmp_path), {1: "eu"})
    elsewhere = append(make(tmp_path / "other"), {1: "eu"})
    with pytest.raises(InternalError, match="are to go"):
        Transaction(base).change_rows(found(elsewhere, {1}), [])


def test_two_changes_of_one_leaf_conflict_and_name_the_partition(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "eu", 3: "us"})
    first, second = change(base, {1}), change(base, {2})
    assert isinstance(first.commit(), Committed)
    outcome = second.commit()
    assert isinstance(outcome, Conflicted)
    assert outcome.partition == "region=eu"
    assert regions(latest(base)) == {"eu": [2], "us": [3]}


def test_changes_of_disjoint_partitions_never_conflict(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    first = change(base, {1}, {10: "eu"}, [["region = 'eu'"]])
    second = change(base, {2}, {20: "us"}, [["region = 'us'"]])
    assert isinstance(first.commit(), Committed)
    assert isinstance(second.commit(), Committed)
    assert regions(latest(base)) == {"eu": [10], "us": [20]}


@pytest.mark.parametrize("theirs", [{5: "us"}, {5: "never seen"}])
def test_rows_appended_where_a_statement_read_conflict_with_it(tmp_path, theirs):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    mine = change(base, {1}, {1: "eu"}, [["id < 100"]])
    append(base, theirs)
    outcome = mine.commit()
    assert isinstance(outcome, Conflicted)
    [region] = theirs.values()
    assert outcome.partition == f"region={region}"


def test_rows_appended_elsewhere_do_not_matter(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    mine = change(base, {1}, {1: "eu"}, [["id < 100", "region = 'eu'"]])
    append(append(base, {5: "us"}), {6: "new"})
    assert isinstance(mine.commit(), Committed)
    assert regions(latest(base)) == {"eu": [1], "us": [2, 5], "new": [6]}


@pytest.mark.parametrize("theirs", [{5: "us"}, {5: "eu"}, {5: "never seen"}])
def test_rows_beside_the_conditions_of_a_statement_do_not_matter(tmp_path, theirs):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    mine = change(base, {1}, {1: "eu"}, [["id < 5"]])
    gone = change(append(base, theirs), {5}, {6: "us"}, [["id = 5"]])
    assert isinstance(gone.commit(), Committed)
    append(base, {7: "us", 8: "new"})
    assert isinstance(mine.commit(), Committed)
    ids = regions(latest(base))
    assert (ids["eu"], ids["us"], ids["new"]) == ([1], [2, 6, 7], [8])


@pytest.mark.parametrize(
    ("conditions", "theirs"),
    [
        (["id < 5"], {3: "us"}),
        (["id < 5 OR region = 'us'"], {9: "us"}),
        (["id < 5", "id % 100 = 1"], {3: "us"}),
        (["id % 100 = 1"], {9: "us"}),  # of which no leaf is asked
        (["_leaf <> ''"], {9: "us"}),
        ([], {9: "us"}),
    ],
)
def test_rows_that_may_satisfy_the_conditions_conflict(tmp_path, conditions, theirs):
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    mine = change(base, {1}, {1: "eu"}, [conditions])
    append(base, theirs)
    outcome = mine.commit()
    assert isinstance(outcome, Conflicted)
    assert outcome.partition == "region=us"


def test_a_row_that_satisfied_the_conditions_and_does_not_any_more_is_a_conflict(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "us", 3: "us"})
    mine = [change(base, {1}, {1: "eu"}, [["id <= 2"]]), change(base, {1}, {4: "eu"}, [["id = 1"]])]
    assert isinstance(change(base, {2}, {9: "us"}).commit(), Committed)
    assert [type(statement.commit()) for statement in mine] == [Conflicted, Committed]
    base = latest(base)
    mine = [change(base, {4}, {5: "eu"}, [[f"id IN ({key}, 4)"]]) for key in (3, 30)]
    dropped = Transaction(base)
    leaves = base.leaves().table.to_pylist()
    dropped.drop([leaf["object_id"] for leaf in leaves if leaf["num_rows"] == 2])
    assert isinstance(dropped.commit(), Committed)
    assert [type(statement.commit()) for statement in mine] == [Conflicted, Committed]


def test_statements_that_both_miss_a_key_never_both_insert_it(tmp_path):
    """Ten racing pairs: neither has a row to replace, and each makes a partition of its own."""
    base = append(make(tmp_path), {0: "eu"})
    for key in range(1, 11):
        base = latest(base)
        racing = [change(base, (), {key: f"{name}{key}"}, [[f"id = {key}"]]) for name in "ab"]
        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(Transaction.commit, racing))
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Committed", "Conflicted"]
        ids = [id_ for ids in regions(latest(base)).values() for id_ in ids]
        assert ids.count(key) == 1


def test_under_snapshot_isolation_appends_of_others_are_not_looked_at(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "eu"})
    change_root(base, properties={"write.isolation": "snapshot"})
    base = latest(base)
    mine = change(base, {1}, {10: "eu"}, [["id < 100"]])
    append(base, {3: "eu", 4: "us"})
    assert isinstance(mine.commit(), Committed)
    assert regions(latest(base)) == {"eu": [2, 3, 10], "us": [4]}


def test_an_isolation_of_one_statement_is_no_other_s(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "eu", 3: "eu"})
    change_root(base, properties={"write.merge.isolation-level": "snapshot"})
    base = latest(base)
    merge = change(base, {1}, {10: "eu"}, [["id < 100"]], "merge")
    update = change(base, {2}, {20: "eu"}, [["id < 100"]], "update")
    append(base, {4: "eu"})
    assert isinstance(update.commit(), Conflicted)
    assert isinstance(merge.commit(), Committed)
    with pytest.raises(UnknownIsolation, match="write.delete.isolation-level"):
        check_isolation({"write.delete.isolation-level": "none"})


def test_under_snapshot_isolation_a_row_is_still_changed_once(tmp_path):
    base = append(make(tmp_path), {1: "eu", 2: "eu"})
    change_root(base, properties={"write.isolation": "snapshot"})
    base = latest(base)
    first, second = change(base, {1}, {10: "eu"}), change(base, {1}, {11: "eu"})
    assert isinstance(first.commit(), Committed)
    assert isinstance(second.commit(), Conflicted)
    assert regions(latest(base)) == {"eu": [2, 10]}


def test_an_isolation_that_is_none_is_refused():
    with pytest.raises(UnknownIsolation, match="neither 'serializable'"):
        isolation({"write.isolation": "none"})


def test_appends_go_on_beside_a_change_that_was_alone(tmp_path):
    """What an exclusive commit leaves of the manifest takes the other kind of commit again."""
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    for key in range(3, 8):
        after = change(latest(base), {key - 2}, {key: "eu"}, [["id < 100"]]).commit()
        assert isinstance(after, Committed)
        append(base, {100 + key: "us"})
    assert sorted(regions(latest(base))["us"]) == [103, 104, 105, 106, 107]
    assert sorted(regions(latest(base))["eu"]) == [6, 7]


def test_no_transaction_is_read_of_a_dataset_that_threads_share(tmp_path, monkeypatch):
    """Lance would refuse what another thread does with it meanwhile: "Already mutably borrowed"."""
    base = append(make(tmp_path), {1: "eu"})
    append(append(base, {2: "eu"}), {3: "eu"})
    statement = change(latest(base), {2})
    compact(base.location)
    append(latest(base), {4: "eu"})
    shared, asked = [], []
    find, read = leaf_dataset._opened.find, lance.LanceDataset.read_transaction

    def finding(*arguments):
        shared.append(find(*arguments))
        return shared[-1]

    def reading(dataset, version):
        asked.append(dataset)
        return read(dataset, version)

    monkeypatch.setattr(leaf_dataset._opened, "find", finding)
    monkeypatch.setattr(lance.LanceDataset, "read_transaction", reading)
    assert isinstance(statement.commit(), Committed)
    num_asked = len(asked)
    expire(base.location, older_than=datetime.now(UTC) + timedelta(minutes=1))
    assert 0 < num_asked < len(asked)
    assert not [condition for condition in asked if any(condition is other for other in shared)]
    assert regions(latest(base)) == {"eu": [1, 3, 4]}


def test_in_weak_mode_rows_change_on_main_and_once(tmp_path):
    base = append(make(tmp_path, strong=False), {1: "eu", 2: "eu", 3: "us"})
    first, second = change(base, {1}, {10: "eu"}), change(base, {1}, {11: "us"})
    assert isinstance(first.commit(), Committed)
    outcome = second.commit()
    assert isinstance(outcome, Conflicted)
    assert outcome.partition == "region=eu"
    assert regions(latest(base))["eu"] == [2, 10]


@pytest.mark.parametrize("strong", [True, False], ids=["strong", "weak"])
def test_a_copy_keeps_the_columns_that_its_leaf_was_given_since(tmp_path, strong):
    """The leaf's newest schema is one of a detached version; its main branch has the first one."""
    base = append(make(tmp_path, strong=strong), {1: "eu", 2: "eu", 3: "eu"})
    wide = pa.schema(
        [*base.schema.arrow, pa.field("tags", pa.map_(pa.utf8(), pa.list_(pa.int64())))]
    )
    change_root(base, schema=base.schema.evolved(wide), properties=COPIES)
    rows = {"id": [4, 5], "region": ["eu", "eu"], "tags": [[("a", [1, None])], None]}
    base = append(latest(base), pa.record_batch(rows, wide))
    before = read(base)
    assert isinstance(change(base, {2, 5}, command="delete").commit(), Committed)
    assert read(latest(base)) == [row for row in before if row["id"] not in (2, 5)]
    assert isinstance(change(latest(base), {1}, {1: "us"}, command="update").commit(), Committed)
    assert regions(latest(base)) == {"eu": [3, 4], "us": [1]}
    assert not marked(latest(base))


def test_a_copy_is_made_of_the_files_that_a_compaction_left(tmp_path):
    base = append(append(make(tmp_path), {1: "eu", 2: "eu"}), {3: "eu", 4: "us"})
    change_root(base, properties=COPIES)
    base = latest(base)
    mine, other = change(base, {1}, {9: "eu"}, command="merge"), change(base, {2}, command="delete")
    compact(base.location)
    assert isinstance(mine.commit(), Committed)
    assert regions(latest(base)) == {"eu": [2, 3, 9], "us": [4]}
    assert not marked(latest(base))
    assert isinstance(other.commit(), Conflicted)  # its row is in the same fragment


def marked(snapshot: Snapshot) -> list[str]:
    """The leaves that have rows which are marked as gone."""
    return [
        leaf["location"]
        for leaf in snapshot.leaves().table.to_pylist()
        for fragment in lance.dataset(
            f"{snapshot.location}/{leaf['location']}", version=leaf["read_version"]
        ).get_fragments()
        if fragment.metadata.deletion_file is not None
    ]
