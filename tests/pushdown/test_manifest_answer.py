"""Aggregates over partition values: their groups, and what is left to the running query."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.present import present
from tests.pushdown.stated_nodes import call_of, output_of, where

import pennon
from pennon.execution.engine import rows_over
from pennon.plan import Column, Group, PlanNode, Project, Scan
from pennon.planning import ScanPlan
from pennon.predicate.condition import Semantics
from pennon.pushdown.manifest_answer import manifest_answer

KINDS = {"k": pa.int32(), "day": pa.date32(), "dec": pa.decimal128(9, 2), "s": pa.string()}
VALUES = [
    (0, date(1969, 12, 31), Decimal("-1.50"), "a'b"),
    (2, None, Decimal("0.00"), "c\\d"),
    (None, date(2024, 2, 29), None, ""),
]
ROWS = [dict(zip(KINDS, VALUES[at % 3], strict=True)) | {"id": at} for at in range(10)]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> ScanPlan:
    place: Path = tmp_path_factory.mktemp("answers") / "n"
    schema = pa.schema([("id", pa.int64()), *KINDS.items()])
    made = pennon.create(str(place), schema, list(KINDS))
    made.append(pa.Table.from_pylist(ROWS, schema))
    return pennon.open(str(place)).scan().plan()


def answer(plan: ScanPlan, key: str, argument: str, kind: pa.DataType) -> pa.Table | None:
    """Group by a column, and take the most of an expression."""
    columns = tuple(Column(at, name, kind) for at, (name, kind) in enumerate(KINDS.items()))
    at = list(KINDS).index(key)
    keys = (output_of(10, f"`c{at}`", KINDS[key]),)
    calls = (
        call_of(11, "count", "1", pa.int64()),
        call_of(12, "max", argument, kind),
    )
    nodes: list[PlanNode] = [
        Scan(columns),
        where(0, "TRUE"),
        Group(1, frozenset({at}), (), keys, calls, ()),
    ]
    found = manifest_answer(nodes, 2, {0: plan}, Semantics())
    return None if found is None else rows_over(found.select.sql, {})


@pytest.mark.parametrize("key", KINDS)
def test_groups_have_the_values_and_the_rows_of_the_partitions(plan: ScanPlan, key: str) -> None:
    found = answer(plan, key, "`c0`", pa.int32())
    rows = present(found).to_pylist()
    assert {row["c10"]: row["c11"] for row in rows} == Counter(row[key] for row in ROWS)
    assert {row["c10"]: row["c12"] for row in rows} == {row[key]: row["k"] for row in ROWS}


def test_an_error_of_a_value_is_left_to_the_running_query(plan: ScanPlan) -> None:
    """One partition has zero: planning, and EXPLAIN, are none the worse for it."""
    divided = "(CAST(10 AS INT) div `c0`)"
    assert answer(plan, "k", divided, pa.int64()) is None
    assert answer(plan, "k", "CAST((`c0` - CAST(129 AS INT)) AS TINYINT)", pa.int8()) is None


def test_columns_that_are_dropped_leave_the_rows_counted(plan: ScanPlan) -> None:
    columns = tuple(Column(at, name, kind) for at, (name, kind) in enumerate(KINDS.items()))
    calls = (
        call_of(11, "count", "1", pa.int64()),
        call_of(12, "max", "`c0`", pa.int32()),
    )
    nodes: list[PlanNode] = [
        Scan(columns),
        Project(0, (output_of(0, "`c0`", pa.int32()),)),
        Group(1, frozenset(), (), (), calls, ()),
    ]
    found = present(manifest_answer(nodes, 2, {0: plan}, Semantics()))
    assert rows_over(found.select.sql, {}).to_pylist() == [{"c11": 10, "c12": 2}]


@pytest.mark.parametrize("name", ["c-1", "least1", "is_row"])
def test_a_column_of_any_name_leaves_the_rows_counted(tmp_path: Path, name: str) -> None:
    schema = pa.schema([(name, pa.int32())])
    made = pennon.create(str(tmp_path / "n"), schema, [f"`{name}`"])
    made.append([{name: 10}, {name: 10}, {name: 7}])
    nodes: list[PlanNode] = [
        Scan((Column(1, name, pa.int32()),)),
        Group(
            0,
            frozenset(),
            (),
            (),
            (
                call_of(2, "count", "1", pa.int64()),
                call_of(3, "max", "`c1`", pa.int32()),
            ),
            (),
        ),
    ]
    found = manifest_answer(nodes, 1, {0: made.scan().plan()}, Semantics())
    assert found is not None
    assert rows_over(found.select.sql, {}).to_pylist() == [{"c2": 3, "c3": 10}]


@pytest.mark.parametrize(
    ("text", "kind", "is_one"),
    [
        ("EXTRACT(YEAR FROM `c0`)", pa.int32(), True),
        ("EXTRACT(YEAR FROM CAST(`c0` AS DATE))", pa.int32(), True),
        ("date_trunc('QUARTER', `c0`)", pa.timestamp("us"), True),
        ("date_format(`c0`, 'yyyy-MM')", pa.string(), True),
        ("date_trunc('DAY', `c0`)", pa.timestamp("us"), False),
        ("EXTRACT(WEEK FROM `c0`)", pa.int32(), False),
        ("EXTRACT(HOUR FROM `c0`)", pa.int32(), False),
        ("date_trunc('MONTH', `c0` - INTERVAL '1' SECOND)", pa.timestamp("us"), False),
        ("`c0`", pa.timestamp("us"), False),
    ],
)
def test_what_all_times_of_a_partition_have_in_common_is_answered(
    tmp_path: Path, text: str, kind: pa.DataType, *, is_one: bool
) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64())])
    made = pennon.create(str(tmp_path / "n"), schema, ["months(ts)"])
    times = [
        datetime.fromisoformat("1969-12-31T23:59:59.999999"),
        datetime.fromisoformat("2024-02-29"),
        None,
    ]
    made.append([{"ts": times[at % 3], "id": at} for at in range(10)])
    made.add_partition_field("days(ts)")
    made.append([{"ts": datetime.fromisoformat("2024-02-01T23:00:00"), "id": 10}])
    nodes: list[PlanNode] = [
        Scan((Column(0, "ts", pa.timestamp("us")),)),
        Group(
            0,
            frozenset(),
            (),
            (output_of(1, text, kind),),
            (call_of(2, "count", text, pa.int64()),),
            (),
        ),
    ]
    found = manifest_answer(nodes, 1, {0: made.scan().plan()}, Semantics())
    assert (found is not None) == is_one
    if found is not None:
        counts = [tuple(row.values())[1] for row in rows_over(found.select.sql, {}).to_pylist()]
        assert sorted(counts) == [0, 4, 4]
