"""What the worker remembers of planned scans stays small, and what it forgot is planned again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.manifest.many_partitions import add_partitions
from tests.worker.worker_client import field, transform

from pennon.caching import Cache
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import table_ddl as tables
from pennon.catalog.directory import Directory
from pennon.errors import PlanNotRepeated, TableMadeAnew
from pennon.manifest import Snapshot
from pennon.worker.requests import kept_plans as plans
from pennon.worker.wire.tokens import TableToken


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
    snapshot = Snapshot.open(location)
    newest = TableToken(
        "orders", location, snapshot.version, snapshot.layout, identity=snapshot.identity
    ).to_json()
    cache: Cache[plans._Kept] = Cache("plans", max_bytes=1 << 20, weigh=lambda kept: kept.nbytes)
    monkeypatch.setattr(plans, "_plans", cache)
    asked = [plans.plan_of(catalog, newest, [f"`k` < {number}"]) for number in (100, 600, 900)]
    assert (cache.figures.entries, cache.figures.evictions) == (3, 0)
    assert cache.figures.num_bytes > sum(plan.table.nbytes for _, plan in asked)
    one = asked[2][1].table.nbytes + (20 << 10)
    cache = Cache("plans", max_bytes=one, weigh=lambda kept: kept.nbytes)
    monkeypatch.setattr(plans, "_plans", cache)
    for number in (50, 850):
        plans.plan_of(catalog, newest, [f"`k` < {number}"])
    assert (cache.figures.entries, cache.figures.evictions) == (1, 1)
    token, first = asked[0]
    again = plans.find_plan(catalog, token)
    assert again.table.num_rows == 100
    assert again.table == first.table
    with pytest.raises(PlanNotRepeated, match="Run the query anew"):
        plans.find_plan(catalog, json.dumps(json.loads(token) | {"leaves": 0}))
    stale = json.loads(newest) | {"identity": "0123456789abcdef"}
    with pytest.raises(TableMadeAnew, match="Run the query anew"):
        plans.plan_of(catalog, json.dumps(stale), [])
