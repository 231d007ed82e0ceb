"""NOT IN by Spark's rule for NULLs, and rows repeated for grouping sets."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from tests.pushdown.computed import computed, grouped, relation, scan_of
from tests.pushdown.stated_nodes import call_of, condition_of, expanded_of, output_of

from pennon.plan import Expand, Join, JoinType, Limit, PlanNode
from pennon.predicate.condition import Declined
from pennon.pushdown.selects.joined import null_aware_pair

NOT_IN = "((`c1` = `c11`) OR ((`c1` = `c11`) IS NULL))"
LEFT: tuple[list[int | None], ...] = ([1, 2, None], [None], [], [3])
RIGHT: tuple[list[int | None], ...] = ([], [1], [None], [1, None], [2, 2])


@pytest.mark.parametrize(("left", "right"), list(product(LEFT, RIGHT)))
def test_not_in_sees_the_nulls_of_the_whole_right_side(
    tmp_path: Path, left: list[int | None], right: list[int | None]
) -> None:
    rows = pa.table({"c1": pa.array(left, pa.int64())})
    members = pa.table({"c11": pa.array(right, pa.int64())})
    nodes: list[PlanNode] = [
        scan_of(rows),
        scan_of(members),
        Join(0, 1, JoinType.ANTI, condition_of(NOT_IN)),
    ]
    relations = [
        relation(tmp_path, "rows", rows.schema, [rows]),
        relation(tmp_path, "members", members.schema, [members]),
    ]
    expected = [
        value
        for value in left
        if not right or (value is not None and None not in right and value not in right)
    ]
    assert computed(nodes, relations)["c1"].to_pylist() == expected


def test_a_membership_of_a_long_list_may_be_looked_for(tmp_path: Path) -> None:
    rows, flags = pa.table({"c1": [1, 99]}), pa.table({"c11": [True]})
    equality = f"(`c1` IN ({', '.join(map(str, range(60)))})) = `c11`"
    no_member = f"(({equality}) OR (({equality}) IS NULL))"
    join = Join(0, 1, JoinType.ANTI, condition_of(no_member))
    nodes: list[PlanNode] = [scan_of(rows), scan_of(flags), join]
    relations = [
        relation(tmp_path, "rows", rows.schema, [rows]),
        relation(tmp_path, "flags", flags.schema, [flags]),
    ]
    assert computed(nodes, relations)["c1"].to_pylist() == [99]


def test_a_condition_too_deep_to_read_is_no_not_in() -> None:
    """It stays in Spark; it ended the planning of the whole query."""
    deep = f"{'(' * 40}`c1` = `c11`{')' * 40}"
    assert (
        null_aware_pair(Join(0, 1, JoinType.ANTI, condition_of(f"{deep} OR ({deep} IS NULL)")))
        is None
    )


def test_not_in_rows_that_another_evaluation_may_not_choose_stays_in_spark(tmp_path: Path) -> None:
    """The right side is read twice: for the members, and for how many of them are NULL."""
    rows, members = pa.table({"c1": [1, 2]}), pa.table({"c11": [1, None, 3]})
    limit = Limit(1, 1, is_whole=True)
    nodes: list[PlanNode] = [
        scan_of(rows),
        scan_of(members),
        limit,
        Join(0, 2, JoinType.ANTI, condition_of(NOT_IN)),
    ]
    relations = [
        relation(tmp_path, "rows", rows.schema, [rows]),
        relation(tmp_path, "members", members.schema, [members]),
    ]
    with pytest.raises(Declined, match="choose twice"):
        computed(nodes, relations)


def test_grouping_sets_keep_a_null_apart_from_a_column_that_is_left_out(tmp_path: Path) -> None:
    rows = pa.table({"c1": [1, 2, 1], "c2": ["a", "b", None], "c3": [10, 20, 30]})
    no_text = "CAST(NULL AS STRING)"
    numbers = ("CAST(0 AS BIGINT)", "CAST(1 AS BIGINT)", "CAST(3 AS BIGINT)")
    expanded = Expand(
        0,
        (),
        (
            expanded_of(11, ("`c1`", "`c1`", "CAST(NULL AS BIGINT)"), pa.int64()),
            expanded_of(12, ("`c2`", no_text, no_text), pa.utf8()),
            expanded_of(13, numbers, pa.int64()),
            expanded_of(14, ("`c3`", "`c3`", "`c3`"), pa.int64()),
        ),
    )
    keys = [
        output_of(21, "`c11`", pa.int64()),
        output_of(22, "`c12`", pa.utf8()),
        output_of(23, "`c13`", pa.int64()),
    ]
    group = grouped(1, keys, [call_of(30, "sum", "`c14`", pa.int64())])
    relations = [relation(tmp_path, "rows", rows.schema, [rows])]
    found = computed([scan_of(rows), expanded, group], relations).to_pylist()
    assert sorted(tuple(row.values()) for row in found if row["c23"] == 0 and row["c22"]) == [
        (1, "a", 0, 10),
        (2, "b", 0, 20),
    ]
    assert {tuple(row.values()) for row in found if row["c22"] is None} == {
        (1, None, 0, 30),
        (1, None, 1, 40),
        (2, None, 1, 20),
        (None, None, 3, 60),
    }
