"""Columns and calls of one name, which DataFusion refuses, and queries that nest deep."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from tests.pushdown.computed import aggregate_of, computed, grouped, relation, scan_of
from tests.pushdown.stated_nodes import call_of, output_of, where

from pennon.plan import (
    PlanNode,
    Project,
)

ROWS = pa.table({"c1": ["a", "b", "a"], "c2": pa.array([1, 2, 4], pa.int32())})


def test_a_sum_of_integers_stands_beside_the_sum_of_the_same_as_doubles(tmp_path: Path) -> None:
    """So Spark writes ``sum(x), avg(x)`` of short decimals; the names of both have no casts."""
    calls = [
        call_of(21, "sum", "`c2`", pa.int64()),
        call_of(22, "sum", "CAST(`c2` AS DOUBLE)", pa.float64()),
        call_of(23, "sum", "CAST(`c2` AS DECIMAL(10,0))", pa.decimal128(20, 0)),
        call_of(24, "count", "`c2`", pa.int64()),
        call_of(25, "sum", "unscaledvalue(`c3`)", pa.int64()),
        call_of(26, "sum", "CAST(unscaledvalue(`c3`) AS DOUBLE)", pa.float64()),
    ]
    group = grouped(0, [output_of(20, "`c1`", pa.utf8())], calls)
    prices = ROWS["c2"].cast(pa.decimal128(12, 2)).cast(pa.decimal128(7, 2))
    rows = ROWS.append_column("c3", prices)
    found = aggregate_of([], group, rows, tmp_path).sort_by("c20").to_pydict()
    assert found == {
        "c20": ["a", "b"],
        "c21": [5, 2],
        "c22": [5.0, 2.0],
        "c23": [5, 2],
        "c24": [2, 1],
        "c25": [500, 200],
        "c26": [500.0, 200.0],
    }


def test_a_column_that_a_projection_names_twice_is_there(tmp_path: Path) -> None:
    outputs = (output_of(1, "`c1`", pa.utf8()), output_of(9, "`c2`", pa.int32()))
    nodes: list[PlanNode] = [
        scan_of(ROWS),
        Project(0, (*outputs, outputs[0])),
        where(1, "(`c1` = 'b')"),
    ]
    found = computed(nodes, [relation(tmp_path, "rows", ROWS.schema, [ROWS])])
    assert found.to_pydict() == {"c1": ["b"], "c9": [2]}


def test_forty_operators_within_each_other_are_one_query(tmp_path: Path) -> None:
    nodes: list[PlanNode] = [scan_of(ROWS)]
    for at in range(20):
        nodes.append(Project(len(nodes) - 1, (output_of(2, "`c2`", pa.int32()),)))
        nodes.append(where(len(nodes) - 1, f"(`c2` > CAST({at - 18} AS INT))"))
    found = computed(nodes, [relation(tmp_path, "rows", ROWS.schema, [ROWS])])
    assert found.to_pydict() == {"c2": [2, 4]}
