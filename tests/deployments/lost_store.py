"""An object store that is lost in the middle of a commit: at each request that it is sent.

A server that speaks S3 is fetched and runs beside the test (moto's). Between it and the table
stands a proxy, which loses one request that changes something, or the answer to it, and everything
after that until it is told to go on. Run by ``make test-deployments``.

However far the write came, nothing of it is there or all of it, the error says what was refused,
the next write goes on, and vacuum leaves the rows as they are.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.fetched import virtual_environment

import pennon
from pennon.errors import PennonError

SERVER = "moto[server]==5.2.5"
SCHEMA = pa.schema({"id": pa.int64(), "part": pa.int32()})
MOST_REQUESTS = 40


class Lost(Exception):
    """The connection is closed without an answer."""


class Proxy(ThreadingHTTPServer):
    """Hands requests on, until one is to be lost; then nothing more goes through."""

    daemon_threads = True

    def __init__(self, store: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.store = store
        self.lock = threading.Lock()
        self.restore()

    def restore(self) -> None:
        """Let everything through again."""
        self.changes, self.lost_at, self.is_answer_lost, self.is_lost = 0, 0, False, False

    def lose(self, at: int, *, is_answer: bool) -> None:
        """Lose the request of a number that changes something, or only the answer to it."""
        self.restore()
        self.lost_at, self.is_answer_lost = at, is_answer

    def handed_on(self, request: Handler) -> tuple[int, list[tuple[str, str]], bytes]:
        """Give the store's answer."""
        with self.lock:
            if self.is_lost:
                raise Lost
            self.changes += request.command in ("PUT", "POST", "DELETE")
            self.is_lost = 0 < self.lost_at == self.changes
            if self.is_lost and not self.is_answer_lost:
                raise Lost
            is_answered = not self.is_lost
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        store = http.client.HTTPConnection("127.0.0.1", self.store)
        store.request(request.command, request.path, body, dict(request.headers.items()))
        answer = store.getresponse()
        told = answer.status, answer.getheaders(), answer.read()
        store.close()
        if not is_answered:
            raise Lost
        return told


class Handler(BaseHTTPRequestHandler):
    """One connection of the store's client."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def handle_one_request(self) -> None:
        """Hand one request on."""
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        try:
            status, headers, body = self.server.handed_on(self)
        except (Lost, OSError):
            self.close_connection = True
            return
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        length = dict(headers).get("Content-Length", "0") if self.command == "HEAD" else len(body)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    programs = virtual_environment("moto", SERVER)
    if programs is None:
        pytest.skip("the server cannot be had")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = Path(tmp_path_factory.mktemp("store"), "log")
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    with log.open("wb") as output:
        command = [str(programs / "moto_server"), "-p", str(port)]
        store = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        wait_for_port(port)
        made = http.client.HTTPConnection("127.0.0.1", port)
        made.request("PUT", "/lake")
        assert made.getresponse().status == 200
        with Proxy(port) as between:
            threading.Thread(target=between.serve_forever, daemon=True).start()
            yield between
            between.shutdown()
    finally:
        store.terminate()
        store.wait()


def wait_for_port(port: int) -> None:
    for _ in range(600):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError


def options(proxy: Proxy) -> dict[str, str]:
    """Give storage options that do not try for minutes."""
    return {
        "aws_endpoint": f"http://127.0.0.1:{proxy.server_address[1]}",
        "allow_http": "true",
        "aws_access_key_id": "x",
        "aws_secret_access_key": "y",
        "aws_region": "us-east-1",
        "client_max_retries": "0",
        "client_retry_timeout": "2",
        "request_timeout": "10s",
    }


def ids(table: Any) -> Counter[int]:
    return Counter(table.refresh().scan().to_arrow()["id"].to_pylist())


def changed(table: Any, kind: str, number: int) -> None:
    """Run the statement that the store is lost in."""
    if kind == "append":
        table.append([{"id": number, "part": part} for part in (0, 1, number)])
    elif kind == "delete":
        table.delete(f"id = {number - 1}")
    else:
        table.maintenance.compact()


@pytest.mark.parametrize("kind", ["append", "delete", "compact"])
@pytest.mark.parametrize("is_answer", [False, True], ids=["request", "answer"])
def test_a_write_is_there_whole_or_not_at_all(proxy: Proxy, kind: str, *, is_answer: bool) -> None:
    proxy.restore()
    place = f"s3://lake/{kind}_{is_answer}"
    table = pennon.create(place, SCHEMA, partition_by=["part"], storage_options=options(proxy))
    table.append([{"id": 1, "part": part} for part in (0, 1, 2)])
    failures = Counter[str]()
    for number in range(2, MOST_REQUESTS):
        table.append([{"id": number, "part": part} for part in (0, 1, 2)] * 2)
        before = ids(table)
        proxy.lose(number - 1, is_answer=is_answer)
        expected = Counter(before)
        try:
            changed(table, kind, number + 100 if kind == "append" else number + 1)
        except PennonError as error:
            failures[f"{type(error).__name__} {place in str(error)}"] += 1
            is_whole = False
        else:
            is_whole = True
        is_done = not proxy.is_lost
        proxy.restore()
        if kind == "append":
            expected[number + 100] += 3
        elif kind == "delete":
            del expected[number]
        there = ids(table)
        assert there == expected if is_whole else there in (before, expected), number
        if is_done:
            break
    else:
        raise AssertionError(failures)
    assert failures.total() > 2
    assert all(failure.endswith("True") for failure in failures), failures
    before = ids(table)
    assert table.maintenance.check().violations == ()
    table.maintenance.vacuum(datetime.now(UTC) + timedelta(minutes=1))
    assert ids(table) == before
