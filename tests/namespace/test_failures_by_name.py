"""Failures of commits name the table as its user does, and not the folder that it is in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.errors import (
    ChangesNotKept,
    PennonError,
    PredicateNotEvaluable,
    RollbackRefused,
    TableFilesGone,
    TransactionModeChanged,
)
from pennon.maintenance.procedures import call
from pennon.manifest.format.properties import ALTERED
from pennon.namespace import PartitionedNamespace
from pennon.transaction.mode_change import without_writers

REFUSED = "soundex(_change_type) = 'N000'"


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append([{"id": 3, "region": "us"}]),
        lambda table: table.overwrite([{"id": 3, "region": "us"}]),
        lambda table: table.delete("region = 'eu'"),
        lambda table: table.update({"id": "id + 1"}, "id = 1"),
        lambda table: table.merge([{"id": 1}], "id").when_matched_delete().execute(),
    ],
    ids=["append", "overwrite", "delete", "update", "merge"],
)
def test_a_write_that_is_kept_away_names_the_table(
    tmp_path: Path, change: Callable[[PartitionedNamespace], object]
) -> None:
    lake = pennon.connect(tmp_path)
    lake.create_namespace("shop")
    schema = pa.schema({"id": pa.int64(), "region": pa.string()})
    orders = lake.create_table("shop.orders", schema, ["region"])
    orders.append([{"id": 1, "region": "eu"}, {"id": 2, "region": "us"}])
    with without_writers(orders.snapshot, ALTERED):
        with pytest.raises(TransactionModeChanged) as refused:
            change(lake.load_table("shop.orders"))
        assert str(refused.value).startswith(
            "[TRANSACTION_MODE_CHANGED] Cannot write to lance.shop.orders: "
        )


def test_a_table_whose_folder_is_gone_is_named_and_can_be_dropped(tmp_path: Path) -> None:
    lake = pennon.connect(tmp_path)
    lake.create_namespace("shop")
    schema = pa.schema({"id": pa.int64()})
    folder = lake.create_table("shop.orders", schema, ["id"]).location
    shutil.rmtree(folder)
    with pytest.raises(TableFilesGone) as gone:
        lake.load_table("shop.orders")
    assert str(gone.value) == (
        f"[TABLE_FILES_GONE] Cannot open lance.shop.orders: the catalog names {folder}, and no "
        "table is there. Restore the folder from a copy, or drop the table, which then frees its "
        "name."
    )
    lake.drop_table("shop.orders")
    lake.create_table("shop.orders", schema).append([{"id": 1}])


@pytest.mark.parametrize(
    ("procedure", "arguments", "refused"),
    [
        ("rollback", {"version": 2}, RollbackRefused),
        ("changes", {"from_version": 2}, ChangesNotKept),
        ("compact", {"where": "id = (SELECT 1)"}, PredicateNotEvaluable),
    ],
    ids=["rollback", "changes", "compact"],
)
def test_a_procedure_that_is_refused_names_the_table(
    tmp_path: Path, procedure: str, arguments: dict[str, object], refused: type[PennonError]
) -> None:
    lake = pennon.connect(tmp_path)
    lake.create_namespace("shop")
    is_weak = refused is not PredicateNotEvaluable
    properties = {"transaction": "weak"} if is_weak else {}
    schema = pa.schema({"id": pa.int64()})
    lake.create_table("shop.orders", schema, properties=properties).append([{"id": 1}])
    with pytest.raises(refused, match=r" lance\.shop\.orders[: ]"):
        call(Catalog("lance", str(tmp_path)), procedure, {"table": "shop.orders", **arguments})


@pytest.mark.parametrize(
    "read",
    [
        lambda table: table.changes(2),
        lambda table: table.metadata("changes"),
        lambda table: table.scan(REFUSED).to_arrow(),
        lambda table: table.scan(REFUSED).to_datafusion(),
        lambda table: table.scan(REFUSED).count_rows(),
        lambda table: table.delete(REFUSED),
        lambda table: table.update({"id": 1}, REFUSED),
    ],
    ids=["changes", "metadata", "rows", "frame", "count", "delete", "update"],
)
def test_what_cannot_be_read_names_the_table(
    tmp_path: Path, read: Callable[[PartitionedNamespace], object]
) -> None:
    lake = pennon.connect(tmp_path)
    lake.create_namespace("shop")
    schema = pa.schema({"id": pa.int64(), "_change_type": pa.string()})
    orders = lake.create_table("shop.orders", schema)
    orders.append([{"id": 1, "_change_type": "new"}])
    with pytest.raises(PennonError, match=r"lance\.shop\.orders") as refused:
        read(orders)
    assert orders.location not in str(refused.value)
