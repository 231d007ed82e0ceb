"""Tables, scans and plans in other processes: spawned ones read them, forked ones say why not."""

from __future__ import annotations

import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ProcessForked, SnapshotNotFound, TableMadeAnew

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pennon.planning.scan_plan import PlannedPartition

SCHEMA = pa.schema({"id": pa.int64(), "k": pa.string()})
ROWS = [{"id": at, "k": "xyz"[at % 3]} for at in range(30)]


@pytest.fixture
def table(tmp_path: Path) -> pennon.PartitionedNamespace:
    made = pennon.create(tmp_path / "t", SCHEMA, ["k"])
    made.append(ROWS)
    return made


def again(thing: object) -> object:
    return pickle.loads(pickle.dumps(thing))  # noqa: S301


def test_tables_scans_and_partitions_are_read_in_spawned_processes(
    table: pennon.PartitionedNamespace,
) -> None:
    scan = table.scan("id > 10 AND lower(k) LIKE '_' AND k <> 'x'")
    version, partitions = table.version, scan.plan().partitions
    pinned = pennon.open(table.location, version=version)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        appended = pool.submit(methodcaller("append", [{"id": 99, "k": "y"}]), table).result()
        table.refresh()
        assert appended == table.version == version + 1
        counted = [pool.submit(methodcaller("count_rows"), of) for of in (scan, table.scan())]
        assert [count.result() for count in counted] == [13, 31]
        assert pool.submit(attrgetter("schema"), pinned).result().names == ["id", "k"]
        (one, other) = [pool.submit(partitions.__getitem__, at).result() for at in (0, 1)]
    assert _rows(table, one) + _rows(table, other) == 13
    assert repr(again(scan.plan())) == repr(scan.plan())


def _rows(table: pennon.PartitionedNamespace, part: PlannedPartition) -> int:
    leaf = lance.dataset(f"{table.location}/{part.location}", version=part.version)
    return int(leaf.count_rows(part.residual))


def test_a_plain_dataset_is_pickled_as_a_table_is(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1, 2]}), str(tmp_path / "plain"))
    plain = again(pennon.open(tmp_path / "plain", storage_options={"timeout": "7s"}))
    assert isinstance(plain, pennon.PartitionedNamespace)
    assert plain.scan("id > 1").to_arrow().num_rows == 1
    assert plain.snapshot.storage_options == {"timeout": "7s"}


def test_what_is_gone_is_told_when_it_is_read(table: pennon.PartitionedNamespace) -> None:
    scan, other = again(table.scan()), again(table.scan(version=table.version - 1))
    table.append(ROWS)
    table.maintenance.rollback(table.version - 1)
    table.maintenance.expire_snapshots(retain_last=1, older_than=table.history()[-1].committed_at)
    with pytest.raises(SnapshotNotFound):
        other.to_arrow()  # type: ignore[attr-defined]
    shutil.rmtree(table.location)
    anew = pennon.create(table.location, SCHEMA, ["k"])
    anew.append(ROWS)
    with pytest.raises(TableMadeAnew):
        scan.to_arrow()  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_process_is_told_at_once_to_be_spawned(
    table: pennon.PartitionedNamespace,
) -> None:
    """Lance would wait for ever for threads that it has not."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        reads: list[tuple[Callable[..., object], object]] = [
            (methodcaller("to_arrow"), table.scan()),
            (methodcaller("append", ROWS), table),
            (attrgetter("schema"), table),
            (pennon.open, table.location),
        ]
        for read, of in reads:
            with pytest.raises(ProcessForked, match=r"get_context\('spawn'\)"):
                pool.submit(read, of).result(timeout=60)
        assert pool.submit(repr, pennon.connect("/lake")).result(timeout=60) == "Lake('/lake')"
