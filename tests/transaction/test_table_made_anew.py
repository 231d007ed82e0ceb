"""A table was dropped and another one made at its path: no change of the first reaches it."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.transaction.lake import append, latest, make, regions, stage

import pennon
from pennon.catalog.configured_catalog import Catalog, WriteMode
from pennon.catalog.ddl import table_ddl
from pennon.catalog.layouts.partitioned_table import PartitionedTable
from pennon.catalog.tables.loaded_table import load
from pennon.errors import TableMadeAnew, TableNotFound
from pennon.leaf import write_partitions
from pennon.manifest import Snapshot, change_root
from pennon.manifest.format.rows import CommitIdentity
from pennon.transaction import Committed, Transaction
from pennon.transaction.transaction import _queues


def made_anew(old: Snapshot, *, versions: int) -> Snapshot:
    """Drop a table and make another one of the same columns at its path."""
    shutil.rmtree(old.location)
    new = make(Path(old.location).parent)
    for number in range(versions):
        new = append(new, {100 + number: "eu"})
    return latest(new)


@pytest.mark.parametrize("versions", [1, 3], ids=["fewer versions", "more versions"])
@pytest.mark.parametrize("kind", ["append", "replace", "drop"])
def test_a_commit_refuses_another_table(tmp_path: Path, kind: str, versions: int) -> None:
    base = append(append(make(tmp_path), {1: "eu"}), {2: "us"})
    transaction = Transaction(base)
    if kind == "drop":
        transaction.drop(base.leaves().table["object_id"].to_pylist()[:1])
    else:
        getattr(transaction, kind)(stage(base, {7: "eu", 8: "new"}))
    new = made_anew(base, versions=versions)
    before = regions(new)
    with pytest.raises(TableMadeAnew):
        transaction.commit()
    assert (latest(new).version, regions(latest(new))) == (new.version, before)


@pytest.mark.parametrize("versions", [1, 3], ids=["fewer versions", "more versions"])
def test_the_driver_and_its_tasks_refuse_another_table(tmp_path: Path, versions: int) -> None:
    base = append(append(make(tmp_path), {1: "eu"}), {2: "us"})
    table, rows = PartitionedTable("t", base), stage(base, {7: "eu"})
    made_anew(base, versions=versions)
    with pytest.raises(TableMadeAnew, match="Cannot use table t as"):
        PartitionedTable.open_base(
            "t", table.target, base.identity, WriteMode.APPEND, CommitIdentity.fresh()
        )
    with pytest.raises(TableMadeAnew):
        write_partitions([rows[0].values.slice(0, 0)], table.target)


def test_a_change_of_the_definition_refuses_another_table(tmp_path: Path) -> None:
    base = append(make(tmp_path), {1: "eu"})
    new = made_anew(base, versions=2)
    with pytest.raises(TableMadeAnew):
        change_root(base, properties={"owner": "me"})
    assert "owner" not in latest(new).properties


def test_appends_of_two_tables_at_one_path_are_no_group(tmp_path: Path) -> None:
    old = append(make(tmp_path), {1: "eu"})
    late = Transaction(old)
    late.append(stage(old, {7: "eu"}))
    new = made_anew(old, versions=1)
    fresh = Transaction(new)
    fresh.append(stage(new, {8: "eu"}))
    queue = _queues[new.location, ""]
    with ThreadPoolExecutor(2) as pool:
        with queue.committing:  # both wait, and are taken as one group
            outcomes = [pool.submit(late.commit), pool.submit(fresh.commit)]
            while len(queue.waiting) < 2:
                pass
        with pytest.raises(TableMadeAnew):
            outcomes[0].result()
        assert isinstance(outcomes[1].result(), Committed)
    assert regions(latest(new)) == {"eu": [8, 100]}


@pytest.mark.parametrize("versions", [0, 1, 3], ids=["none", "fewer versions", "more versions"])
@pytest.mark.parametrize(
    ("mode", "reads"),
    [(WriteMode.APPEND, ()), (WriteMode.APPEND, [["true"]]), (WriteMode.OVERWRITE, ())],
    ids=["append", "insert of its own rows", "overwrite"],
)
def test_a_commit_to_a_plain_dataset_refuses_another_one(
    tmp_path: Path, mode: WriteMode, reads: list[list[str]], versions: int
) -> None:
    """It was made: rows of the new dataset were gone, or files that it named."""
    place = str(tmp_path / "people.lance")
    for _ in range(2):
        lance.write_dataset(pa.table({"id": [1]}), place, mode="append")
    table = load(Catalog("lance", str(tmp_path)), ("people",)).stored
    staged = table.stage_unordered([pa.record_batch({"id": [7]})]).texts
    shutil.rmtree(place)
    for number in range(versions):
        lance.write_dataset(pa.table({"id": [number]}), place, mode="append")
    refusal = TableMadeAnew if versions else TableNotFound
    with pytest.raises(refusal, match=r"table lance\.people"):
        table.commit(mode, (), staged, CommitIdentity.fresh(), reads)
    assert Path(place).exists() == (versions > 0)
    if versions:
        assert lance.dataset(place).to_table()["id"].to_pylist() == list(range(versions))


def test_a_commit_to_a_table_that_is_dropped_meanwhile_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told by its folder, and that a plain dataset has no partitions."""
    lake = pennon.connect(str(tmp_path))
    table = lake.create_table("people", pa.schema({"id": pa.int64()}))
    table.append([{"id": 1}])
    commit = Transaction.commit

    def held(transaction: Transaction) -> object:
        table_ddl.drop(Catalog("lance", str(tmp_path)), ("people",))
        return commit(transaction)

    monkeypatch.setattr(Transaction, "commit", held)
    with pytest.raises(TableNotFound, match=r"table lance\.people: it was dropped meanwhile"):
        table.append([{"id": 2}])
