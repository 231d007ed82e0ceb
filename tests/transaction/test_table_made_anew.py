"""A table was dropped and another one made at its path: no change of the first reaches it."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.transaction.lake import append, latest, make, regions, stage

from pennon.catalog.layouts.partitioned_table import PartitionedTable
from pennon.catalog.write_mode import WriteMode
from pennon.errors import TableMadeAnew
from pennon.leaf import write_partitions
from pennon.manifest import Snapshot, change_root
from pennon.manifest.format.commit_record import CommitIdentity
from pennon.transaction import Committed, Transaction
from pennon.transaction.group_commit import _queues


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
