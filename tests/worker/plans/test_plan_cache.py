"""What the worker remembers of planned scans stays small, and what it forgot is planned again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.manifest.many_partitions import add_partitions
from tests.worker.worker_client import field, transform

from pennon.caching import Cache
from pennon.caching.cache import _CACHES
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import table_ddl as tables
from pennon.catalog.directory import Directory
from pennon.errors import PennonError, PlanNotRepeated, TableMadeAnew
from pennon.manifest import Snapshot
from pennon.worker.messages.scan_messages import PlanScan
from pennon.worker.plans import plan_cache as plans
from pennon.worker.requests.scan_requests import plan_scan
from pennon.worker.wire.tokens import TableToken


def orders(catalog: Catalog, num_partitions: int) -> str:
    """Make a table of partitions ``k = 0 … num_partitions - 1``, and give its token."""
    Directory(catalog).create_namespace(("shop",), {}, if_not_exists=False)
    table = tables.create(
        catalog,
        ("shop", "orders"),
        schema={"type": "struct", "fields": [field("k", "long")]},
        transforms=[transform("identity", "k")],
        properties={},
        mode="create",
    )
    location = table.snapshot.location
    add_partitions(Path(location), num_partitions)
    snapshot = Snapshot.open(location)
    return TableToken(
        "orders", location, snapshot.version, snapshot.layout, identity=snapshot.identity
    ).to_json()


def test_the_oldest_plans_go_when_the_kept_ones_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog("lance", str(tmp_path))
    newest = orders(catalog, 1_000)
    cache: Cache[plans.CachedPlan] = Cache(
        "plans", max_bytes=1 << 20, weigh=lambda cached: cached.nbytes
    )
    monkeypatch.setattr(plans, "_plans", cache)
    asked = [plans.plan_of(catalog, newest, [f"`k` < {number}"]) for number in (100, 600, 900)]
    assert (cache.figures.entries, cache.figures.evictions) == (3, 0)
    assert cache.figures.num_bytes > sum(kept.plan.table.nbytes for _, kept in asked)
    one = asked[2][1].plan.table.nbytes + (20 << 10)
    cache = Cache("plans", max_bytes=one, weigh=lambda cached: cached.nbytes)
    monkeypatch.setattr(plans, "_plans", cache)
    for number in (50, 850):
        plans.plan_of(catalog, newest, [f"`k` < {number}"])
    assert (cache.figures.entries, cache.figures.evictions) == (1, 1)
    token, first = asked[0]
    again = plans.find_plan(catalog, token)
    assert again.plan.table.num_rows == 100
    assert again.plan.table == first.plan.table
    with pytest.raises(PlanNotRepeated, match="Run the query anew"):
        plans.find_plan(catalog, json.dumps(json.loads(token) | {"leaves": 0}))
    stale = json.loads(newest) | {"identity": "0123456789abcdef"}
    with pytest.raises(TableMadeAnew, match="Run the query anew"):
        plans.plan_of(catalog, json.dumps(stale), [])


def backwards(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64()))


class LastRowFirst:
    """A query of Lance that gives its rows in the other order: none is promised."""

    def __init__(self, query: Any) -> None:
        self._query = query

    def __getattr__(self, name: str) -> Callable[..., LastRowFirst]:
        return lambda *arguments: LastRowFirst(getattr(self._query, name)(*arguments))

    def to_stream_reader(self) -> pa.RecordBatchReader:
        return backwards(self._query.to_stream_reader().read_all()).to_reader()


@pytest.mark.parametrize("predicates", [[], ["`k` < 20"]], ids=["all rows", "over the index"])
def test_a_forgotten_plan_is_made_alike_where_lance_gives_rows_in_another_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, predicates: list[str]
) -> None:
    """Splits and keys name partitions by their places; the plan was not repeated before."""
    catalog = Catalog("lance", str(tmp_path))
    token, first = plans.plan_of(catalog, orders(catalog, 50), predicates)
    for cache in tuple(_CACHES):
        cache.forget(lambda _: True)
    sql, to_table = lance.LanceDataset.sql, lance.LanceScanner.to_table
    monkeypatch.setattr(lance.LanceDataset, "sql", lambda *given: LastRowFirst(sql(*given)))
    monkeypatch.setattr(
        lance.LanceScanner, "to_table", lambda scanner: backwards(to_table(scanner))
    )
    again = plans.find_plan(catalog, token)
    assert again is not first
    assert again.plan.table["object_id"] == first.plan.table["object_id"]


def test_an_answer_about_a_scan_is_kept_as_long_as_its_plan_is(tmp_path: Path) -> None:
    catalog = Catalog("lance", str(tmp_path))
    table = orders(catalog, 50)
    columns = {"type": "struct", "fields": [field("k", "long")]}
    asked = PlanScan(
        catalog=catalog,
        table=table,
        schema=columns,
        predicates=("`k` < 20",),
        fully_pushed=(),
        options={},
        row_change=False,
        time_zone="UTC",
        num_tasks=2,
        max_bytes=1 << 20,
    )
    first = plan_scan(asked)
    assert (first.splits, first.guaranteed_by_partitions) == (20, (0,))
    of_stream = replace(asked, options={"startingVersion": "1"})
    assert plan_scan(of_stream).stream_option == "startingVersion"
    assert plan_scan(asked) is first
    assert plan_scan(replace(asked, row_change=True)).guaranteed_by_partitions == ()
    assert plan_scan(replace(asked, predicates=("`k` < 30",))).splits == 30
    add_partitions(Path(TableToken.from_json(table).location), 10)
    assert plan_scan(asked) is first
    (cache,) = (one for one in tuple(_CACHES) if one.name == "plans")
    weight = cache.figures.num_bytes
    for num_tasks in range(3, 40):
        plan_scan(replace(asked, num_tasks=num_tasks))
    assert weight < cache.figures.num_bytes < 3 * weight
    cache.forget(lambda _: True)
    again = plan_scan(asked)
    assert again == first
    assert again is not first
    shutil.rmtree(TableToken.from_json(table).location)
    with pytest.raises(PennonError):
        plan_scan(asked)
