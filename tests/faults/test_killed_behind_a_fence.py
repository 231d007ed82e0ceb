"""A process is killed while it keeps writers away from a table: the next writer goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pennon
from pennon.catalog.ddl import alter
from pennon.errors import TransactionModeChanged, UnsupportedTableChange
from pennon.manifest import Snapshot, change_root
from pennon.manifest.commits.root_change import commit_metadata
from pennon.manifest.format import properties as running_process
from pennon.manifest.format.properties import TRANSACTION, ChangeNotice
from pennon.manifest.table_identity import mode_of

if TYPE_CHECKING:
    from pennon.manifest import ManifestOutcome
    from pennon.namespace import PartitionedNamespace

SCHEMA = pa.schema({"id": pa.int64(), "region": pa.string()})
EU = {"id": 1, "region": "eu"}

# Kills itself on the way into one of the step.
KILLED = """
import os, signal, sys
import pyarrow as pa
import pennon
from pennon.catalog.ddl import alter, register, table_ddl
from pennon.catalog.layouts import partitioned_table
from pennon.catalog.configured_catalog import Catalog
from pennon.transaction import mode_change

root, what, step = sys.argv[1:]
module = {"alter": alter, "fence": mode_change, "ddl": table_ddl, "mode": mode_change,
          "replaced": register, "layout": partitioned_table}
place, _, name = step.partition(".")
setattr(module[place], name, lambda *arguments, **named: os.kill(os.getpid(), signal.SIGKILL))
lake = pennon.connect(root)
table = lake.load_table("shop.orders")
if what == "alter":
    table.add_column("n", pa.int32(), nullable=False)
elif what == "replace":
    new = pennon.create(root + "/new", pa.schema({"id": pa.int64(), "region": pa.string()}))
    reads = [(table.location, table.version)]
    table_ddl.publish(Catalog("lance", root), ("shop", "orders"), new.location, "replace", reads)
else:
    table.maintenance.set_transaction_mode(what)
"""


def kill(lake: Path, what: str, step: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(lake), what, step], check=False, timeout=300
    )
    assert done.returncode == -signal.SIGKILL


def orders(folder: Path, mode: str = "strong") -> PartitionedNamespace:
    lake = pennon.connect(folder)
    lake.create_namespace("shop")
    return lake.create_table("shop.orders", SCHEMA, ["region"], properties={"transaction": mode})


@pytest.mark.parametrize("mode", ["strong", "weak"])
@pytest.mark.parametrize("step", ["fence.refuse_older", "alter.change_root"])
def test_a_killed_addition_of_a_column_keeps_no_writer_away(
    tmp_path: Path, step: str, mode: str
) -> None:
    table = orders(tmp_path, mode)
    kill(tmp_path, "alter", step)
    assert mode_of(pennon.open(table.location).snapshot) is None
    table.refresh().append([EU])
    assert table.scan().to_arrow().to_pylist() == [EU]
    assert mode_of(table.snapshot) == mode


@pytest.mark.parametrize("step", ["fence.refuse_older", "replaced._check_same"])
def test_a_killed_replacement_keeps_no_writer_away(tmp_path: Path, step: str) -> None:
    table = orders(tmp_path)
    kill(tmp_path, "replace", step)
    begun_before = pennon.open(table.location)
    begun_before.append([EU])
    assert table.refresh().scan().to_arrow().to_pylist() == [EU]


def test_a_table_that_lost_its_name_before_the_kill_takes_no_rows(tmp_path: Path) -> None:
    """They would be gone with its files."""
    table = orders(tmp_path)
    by_its_path = pennon.open(table.location)
    kill(tmp_path, "replace", "ddl.delete_files")
    with pytest.raises(TransactionModeChanged, match="another table was put in its place"):
        by_its_path.append([EU])
    table.append([EU])
    assert table.location != by_its_path.location
    assert table.scan().to_arrow().to_pylist() == [EU]


@pytest.mark.parametrize(
    ("mode", "step"),
    [
        ("strong", "publish"),
        ("strong", "forget_read_versions"),
        ("strong", "end_change"),
        ("weak", "commit_leaves"),
        ("weak", "end_change"),
    ],
)
def test_a_killed_change_of_the_mode_is_turned_back_by_the_next_writer(
    tmp_path: Path, mode: str, step: str
) -> None:
    table = orders(tmp_path, mode)
    table.append([EU])
    kill(tmp_path, {"strong": "weak", "weak": "strong"}[mode], f"mode.{step}")
    assert mode_of(pennon.open(table.location).snapshot) is None
    table.append([{"id": 2, "region": "eu"}])
    assert mode_of(pennon.open(table.location).snapshot) in ("strong", "weak")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def announce(table: PartitionedNamespace, notice: ChangeNotice) -> None:
    newest = Snapshot.open(table.location)
    commit_metadata(newest.manifest, {TRANSACTION: str(notice)})


@pytest.mark.parametrize("target", ["altered", "weak"])
def test_a_change_of_another_machine_is_ended_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    table = orders(tmp_path)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(running_process, "_machine", lambda: "another one")
        notice = ChangeNotice.of_this_process(target)
    announce(table, notice)
    with pytest.raises(TransactionModeChanged, match="Run it again when that has ended"):
        table.append([EU])
    later = (notice.until or 0) / 1000 + 1
    monkeypatch.setattr(time, "time", lambda: later)
    table.append([EU])
    assert table.scan().to_arrow().to_pylist() == [EU]


def test_a_column_is_not_added_where_its_time_was_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer has ended the change, and added a row that has no value in the column."""
    table = orders(tmp_path)
    other = pennon.open(table.location)

    def late(*args: Any, **named: Any) -> ManifestOutcome:
        with monkeypatch.context() as gone:
            gone.setattr(running_process, "_process", lambda number: f"{number}@0")
            other.append([EU])
        return change_root(*args, **named)

    monkeypatch.setattr(alter, "change_root", late)
    with pytest.raises(UnsupportedTableChange, match="rows that are stored already"):
        table.add_column("n", pa.int32(), nullable=False)
    assert table.refresh().scan().to_arrow().to_pylist() == [EU]
