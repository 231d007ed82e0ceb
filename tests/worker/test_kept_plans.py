"""What the worker remembers of planned scans stays small, and what it forgot is planned again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manifest.many_partitions import add_partitions
from pennon.catalog import table_ddl as tables
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.directory import Directory
from pennon.errors import PlanNotRepeated
from pennon.worker.requests import kept_plans as plans
from pennon.worker.wire.tokens import TableToken
from worker.worker_client import field, transform


def test_the_oldest_plans_go_when_the_kept_ones_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog("lance", str(tmp_path))
    Directory(catalog).create_namespace(["shop"], {}, if_not_exists=False)
    table = tables.create(
        catalog,
        ["shop", "orders"],
        schema={"type": "struct", "fields": [field("k", "long")]},
        transforms=[transform("identity", "k")],
        properties={},
        mode="create",
    )
    location = table.snapshot.location
    add_partitions(Path(location), 1_000)
    newest = TableToken("orders", location, table.snapshot.version + 1, is_plain=False).to_json()
    monkeypatch.setattr(plans, "_plans", plans._plans.copy())
    plans._plans.clear()
    asked = [plans.plan_of(catalog, newest, [f"`k` < {number}"]) for number in (100, 600, 900)]
    assert [each.plan for each in plans._plans.values()] == [plan for _, plan in asked]
    monkeypatch.setattr(plans, "_KEPT_BYTES", asked[2][1].table.nbytes)
    *_, (_, last) = (plans.plan_of(catalog, newest, [f"`k` < {number}"]) for number in (50, 850))
    assert [each.plan for each in plans._plans.values()] == [last]
    token, first = asked[0]
    again = plans.find_plan(catalog, token)
    assert again.table.num_rows == 100
    assert again.table == first.table
    with pytest.raises(PlanNotRepeated, match="Run the query anew"):
        plans.find_plan(catalog, json.dumps(json.loads(token) | {"leaves": 0}))
