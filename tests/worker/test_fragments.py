"""Fragments over the socket: the rule's request, and the rows of the tasks that it gets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.worker.worker_client import (
    DERIVATION,
    IN_SPARK,
    Driver,
    WorkerFailed,
    called,
    compared,
    field,
    joined,
    limits,
    scanned,
    transform,
)

ORDERS = [field("id", "long"), field("region", "string"), field("day", "date")]
ITEMS = [field("id", "long"), field("price", "decimal(12,2)"), field("n", "integer")]
COUNT = 400


def orders() -> pa.Table:
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=at % 9) for at in range(COUNT)]
    return pa.table(
        {
            "id": pa.array([None if at % 50 == 0 else at for at in range(COUNT)], pa.int64()),
            "region": [f"r{at % 3}" for at in range(COUNT)],
            "day": days,
        }
    )


def items() -> pa.Table:
    rows = range(COUNT // 2, 2 * COUNT)
    return pa.table(
        {
            "id": pa.array([at // 2 for at in rows], pa.int64()),
            "price": pa.array([Decimal(at) for at in rows], pa.decimal128(12, 2)),
            "n": pa.array([at % 7 for at in rows], pa.int32()),
        }
    )


class Tables:
    """Two tables on 8 and 4 buckets of the key, and requests about them."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.plans = {}
        for name, fields, buckets, rows in (
            ("orders", ORDERS, 8, orders()),
            ("items", ITEMS, 4, items()),
        ):
            made = driver.create(["shop", name], fields, [transform("bucket", buckets, "id")])
            driver.insert(made, rows)
            table = driver.ask("load_table", identifier=["shop", name])
            self.plans[name], _ = driver.scan(table)

    def scan(self, name: str, first: int) -> dict:
        fields = ORDERS if name == "orders" else ITEMS
        catalog, plan = self.driver.catalog, self.plans[name]["plan"]
        scan = {"node": "scan", "catalog": catalog, "plan": plan, "table": name}
        return scan | {"columns": scanned({first + at: it["name"] for at, it in enumerate(fields)})}

    def derive(self, nodes: Sequence[dict], **options: object) -> tuple[dict, list[dict]]:
        reply = self.driver.connection.request("derive_keys", nodes=nodes, **DERIVATION | options)
        return reply, self.driver.connection.arrow().to_pylist()

    def rows(self, fragment: dict, tasks: Sequence[dict]) -> list[tuple]:
        found = []
        for task in tasks:
            assert (task["scan"], task["leaf"]) == (fragment["root"], -1)
            connection = self.driver.connection
            connection.request("run_fragment", fragment=fragment["scan"], split=task["split"])
            table = connection.arrow()
            assert table.column_names == [f"c{column}" for column in fragment["columns"]]
            found += [tuple(row.values()) for row in table.to_pylist()]
        return found


@pytest.fixture
def tables(driver: Driver) -> Tables:
    return Tables(driver)


def join(left: int, right: int, condition: str | None = "(`c1` = `c11`)") -> dict:
    return joined(left, right, "inner", condition)


def where(child: int, condition: str | None, *prunings: dict) -> dict:
    node = {"node": "filter", "child": child, "condition": condition}
    return node | {"prunings": list(prunings)}


def group(child: int, keys: list[tuple[int, str, str]], calls: list[dict] | None) -> dict:
    return {
        "node": "group",
        "child": child,
        "grouping": [text for _, text, _ in keys],
        "columns": [[key, text, kind] for key, text, kind in keys],
        "keys": [[100 + key, text, kind] for key, text, kind in keys],
        "functions": calls,
        "outputs": [],
        "unknown": None,
    }


def unknown_window(child: int) -> dict:
    """A window by column 1 of a function that the worker does not know."""
    call: dict = {"attribute": 300, "name": None, "arguments": [], "frame": None, "type": "long"}
    window = {"node": "window", "child": child, "functions": [call | {"ignores_nulls": False}]}
    return window | {"partition": ["`c1`"], "order": [], "outputs": []}


COUNTED = [called(200, "count", "1", "integer", "long")]
MATCHES = 600 - 12  # two items for each order from 100 on, but for the orders without a key


def test_a_join_of_different_bucket_counts_is_one_fragment(tables: Tables) -> None:
    nodes = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1)]
    reply, rows = tables.derive(nodes)
    (fragment,) = reply["fragments"]
    assert (fragment["root"], fragment["mode"]) == (2, "rows")
    assert fragment["columns"] == [1, 2, 3, 11, 12, 13]
    assert (reply["served"], reply["scans"]) == ([], {})
    assert [verdict["operator"] for verdict in reply["verdicts"]] == ["join"]
    assert "bucket(4, orders.id)" in reply["verdicts"][0]["common"]
    found = tables.rows(fragment, rows)
    assert len(found) == MATCHES
    assert all(row[0] == row[3] for row in found)
    assert "INNER JOIN" in fragment["details"]
    assert "\nr0: orders\nr0 partitions: " in fragment["description"]
    assert "\nr1: items\nr1 partitions: 4 of 4" in fragment["description"]
    assert "r1 grouping: bucket(4, id) as one key (4 groups)" in fragment["description"]


def test_an_aggregate_over_a_join_is_partial_or_complete(tables: Tables) -> None:
    below = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1)]
    by_region = group(2, [(2, "`c2`", "string")], COUNTED)
    reply, rows = tables.derive([*below, by_region])
    (fragment,) = reply["fragments"]
    assert (fragment["root"], fragment["mode"], fragment["columns"]) == (3, "partial", [102, 200])
    totals: dict[str, int] = {}
    for region, count in tables.rows(fragment, rows):
        totals[region] = totals.get(region, 0) + count
    assert sum(totals.values()) == MATCHES
    assert set(totals) == {"r0", "r1", "r2"}

    reply, rows = tables.derive([*below, group(2, [(1, "`c1`", "long")], COUNTED)])
    (fragment,) = reply["fragments"]
    assert fragment["mode"] == "complete"
    found = tables.rows(fragment, rows)
    assert len(found) == len({key for key, _ in found}) == MATCHES // 2
    assert {count for _, count in found} == {2}


def test_one_relation_is_aggregated_in_parts_or_by_its_own_key(tables: Tables) -> None:
    condition = "(`c13` = CAST(3 AS INT))"
    below = [tables.scan("items", 11), where(0, condition)]
    calls = [*COUNTED, called(201, "sum", "`c12`", "decimal(12,2)", "decimal(22,2)")]
    reply, rows = tables.derive([*below, group(1, [], calls)])
    (fragment,) = reply["fragments"]
    assert fragment["mode"] == "partial"
    parts = tables.rows(fragment, rows)
    kept = [row for row in items().to_pylist() if row["n"] == 3]
    assert sum(count for count, _ in parts) == len(kept)
    assert sum(amount for _, amount in parts if amount) == sum(row["price"] for row in kept)

    reply, rows = tables.derive([*below, group(1, [(11, "`c11`", "long")], calls)])
    (fragment,) = reply["fragments"]
    assert fragment["mode"] == "complete"
    found = tables.rows(fragment, rows)
    assert len(found) == len({row["id"] for row in kept})


@pytest.mark.parametrize(
    "options",
    [
        {"settings": IN_SPARK},
        {"rewrites": False},
        {"condition": None},
    ],
)
def test_what_is_not_certain_keeps_the_derived_key(tables: Tables, options: dict[str, Any]) -> None:
    condition = options.pop("condition", "(`c1` = `c11`)")
    nodes = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1, condition)]
    reply, rows = tables.derive(nodes, **options)
    assert reply["fragments"] == []
    assert reply["served"] == [2]
    assert {row["scan"] for row in rows} == {0, 1}


def test_an_aggregate_that_is_not_certain_stays_above_its_join(tables: Tables) -> None:
    below = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1)]
    reply, _ = tables.derive([*below, group(2, [(2, "`c2`", "string")], None)])
    (fragment,) = reply["fragments"]
    assert (fragment["root"], fragment["mode"]) == (2, "rows")


def test_a_pruning_by_a_join_that_stays_in_spark_is_not_lost(tables: Tables) -> None:
    for column, in_broadcast, count in ((12, False, 1), (12, True, 1), (22, False, 0)):
        pruning = {"id": 5, "in_broadcast": in_broadcast, "columns": [column]}
        pruned = where(0, "TRUE", pruning)
        nodes = [tables.scan("orders", 1), pruned, tables.scan("items", 11), join(1, 2)]
        reply, _ = tables.derive(nodes)
        assert len(reply["fragments"]) == count
        assert (3 in reply["served"]) is (count == 0)


def test_a_pruning_is_of_the_next_join_that_has_its_values(tables: Tables) -> None:
    """Column 22 is of the table above: the join below leaves out nothing by it."""
    pruned = where(0, "TRUE", {"id": 5, "in_broadcast": False, "columns": [22]})
    inner = [tables.scan("orders", 1), pruned, tables.scan("items", 11), join(1, 2)]
    outer = joined(3, 4, "inner", "(`c1` = `c21`)") | {"compared": [compared(1, 21)]}
    reply, _ = tables.derive([*inner, tables.scan("items", 21), outer])
    assert [fragment["root"] for fragment in reply["fragments"]] == [5]


def test_below_an_order_each_task_gives_its_first_rows(tables: Tables) -> None:
    below = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1)]
    by_id = group(2, [(1, "`c1`", "long")], COUNTED)
    order = [{"text": "`c101`", "ascending": False, "nulls_first": False}]
    top = {"node": "top", "child": 3, "count": 2, "order": order}
    reply, rows = tables.derive([*below, by_id, top])
    (fragment,) = reply["fragments"]
    assert (fragment["root"], fragment["mode"], fragment["columns"]) == (4, "complete", [101, 200])
    found = sorted((row[0] for row in tables.rows(fragment, rows)), reverse=True)
    assert found[:2] == [399, 398]
    assert len(found) <= 2 * len(rows)


def test_groups_of_several_tasks_are_not_cut(tables: Tables) -> None:
    below = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1)]
    by_region = group(2, [(2, "`c2`", "string")], COUNTED)
    order = [{"text": "`c200`", "ascending": True, "nulls_first": True}]
    for limit in ({"node": "top", "order": order}, {"node": "limit", "name": "LocalLimit"}):
        reply, _ = tables.derive([*below, by_region, {"child": 3, "count": 2, **limit}])
        (fragment,) = reply["fragments"]
        assert (fragment["root"], fragment["mode"]) == (3, "partial")


def test_nothing_reaches_over_a_broadcast_or_what_is_not_known(tables: Tables) -> None:
    broadcast = {"node": "pass", "child": 0, "name": "BroadcastExchange"}
    for between in (broadcast, unknown_window(0)):
        nodes = [tables.scan("orders", 1), between, tables.scan("items", 11), join(1, 2)]
        reply, _ = tables.derive(nodes)
        assert reply["fragments"] == []
        assert 3 in reply["served"]


def test_an_operator_of_spark_that_needs_the_key_is_told_it(tables: Tables) -> None:
    nodes = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1), unknown_window(2)]
    reply, _ = tables.derive(nodes)
    (fragment,) = reply["fragments"]
    assert (fragment["root"], fragment["keyed"], reply["served"]) == (2, True, [3])


def test_a_filter_on_a_scan_alone_is_no_fragment(tables: Tables) -> None:
    condition = "(`c13` = CAST(3 AS INT))"
    nodes = [tables.scan("items", 11), where(0, condition)]
    assert tables.derive(nodes)[0]["fragments"] == []


def test_a_text_that_is_no_fragment_is_refused(driver: Driver) -> None:
    for fragment, split in (("{}", "{}"), ("nonsense", "{}")):
        with pytest.raises(WorkerFailed, match="FragmentToken"):
            driver.connection.request("run_fragment", fragment=fragment, split=split)


def test_a_plain_dataset_is_aggregated_in_the_types_that_spark_sees(
    driver: Driver, tmp_path: Path
) -> None:
    vectors = pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2))
    unsigned = pa.array([1, None, 2**32 - 1], pa.uint32())
    lance.write_dataset(
        pa.table({"n": unsigned, "v": vectors, "s": ["a", "b", "a"]}),
        str(tmp_path / "lake" / "plain.lance"),
    )
    plan, _ = driver.scan(driver.ask("load_table", identifier=["plain"]))
    scan = {"node": "scan", "catalog": driver.catalog, "plan": plan["plan"], "table": "plain"}
    nodes = [
        scan | {"columns": scanned({1: "n", 2: "s"})},
        group(0, [(2, "`c2`", "string")], [called(200, "sum", "`c1`", "long", "long")]),
    ]
    tables = Tables.__new__(Tables)
    tables.driver = driver
    reply, rows = tables.derive(nodes)
    assert reply["fragments"][0]["mode"] == "partial"
    assert sorted(tables.rows(reply["fragments"][0], rows)) == [("a", 2**32), ("b", None)]
    nested = [scan | {"columns": scanned({1: "n", 3: "v"})}, group(0, [], COUNTED)]
    assert tables.derive(nested)[0]["fragments"] == []


WHOLE = {"settings": limits(one_task=1 << 24, replicated=1 << 26)}
DIVIDED = {"settings": limits(replicated=1 << 26)}


def test_a_small_query_is_one_complete_task(tables: Tables) -> None:
    below = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1)]
    reply, rows = tables.derive([*below, group(2, [(2, "`c2`", "string")], COUNTED)], **WHOLE)
    (fragment,) = reply["fragments"]
    assert (reply["one_task"], fragment["mode"], len(rows)) == (True, "complete", 1)
    found = tables.rows(fragment, rows)
    assert len(found) == 3
    assert sum(count for _, count in found) == MATCHES
    assert fragment["rows"] == 600


def test_a_small_query_opens_no_leaf_without_a_partner(tables: Tables) -> None:
    few = where(1, "(`c11` = 7L) OR (`c11` = 101L)")
    below = [tables.scan("orders", 1), tables.scan("items", 11), few, join(0, 2)]
    reply, rows = tables.derive([*below, group(3, [], COUNTED)], **WHOLE)
    (fragment,) = reply["fragments"]
    assert (reply["one_task"], len(rows)) == (True, 1)
    assert "at run time: partitions with " in fragment["details"]
    assert tables.rows(fragment, rows) == [(2,)]


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
def test_the_right_side_is_replicated_where_no_key_serves_a_join(tables: Tables, kind: str) -> None:
    computed = {
        "node": "project",
        "child": 1,
        "expressions": [[11, "(`c21` + CAST(0 AS BIGINT))", "long"]],
    }
    scans = [tables.scan("orders", 1), tables.scan("items", 21)]
    reply, rows = tables.derive([*scans, computed, joined(0, 2, kind)], **DIVIDED)
    (fragment,) = reply["fragments"]
    assert (fragment["root"], reply["one_task"]) == (3, False)
    assert "p0 in every worker: " in fragment["description"]
    known = {row["id"] for row in items().to_pylist()}
    lonely = sum(row["id"] not in known for row in orders().to_pylist())
    expected = {"left": MATCHES + lonely, "anti": lonely, "semi": MATCHES // 2}
    assert len(tables.rows(fragment, rows)) == expected.get(kind, MATCHES)


def test_a_key_that_is_missing_from_a_node_is_a_malformed_message(tables: Tables) -> None:
    for name in joined(0, 1, "inner"):
        if name != "node":
            node = {key: value for key, value in joined(0, 1, "inner").items() if key != name}
            with pytest.raises(WorkerFailed, match=f"Join has no field {name}"):
                tables.derive([tables.scan("orders", 1), tables.scan("items", 11), node])


def test_no_operator_of_a_small_query_is_said_to_shuffle(tables: Tables) -> None:
    nodes = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1, None)]
    reply, _ = tables.derive(nodes, **WHOLE)
    assert (reply["one_task"], reply["fragments"], reply["served"]) == (True, [], [])
    assert "one task" in reply["verdicts"][0]["reason"]


@pytest.mark.parametrize("aggregated", [COUNTED, []], ids=["groups", "rows"])
def test_one_executor_computes_a_query_of_few_rows_with_all_of_its_threads(
    tables: Tables, aggregated: list
) -> None:
    nodes = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1)]
    if aggregated:
        nodes.append(group(2, [(2, "`c2`", "string")], aggregated))
    settings = limits(one_task=1, one_executor=1 << 30)
    reply, rows = tables.derive(nodes, settings=settings, slots=2)
    (fragment,) = reply["fragments"]
    divided, several = tables.derive(nodes, settings=settings, slots=1, parallelism=8)
    assert (divided["one_task"], len(several) > 1) == (False, True)
    assert (reply["one_task"], len(rows) == 1) == (bool(aggregated), bool(aggregated))
    assert ("in 1 tasks of 2 threads" in fragment["description"]) == bool(aggregated)
    if aggregated:
        assert sum(count for _, count in tables.rows(fragment, rows)) == MATCHES
        for other in (
            {"settings": limits(one_executor=1 << 30)},
            {"settings": settings, "is_write": True},
        ):
            assert tables.derive(nodes, **other)[0]["one_task"] is False


@pytest.mark.parametrize(
    ("slots", "small", "key", "is_whole"),
    [(2, 1000, 2, True), (2, 900, 2, False), (1, 3000, 2, True), (4, 1, 2, True), (4, 1, 1, False)],
)
def test_one_of_several_executors_computes_what_they_are_not_done_with_sooner(
    tables: Tables, slots: int, small: int, key: int, *, is_whole: bool
) -> None:
    """31,200 bytes are read. Groups by column 1 are whole in each task: nothing to exchange."""
    nodes = [tables.scan("orders", 1), tables.scan("items", 11), join(0, 1)]
    nodes.append(group(2, [(key, f"`c{key}`", ("long", "string")[key - 1])], COUNTED))
    settings = limits(one_task=small, one_executor=1 << 30)
    reply, rows = tables.derive(nodes, settings=settings, slots=slots, parallelism=16)
    assert (reply["one_task"], len(rows) == 1) == (is_whole, is_whole)
    (fragment,) = reply["fragments"]
    assert sum(row[-1] for row in tables.rows(fragment, rows)) == MATCHES
