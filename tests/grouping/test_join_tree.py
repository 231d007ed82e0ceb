"""Which scans get a derived key, and which operators it serves."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pennon.grouping.key_grouping import surrogate_of
from pennon.grouping.resolve.group_tree import DerivedKeys
from pennon.grouping.resolve.resolved_join import derive_keys
from pennon.plan import (
    Group,
    Join,
    JoinType,
    Opaque,
    PlanNode,
    Project,
    Scan,
    Window,
)
from pennon.spec.functions import GroupingFunction, Layout, LayoutFunction
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.epoch import Epoch, EpochUnit
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.transform import Transform
from pennon.transforms.truncate import Truncate

INT, TEXT = pa.int64(), pa.string()


def scan(first_attribute: int, *functions: tuple[Transform, tuple[int, ...]]) -> Scan:
    """Make a scan of columns 0 (int64) and 1 (text), as attributes counted from the first."""
    kinds = (INT, TEXT)
    layout = Layout(
        tuple(
            LayoutFunction(GroupingFunction(function, tuple(kinds[at] for at in sources)), sources)
            for function, sources in functions
        ),
        {},
    )
    reported = tuple(
        offered for offered in layout.functions if offered.grouping.spark_name is not None
    )
    attributes = {at: frozenset({first_attribute + at}) for at in range(2)}
    return Scan(layout=layout, attributes=attributes, reported=reported)


def keys_of(answer: DerivedKeys, position: int) -> list[str]:
    return [str(offered.grouping) for offered in answer.scans.get(position, ())]


@pytest.mark.spec("Transform Compatibility 2")
def test_bucket_counts_meet_in_their_greatest_common_divisor_over_the_whole_tree() -> None:
    answer = derive_keys(
        [
            scan(10, (Bucket(12), (0,))),
            scan(20, (Bucket(8), (0,))),
            Join(0, 1, JoinType.INNER, equated=((10, 20),)),
            scan(30, (Bucket(6), (0,))),
            Join(2, 3, JoinType.LEFT, equated=((20, 30),)),
        ]
    )
    assert answer.served == {2, 4}
    assert [keys_of(answer, scan_) for scan_ in (0, 1, 3)] == [["bucket(2, col0)"]] * 3


@pytest.mark.parametrize(
    ("join_type", "attribute", "is_served"),
    [
        (JoinType.INNER, 10, True),
        (JoinType.INNER, 20, True),
        (JoinType.LEFT, 10, True),
        (JoinType.LEFT, 20, False),
        (JoinType.RIGHT, 20, True),
        (JoinType.RIGHT, 10, False),
        (JoinType.FULL, 10, False),
        (JoinType.SEMI, 10, True),
    ],
)
def test_only_preserved_sides_are_grouped_above_a_join(
    join_type: JoinType, attribute: int, *, is_served: bool
) -> None:
    answer = derive_keys(
        [
            scan(10, (Bucket(8), (0,))),
            scan(20, (Bucket(8), (0,))),
            Join(0, 1, join_type, equated=((10, 20),)),
            Group(2, frozenset({attribute}), ((attribute, attribute),)),
        ]
    )
    assert answer.served == ({2, 3} if is_served else {2})


@pytest.mark.parametrize("above", JoinType)
def test_a_padded_column_meets_by_equality_and_by_nothing_else(above: JoinType) -> None:
    def meets(below: JoinType, compared: int, *, is_null_safe: bool = False) -> bool:
        join = Join(2, 3, above, equated=((compared, 30),), is_null_safe=is_null_safe)
        sides = [scan(10, (Bucket(8), (0,))), scan(20, (Bucket(4), (0,)))]
        equated = Join(0, 1, below, equated=((10, 20),))
        answer = derive_keys([*sides, equated, scan(30, (Bucket(8), (0,))), join])
        return 4 in answer.served - answer.computed.keys()

    assert meets(JoinType.LEFT, 20)
    assert not meets(JoinType.LEFT, 20, is_null_safe=True)
    assert meets(JoinType.LEFT, 10, is_null_safe=True)
    assert meets(JoinType.RIGHT, 10)
    assert not meets(JoinType.ANTI, 20)
    assert not meets(JoinType.FULL, 10)
    assert not meets(JoinType.FULL, 20)


def test_a_padded_column_stays_padded_above_a_join_that_keeps_it() -> None:
    nodes: list[PlanNode] = [
        scan(10, (Bucket(8), (0,))),
        scan(20, (Bucket(4), (0,))),
        Join(0, 1, JoinType.LEFT, equated=((10, 20),)),
        Project(2, renamed=((25, 20),)),
        scan(30, (Bucket(8), (0,))),
        Join(3, 4, JoinType.LEFT, equated=((25, 30),)),
    ]
    third: list[PlanNode] = [
        scan(40, (Bucket(8), (0,))),
        Join(5, 6, JoinType.LEFT, equated=((30, 40),)),
    ]
    assert derive_keys([*nodes, *third]).served == {2, 5, 7}
    grouped = Group(5, frozenset({25, 30}), ())
    assert derive_keys([*nodes, grouped]).served == {2, 5}


def test_spark_does_not_see_that_a_padded_column_meets() -> None:
    plain: list[PlanNode] = [
        scan(10, (Bucket(8), (0,))),
        Opaque(),
        Join(0, 1, JoinType.LEFT, equated=((10, 60),)),
    ]
    assert derive_keys(plain).served == frozenset()
    joined = [*plain, Opaque(), Join(2, 3, JoinType.LEFT, equated=((60, 70),))]
    answer = derive_keys(joined)
    assert answer.served == answer.computed.keys() == {2, 4}


def test_spark_is_not_asked_to_compute_an_expression_that_a_column_reduces_to() -> None:
    column, expression = Identity(), Expression("lower(col0)")
    nodes: list[PlanNode] = [
        scan(10, (column, (1,))),
        Opaque(),
        Join(0, 1, JoinType.INNER, equated=((11, 71),)),
        scan(20, (expression, (1,))),
        Join(2, 3, JoinType.INNER, equated=((11, 21),)),
    ]
    answer = derive_keys(nodes)
    assert not answer.served  # Spark serves the first join by what its scan reports.
    assert not answer.computed
    partitioned = [nodes[0], scan(70, (column, (1,))), *nodes[2:]]
    assert derive_keys(partitioned).served == {2, 4}


def test_a_shuffled_join_ends_the_groups_below_it() -> None:
    nodes: list[PlanNode] = [
        scan(10, (MultiBucket(8), (0, 1))),
        scan(20, (Bucket(8), (0,))),
        Join(0, 1, JoinType.INNER, equated=((10, 20),)),
        Group(2, frozenset({10, 11}), ()),
    ]
    assert derive_keys(nodes).served == frozenset()


def test_a_projection_renames_and_drops_attributes() -> None:
    renamed: list[PlanNode] = [
        scan(10, (Bucket(8), (0,))),
        Project(0, renamed=((99, 10),)),
        scan(20, (Bucket(8), (0,))),
        Join(1, 2, JoinType.INNER, equated=((99, 20),)),
    ]
    assert derive_keys(renamed).served == {3}
    dropped = [renamed[0], Project(0, renamed=((98, 11),)), *renamed[2:]]
    assert derive_keys(dropped).served == frozenset()


def test_identities_make_a_function_of_several_columns() -> None:
    answer = derive_keys(
        [
            scan(10, (Identity(), (0,)), (Identity(), (1,))),
            scan(20, (MultiBucket(4), (0, 1))),
            Join(0, 1, JoinType.FULL, equated=((10, 20), (11, 21))),
        ]
    )
    assert answer.served == {2}
    assert keys_of(answer, 0) == keys_of(answer, 1) == ["multi_bucket(4, col0, col1)"]


def test_spark_groups_a_single_scan_by_itself_where_it_can() -> None:
    window = Window(0, frozenset({10, 11}))
    assert derive_keys([scan(10, (Bucket(8), (0,))), window]).served == frozenset()
    assert derive_keys([scan(10, (MultiBucket(8), (0, 1))), window]).served == {1}


def test_nothing_is_known_above_an_opaque_node() -> None:
    nodes: list[PlanNode] = [scan(10, (Bucket(8), (0,))), Opaque(), Group(1, frozenset({10}), ())]
    assert derive_keys(nodes) == DerivedKeys({}, frozenset(), {})


def test_integers_of_two_widths_have_the_same_buckets() -> None:
    narrow = GroupingFunction(Bucket(8), (pa.int32(),))
    left = Scan(layout=Layout((LayoutFunction(narrow, (7,)),), {}), attributes={7: frozenset({10})})
    answer = derive_keys(
        [left, scan(20, (Bucket(4), (0,))), Join(0, 1, JoinType.INNER, equated=((10, 20),))]
    )
    assert answer.scans[0] == (LayoutFunction(GroupingFunction(Bucket(4), (pa.int32(),)), (7,)),)
    assert answer.scans[1] == (LayoutFunction(GroupingFunction(Bucket(4), (INT,)), (0,)),)


def test_decimals_hash_alike_where_their_scale_is_the_same() -> None:
    def bucket(precision: int, scale: int) -> GroupingFunction:
        return GroupingFunction(Bucket(8), (pa.decimal128(precision, scale),))

    assert bucket(5, 2).common_reduction(bucket(20, 2)) is not None
    assert bucket(5, 2).common_reduction(bucket(20, 3)) is None


def test_arrow_types_of_one_type_of_spark_hash_alike() -> None:
    """An expression may tell them apart: as text a DATE64 has a time, a number its unit."""
    alike = [
        (pa.date64(), pa.date32()),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string_view()),
        (pa.binary(2), pa.large_binary()),
        *((pa.timestamp(unit), pa.timestamp("us")) for unit in ("s", "ms", "ns")),
    ]
    for one, other in alike:
        for transform in (Identity(), Bucket(8)):
            mine, theirs = (GroupingFunction(transform, (kind,)) for kind in (one, other))
            assert mine.common_reduction(theirs) == mine
            assert theirs.common_reduction(mine) == theirs
        text = Expression("CAST(col0 AS VARCHAR)", pa.string())
        told = [GroupingFunction(text, (kind,)) for kind in (one, other)]
        assert told[0].common_reduction(told[1]) is None
        assert told[0].common_reduction(told[0]) == told[0]
    unlike = GroupingFunction(Identity(), (pa.string(),))
    assert unlike.common_reduction(GroupingFunction(Identity(), (pa.binary(),))) is None


def test_a_side_without_partitioning_computes_the_key() -> None:
    nodes: list[PlanNode] = [
        scan(10, (MultiBucket(8), (0, 1))),
        Opaque(),
        Join(1, 0, JoinType.RIGHT, equated=((30, 10), (31, 11))),
    ]
    answer = derive_keys(nodes)
    assert answer.served == {2}
    assert answer.computed[2] == (
        LayoutFunction(GroupingFunction(MultiBucket(8), (INT, TEXT)), (30, 31)),
    )
    by_spark: list[PlanNode] = [scan(10, (Bucket(8), (0,))), *nodes[1:]]
    assert derive_keys(by_spark) == DerivedKeys({}, frozenset(), {})


def test_a_cast_hides_the_partitioning_from_spark_and_not_from_the_key() -> None:
    join = Join(0, 1, JoinType.INNER, equated=((10, 30),), has_casts=True)
    assert derive_keys([scan(10, (Bucket(8), (0,))), Opaque(), join]).served == {2}


def test_one_of_two_sides_with_nothing_in_common_stays() -> None:
    nodes: list[PlanNode] = [
        scan(10, (MultiBucket(8), (0, 1))),
        scan(20, (Truncate(3), (1,))),
        Join(0, 1, JoinType.INNER, equated=((10, 20), (11, 21))),
        scan(30, (MultiBucket(4), (0, 1))),
        Join(2, 3, JoinType.LEFT, equated=((20, 30), (11, 31))),
    ]
    answer = derive_keys(nodes)
    assert answer.served == {2, 4}
    assert [keys_of(answer, scan_) for scan_ in (0, 1, 3)] == [
        ["multi_bucket(4, col0, col1)"],
        [],
        ["multi_bucket(4, col0, col1)"],
    ]
    assert [key.source_ids for key in answer.computed[2]] == [(20, 21)]
    assert answer.verdicts[2].reason.endswith("one side is shuffled onto the other")
    assert answer.verdicts[4].reason == ""


@pytest.mark.parametrize(("left_bytes", "stays"), [(100, 3), (900, 0)])
def test_the_side_stays_that_has_more_bytes(left_bytes: int, stays: int) -> None:
    compared = ((10, 30), (11, 31))
    nodes: list[PlanNode] = [
        replace(scan(10, (MultiBucket(8), (0, 1))), num_bytes=left_bytes),
        replace(scan(20, (MultiBucket(8), (0, 1))), num_bytes=100),
        Join(0, 1, JoinType.INNER, equated=((10, 20), (11, 21))),
        replace(scan(30, (MultiBucket(8), (1, 0))), num_bytes=500),
        Join(2, 3, JoinType.INNER, equated=compared),
    ]
    answer = derive_keys(nodes)
    assert answer.computed[4][0].source_ids == ((11, 10) if stays else (30, 31))
    assert (keys_of(answer, 3) != []) is bool(stays)


def test_the_smaller_side_stays_where_that_spares_a_shuffle_above() -> None:
    first: list[PlanNode] = [
        replace(scan(10, (MultiBucket(8), (0, 1))), num_bytes=75),
        replace(scan(20, (Truncate(10), (0,))), num_bytes=70),
        Join(0, 1, JoinType.INNER, equated=((10, 20), (11, 21))),
    ]
    assert derive_keys(first).computed.keys() == {2}
    assert keys_of(derive_keys(first), 0) == ["multi_bucket(8, col0, col1)"]
    third = replace(scan(30, (Truncate(6), (0,))), num_bytes=70)
    answer = derive_keys([*first, third, Join(2, 3, JoinType.LEFT, equated=((20, 30),))])
    assert answer.served == {2, 4}
    assert keys_of(answer, 1) == keys_of(answer, 3) == ["truncate(30, col0)"]


def test_a_side_that_moves_reports_nothing_by_which_spark_would_move_the_other() -> None:
    larger = replace(scan(10, (Bucket(9), (0,))), num_bytes=900)
    sides: list[PlanNode] = [larger, scan(20, (Bucket(16), (0,)))]
    compared = ((10, 20),)
    assert derive_keys([*sides, Join(0, 1, JoinType.INNER, equated=compared)]).moved == {1}
    grouped = Group(1, frozenset({20}), ((20, 20),))
    answer = derive_keys([*sides, grouped, Join(0, 2, JoinType.INNER, equated=compared)])
    assert not answer.moved
    assert keys_of(answer, 1) == ["bucket(16, col0)"]


def test_a_side_is_shuffled_by_no_more_than_what_is_needed_above() -> None:
    nodes: list[PlanNode] = [
        scan(10, (Bucket(8), (0,)), (Bucket(4), (1,))),
        Opaque(),
        Join(0, 1, JoinType.INNER, equated=((10, 60), (11, 61))),
    ]
    assert not derive_keys(nodes).served  # Spark serves it by both functions that it reports.
    answer = derive_keys([*nodes, Window(2, frozenset({60}))])
    assert answer.served == {2, 3}
    assert keys_of(answer, 0) == ["bucket(8, col0)"]


def test_spark_does_not_see_through_a_null_safe_comparison() -> None:
    join = Join(0, 1, JoinType.INNER, equated=((10, 30),), is_null_safe=True)
    answer = derive_keys([scan(10, (Bucket(8), (0,))), Opaque(), join])
    assert answer.served == {2}
    assert keys_of(answer, 0) == ["bucket(8, col0)"]


def test_a_surrogate_is_never_null_and_equal_for_equal_tuples() -> None:
    left = surrogate_of([pa.array([1, None, 1], pa.int32()), pa.array(["a", None, None])], 3)
    right = surrogate_of([pa.array([1, 1, None], pa.int32()), pa.array([None, "a", None])], 3)
    assert left.null_count == 0
    assert left.to_pylist() == [right[1].as_py(), right[2].as_py(), right[0].as_py()]


def test_a_date_and_a_timestamp_meet_in_days_and_never_in_a_hash() -> None:
    day, moment = pa.date32(), pa.timestamp("us", "UTC")

    def common(mine: Transform, theirs: Transform) -> str:
        meeting = GroupingFunction(mine, (day,)).common_reduction(
            GroupingFunction(theirs, (moment,))
        )
        return str(meeting)

    assert common(Identity(), Identity()) == "days(col0)"
    assert common(Identity(), Epoch(EpochUnit.HOURS)) == "days(col0)"
    assert common(Epoch(EpochUnit.MONTHS), Identity()) == "months(col0)"
    assert common(Bucket(4), Bucket(4)) == "None"
    as_midnight = ((10, 30),)
    join = Join(0, 1, JoinType.INNER, equated=as_midnight, dates=frozenset(as_midnight))
    assert derive_keys([scan(10, (Bucket(8), (0,))), Opaque(), join]).served == frozenset()
