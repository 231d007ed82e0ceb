"""What a side of a join rules out of scans elsewhere in the query."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.plan import Column, Join, JoinType, Plan, Scan
from pennon.pushdown.candidates import _places
from pennon.pushdown.partners import ruled_out_by


def scan(attribute: int) -> Scan:
    return Scan((Column(attribute, "k", pa.int64()),))


@pytest.mark.parametrize(
    ("join_type", "expected"),
    [(JoinType.INNER, [0, 5]), (JoinType.SEMI, [0]), (JoinType.ANTI, []), (JoinType.LEFT, [5])],
    ids=str,
)
def test_a_side_that_ends_at_a_join_rules_out_nothing_above_it(
    join_type: JoinType, expected: list[int]
) -> None:
    """``a.join(c.where(…), …, "anti").join(c, …)``: both uses of c have the same attributes."""
    again = scan(2) if join_type in (JoinType.SEMI, JoinType.ANTI) else scan(3)
    plan = Plan(
        (
            *(scan(1), scan(2), Join(0, 1, join_type, equated=((1, 2),))),
            *(again, Join(2, 3, JoinType.INNER, equated=((1, again.columns[0].id),))),
            *(scan(5), Join(4, 5, JoinType.INNER, equated=((2, 5),))),
        )
    )
    assert [position for _, position, _ in ruled_out_by(plan, 1, [2])] == expected


def test_values_of_a_side_that_ends_are_not_those_of_its_namesake() -> None:
    """``a.join(c.where(…), …, "anti").join(c, …)``: the values of c are those of the second use."""
    plan = Plan(
        (
            *(scan(1), scan(2), Join(0, 1, JoinType.ANTI, equated=((1, 2),))),
            *(scan(2), Join(2, 3, JoinType.INNER, equated=((1, 2),))),
        )
    )
    assert {position for position, _ in _places(plan, 4, 2)} == {0, 2, 3, 4}
