"""A store on a bad day: what a statement says was done is there, once, and the table is whole."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import pytest
from tests.stores.server import BUCKET, Fault, Proxy, options
from tests.stores.statements import CHANGES, filled

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
