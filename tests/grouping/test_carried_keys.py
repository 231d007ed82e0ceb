"""Keys that unions and expansions bring to the operators above them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.grouping.test_join_tree import keys_of, scan

from pennon.grouping.resolve.group_tree import (
    DerivedKeys,
    MemberScan,
    Outside,
    ServedJoin,
    group_tree,
    needed_keys,
    splittable_scans,
)
from pennon.grouping.resolve.resolved_join import derive_keys
from pennon.plan import (
    Expand,
    Group,
    Join,
    JoinType,
    PlanNode,
    Union,
)
from pennon.transforms.bucket import Bucket

# Attribute 10 of one scan and 20 of the other come out as 10.
UNION = Union((0, 1), ((10, (10, 20)), (11, (11, 21))))


def united(above: PlanNode, union: Union = UNION) -> list[PlanNode]:
    return [scan(10, (Bucket(12), (0,))), scan(20, (Bucket(8), (0,))), union, above]


def test_inputs_of_a_union_meet_in_their_common_reduction() -> None:
    answer = derive_keys(united(Group(2, frozenset({10}), ((10, 10),))))
    assert answer.served == {2, 3}
    assert [keys_of(answer, scan_) for scan_ in (0, 1)] == [["bucket(4, col0)"]] * 2


@pytest.mark.parametrize(
    "columns",
    [
        ((10, (10, 21)), (11, (11, 20))),
        ((10, (10, 20)), (99, (10, 21))),
    ],
)
def test_a_column_of_a_union_has_the_key_only_where_all_inputs_have_it(
    columns: tuple[tuple[int, tuple[int, ...]], ...],
) -> None:
    keys = frozenset({columns[-1][0]})
    nodes = united(Group(2, keys, ()), Union((0, 1), columns))
    assert derive_keys(nodes).served == frozenset()


def test_a_union_that_no_operator_uses_leaves_its_inputs_apart() -> None:
    nodes: list[PlanNode] = [
        scan(10, (Bucket(12), (0,))),
        scan(20, (Bucket(12), (0,))),
        Join(0, 1, JoinType.INNER, equated=((10, 20),)),
        scan(30, (Bucket(8), (0,))),
        scan(40, (Bucket(8), (0,))),
        Join(3, 4, JoinType.INNER, equated=((30, 40),)),
        Union((2, 5), ((10, (10, 30)),)),
    ]
    answer = derive_keys(nodes)
    assert answer.served == {2, 5}
    assert [len(group.scans) for group in answer.groups] == [2, 2]
    assert keys_of(answer, 0) == ["bucket(12, col0)"]


def test_partners_are_those_of_all_inputs_of_a_union_and_no_input_is_divided() -> None:
    nodes: list[PlanNode] = [
        *united(scan(30, (Bucket(4), (0,)))),
        Join(2, 3, JoinType.LEFT, equated=((10, 30),)),
    ]
    (group,) = derive_keys(nodes).groups
    tree = group_tree(nodes, group)
    present = {
        0: np.array([True, False, False]),
        1: np.array([False, True, False]),
        3: np.array([True, True, True]),
    }
    assert needed_keys(tree, present)[3].tolist() == [True, True, False]
    assert splittable_scans(tree) == frozenset()


def test_an_expansion_brings_the_key_of_columns_that_it_leaves_alone() -> None:
    def derived(columns: tuple[tuple[int, int], ...]) -> DerivedKeys:
        return derive_keys(
            [
                scan(10, (Bucket(8), (0,))),
                Expand(0, columns),
                Group(1, frozenset({50, 51}), ((50, 50),)),
                Group(2, frozenset({50}), ((50, 50),)),
            ]
        )

    assert derived(((50, 10),)).served == {1, 2, 3}
    left_out = derived(((51, 11),))
    assert left_out.served == frozenset()
    assert "not in all of its grouping sets" in left_out.verdicts[2].reason


def test_a_join_below_one_that_keeps_its_other_side_is_narrowed_by_its_own_keys() -> None:
    inner = ServedJoin(JoinType.INNER, MemberScan(0), MemberScan(1))
    tree = ServedJoin(JoinType.RIGHT, inner, Outside())
    present = {0: np.array([True, True, False]), 1: np.array([False, True, True])}
    found = needed_keys(tree, present)
    assert [found[scan_].tolist() for scan_ in (0, 1)] == [[False, True, False]] * 2
    outer = ServedJoin(JoinType.FULL, MemberScan(0), MemberScan(1))
    assert needed_keys(outer, present)[0].tolist() == [True, True, False]
