"""The oracle of the random joins, by cases that are plain to see."""

from __future__ import annotations

import pytest
from tests.strategies.query_tree import Grouped, Joined, Leaf, Tree, United, Windowed
from tests.strategies.random_tables import Table, random_tables
from tests.torture.field_meeting import Field
from tests.torture.join_cases import case_of
from tests.torture.least_shuffles import least_shuffles


def bucket(count: int, column: str) -> Field:
    return Field("bucket", (column,), count)


BY_16 = Table(0, ((bucket(16, "id"),),), 9)
BY_8_THEN_12 = Table(1, ((bucket(8, "id"),), (bucket(12, "id"),)), 9)
BY_9 = Table(2, ((bucket(9, "id"),),), 9)
BY_PAIR = Table(3, ((Field("multi_bucket", ("a", "b"), 8),),), 9)
BY_BOTH = Table(4, ((Field("identity", ("b",)), Field("identity", ("a",))),), 9)
PLAIN = Table(5, ((),), 9)
TABLES = [BY_16, BY_8_THEN_12, BY_9, BY_PAIR, BY_BOTH, PLAIN]


def leaf(table: Table, side: str) -> Leaf:
    return Leaf(table.number, {f"{side}_{column}": column for column in ("id", "a", "b", "v")})


def joined(left: Table, right: Table, *keys: str, kind: str = "inner") -> Joined:
    pairs = tuple((f"l_{key}", f"r_{key}") for key in keys)
    return Joined(kind, leaf(left, "l"), leaf(right, "r"), pairs)


def twice(operator: str) -> Joined:
    """Join a third table on a column by which the first two are shuffled."""
    pairs = (("l_a", "x_a"),)
    third = Leaf(PLAIN.number, {"x_a": "a"})
    compared = pairs if operator == "<=>" else ()
    return Joined("inner", joined(PLAIN, PLAIN, "a"), third, pairs, compared)


@pytest.mark.parametrize(
    ("tree", "wanted"),
    [
        (joined(BY_16, BY_8_THEN_12, "id"), 0),
        (joined(BY_16, BY_9, "id"), 1),
        (joined(BY_16, BY_16, "a"), 2),
        (joined(BY_16, PLAIN, "id"), 1),
        (joined(BY_PAIR, BY_BOTH, "b", "a"), 0),
        (joined(BY_PAIR, BY_BOTH, "a"), 1),
        (Grouped(joined(BY_16, BY_16, "id"), (("x", "r_id"),)), 0),
        (Grouped(joined(BY_16, BY_16, "id", kind="left"), (("x", "r_id"),)), 1),
        (Grouped(joined(BY_16, BY_16, "a"), (("x", "l_a"), ("y", "l_b"))), 2),
        (Windowed(joined(BY_16, BY_16, "id", kind="full"), ("l_id",)), 1),
        (Windowed(leaf(BY_PAIR, "l"), ("l_a", "l_b", "l_v")), 0),
        (Grouped(United((leaf(BY_16, "l"), leaf(BY_16, "l"))), (("x", "l_id"),)), 1),
        (Grouped(leaf(BY_16, "l"), ()), 1),
        (twice("="), 3),
        (twice("<=>"), 4),
    ],
)
def test_the_least_shuffles_of_plain_cases(tree: Tree, wanted: int) -> None:
    assert least_shuffles(tree, TABLES).shuffles == wanted


def test_a_number_gives_the_same_query_again() -> None:
    tables = random_tables(7, 12)
    cases = [case_of(7, number, tables) for number in range(40)]
    assert cases == [case_of(7, number, random_tables(7, 12)) for number in range(40)]
    assert any(case.least < case.unpartitioned for case in cases)
