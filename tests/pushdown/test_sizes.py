"""How many rows operators have at most, from what the manifest knows of columns."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.pushdown.computed import grouped, scan_of
from tests.pushdown.stated_nodes import condition_of, output_of, where

from pennon.plan import (
    Group,
    Join,
    JoinType,
    OneRow,
    Plan,
    PlanNode,
    Project,
    Scan,
    Union,
)
from pennon.pushdown.sizes import MOST_PAIRS, sizes_of

ROWS = 1_000_000
VALUES = {"c1": 12, "c2": 40, "c3": None}
SCAN = replace(
    scan_of(pa.schema([("c1", pa.int64()), ("c2", pa.int64()), ("c3", pa.int64())])),
    num_rows=ROWS,
    most_values=VALUES.get,
)


def _groups(child: int, *attributes: int, made: int = 20) -> Group:
    """Group by columns, which come out under other names."""
    keys = [output_of(at, f"`c{at}`", pa.int64()) for at in attributes]
    columns = tuple((made + at, at) for at in attributes)
    return replace(grouped(child, keys, []), group_by=frozenset(attributes), columns=columns)


def _rows_beside(*nodes: PlanNode) -> float:
    """Bound the rows of a plan that stands beside a large table in a join without an equality."""
    plan = Plan(
        (
            *nodes,
            SCAN,
            Join(len(nodes) - 1, len(nodes), JoinType.INNER, condition_of("(`c1` < `c91`)")),
        )
    )
    return sizes_of(plan)[len(nodes) - 1].rows


@pytest.mark.parametrize(
    ("attributes", "rows"), [((1,), 12), ((1, 2), 480), ((3,), ROWS), ((1, 3), ROWS)]
)
def test_there_are_no_more_groups_than_combinations_of_values(
    attributes: tuple[int, ...], rows: int
) -> None:
    assert _rows_beside(SCAN, _groups(0, *attributes)) == rows


def test_values_are_traced_through_the_operators_that_pass_them() -> None:
    renamed = Project(1, (output_of(7, "`c1`", pa.int64()),), ((7, 1),))
    above = _groups(3, 7)
    assert _rows_beside(SCAN, where(0, "(`c2` > 1)"), renamed, where(2, "TRUE"), above) == 12
    both = Union((1, 3), ((8, (7, 27)),))
    again = _groups(0, 1, made=26)
    nodes: list[PlanNode] = [
        SCAN,
        Project(0, renamed.outputs, renamed.renamed),
        SCAN,
        again,
        both,
        _groups(4, 8),
    ]
    assert _rows_beside(*nodes) == 24


def test_a_computed_key_may_have_any_values() -> None:
    computed = Group(0, frozenset(), (), (output_of(20, "(`c1` * rand())", pa.float64()),), ())
    assert _rows_beside(SCAN, computed) == ROWS
    mixed = replace(
        computed,
        group_by=frozenset({1}),
        keys=(*(_groups(0, 1).keys or ()), *(computed.keys or ())),
    )
    assert _rows_beside(SCAN, mixed) == ROWS


def test_statistics_are_read_only_for_joins_that_would_be_too_large() -> None:
    def unread(name: str) -> int | None:
        raise AssertionError(name)

    small = replace(SCAN, num_rows=10, most_values=unread)
    plan = Plan((small, _groups(0, 1), OneRow(), Join(1, 2, JoinType.INNER, condition_of(None))))
    assert sizes_of(plan)[3].pairs <= MOST_PAIRS


@pytest.mark.parametrize(
    ("condition", "is_hashed"),
    [
        ("(`c1` = (`c2` - CAST(52 AS BIGINT)))", True),
        (
            "((coalesce(`c2`, CAST(0 AS BIGINT)) = coalesce(`c1`, CAST(0 AS BIGINT))) AND TRUE)",
            True,
        ),
        ("(`c1` < `c2`)", False),
        ("((`c1` + `c2`) = CAST(52 AS BIGINT))", False),
        ("((`c1` = `c2`) OR (`c1` = CAST(1 AS BIGINT)))", False),
        (None, False),
    ],
)
def test_an_equality_of_expressions_finds_partners_without_comparing_all_pairs(
    condition: str | None, *, is_hashed: bool
) -> None:
    large = Plan(
        (
            Scan(scan_of(pa.schema([("c1", pa.int64())])).columns, num_rows=ROWS),
            Scan(scan_of(pa.schema([("c2", pa.int64())])).columns, num_rows=ROWS),
            Join(0, 1, JoinType.INNER, condition_of(condition)),
        )
    )
    assert (sizes_of(large)[2].pairs <= MOST_PAIRS) == is_hashed
