"""Joins that multiply rows: what is held of them, and what becomes of them when nobody waits."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.present import present
from tests.worker.worker_client import (
    DERIVATION,
    Connection,
    Driver,
    Worker,
    called,
    cpu_seconds,
    field,
    joined,
    scanned,
    transform,
)

# Every row meets every other: 2.5 thousand million pairs, minutes of work.
ROWS = 50_000
COLUMNS = [field("id", "long"), field("n", "long")]


@pytest.fixture
def own_worker() -> Iterator[Worker]:
    process = Worker()
    yield process
    process.stop()


SUMMED = [called(99, "sum", "(`c2` * `c12`)", "long", "long")]


def fragment_of(worker: Worker, root: Path, functions: list[dict] | None) -> dict:
    """Plan a join of all rows of two tables, aggregated or not: the request of its task."""
    with worker.connect() as connection:
        driver = Driver(connection, root)
        driver.ask("create_namespace", namespace=["shop"], properties={})
        nodes: list[dict] = []
        for at, name in enumerate(("one", "other")):
            made = driver.create(["shop", name], COLUMNS, [transform("bucket", 2, "id")])
            driver.insert(made, pa.table({"id": [7] * ROWS, "n": list(range(ROWS))}))
            plan, _ = driver.scan(driver.ask("load_table", identifier=["shop", name]))
            columns = scanned({10 * at + 1: "id", 10 * at + 2: "n"})
            catalog = {"catalog": driver.catalog, "plan": plan["plan"], "table": name}
            nodes.append({"node": "scan", "columns": columns, **catalog})
        nodes.append(joined(0, 1, "inner"))
        if functions is not None:
            grouped: dict = {"grouping": [], "columns": [], "keys": [], "functions": functions}
            grouped |= {"outputs": [], "unknown": None}
            nodes.append({"node": "group", "child": 2, **grouped})
        reply = connection.request("derive_keys", nodes=nodes, **DERIVATION)
        tasks = connection.arrow().to_pylist()
    fragment = reply["fragments"][0]["scan"]
    return {"op": "run_fragment", "fragment": fragment, "split": tasks[0]["split"]}


def started(worker: Worker, request: dict) -> Connection:
    running = worker.connect()
    running.ask_only(**request)
    return running


def becomes_idle(worker: Worker) -> bool:
    """Wait for a second in which hardly anything is computed; the join would take minutes."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        used = cpu_seconds(worker)
        time.sleep(1)
        if cpu_seconds(worker) - used < 0.3:
            return True
    return False


def resident_bytes(worker: Worker) -> int:
    pages = Path(f"/proc/{worker.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_a_join_that_multiplies_rows_is_streamed_and_stops(
    own_worker: Worker, tmp_path: Path
) -> None:
    running = started(own_worker, fragment_of(own_worker, tmp_path / "lake", None))
    running.frame()
    received = 0
    while received < 10 << 20:
        received += len(running.frame()[1])
    before = resident_bytes(own_worker)
    while received < 200 << 20:
        received += len(running.frame()[1])
    assert resident_bytes(own_worker) - before < 64 << 20
    running.socket.close()
    assert becomes_idle(own_worker)
    # Longer than it waits before it ends itself as one that computes for nobody.
    time.sleep(4)
    assert own_worker.process.poll() is None


def test_an_aggregate_that_nobody_waits_for_ends_with_its_process(
    own_worker: Worker, tmp_path: Path
) -> None:
    running = started(own_worker, fragment_of(own_worker, tmp_path / "lake", SUMMED))
    time.sleep(4)
    assert own_worker.process.poll() is None
    running.socket.close()
    assert own_worker.process.wait(timeout=30) == 3


def said(worker: Worker, word: str) -> dict:
    """Wait for a line that the process says of itself."""
    for line in present(worker.process.stdout):
        if word in (message := json.loads(line)):
            return message
    pytest.fail(f"the worker ended and never said {word}")


def has_yielded(worker: Worker) -> bool:
    """Wait until one thread of the process, and no other, has the least priority."""
    deadline = time.monotonic() + 30
    found: list[int] = []
    while time.monotonic() < deadline and 19 not in found:
        threads = [int(path.name) for path in Path(f"/proc/{worker.process.pid}/task").iterdir()]
        found = []
        for thread in threads:
            with contextlib.suppress(ProcessLookupError):  # it has ended since it was listed
                found.append(os.getpriority(os.PRIO_PROCESS, thread))
        time.sleep(0.05)
    return found.count(19) == 1


def test_a_process_with_abandoned_work_retires_and_ends_what_others_wait_for(
    own_worker: Worker, tmp_path: Path
) -> None:
    request = fragment_of(own_worker, tmp_path / "lake", SUMMED)
    assert said(own_worker, "alive") == {"alive": True}
    running, other = started(own_worker, request), started(own_worker, request)
    running.socket.close()
    assert said(own_worker, "retired") == {"retired": True}
    with own_worker.connect() as late:
        # One that was sent before the JVM heard of it is answered all the same.
        assert Driver(late, tmp_path / "lake").ask("list_namespaces", namespace=[])
    assert own_worker.process.poll() is None
    assert has_yielded(own_worker)
    other.socket.close()
    assert own_worker.process.wait(timeout=30) == 3
