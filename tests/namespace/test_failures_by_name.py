"""Failures of commits name the table as its user does, and not the folder that it is in."""

from __future__ import annotations

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
    TransactionModeChanged,
)
from pennon.maintenance.calls.procedures import call
from pennon.manifest.format.change_notice import ALTERED
from pennon.namespace import PartitionedNamespace
from pennon.transaction.writer_fence import without_writers


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
