"""A table that is dropped while somebody has it open is missed as a whole, not file by file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pennon
from pennon.errors import TableNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from pennon.namespace import Lake, PartitionedNamespace

REGIONS = ("eu", "us", "asia")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = pennon.connect(tmp_path)
    lake.create_namespace("shop")
    table = lake.create_table("shop.orders", pa.schema({"id": pa.int64(), "region": pa.string()}))
    table.add_partition_field("region")
    table.append([{"id": number, "region": region} for number, region in enumerate(REGIONS)])
    return lake


def test_reading_a_dropped_table_says_so(lake: Lake) -> None:
    orders = lake.load_table("shop.orders")
    lake.drop_table("shop.orders")
    for read in (orders.scan().to_arrow, orders.scan("id = 1").count_rows):
        with pytest.raises(TableNotFound, match="it was dropped meanwhile"):
            read()


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.history(),
        lambda table: table.tags(),
        lambda table: table.snapshots(),
        lambda table: table.metadata("files"),
        lambda table: table.maintenance.check(),
        lambda table: table.maintenance.vacuum(dry_run=True),
        lambda table: table.maintenance.compact(),
        lambda table: table.maintenance.rollback(2),
    ],
    ids=["history", "tags", "snapshots", "files", "check", "vacuum", "compact", "rollback"],
)
def test_asking_about_a_dropped_table_says_so(
    lake: Lake, ask: Callable[[PartitionedNamespace], object]
) -> None:
    orders = lake.load_table("shop.orders")
    lake.drop_table("shop.orders")
    with pytest.raises(TableNotFound, match=r"lance\.shop\.orders: it was dropped meanwhile"):
        ask(orders)


def test_no_reader_meets_a_part_of_a_dropped_table(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = lake.load_table("shop.orders")
    place, delete = Path(orders.location), shutil.rmtree
    deleted: list[int] = []

    def observed(folder: Path) -> None:
        assert not place.exists()
        with pytest.raises(TableNotFound):
            orders.scan().to_arrow()
        deleted.append(len(list(Path(folder).iterdir())))
        delete(folder)

    monkeypatch.setattr(shutil, "rmtree", observed)
    lake.drop_table("shop.orders")
    assert deleted == [len(["__manifest", *REGIONS])]
    assert not list(place.parent.glob("dropped-*"))


@pytest.mark.parametrize("statement", ["drop", "create"])
def test_what_a_killed_drop_left_goes_with_the_next_table(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    root = Path(lake.load_table("shop.orders").location).parent
    lake.create_table("shop.other", pa.schema({"id": pa.int64()}))
    (root / "dropped-by-hand").mkdir()
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", _die)
        with pytest.raises(KeyboardInterrupt):
            lake.drop_table("shop.orders")
    (left,) = root.glob("dropped-????????????????")
    assert (left / "__manifest").exists()
    if statement == "drop":
        lake.drop_table("shop.other")
    else:
        lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
    assert [folder.name for folder in root.glob("dropped-*")] == ["dropped-by-hand"]


def _die(folder: Path) -> None:
    raise KeyboardInterrupt
