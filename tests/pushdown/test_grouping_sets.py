"""Grouping sets computed of the groups of their columns together, beside plain Python."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pushdown.computed import ANSI, computed, grouped, relation, scan_of
from tests.pushdown.stated_nodes import call_of, expanded_of, output_of

from pennon.plan import AggregateCall, Expand, Expanded, PlanNode
from pennon.pushdown import Semantics
from pennon.pushdown.query import fragment_query

WRAPPING = Semantics(ansi=False)
MOST = 2**63 - 1
MONEY = pa.decimal128(12, 2)
ROWS = pa.schema(
    {"c1": pa.utf8(), "c2": pa.float64(), "c3": pa.int64(), "c4": MONEY, "c5": pa.int32()}
)
NO_TEXT, NO_NUMBER = "CAST(NULL AS STRING)", "CAST(NULL AS DOUBLE)"
# ROLLUP (c1, c2): both columns, the first, none.
EXPAND = Expand(
    0,
    (),
    (
        *(expanded_of(at, (f"`c{at}`",) * 3, ROWS.field(f"c{at}").type) for at in (3, 4, 5)),
        expanded_of(11, ("`c1`", "`c1`", NO_TEXT), pa.utf8()),
        expanded_of(12, ("`c2`", NO_NUMBER, NO_NUMBER), pa.float64()),
        expanded_of(13, ("0L", "1L", "3L"), pa.int64()),
    ),
)
KEYS = [
    output_of(21, "`c11`", pa.utf8()),
    output_of(22, "`c12`", pa.float64()),
    output_of(23, "`c13`", pa.int64()),
]
CALLS = [
    call_of(30, "count", "1", pa.int64()),
    call_of(31, "count", "`c5`", pa.int64(), pa.int32()),
    call_of(32, "sum", "`c3`", pa.int64(), pa.int64()),
    call_of(33, "sum", "`c4`", pa.decimal128(22, 2), MONEY),
    call_of(34, "sum", "`c5`", pa.int64(), pa.int32()),
    call_of(35, "min", "`c4`", MONEY, MONEY),
    call_of(36, "max", "`c3`", pa.int64(), pa.int64()),
]


def plan_of(calls: list[AggregateCall]) -> list[PlanNode]:
    return [scan_of(ROWS), EXPAND, grouped(1, KEYS, calls)]


def expected(rows: list[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Compute each set of its rows."""
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        zero = None if row[1] is None else row[1] + 0.0
        for key in ((row[0], zero, 0), (row[0], None, 1), (None, None, 3)):
            groups.setdefault(key, []).append(row)
    return {(*key, *results(group)) for key, group in groups.items()}


def results(group: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    integers, money, small = ([row[at] for row in group if row[at] is not None] for at in (2, 3, 4))
    return (
        len(group),
        len(small),
        sum(integers) if integers else None,
        sum(money) if money else None,
        sum(small) if small else None,
        min(money, default=None),
        max(integers, default=None),
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("semantics", [ANSI, WRAPPING])
def test_groups_of_groups_are_the_groups_of_the_rows(
    tmp_path: Path, seed: int, semantics: Semantics
) -> None:
    draw = random.Random(seed)  # noqa: S311 - test data
    rows = [
        (
            draw.choice(["a", "b", "", None]),
            draw.choice([0.0, -0.0, 1.5, None]),
            draw.choice([None, -3, 7, 2**40]),
            draw.choice([None, Decimal("9999999999.99"), Decimal("-0.01")]),
            draw.choice([None, -(2**31), 2**31 - 1]),
        )
        for _ in range(draw.choice([0, 1, 60]))
    ]
    table = pa.Table.from_pylist(
        [dict(zip(ROWS.names, row, strict=True)) for row in rows], schema=ROWS
    )
    found = computed(
        plan_of(CALLS), [relation(tmp_path, "rows", ROWS, [table])], semantics
    ).to_pylist()
    assert len(found) == len({tuple(row.values()) for row in found})
    assert {tuple(row.values()) for row in found} == expected(rows)


def test_the_sum_of_a_part_may_exceed_that_of_the_whole(tmp_path: Path) -> None:
    signs = {("a", 1.0): 1, ("a", 2.0): -1, ("b", 1.0): -1, ("b", 2.0): 1}
    table = pa.Table.from_pylist(
        [
            {"c1": text, "c2": number, "c3": sign * MOST}
            for (text, number), sign in signs.items()
            for _ in range(2)
        ],
        schema=ROWS,
    )
    # GROUPING SETS ((c1), (c2)): all columns together are no set.
    sets = Expand(
        0,
        (),
        (
            expanded_of(3, ("`c3`", "`c3`"), pa.int64()),
            expanded_of(11, ("`c1`", NO_TEXT), pa.utf8()),
            expanded_of(12, (NO_NUMBER, "`c2`"), pa.float64()),
            expanded_of(13, ("1L", "2L"), pa.int64()),
        ),
    )
    nodes: list[PlanNode] = [scan_of(ROWS), sets, grouped(1, KEYS, [CALLS[2]])]
    found = computed(nodes, [relation(tmp_path, "rows", ROWS, [table])])
    assert found["c32"].to_pylist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "call",
    [
        call_of(30, "count_distinct", "`c3`", pa.int64(), pa.int64()),
        call_of(30, "sum", "`c11`", pa.int64(), pa.int64()),
        call_of(30, "stddev_samp", "CAST(`c5` AS DOUBLE)", pa.float64(), pa.float64()),
    ],
    ids=["different values", "a column of the sets", "a moment"],
)
def test_what_parts_do_not_give_is_computed_of_the_rows(call: AggregateCall) -> None:
    numbers = Expand(
        0,
        (),
        tuple(
            expanded_of(11, ("`c3`", "CAST(NULL AS BIGINT)"), pa.int64())
            if output.id == 11
            else Expanded(output.id, output.values[:2])
            for output in EXPAND.outputs or ()
        ),
    )
    keys = [output_of(21, "`c11`", pa.int64()), KEYS[2]]
    of_rows = fragment_query([scan_of(ROWS), numbers, grouped(1, keys, [call])], 2, ANSI)
    assert of_rows.select.sql.count("GROUP BY") == 1
    of_groups = fragment_query([scan_of(ROWS), numbers, grouped(1, keys, [CALLS[0]])], 2, ANSI)
    assert of_groups.select.sql.count("GROUP BY") == 2
