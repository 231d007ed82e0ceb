"""What is said to be no error, against all values that the columns can have."""

from __future__ import annotations

import operator
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from tests.pushdown.computed import ANSI
from tests.pushdown.stated_nodes import where

from pennon.plan import Group, Join, JoinType, PlanNode, Project, Scan, Union
from pennon.plan.nodes import Column
from pennon.predicate.expressions.typed_expression import may_fail
from pennon.predicate.parse import parse_with_lists
from pennon.pushdown.partition_times import known_range

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OPERATORS: dict[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}
SIGNS = ("+", "-", "*")
TERMS = st.recursive(
    st.sampled_from(["`c1`", "`c2`"]) | st.integers(-9, 9).map(lambda n: f"CAST({n} AS TINYINT)"),
    lambda terms: st.builds(
        lambda a, sign, b: f"({a} {sign} {b})", terms, st.sampled_from(SIGNS), terms
    ),
    max_leaves=5,
)
BOUNDS = st.tuples(st.integers(-120, 120), st.integers(0, 7)).map(lambda at: (at[0], sum(at)))


def overflows(node: exp.Expr, row: Mapping[str, int]) -> bool:
    """Whether an operator of TINYINTs leaves them in a row."""
    try:
        value_of(node, row)
    except OverflowError:
        return True
    return False


def value_of(node: exp.Expr, row: Mapping[str, int]) -> int:
    match node:
        case exp.Paren():
            return value_of(node.this, row)
        case exp.Column():
            return row[node.name]
        case exp.Cast():
            return int(node.this.sql())
    value = OPERATORS[type(node)](value_of(node.this, row), value_of(node.expression, row))
    if not -128 <= value <= 127:
        raise OverflowError
    return int(value)


@given(TERMS, TERMS, BOUNDS, BOUNDS)
def test_what_may_not_fail_fails_for_no_values(
    one: str, other: str, first: tuple[int, int], second: tuple[int, int]
) -> None:
    bounds = {"c1": first, "c2": second}
    types = {"c1": pa.int8(), "c2": pa.int8()}
    tree = parse_with_lists(f"{one} < {other} OR NOT {other} IS NULL")
    rows = [
        {"c1": a, "c2": b}
        for a, b in product(*(range(low, high + 1) for low, high in bounds.values()))
    ]
    fails = any(overflows(parse_with_lists(text), row) for row in rows for text in (one, other))
    assert may_fail(tree, types, ANSI, bounds.get) or not fails


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("(`c1` + CAST(1 AS INT)) > `c1`", True),  # nothing is known of it
        ("(CAST(`c1` AS BIGINT) + CAST(`c1` AS BIGINT)) > CAST(0 AS BIGINT)", False),
        ("(CAST(`c1` AS BIGINT) * CAST(`c1` AS BIGINT)) > CAST(0 AS BIGINT)", False),
        ("CAST(`c2` AS DECIMAL(4, 1)) > CAST(0 AS DECIMAL(4, 1))", True),  # 999.96 is rounded up
        ("CAST(`c2` AS DECIMAL(5, 1)) > CAST(0 AS DECIMAL(5, 1))", False),
        ("(CAST(`c2` AS DECIMAL(5, 1)) + CAST(`c1` AS INT) * CAST(2 AS INT)) > `c2`", True),
        ("(CAST(`c2` AS INT) * CAST(100 AS INT)) > CAST(0 AS INT)", False),
        ("(CAST(`c2` AS INT) * CAST(`c2` AS INT)) * CAST(3000 AS INT) > `c1`", True),
        ("(CAST(1 AS INT) DIV `c1`) > CAST(0 AS BIGINT)", True),
        ("CAST(`c3` AS INT) > CAST(0 AS INT)", True),
    ],
)
def test_the_range_of_a_type_shows_what_is_no_error(text: str, *, fails: bool) -> None:
    types = {"c1": pa.int32(), "c2": pa.decimal128(5, 2), "c3": pa.utf8()}
    assert may_fail(parse_with_lists(text), types, ANSI, lambda _: None) is fails


def test_a_range_is_that_of_the_column_which_an_attribute_is() -> None:
    bounds = {"a": (1, 5), "b": (-3, 2)}
    kind = pa.int64()
    scan = Scan((Column(1, "a", kind), Column(2, "b", kind)), bounds=bounds.get)
    below: list[PlanNode] = [scan, where(0, "TRUE"), Project(1, None, ((11, 1),))]
    other = Scan((Column(21, "b", kind), Column(22, "x", kind)), bounds=bounds.get)
    nodes = [*below, other, Join(2, 3, JoinType.LEFT), Join(2, 3, JoinType.SEMI)]
    nodes += [Group(4, columns=((31, 11),)), Union((2, 3), ((41, (11, 21)), (42, (11, 22))))]
    asked = {(4, 11): (1, 5), (4, 21): (-3, 2), (6, 31): (1, 5), (7, 41): (-3, 5)}
    for (position, attribute), (low, high) in asked.items():
        assert known_range(nodes, position, attribute) == (low, high)
    for position, attribute in ((4, 22), (5, 21), (6, 11), (7, 42), (4, 1)):
        assert known_range(nodes, position, attribute) is None
