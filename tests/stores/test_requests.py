"""How many requests a statement sends to a store: they cost money, and those in sequence time.

The bounds leave a little room: requests side by side may find less remembered. What is measured
stands in docs/deployment.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from tests.stores.server import BUCKET, Asked, Proxy, in_sequence, kinds, options
from tests.stores.statements import CHANGES, SCHEMA, filled, rows

import pennon
from pennon.leaf.dataset import forget_opened
from pennon.namespace import Lake

PARTS = 10


pytestmark = pytest.mark.usefixtures("without_upkeep_behind")


def asked_by(proxy: Proxy, statement: Callable[[], object]) -> list[Asked]:
    proxy.taken()
    statement()
    return proxy.taken()


def test_an_append_sends_few_requests_for_each_partition(proxy: Proxy, bucket: Lake) -> None:
    table = bucket.create_table("shop.orders", SCHEMA, partition_by=["part"])
    made = asked_by(proxy, lambda: table.append(rows(PARTS)))
    # The folder is listed; a file of rows, and the two that Lance writes for a commit.
    assert len(made) <= 4 * PARTS + 16
    again = asked_by(proxy, lambda: table.append(rows(PARTS)))
    assert len(again) <= 4 * PARTS + 15  # one of them asks whether the files are there
    forget_opened()
    opened = asked_by(proxy, lambda: table.append(rows(PARTS)))
    assert len(opened) <= 5 * PARTS + 22
    by_itself = asked_by(proxy, lambda: table.append(rows(1)))
    assert len(by_itself) <= 21
    assert in_sequence(by_itself) <= 19


def test_a_table_is_made_by_few_requests(proxy: Proxy, bucket: Lake) -> None:
    bucket.create_table("shop.first", SCHEMA, partition_by=["part"])
    made = asked_by(proxy, lambda: bucket.create_table("shop.orders", SCHEMA, ["part"]))
    # 16 of upstream's to write the name, 11 for the two commits of the table's manifest.
    assert len(made) <= 34


def test_a_query_asks_for_what_changed_alone(proxy: Proxy, bucket: Lake) -> None:
    filled(bucket, PARTS)
    proxy.taken()
    table = bucket.load_table("shop.orders")
    # Whether there is a newer version of the catalog's root, and of the table.
    assert kinds(asked_by(proxy, lambda: bucket.load_table("shop.orders"))) == {"GET": 2}
    forget_opened()
    first = asked_by(proxy, lambda: table.scan().to_arrow())
    of_leaves = [request for request in first if "dataset/" in request.path]
    assert len(of_leaves) <= 2 * PARTS
    assert len(first) - len(of_leaves) <= 6
    again = asked_by(proxy, lambda: table.scan().to_arrow())
    assert [request.kind for request in again] == ["GET"] * PARTS  # a file of rows each
    assert asked_by(proxy, lambda: table.scan("part = 3").plan()) == []
    assert asked_by(proxy, lambda: table.scan().count_rows()) == []


def test_a_first_query_follows_few_requests(proxy: Proxy, bucket: Lake) -> None:
    filled(bucket, PARTS, appends=2)
    lake = pennon.connect(bucket.root, storage_options=bucket._catalog.storage)
    proxy.delay(0.02)
    asked = asked_by(proxy, lambda: lake.load_table("shop.orders").scan("part = 3").to_arrow())
    # Nothing that was read with other options is known: as in a new process.
    stored = {**bucket._catalog.storage, "aws_virtual_hosted_style_request": "false"}
    other = pennon.connect(bucket.root, storage_options=stored)
    anew = asked_by(proxy, lambda: other.load_table("shop.orders").scan("part = 3").to_arrow())
    proxy.delay(0)
    assert in_sequence(asked) <= 6
    # Of the root and of the table each the newest version, its manifest, its rows; then the leaf's.
    assert in_sequence(anew) <= 8
    assert kinds(anew)["LIST"] == 2


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("append", 30),
        ("delete", 36),
        ("delete a partition", 36),
        ("update", 60),
        ("merge", 66),
        ("overwrite", 26),
        ("add a column", 18),
        ("create a tag", 20),
        ("drop a tag", 12),
        ("compact", 12 * PARTS),
        ("expire", 110),
        ("vacuum", 25 * PARTS),
        ("history", 70),
        ("check", 8 * PARTS),
    ],
)
def test_a_statement_sends_no_more_requests_than_it_is_allowed(
    proxy: Proxy, changed: dict[str, int], name: str, most: int
) -> None:
    assert changed[name] <= most


@pytest.fixture(scope="module")
def changed(started_proxy: Proxy) -> dict[str, int]:
    """Count the requests of each statement, one after the other on one table."""
    started_proxy.delay(0)
    lake = pennon.connect(f"s3://{BUCKET}/counted", storage_options=options(started_proxy.port))
    lake.create_namespace("shop")
    table = filled(lake, PARTS, appends=3)
    statements = {
        **CHANGES,
        "history": lambda table: table.history(),
        "check": lambda table: table.maintenance.check(),
    }
    return {
        name: len(asked_by(started_proxy, partial(change, table)))
        for name, change in statements.items()
    }
