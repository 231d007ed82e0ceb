"""How many rows operators have, from what the manifest knows, and which sides joins build."""

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
    Limit,
    OneRow,
    Plan,
    PlanNode,
    Project,
    Scan,
    Union,
)
from pennon.pushdown import Semantics
from pennon.pushdown.join_order import BuiltSides
from pennon.pushdown.partners import MOST_PAIRS, sizes_of
from pennon.pushdown.query import fragment_query

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


LARGE = 5_000_000


def scan(first: int, num_rows: int | None, *, is_filtered: bool = False) -> Scan:
    scanned = scan_of(pa.schema([(f"c{first}", pa.int64())]))
    return replace(scanned, num_rows=num_rows, is_filtered=is_filtered)


def join(
    left: int, right: int, join_type: JoinType = JoinType.INNER, keys: tuple = (1, 11)
) -> Join:
    text = f"(`c{keys[0]}` = `c{keys[1]}`)"
    return Join(left, right, join_type, condition_of(text), equated=(keys,))


def is_right(*nodes: PlanNode) -> bool:
    """Whether the last join's right side is built."""
    last = nodes[-1]
    assert isinstance(last, Join)
    return BuiltSides(nodes).is_right(last)


def test_each_dimension_of_a_star_is_built() -> None:
    """Also above the join with the first, of which few rows need not be left."""
    nodes: list[PlanNode] = [scan(1, LARGE), scan(11, 5), join(0, 1), scan(21, 70_000)]
    nodes.append(join(2, 3, keys=(1, 21)))
    assert is_right(*nodes[:3])
    assert is_right(*nodes)
    assert not is_right(nodes[1], nodes[0], join(0, 1))
    sql = fragment_query(nodes, 4, Semantics()).select.sql
    assert sql.index("`r2`") < sql.index("`r1`") < sql.index("`r0`")


def test_what_joins_of_large_tables_leave_is_built_beside_a_large_one() -> None:
    returns: list[PlanNode] = [scan(1, LARGE), scan(11, 400_000), join(0, 1)]
    assert not is_right(*returns, scan(21, 2_000_000), join(2, 3, keys=(1, 21)))
    assert is_right(*returns, scan(21, 200_000), join(2, 3, keys=(1, 21)))


FEWER = [
    [scan(1, 900_000)],
    [scan(1, 3_000_000, is_filtered=True)],
    [scan(1, 3_000_000), where(0, "(`c1` > 5)")],
    [scan(1, 3_000_000), grouped(0, [output_of(1, "`c1`", pa.int64())], [])],
    [scan(1, None), Limit(0, 100)],
    [scan(1, LARGE), scan(2, 9), join(0, 1, JoinType.SEMI, (1, 2))],
]
NOT_FEWER = [
    [scan(1, 3_000_000)],
    [scan(1, 3_000_000), where(0, "TRUE")],
    [scan(1, None)],
    [scan(1, 500), scan(2, LARGE), Union((0, 1), ((1, (1, 2)),))],
    [scan(1, LARGE), scan(2, 9), join(0, 1, JoinType.ANTI, (1, 2))],
    [scan(1, LARGE), scan(2, 9), join(0, 1, JoinType.LEFT, (1, 2))],
    [scan(1, 9), scan(2, LARGE), join(0, 1, JoinType.RIGHT, (1, 2))],
    [scan(1, 9), scan(2, LARGE), join(0, 1, JoinType.FULL, (1, 2))],
    [scan(1, 9_000), scan(2, 9_000), Join(0, 1, JoinType.INNER)],
]


def operators(left: list[PlanNode]) -> str:
    return "-".join(type(node).__name__ for node in left)


@pytest.mark.parametrize("left", FEWER, ids=operators)
def test_fewer_rows_than_a_large_table_are_built(left: list[PlanNode]) -> None:
    at = len(left)
    assert not is_right(*left, scan(31, 1_000_000), join(at - 1, at, keys=(1, 31)))


@pytest.mark.parametrize("left", NOT_FEWER, ids=operators)
def test_beside_more_rows_a_large_table_is_built(left: list[PlanNode]) -> None:
    at = len(left)
    assert is_right(*left, scan(31, 1_000_000), join(at - 1, at, keys=(1, 31)))
