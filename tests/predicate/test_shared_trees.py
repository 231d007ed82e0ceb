"""The trees of a plan's expressions are shared: nobody who computes by one changes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from sqlglot import exp
from tests.present import present
from tests.pushdown.computed import ANSI, grouped, scan_of
from tests.pushdown.stated_nodes import (
    call_of,
    condition_of,
    expanded_of,
    output_of,
    sort_key_of,
    where,
)
from tests.strategies.edge_values import VALUES

from pennon.plan import (
    Expand,
    Group,
    Join,
    JoinType,
    Limit,
    PlanNode,
    Project,
    Window,
    WindowCall,
    WindowFrame,
)
from pennon.predicate.expressions import Declined, Semantics, typed_expression
from pennon.predicate.typed import SparkExpression
from pennon.pushdown.query import fragment_query

GOLDEN = Path(__file__).parents[1] / "golden" / "expressions"
TYPES = {name: kind for name, (kind, _) in VALUES.items()}
SESSIONS = [
    Semantics(is_utc=True, in_fragments=True),
    Semantics(ansi=False, is_utc=True, in_fragments=True),
    Semantics(zone_offsets=(0,), in_fragments=True),
]
LEFT = scan_of(pa.schema({"c1": pa.int64(), "c2": pa.utf8(), "c3": pa.decimal128(12, 2)}))
RIGHT = scan_of(pa.schema({"c11": pa.int64(), "c12": pa.int32()}))
PAIRS = "((`c1` = `c11`) AND (`c3` > `c12`) AND (`c1` BETWEEN 1 AND `c12`))"
NOT_IN = "((`c1` = `c11`) OR ((`c1` = `c11`) IS NULL))"
BY_NUMBER = sort_key_of("(`c1` % 7)", is_ascending=True, is_nulls_first=True)
COUNTED = "CASE WHEN ((`c1` IS NOT NULL) AND (`c2` IS NOT NULL)) THEN named_struct('a', `c1`) END"


def links(tree: exp.Expr) -> list[tuple[object, ...]]:
    """Say what each node is, and where it hangs."""
    return [(node, id(node), id(node.parent), node.arg_key, node.index) for node in tree.walk()]


def golden_texts() -> list[str]:
    lines = [line for path in sorted(GOLDEN.glob("*.sql")) for line in path.open(encoding="utf-8")]
    texts = [line.removeprefix("-- declined: ").strip() for line in lines]
    return [text for text in texts if text and not text.startswith("--")]


@pytest.mark.parametrize("at", range(len(SESSIONS)), ids=["ansi", "legacy", "zoned"])
def test_an_expression_is_the_same_before_and_after_it_is_rewritten(at: int) -> None:
    semantics = SESSIONS[at]
    for text in golden_texts()[at :: len(SESSIONS)]:
        expression = SparkExpression(text)
        tree = present(expression.tree)
        before = links(tree)
        with suppress(Declined):
            rewritten = typed_expression(expression, TYPES, semantics).tree
            assert not {id(node) for node in rewritten.walk()} & {id(node) for node in tree.walk()}
        assert links(tree) == before, text
        assert expression.tree is tree


def expressions_in(value: object) -> Iterator[SparkExpression]:
    if isinstance(value, SparkExpression):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from expressions_in(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from expressions_in(getattr(value, field.name))


def joined(join_type: JoinType, text: str, exists: int | None = None) -> list[PlanNode]:
    join = Join(0, 1, join_type, condition_of(text), exists=exists)
    return [LEFT, RIGHT, join, Limit(2, 5, (BY_NUMBER,))]


def aggregated() -> list[PlanNode]:
    calls = [
        call_of(20, "sum", "CAST(`c1` AS DECIMAL(10,0))", pa.decimal128(20, 0)),
        call_of(21, "sum", "CAST(`c1` AS DOUBLE)", pa.float64()),
        call_of(22, "count", COUNTED, pa.int64()),
        call_of(23, "count", "1", pa.int64()),
    ]
    key = output_of(24, "nullif(`c2`, 'a')", pa.utf8())
    outputs = (
        output_of(30, "(`c22` BETWEEN 1 AND `c23`)", pa.bool_()),
        output_of(31, "`c24`", pa.utf8()),
    )
    return [
        LEFT,
        where(0, "((`c1` BETWEEN 1 AND 5) OR (`c2` IS NULL))"),
        Group(1, keys=(key,), calls=tuple(calls), outputs=outputs),
    ]


def repeated() -> list[PlanNode]:
    rows = Expand(
        0,
        (),
        (
            expanded_of(1, ("`c1`", "`c1`"), pa.int64()),
            expanded_of(13, ("`c2`", "CAST(NULL AS STRING)"), pa.utf8()),
        ),
    )
    summed = call_of(20, "sum", "`c1`", pa.int64(), pa.int64())
    return [LEFT, rows, grouped(1, [output_of(23, "`c13`", pa.utf8())], [summed])]


def windowed() -> list[PlanNode]:
    frame = WindowFrame("ROWS", "UNBOUNDED PRECEDING", "CURRENT ROW")
    summed = WindowCall(40, "sum", (SparkExpression("(`c1` * 2)"),), frame, pa.int64())
    moved = SparkExpression("`c1`"), SparkExpression("1"), SparkExpression("COALESCE(`c1`, 0)")
    calls = summed, WindowCall(41, "lag", moved, None, pa.int64())
    partition = (SparkExpression("concat(`c2`, 'x')"),)
    outputs = tuple(output_of(attribute, f"`c{attribute}`", pa.int64()) for attribute in (40, 41))
    window = Window(0, frozenset(), partition, (BY_NUMBER,), calls, outputs)
    return [LEFT, window, Project(1, (output_of(50, "(`c40` + `c41`)", pa.int64()),))]


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(joined(JoinType.INNER, PAIRS), id="join"),
        pytest.param(joined(JoinType.LEFT, "(`c1` = `c11`)"), id="outer join"),
        pytest.param(joined(JoinType.ANTI, NOT_IN), id="not in"),
        pytest.param(joined(JoinType.EXISTENCE, "(`c1` = `c11`)", exists=19), id="existence"),
        pytest.param(aggregated(), id="aggregate"),
        pytest.param(repeated(), id="grouping sets"),
        pytest.param(windowed(), id="window"),
    ],
)
def test_a_plan_is_the_same_before_and_after_its_query_is_written(nodes: list[PlanNode]) -> None:
    trees = [present(expression.tree) for expression in expressions_in(nodes)]
    before = [links(tree) for tree in trees]
    first = fragment_query(nodes, len(nodes) - 1, ANSI)
    assert [links(tree) for tree in trees] == before
    assert fragment_query(nodes, len(nodes) - 1, ANSI) == first
