"""One worker process for all tests of the folder; those that end a worker start their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.worker.worker_client import Connection, Driver, Worker


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    process = Worker()
    yield process
    assert process.stop() == 0


@pytest.fixture
def connection(worker: Worker) -> Iterator[Connection]:
    with worker.connect() as opened:
        yield opened


@pytest.fixture
def driver(connection: Connection, tmp_path: Path) -> Driver:
    made = Driver(connection, tmp_path / "lake")
    made.ask("create_namespace", namespace=["shop"], properties={})
    return made
