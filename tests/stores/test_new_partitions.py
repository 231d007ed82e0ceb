"""A partition that is made on a store begins without a main branch: two files and a row."""

from __future__ import annotations

import lance
import pytest
from tests.stores.server import Fault, Proxy, options
from tests.stores.statements import filled, rows

from pennon.namespace import Lake, PartitionedNamespace


def leaves_of(table: PartitionedNamespace) -> list[tuple[str, int]]:
    leaves = table.snapshot.leaves().table
    places = [f"{table.location}/{place}" for place in leaves["location"].to_pylist()]
    return list(zip(places, leaves["read_version"].to_pylist(), strict=True))


def test_any_reader_opens_a_new_partition_at_its_version(proxy: Proxy, bucket: Lake) -> None:
    table = filled(bucket, 2)
    for place, version in leaves_of(table):
        dataset = lance.dataset(place, version=version, storage_options=options(proxy.port))
        assert dataset.count_rows() == 10
        with pytest.raises(ValueError, match="not found"):
            lance.dataset(place, storage_options=options(proxy.port))


def test_a_table_of_new_partitions_is_made_weak_and_strong_checked_and_cleared(
    proxy: Proxy, bucket: Lake
) -> None:
    table = filled(bucket, 2)
    table.append(rows(3, 1000))
    assert table.maintenance.check().is_valid
    table.maintenance.expire_snapshots(retain_last=1)
    table.maintenance.vacuum()
    table.maintenance.set_transaction_mode("weak")
    for place, _ in leaves_of(bucket.load_table("shop.orders")):
        assert lance.dataset(place, storage_options=options(proxy.port)).count_rows() > 0
    weak = bucket.load_table("shop.orders")
    weak.append(rows(4, 2000))
    weak.maintenance.set_transaction_mode("strong")
    strong = bucket.load_table("shop.orders")
    strong.append(rows(5, 3000))
    strong.delete("part = 4")
    strong.append(rows(5, 4000))
    assert strong.scan().count_rows() == 20 + 3 + 4 + 5 - 1 + 5
    assert strong.maintenance.check().is_valid


def test_rows_that_another_tool_put_in_the_place_of_a_partition_are_left_alone(
    proxy: Proxy, bucket: Lake
) -> None:
    table = filled(bucket, 1)
    ((place, _),) = leaves_of(table)
    table.delete("part = 0")
    others = rows(1).select(["part", "text"])
    lance.write_dataset(others, place, storage_options=options(proxy.port))
    with pytest.raises(Exception, match="LEAF_FOLDER_TAKEN"):
        table.append(rows(1))


def test_a_partition_whose_commit_lost_its_answers_is_there_once(
    proxy: Proxy, bucket: Lake
) -> None:
    with proxy.failing(
        Fault("lost", "PUT-IF", "dataset/_versions", count=2),
        Fault("failed", "PUT", "dataset/data", count=2),
    ):
        table = filled(bucket, 3)
    assert table.scan().count_rows() == 30
    assert table.maintenance.check().is_valid
