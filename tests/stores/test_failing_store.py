"""A store on a bad day: what a statement says was done is there, once, and the table is whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.present import present
from tests.separate_process import ROOT
from tests.stores.server import BUCKET, Fault, Proxy, options
from tests.stores.statements import CHANGES, SCHEMA, filled

import pennon
from pennon.errors import PennonError
from pennon.namespace import Lake, PartitionedNamespace

Rows = list[tuple[object, ...]]

OF_MANIFEST, OF_LEAF = "orders/__manifest/_versions", "dataset/_versions"
SHORT = [
    Fault("reset", share=0.1, count=-1),
    Fault("lost", "PUT-IF", OF_MANIFEST),
    Fault("lost", "PUT-IF|POST|DELETE", "_refs/tags|delete", count=2),
]
MORE = [
    *(Fault(status, count=3) for status in ("503", "429", "500", "reset")),
    Fault("503", share=0.1, count=-1),
    Fault("truncated", "GET", count=2),
    Fault("slow", "PUT-IF", seconds=1),
    Fault("lost", "PUT", "/data/"),
    Fault("lost", "PUT-IF", OF_LEAF, count=2),
    Fault("failed", "PUT-IF", OF_MANIFEST, count=3),
]
_LONG = pytest.mark.skipif(
    not os.environ.get("PENNON_EXHAUSTIVE"), reason="two minutes: part of `make test-store`"
)


def rows_of(table: PartitionedNamespace) -> Rows:
    read = table.scan(columns=["id", "part", "text"]).to_arrow().sort_by("id")
    return list(zip(*(column.to_pylist() for column in read.columns), strict=True))


@pytest.fixture(scope="module")
def expected(started_proxy: Proxy) -> dict[str, Rows]:
    """The rows behind each statement, where the store is well."""
    lake = pennon.connect(f"s3://{BUCKET}/well", storage_options=options(started_proxy.port))
    lake.create_namespace("shop")
    table = filled(lake, 4, appends=2)
    found = {}
    for name, change in CHANGES.items():
        change(table)
        found[name] = rows_of(table)
    return found


@pytest.mark.usefixtures("without_grace")
@pytest.mark.parametrize(
    "fault", [*SHORT, *(pytest.param(fault, marks=_LONG) for fault in MORE)], ids=repr
)
def test_a_statement_that_meets_faults_of_the_store_is_done_once(
    proxy: Proxy, bucket: Lake, expected: dict[str, Rows], fault: Fault
) -> None:
    with proxy.failing(fault):
        table = filled(bucket, 4, appends=2)
    for name, change in CHANGES.items():
        with proxy.failing(fault):
            change(table)
        assert rows_of(table) == expected[name], name
    assert table.maintenance.check().is_valid


@pytest.mark.usefixtures("without_grace")
@pytest.mark.parametrize(
    ("fault", "chosen"),
    [
        (Fault("503", "PUT.*|POST|DELETE", count=-1), ["append"]),
        pytest.param(Fault("503", "PUT.*|POST|DELETE", count=-1), CHANGES, marks=_LONG),
        pytest.param(Fault("reset", count=-1), CHANGES, marks=_LONG),
    ],
)
def test_a_store_that_stays_away_ends_a_statement_in_bounded_time_and_the_next_one_is_done(
    proxy: Proxy,
    bucket: Lake,
    expected: dict[str, Rows],
    fault: Fault,
    chosen: Iterable[str],
) -> None:
    table = filled(bucket, 4, appends=2)
    before = rows_of(table)
    for name in chosen:
        began, refused = time.monotonic(), None
        with proxy.failing(fault):
            try:
                CHANGES[name](table)
            except PennonError as error:
                refused = error
        assert time.monotonic() - began < 60, name  # not a speed: Lance tries for 180 seconds
        table = bucket.load_table("shop.orders")
        if refused is None:  # it had nothing to do, or to clear away
            assert name in ("expire", "vacuum"), name
        else:
            assert rows_of(table) == before, name
            CHANGES[name](table)
        before = rows_of(table)
        assert before == expected[name], name
    assert table.maintenance.check().is_valid


WRITER = """
import json, sys
import pennon
from tests.stores.statements import rows
place, options, first = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
table = pennon.connect(place, storage_options=options).load_table("shop.orders")
for number in range(first, first + 100):
    print("begins", number, flush=True)
    table.append(rows(4, number * 4))
    print("done", number, flush=True)
"""
WRITERS, KILLED_AFTER = 3, 3


@_LONG
def test_writers_that_race_and_are_killed_lose_and_double_nothing_on_a_store(
    proxy: Proxy, bucket: Lake
) -> None:
    bucket.create_table("shop.orders", SCHEMA, partition_by=["part"])
    faults = (
        Fault("503", share=0.01, count=-1),
        Fault("lost", "PUT-IF", share=0.03, count=-1),
    )
    arguments = [bucket.root, json.dumps(options(proxy.port))]
    said: dict[int, list[str]] = {}

    def run(writer: int) -> None:
        command = [sys.executable, "-c", WRITER, *arguments, str(writer * 1000)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            lines = said[writer] = []
            for line in present(process.stdout):
                lines.append(line)
                # Each is killed at another step: a little behind the beginning of an append.
                if line.startswith("begins") and len(lines) > 2 * KILLED_AFTER:
                    time.sleep(0.05 * (writer % WRITERS))
                    process.kill()

    with proxy.failing(*faults), ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(run, range(2 * WRITERS)))
    told = [line.split() for lines in said.values() for line in lines]
    begun = {int(number) for word, number in told if word == "begins"}
    done = {int(number) for word, number in told if word == "done"}
    assert len(done) >= 2 * WRITERS * KILLED_AFTER
    table = bucket.load_table("shop.orders")
    found = Counter(int(str(row[0])) // 4 for row in rows_of(table))
    assert set(found.values()) == {4}  # each append whole, and once
    assert done <= set(found) <= begun
    assert table.maintenance.check().is_valid
