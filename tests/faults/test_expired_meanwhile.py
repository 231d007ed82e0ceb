"""Statements whose version expires, or whose table goes, before they have read what they need."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from tests.transaction.lake import append, latest, make, regions, stage

import pennon
from pennon.errors import (
    LeafMissing,
    PennonError,
    SnapshotExpired,
    TableMadeAnew,
    TableNotFound,
    WriteConflict,
)
from pennon.leaf import WriteTarget, write_partitions
from pennon.maintenance.expire import expire
from pennon.namespace import PartitionedNamespace
from pennon.namespace.rows import row_merge, row_update
from pennon.namespace.rows import row_update as row_delete
from pennon.namespace.rows.row_scan import read_plan
from pennon.transaction import Committed, Transaction
from pennon.transaction.concurrency.outcome import Outcome
from pennon.transaction.staging.leaf_preparation import abandon

SCHEMA = pa.schema({"id": pa.int64(), "region": pa.string(), "v": pa.int64()})
BY_REGION = ["region"]


def later() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=1)


def rows(*ids: int) -> list[dict[str, object]]:
    return [{"id": number, "region": "eu" if number % 2 else "us", "v": 0} for number in ids]


@pytest.fixture
def table(tmp_path: Path) -> PartitionedNamespace:
    made = pennon.create(tmp_path / "t", SCHEMA, BY_REGION)
    made.append(rows(1, 2))
    return made


def change_and_expire(place: str) -> None:
    other = pennon.open(place)
    other.update({"v": "v + 1"})
    other.maintenance.expire_snapshots(later(), 1)


def drop(place: str) -> None:
    shutil.rmtree(place)


def make_anew(place: str) -> None:
    drop(place)
    pennon.create(Path(place), SCHEMA, BY_REGION).append(rows(7))


def interrupted(place: str, act: Callable[[str], None]) -> pa.RecordBatchReader:
    """Rows between which something happens: by then the base is open, and no leaf of it."""

    def batches() -> Iterator[pa.RecordBatch]:
        act(place)
        yield pa.RecordBatch.from_pylist(rows(3, 4), SCHEMA)

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


def ids(place: str) -> list[int]:
    return sorted(pennon.open(place).scan().to_arrow()["id"].to_pylist())


def test_an_append_goes_on_upon_the_newest_version(table: PartitionedNamespace) -> None:
    table.append(interrupted(table.location, change_and_expire))
    assert ids(table.location) == [1, 2, 3, 4]
    assert table.scan("id < 3").to_arrow()["v"].to_pylist() == [1, 1]
    assert table.maintenance.check().is_valid


def test_an_append_of_many_partitions_goes_on_upon_the_newest_version(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA, ["id"])
    table.append(rows(*range(9)))

    def batches() -> Iterator[pa.RecordBatch]:
        change_and_expire(table.location)
        yield pa.RecordBatch.from_pylist(rows(*range(12)), SCHEMA)

    table.append(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    assert ids(table.location) == sorted([*range(9), *range(12)])


def test_an_append_beside_a_change_of_columns_goes_on_upon_the_newest_version(
    table: PartitionedNamespace,
) -> None:
    def widen(place: str) -> None:
        pennon.open(place).add_column("more", pa.int64(), default=5)
        pennon.open(place).append([{"id": 5, "region": "eu", "v": 0, "more": 6}])
        change_and_expire(place)

    table.append(interrupted(table.location, widen))
    read = table.scan().to_arrow()
    more = dict(zip(read["id"].to_pylist(), read["more"].to_pylist(), strict=True))
    assert more == {1: 5, 2: 5, 3: 5, 4: 5, 5: 6}


@pytest.mark.parametrize("write", ["overwrite", "overwrite_partitions"])
def test_an_overwrite_of_what_changed_is_a_conflict(
    table: PartitionedNamespace, write: str
) -> None:
    with pytest.raises(WriteConflict, match="Run the statement again"):
        getattr(table, write)(interrupted(table.location, change_and_expire))
    assert ids(table.location) == [1, 2]


@pytest.mark.parametrize(("act", "error"), [(drop, TableNotFound), (make_anew, TableMadeAnew)])
def test_an_append_to_a_table_that_went_says_so(
    table: PartitionedNamespace, act: Callable[[str], None], error: type[PennonError]
) -> None:
    with pytest.raises(error):
        table.append(interrupted(table.location, act))


def test_files_that_are_lost_are_told_beside_other_commits(table: PartitionedNamespace) -> None:
    def lose(place: str) -> None:
        for leaf in Path(place).glob("*$dataset"):
            shutil.rmtree(leaf)
        pennon.open(place).add_column("more", pa.int64())

    with pytest.raises(LeafMissing, match="Restore them"):
        table.append(interrupted(table.location, lose))


@pytest.mark.parametrize(("act", "error"), [(drop, TableNotFound), (make_anew, TableMadeAnew)])
def test_a_read_of_a_table_that_went_says_so(
    table: PartitionedNamespace, act: Callable[[str], None], error: type[PennonError]
) -> None:
    scan = table.scan()
    plan = scan.plan()
    act(table.location)
    with pytest.raises(error):
        read_plan(plan).to_arrow()


@pytest.mark.usefixtures("without_grace")
@pytest.mark.parametrize("kind", ["partitioned", "plain"])
@pytest.mark.parametrize("read", ["to_arrow", "to_batches", "to_datafusion", "where"])
def test_a_read_of_an_expired_version_says_so(tmp_path: Path, read: str, kind: str) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA, BY_REGION)
    table.append(rows(1, 2))
    if kind == "plain":
        (leaf, _) = sorted(Path(table.location).glob("*$dataset"))
        shutil.move(leaf, tmp_path / "plain.lance")
        table = pennon.open(tmp_path / "plain.lance")
        table.append([{"id": 3, "region": "eu", "v": 0}])
    scan = table.scan("v >= 0" if read == "where" else None)
    pennon.open(table.location).overwrite(rows(9))
    pennon.open(table.location).maintenance.expire_snapshots(later(), 1)
    with pytest.raises(SnapshotExpired, match="Run the query again"):
        list(scan.to_batches()) if read == "to_batches" else getattr(
            scan, "to_arrow" if read == "where" else read
        )()


def test_a_metadata_table_of_an_expired_version_says_so(table: PartitionedNamespace) -> None:
    stale = pennon.open(table.location)
    change_and_expire(table.location)
    with pytest.raises(SnapshotExpired, match="Run the query again"):
        stale.metadata("files")


@pytest.mark.parametrize("statement", ["delete", "update", "merge"])
def test_a_change_of_rows_that_it_read_in_an_expired_version_is_a_conflict(
    table: PartitionedNamespace, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = {"delete": row_delete, "update": row_update, "merge": row_merge}[statement]
    read = vars(module)["read_plan"]

    def expired(*arguments: object) -> object:
        monkeypatch.setattr(module, "read_plan", read)
        change_and_expire(table.location)
        return read(*arguments)

    monkeypatch.setattr(module, "read_plan", expired)
    statements: dict[str, Callable[[], object]] = {
        "delete": lambda: table.delete("id = 1 OR v = 9"),
        "update": lambda: table.update({"v": "7"}, where="id = 1"),
        "merge": lambda: table.merge(rows(1), "id").when_matched_update_all().execute(),
    }
    with pytest.raises(WriteConflict, match="which the statement read, has expired meanwhile"):
        statements[statement]()
    assert pennon.open(table.location).scan().to_arrow()["v"].to_pylist() == [1, 1]


def test_rows_of_another_table_that_expired_are_no_conflict(
    table: PartitionedNamespace, tmp_path: Path
) -> None:
    source = pennon.create(tmp_path / "source", SCHEMA, BY_REGION)
    source.append(rows(1, 2))
    scan = source.scan()
    change_and_expire(source.location)
    with pytest.raises(SnapshotExpired, match="source"):
        table.merge(scan, "id").when_matched_update_all().execute()


def test_rows_are_staged_and_given_up_though_their_base_expired(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu"})
    before: list[Path] = []

    def batches() -> Iterator[pa.RecordBatch]:
        append(latest(base), {3: "eu"})
        expire(base.location, older_than=later())
        before.extend(sorted(Path(base.location).rglob("*.lance")))
        yield pa.RecordBatch.from_pydict({"id": [2, 4], "region": ["eu", "new"]})

    target = WriteTarget(base.location, base.version, base.current_spec.spec_version)
    staged = write_partitions(batches(), target)
    assert sorted(Path(base.location).rglob("*.lance")) != before
    assert abandon(base.location, staged, {})
    assert sorted(Path(base.location).rglob("*.lance")) == before


def test_a_commit_whose_version_has_expired_gives_the_newest(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu"})
    transaction = Transaction(base)
    transaction.append(stage(base, {2: "eu"}))
    outcome = transaction.commit()
    append(latest(base), {3: "eu"})
    expire(base.location, older_than=later(), retain_last=1)
    assert isinstance(outcome, Committed)
    assert outcome.version < outcome.snapshot.version
    assert regions(outcome.snapshot) == {"eu": [1, 2, 3]}


@pytest.mark.parametrize("statement", ["append", "update", "delete"])
def test_a_statement_whose_table_goes_behind_its_commit_gives_its_version(
    table: PartitionedNamespace, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table.version
    committed = Transaction.commit

    def commit_and_drop(transaction: Transaction) -> Outcome:
        outcome = committed(transaction)
        drop(table.location)
        return outcome

    monkeypatch.setattr(Transaction, "commit", commit_and_drop)
    arguments: dict[str, tuple[object, ...]] = {
        "append": (rows(3),),
        "update": ({"v": "v + 1"}, "id = 1"),
        "delete": ("id = 1",),
    }
    assert getattr(table, statement)(*arguments[statement]) == before + 1
    with pytest.raises(TableNotFound):
        table.refresh()
