"""Subqueries that stand for one value: NULL for no row, an error for several."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.pushdown.computed import computed, relation, scan_of
from tests.pushdown.stated_nodes import where

from pennon.errors import FragmentRows
from pennon.plan import Join, JoinType, PlanNode

ROWS = pa.table({"c1": pa.array([1, 2, None], pa.int64())})
NODES: list[PlanNode] = [
    scan_of(ROWS),
    scan_of(pa.schema([("c11", pa.int64())])),
    Join(0, 1, JoinType.SCALAR),
    where(2, "(`c1` <=> `c11`)"),
]


def rows_equal_to(values: list[int | None], root: Path) -> list[int | None]:
    """Find the rows that equal the value of a subquery which has these rows."""
    subquery = pa.table({"c11": pa.array(values, pa.int64())})
    relations = [
        relation(root, "rows", ROWS.schema, [ROWS]),
        relation(root, "subquery", subquery.schema, [subquery]),
    ]
    found: list[int | None] = computed(NODES, relations)["c1"].to_pylist()
    return found


@pytest.mark.parametrize(("values", "found"), [([2], 2), ([None], None), ([], None), ([9], "-")])
def test_a_subquery_has_the_value_of_its_row_or_null(
    tmp_path: Path, values: list[int | None], found: object
) -> None:
    assert rows_equal_to(values, tmp_path) == ([] if found == "-" else [found])


@pytest.mark.parametrize("values", [[1, 2], [2, 2], [None, 1, 2]])
def test_a_subquery_with_several_rows_is_an_error(tmp_path: Path, values: list[int | None]) -> None:
    with pytest.raises(FragmentRows, match=f"used as one value has {len(values)} rows"):
        rows_equal_to(values, tmp_path)
