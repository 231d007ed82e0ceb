"""A commit made again, given up, or on an expired base: its rows are there once, or never."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.present import present
from tests.transaction.lake import append, latest, make, read, regions, stage
from tests.transaction.test_row_changes import found

import pennon
from pennon.catalog.configured_catalog import WriteMode
from pennon.catalog.layouts.partitioned_table import PartitionedTable
from pennon.errors import CommitGivenUp, WriteConflict
from pennon.leaf import WriteTarget
from pennon.maintenance import rollback as rollback_module
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.expire import expire
from pennon.maintenance.rollback import rollback
from pennon.manifest import Snapshot, change_root
from pennon.manifest.commits import manifest_commit
from pennon.manifest.commits.commit_lookup import find_commit, give_up
from pennon.manifest.format.rows import CommitIdentity
from pennon.manifest.versions.history import history
from pennon.transaction import Committed, Conflicted, Transaction, strong
from pennon.transaction import transaction as transaction_module
from pennon.transaction.concurrency.conflicts import ROWS_CHANGED
from pennon.transaction.staging.leaf_preparation import abandon

KINDS = ["append", "replace", "drop"]

# Commits staged rows in a process of its own and dies before it can say so.
DIES = """
import json, os, signal, sys
from pennon.leaf import StagedPartition
from pennon.manifest import Snapshot
from pennon.manifest.format.rows import CommitIdentity
from pennon.transaction import Transaction

location, version, commit, texts = sys.argv[1:]
transaction = Transaction(Snapshot.open(location, int(version)), CommitIdentity(commit))
transaction.append([StagedPartition.from_json(text) for text in json.loads(texts)])
transaction.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""


def transaction_of(base: Snapshot, kind: str, identity: CommitIdentity) -> Transaction:
    transaction = Transaction(base, identity)
    if kind == "drop":
        transaction.drop(base.leaves().table["object_id"].to_pylist()[:1])
    else:
        getattr(transaction, kind)(stage(base, {7: "eu", 8: "new"}))
    return transaction


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("between", ["nothing", "append", "append and expire"])
def test_a_commit_that_is_made_again_is_found(tmp_path: Path, kind: str, between: str) -> None:
    base = append(make(tmp_path), {1: "eu"})
    transaction = transaction_of(base, kind, CommitIdentity("the one"))
    assert isinstance(transaction.commit(), Committed)
    if between != "nothing":
        append(latest(base), {9: "eu"})
    if between.endswith("expire"):
        expire(base.location, older_than=datetime.now(UTC) + timedelta(minutes=1))
    expected = regions(latest(base))
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_that_is_made_again_across_a_rollback_is_found(tmp_path: Path, kind: str) -> None:
    base = append(make(tmp_path), {1: "eu"})
    transaction = transaction_of(base, kind, CommitIdentity("the one"))
    assert isinstance(transaction.commit(), Committed)
    append(latest(base), {9: "eu"})
    rollback(base.location, base.version)
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [1]}
    append(latest(base), {2: "eu", 3: "new"})
    assert regions(latest(base)) == {"eu": [1, 2], "new": [3]}
    assert check(base.location).is_valid


def test_what_was_given_up_stays_so_across_a_rollback(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu"})
    transaction = transaction_of(base, "append", CommitIdentity("the one"))
    give_up(base.location, transaction.identity)
    rollback(base.location, base.version)
    with pytest.raises(CommitGivenUp):
        transaction.commit()


def test_a_commit_between_the_steps_of_a_rollback_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = append(make(tmp_path), {1: "eu"})
    append(base, {2: "eu"})
    transaction = transaction_of(latest(base), "append", CommitIdentity("the one"))
    copied = vars(rollback_module)["copy_with_records"]

    def interrupted(*arguments: object) -> object:
        made = copied(*arguments)
        assert isinstance(transaction.commit(), Committed)
        return made

    monkeypatch.setattr(rollback_module, "copy_with_records", interrupted)
    rollback(base.location, base.version)
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [1]}


def test_a_commit_whose_process_died_before_it_could_say_so_is_found(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu"})
    staged = stage(base, {2: "eu", 3: "new"})
    texts = json.dumps([partition.to_json() for partition in staged])
    arguments = [base.location, str(base.version), "the one", texts]
    subprocess.run([sys.executable, "-c", DIES, *arguments], check=False, timeout=120)
    transaction = Transaction(base, CommitIdentity("the one"))
    transaction.append(staged)
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [1, 2], "new": [3]}


def test_of_two_tries_at_once_one_is_made(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu"})
    for number in range(6):
        staged = stage(base, {10 + number: "eu"})

        def commit(at: int, staged: list = staged, number: int = number) -> object:
            transaction = Transaction(base, CommitIdentity(f"c{number}", user=str(at)))
            transaction.append(staged)
            return transaction.commit()

        with ThreadPoolExecutor(3) as pool:
            assert all(isinstance(outcome, Committed) for outcome in pool.map(commit, range(3)))
    assert regions(latest(base)) == {"eu": [1, *range(10, 16)]}


def test_a_write_that_was_given_up_is_committed_no_more(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu"})
    identity = CommitIdentity("the one")
    staged = stage(base, {2: "eu", 3: "new"})
    assert abandon(base.location, staged, {}, identity)
    late = Transaction(base, identity)
    late.append(staged)
    with pytest.raises(CommitGivenUp):
        late.commit()
    assert regions(latest(base)) == {"eu": [1]}


def test_files_of_a_commit_that_was_made_survive_its_abort(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu"})
    identity = CommitIdentity("the one")
    transaction = Transaction(base, identity)
    staged = stage(base, {2: "eu", 3: "new"})
    transaction.append(staged)
    transaction.commit()
    emptied = transaction_of(latest(base), "drop", CommitIdentity("another"))
    committed = latest(base)
    emptied.commit()
    assert not abandon(base.location, staged, {}, identity)
    assert regions(committed) == {"eu": [1, 2], "new": [3]}


def test_giving_up_beside_the_commit_leaves_one_of_the_two(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu"})
    for number in range(6):
        identity = CommitIdentity(f"c{number}")
        transaction = transaction_of(base, "append", identity)
        with ThreadPoolExecutor(2) as pool:
            commit = pool.submit(transaction.commit)
            record = pool.submit(give_up, base.location, identity).result()
            if record.is_given_up:
                with pytest.raises(CommitGivenUp):
                    commit.result()
            else:
                assert isinstance(commit.result(), Committed)
        assert find_commit(base.location, identity.id) == record


@pytest.mark.parametrize("kind", ["given up", "made by another", "restored by a rollback"])
def test_a_commit_on_its_way_sees_that_its_record_came_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    base = append(make(tmp_path), {1: "eu"})
    identity = CommitIdentity("the one")
    early, late = Transaction(base, identity), Transaction(base, identity)
    early.append(stage(base, {2: "eu"}))
    late.append(stage(base, {2: "eu"}))
    rows_of = vars(manifest_commit)["_rows"]

    def overtaken(*arguments: object) -> object:
        rows = rows_of(*arguments)
        monkeypatch.setattr(manifest_commit, "_rows", rows_of)
        if kind == "given up":
            give_up(base.location, identity)
        else:
            assert isinstance(early.commit(), Committed)
        if kind.startswith("restored"):
            rollback(base.location, base.version)
        return rows

    monkeypatch.setattr(manifest_commit, "_rows", overtaken)
    if kind == "given up":
        with pytest.raises(CommitGivenUp):
            late.commit()
    else:
        assert isinstance(late.commit(), Committed)
    assert regions(latest(base)) == {"eu": [1, 2] if kind == "made by another" else [1]}
    record = find_commit(base.location, identity.id)
    assert record is not None
    assert record.is_given_up == (kind == "given up")


def test_nothing_after_the_commit_point_fails_the_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = append(make(tmp_path), {1: "eu"})
    original = vars(strong)["commit_leaves"]

    def followed(*arguments: object, **keywords: object) -> object:
        outcome = original(*arguments, **keywords)
        monkeypatch.setattr(strong, "commit_leaves", original)
        append(latest(base), {9: "us"})
        expire(base.location, older_than=datetime.now(UTC) + timedelta(minutes=1))
        return outcome

    staged = stage(base, {2: "eu"})
    monkeypatch.setattr(strong, "commit_leaves", followed)
    transaction = Transaction(base)
    transaction.append(staged)
    assert isinstance(transaction.commit(), Committed)
    assert regions(latest(base)) == {"eu": [1, 2], "us": [9]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_base_that_expired_meanwhile_stops_no_append(tmp_path: Path, kind: str) -> None:
    base = append(make(tmp_path), {1: "eu", 2: "us"})
    transaction = transaction_of(base, kind, CommitIdentity("the one"))
    append(latest(base), {3: "eu"})
    expire(base.location, older_than=datetime.now(UTC) + timedelta(minutes=1))
    outcome = transaction.commit()
    if kind == "append":
        assert isinstance(outcome, Committed)
        assert regions(latest(base)) == {"eu": [1, 3, 7], "us": [2], "new": [8]}
    else:
        assert isinstance(outcome, Conflicted)
        assert any(reason in outcome.reason for reason in ("expired", ROWS_CHANGED))
        assert regions(latest(base)) == {"eu": [1, 3], "us": [2]}


def test_rows_made_of_what_was_read_need_their_base(tmp_path: Path) -> None:
    """A MERGE that only inserts: whether another made the same rows, nobody can tell."""
    base = append(make(tmp_path), {1: "eu"})
    transaction = Transaction(base, CommitIdentity("c"))
    transaction.change_rows((), stage(base, {7: "new"}), [["id = 7"]])
    append(latest(base), {7: "us"})
    expire(base.location, older_than=datetime.now(UTC) + timedelta(minutes=1))
    assert isinstance(transaction.commit(), Conflicted)
    assert regions(latest(base)) == {"eu": [1], "us": [7]}


@pytest.mark.usefixtures("without_grace")
@pytest.mark.parametrize("mode", [WriteMode.MERGE, WriteMode.OVERWRITE])
def test_a_base_whose_files_went_while_it_was_open_is_a_conflict(
    tmp_path: Path, mode: WriteMode
) -> None:
    base, identity = append(make(tmp_path), {1: "eu"}), CommitIdentity("c")
    gone = [deletion.to_json() for deletion in found(base, {1})]
    new = [partition.to_json() for partition in stage(base, {7: "eu"})]
    table = PartitionedTable("t", latest(base))
    for number in range(8):  # until the manifest's fragments are merged
        append(latest(base), {10 + number: "us"})
    expire(base.location, older_than=datetime.now(UTC) + timedelta(minutes=1))
    commits = {
        WriteMode.MERGE: lambda: table.change_rows(mode, gone, new, [["id < 9"]], identity),
        WriteMode.OVERWRITE: lambda: table.commit(mode, ["region = 'eu'"], new, identity),
    }
    with pytest.raises(WriteConflict, match=f"version {base.version}, which .* has expired"):
        commits[mode]()
    assert regions(latest(base))["eu"] == [1]


def test_a_change_of_rows_is_asked_for_again_when_its_base_has_expired(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu", 2: "eu", 3: "eu", 4: "us"})
    identity = CommitIdentity("c")
    gone = [deletion.to_json() for deletion in found(base, {1, 4})]
    new = [partition.to_json() for partition in stage(base, {9: "eu"})]
    target = WriteTarget(base.location, base.version, 1)

    def commit() -> int:
        table = PartitionedTable.open_base("t", target, "", WriteMode.MERGE, identity)
        return table.change_rows(WriteMode.MERGE, gone, new, [["id < 9"]], identity)

    assert commit() == base.version + 1
    append(latest(base), {5: "us"})
    expire(base.location, older_than=datetime.now(UTC) + timedelta(minutes=1))
    assert commit() == latest(base).version
    assert regions(latest(base)) == {"eu": [2, 3, 9], "us": [5]}


def test_history_tells_every_version(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {1: "eu", 2: "us"})
    identity = CommitIdentity("the one", "ada", "app-1", "query-1", 4)
    transaction = Transaction(snapshot, identity, "merge")
    transaction.replace(stage(snapshot, {5: "eu", 6: "eu"}))
    assert isinstance(transaction.commit(), Committed)
    dropped = Transaction(latest(snapshot), CommitIdentity("two"))
    dropped.drop(latest(snapshot).leaves().table["object_id"].to_pylist())
    dropped.commit()
    told = history(snapshot.location)
    assert [entry.version for entry in told] == [1, 2, 3, 4, 5]
    assert [entry.operation for entry in told[2:]] == ["append", "merge", "delete"]
    records = [present(entry.record) for entry in told[2:]]
    assert [(made.added_rows, made.removed_rows) for made in records] == [(2, 0), (2, 1), (0, 3)]
    assert records[1].identity == identity
    assert history(snapshot.location, limit=2) == told[-2:]


def test_history_names_statements_that_stand_alone(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {1: "eu", 2: "us"})
    change = Transaction(snapshot, CommitIdentity("one"), "merge")
    change.change_rows([], stage(snapshot, {3: "eu"}), [["id < 9"]])
    assert isinstance(change.commit(), Committed)
    change_root(latest(snapshot), properties={"note": "x"})
    *_, one, two = history(snapshot.location)
    assert (one.operation, present(one.record).added_rows, two.operation) == ("merge", 1, "alter")


def test_a_commit_is_given_up_where_another_writer_gave_the_manifest_stable_row_ids(
    tmp_path: Path,
) -> None:
    base = append(make(tmp_path), {1: "eu"})
    place = Path(base.location, "__manifest")
    old = lance.dataset(place)
    rows, metadata = old.to_table(), old.metadata
    shutil.rmtree(place)
    lance.write_dataset(rows, place, enable_stable_row_ids=True).update_metadata({**metadata})
    base = latest(base)
    transaction = transaction_of(base, "append", CommitIdentity("the one"))
    give_up(base.location, transaction.identity)
    with pytest.raises(CommitGivenUp):
        transaction.commit()
    assert regions(append(latest(base), {2: "eu"})) == {"eu": [1, 2]}
    merging = pennon.open(base.location).merge([{"id": 3, "region": "us"}], on="id")
    merging.when_not_matched_insert_all().execute()  # it stands alone in its commit
    assert regions(append(latest(base), {4: "us"})) == {"eu": [1, 2], "us": [3, 4]}
    ids = lance.dataset(place).to_table(with_row_id=True)["_rowid"].to_pylist()
    assert len(set(ids)) == len(ids)


def test_a_batch_that_two_drivers_send_at_once_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a restarted stream stages anew may be in other leaves than before."""
    base = append(make(tmp_path), {1: "a", 2: "b"})
    meeting = threading.Barrier(2)
    rows, tries = manifest_commit._rows, iter([True, True])

    def met(*arguments: Any) -> Any:
        made = rows(*arguments)
        if next(tries, False):  # both have looked for the commit, and none has made it
            meeting.wait(60)
        return made

    monkeypatch.setattr(manifest_commit, "_rows", met)
    # Two drivers have no queue in common.
    monkeypatch.setattr(transaction_module, "commit_append", strong.commit_strong)

    def commit(region: str) -> object:
        transaction = Transaction(base, CommitIdentity("stream-7", query_id="stream", epoch=7))
        transaction.append(stage(base, {3: region}))
        return transaction.commit()

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(commit, ["a", "b"]))
    assert all(isinstance(outcome, Committed) for outcome in outcomes)
    assert sorted(row["id"] for row in read(latest(base))) == [1, 2, 3]
