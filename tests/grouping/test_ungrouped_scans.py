"""Which scans report nothing: those whose partitioning no operator of the query can use."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.grouping.test_join_tree import scan

from pennon.grouping.resolve.group_tree import DerivedKeys, ungrouped_scans
from pennon.grouping.resolve.resolved_join import derive_keys
from pennon.plan import Column, Group, Join, JoinType, Opaque, Pass, Plan, PlanNode, Project, Scan
from pennon.transforms.bucket import Bucket
from pennon.transforms.truncate import Truncate

COLUMNS = (Column(10, "a", None), Column(11, "b", None))
ORDERS = replace(scan(10, (Bucket(8), (0,))), columns=COLUMNS)
ITEMS = replace(scan(20, (Bucket(4), (0,))), columns=(Column(20, "a", None), Column(21, "b", None)))
DERIVED = replace(scan(10, (Truncate(3), (1,))), columns=COLUMNS)
PLAIN = Scan(attributes={0: frozenset({10})})
IN_STRUCT = replace(ORDERS, columns=())
OTHER_SOURCE = Opaque((), "BatchScanRelation")


def joined(left_column: int, right_column: int) -> Join:
    return Join(0, 1, JoinType.INNER, equated=((left_column, right_column),))


def grouped(child: int, column: int) -> Group:
    return Group(child, frozenset({column}), ((column, column),))


@pytest.mark.parametrize(
    ("nodes", "shuffling", "ungrouped"),
    [
        ((ORDERS, Pass(0)), {}, {0}),
        ((ORDERS, grouped(0, 10)), {1: None}, set()),
        ((ORDERS, grouped(0, 11)), {1: None}, {0}),
        ((DERIVED, grouped(0, 10)), {1: None}, {0}),
        ((PLAIN, Opaque((0,), "Sample"), grouped(1, 10)), {2: None}, {0}),
        ((ORDERS, Opaque((0,), "Sample"), grouped(1, 10)), {2: None}, set()),
        ((IN_STRUCT, grouped(0, 11)), {1: None}, set()),
        ((ORDERS, Opaque((0,), "FlatMapGroupsInPandas")), {1: None}, set()),
        ((ORDERS, ITEMS, joined(10, 20)), {2: frozenset({10, 20})}, set()),
        ((ORDERS, ITEMS, joined(11, 21)), {2: frozenset({11, 21})}, {0, 1}),
        ((ORDERS, OTHER_SOURCE, joined(10, 99)), {2: frozenset({10, 99})}, set()),
        ((ORDERS, OTHER_SOURCE, joined(11, 99)), {2: frozenset({11, 99})}, {0}),
        ((ORDERS, OTHER_SOURCE, joined(11, 99)), {2: None}, set()),
        ((PLAIN, OTHER_SOURCE, joined(10, 99)), {2: None}, {0}),
        ((ORDERS, OTHER_SOURCE, joined(11, 99)), {}, {0}),
    ],
)
def test_scans_are_ungrouped_where_no_operator_could_know_their_keys(
    nodes: tuple[PlanNode, ...], shuffling: dict[int, frozenset[int] | None], ungrouped: set[int]
) -> None:
    plan = Plan(nodes)
    assert ungrouped_scans(plan, derive_keys(plan), shuffling) == ungrouped


@pytest.mark.parametrize(("compared", "is_matched"), [(15, True), (16, False)])
def test_columns_are_followed_by_their_new_names(compared: int, *, is_matched: bool) -> None:
    renaming = Project(0, renamed=((15, 10), (16, 11)))
    nodes = (ORDERS, renaming, OTHER_SOURCE, Join(1, 2, JoinType.LEFT, equated=((compared, 99),)))
    shuffling = {3: frozenset({compared, 99})}
    ungrouped = ungrouped_scans(Plan(nodes), DerivedKeys({}, frozenset(), {}), shuffling)
    assert ungrouped == (set() if is_matched else {0})


def test_what_workers_compute_needs_no_splits() -> None:
    plan = Plan((ORDERS, Opaque((), "LocalRelation"), joined(11, 99), grouped(2, 11)))
    keys, shuffling = derive_keys(plan), {2: frozenset({11, 99}), 3: None}
    assert ungrouped_scans(plan, keys, shuffling) == {0}
    assert not ungrouped_scans(plan, keys, shuffling, inside={0, 1, 2})


def test_what_is_above_a_subquery_of_one_value_has_no_say_in_it() -> None:
    value = (ITEMS, Opaque((1,), "Sample"), Project(2, ()))
    plan = Plan((ORDERS, *value, Join(0, 3, JoinType.SCALAR), grouped(4, 10)))
    keys = derive_keys(plan.without_values(plan.scalars))
    assert ungrouped_scans(plan, keys, {5: None}) == {1}
