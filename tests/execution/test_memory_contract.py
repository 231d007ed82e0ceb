"""A worker's memory stays near what it was given, also where a query needs far more."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.worker.worker_client import DERIVATION, Driver, Worker, called, field, scanned, transform

POOL = 64
# An idle worker's, as execution/memory.py counts it.
IDLE = 256
GROUPS = 2_000_000
ROWS_AT_ONCE = 500_000
NAME = (
    "a customer of a long name and of a number behind it, by which alone it is told from others: "
)


@pytest.fixture
def small_worker() -> Iterator[Worker]:
    process = Worker(**{"pennon.worker.memory": f"{POOL}m"})
    yield process
    process.stop()


def filled(worker: Worker, root: Path) -> None:
    with worker.connect() as connection:
        driver = Driver(connection, root)
        driver.ask("create_namespace", namespace=["shop"], properties={})
        fields = [field("name", "string"), field("n", "long")]
        made = driver.create(["shop", "names"], fields, [transform("bucket", 1, "name")])
        for first in range(0, GROUPS, ROWS_AT_ONCE):
            numbers = range(first, first + ROWS_AT_ONCE)
            names = [f"{NAME}{at * 7_368_787 % GROUPS:09}" for at in numbers]
            driver.insert(made, pa.table({"name": names, "n": list(numbers)}))


def grouped(worker: Worker, root: Path) -> pa.Table:
    with worker.connect() as connection:
        driver = Driver(connection, root)
        plan, _ = driver.scan(driver.ask("load_table", identifier=["shop", "names"]))
        catalog = {"catalog": driver.catalog, "plan": plan["plan"], "table": "names"}
        columns = scanned({1: "name", 2: "n"})
        scan = {"node": "scan", "columns": columns, **catalog}
        summed = [
            called(99, "sum", "`c2`", "long", "long"),
            called(98, "count", "1", "integer", "long"),
        ]
        group = {"node": "group", "child": 0, "grouping": ["`c1`"], "columns": [], "unknown": None}
        group |= {"keys": [[101, "`c1`", "string"]], "functions": summed, "outputs": []}
        reply = connection.request("derive_keys", nodes=[scan, group], **DERIVATION)
        (task,) = connection.arrow().to_pylist()
        fragment = reply["fragments"][0]["scan"]
        connection.request("run_fragment", fragment=fragment, split=task["split"])
        return connection.arrow()


def peak_megabytes(worker: Worker) -> int:
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(peak) >> 10


def test_groups_beyond_the_pool_take_no_more_than_a_container_has(
    small_worker: Worker, tmp_path: Path
) -> None:
    """A container has an idle worker, two pools and 64 MB: the libraries' and allocators' is one.

    This worker plans the query as well, which takes some 100 MB more (docs/deployment.md).
    """
    writer = Worker()
    filled(writer, tmp_path)
    writer.stop()
    groups = grouped(small_worker, tmp_path)
    key, added, counted = (groups[name] for name in groups.column_names)
    assert (groups.num_rows, pa.compute.sum(counted).as_py()) == (GROUPS, GROUPS)
    assert len(pa.compute.unique(key)) == GROUPS
    assert pa.compute.sum(added).as_py() == GROUPS * (GROUPS - 1) // 2
    assert peak_megabytes(small_worker) < IDLE + 2 * POOL + 64 + 100
    assert "groups beyond the memory" in small_worker.log.read_text()


_READ = """
import re, sys
from pathlib import Path
import pyarrow as pa
from pennon.execution import engine
rows = pa.record_batch({"n": pa.array(range(1 << 17), pa.int64())})
with pa.OSFile(sys.argv[1], "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
    for _ in range(512):
        writer.write_batch(rows)
def peak():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) >> 10
before = peak()
context = engine._context(engine._SPILLING, None, (), spills=True)
context.register_arrow("spilled", sys.argv[1])
(counted,) = context.sql("SELECT count(*) AS c, max(n) AS m FROM spilled").to_pylist()
assert counted == {"c": 1 << 26, "m": (1 << 17) - 1}
print(peak() - before)
"""


def test_a_file_of_spilled_groups_is_not_held_in_memory(tmp_path: Path) -> None:
    """DataFusion reads all batches of a range of a file at once; the file has 512 MB."""
    environment = {**os.environ, "PENNON_MEMORY": f"{POOL}m"}
    command = [sys.executable, "-c", _READ, str(tmp_path / "spilled.arrow")]
    read = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(read.stdout) < 4 * POOL
