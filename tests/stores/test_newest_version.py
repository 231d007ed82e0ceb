"""Which version is the newest is asked for without a listing, and is what others have committed.

Another process is one of other storage options here: nothing that one remembers is the other's.
"""

from __future__ import annotations

import lance
import lance_namespace
import pyarrow as pa
import pytest
from tests.stores.server import BUCKET, Fault, Proxy, file_system, kinds, options
from tests.stores.statements import SCHEMA, filled, rows

import pennon
from pennon.errors import TableAlreadyExists
from pennon.namespace import Lake, PartitionedNamespace


@pytest.fixture
def others(proxy: Proxy, bucket: Lake) -> Lake:
    """The lake as another process has it."""
    own = {**options(proxy.port), "aws_virtual_hosted_style_request": "false"}
    return pennon.connect(bucket.root, storage_options=own)


def counted(table: PartitionedNamespace) -> int:
    return table.scan().count_rows()


@pytest.mark.usefixtures("without_upkeep_behind")
def test_a_commit_of_others_is_seen_without_a_listing(
    proxy: Proxy, bucket: Lake, others: Lake
) -> None:
    filled(bucket, 2)
    assert counted(bucket.load_table("shop.orders")) == 20
    for number in range(3):
        for _ in range(number):
            others.load_table("shop.orders").append(rows(2, 1000))
        proxy.taken()
        found = counted(bucket.load_table("shop.orders"))
        assert "LIST" not in kinds(proxy.taken())
        assert found == counted(others.load_table("shop.orders"))
    assert found == 26


def test_another_table_of_the_name_is_seen_at_once(bucket: Lake, others: Lake) -> None:
    filled(bucket, 2, appends=3)
    filled(bucket, 2, "shop.next")
    assert counted(bucket.load_table("shop.orders")) == 60
    others.rename_table("shop.orders", "shop.old")
    others.rename_table("shop.next", "shop.orders")
    assert counted(bucket.load_table("shop.orders")) == 20
    others.drop_table("shop.orders")
    assert not bucket.table_exists("shop.orders")
    filled(others, 1)
    assert counted(bucket.load_table("shop.orders")) == 10


def test_a_name_that_was_free_is_found_when_others_have_taken_it(
    proxy: Proxy, bucket: Lake
) -> None:
    stored = {f"storage.{name}": value for name, value in options(proxy.port).items()}
    upstream = lance_namespace.connect("dir", {"root": bucket.root, **stored})
    for name in ("plain", "orders"):
        assert not bucket.table_exists(f"shop.{name}")
    ids = pa.table({"id": [1, 2]})
    place = f"{bucket.root}/plain.lance"
    lance.write_dataset(ids, place, storage_options=options(proxy.port))
    upstream.register_table(
        lance_namespace.RegisterTableRequest(id=["shop", "plain"], location="plain.lance")
    )
    assert bucket.table_exists("shop.plain")
    upstream.create_namespace(lance_namespace.CreateNamespaceRequest(id=["shop", "orders"]))
    for name in ("plain", "orders"):
        with pytest.raises(TableAlreadyExists):
            bucket.create_table(f"shop.{name}", SCHEMA)


def test_a_table_made_anew_at_a_path_is_not_taken_for_the_one_before(
    proxy: Proxy, place: str
) -> None:
    stored = options(proxy.port)
    table = pennon.create(place, SCHEMA, partition_by=["part"], storage_options=stored)
    for number in range(3):
        table.append(rows(2, number * 100))
    assert counted(pennon.open(place, storage_options=stored)) == 6
    assert counted(pennon.open(place, storage_options=stored)) == 6
    file_system(proxy.port).delete_dir(f"{BUCKET}/{place.rpartition('/')[2]}")
    own = {**stored, "aws_virtual_hosted_style_request": "false"}
    pennon.create(place, SCHEMA, partition_by=["part"], storage_options=own).append(rows(1))
    assert counted(pennon.open(place, storage_options=stored)) == 1


def test_a_store_that_does_not_answer_is_no_sign_that_nothing_was_committed(
    proxy: Proxy, bucket: Lake, others: Lake
) -> None:
    filled(bucket, 2)
    bucket.load_table("shop.orders")
    others.load_table("shop.orders").append(rows(2, 1000))
    with proxy.failing(Fault("403", "GET", "__manifest/_versions", count=1)):
        assert counted(bucket.load_table("shop.orders")) == 22
