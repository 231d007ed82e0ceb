"""Columns of nested types in fragments: carried as they are, and the fields of structs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.pushdown.computed import ANSI, computed, grouped, relation, scan_of, value_of
from tests.pushdown.stated_nodes import call_of, condition_of, output_of, sort_key_of, where

from pennon.execution import small_leaves
from pennon.execution.engine import rows_over
from pennon.plan import (
    Join,
    JoinType,
    Limit,
    PlanNode,
    Project,
    Union,
)
from pennon.predicate.condition import Declined
from pennon.pushdown.query import fragment_query

PLACE = pa.struct([("city", pa.utf8()), ("at", pa.struct([("zip", pa.int32())]))])
ROWS = pa.table(
    {
        "c1": pa.array([1, 2, 3, None], pa.int64()),
        "c2": pa.array(
            [{"city": "Ulm", "at": {"zip": 89}}, None, {"city": None, "at": None}, {"city": "X"}],
            PLACE,
        ),
        "c3": pa.array([["a", None], [], None, ["b"]], pa.list_(pa.utf8())),
        "c4": pa.array([[("k", 1)], None, [], [("l", None)]], pa.map_(pa.utf8(), pa.int32())),
    }
)
OTHER = pa.table({"c11": pa.array([1, 2, 2, 9], pa.int64())})


@pytest.fixture(params=["in memory", "from files"], autouse=True)
def _read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "from files":
        monkeypatch.setattr(small_leaves, "HELD_BYTES", 0)


def rows_of(nodes: list[PlanNode], root: Path, *tables: pa.Table) -> list[dict[str, object]]:
    relations = [
        relation(root, f"t{at}_", table.schema, [table.take([0, 1]), table.take([2, 3])])
        for at, table in enumerate(tables)
    ]
    return computed(nodes, relations).to_pylist()


def test_nested_columns_pass_joins_filters_and_limits(tmp_path: Path) -> None:
    join = Join(0, 1, JoinType.LEFT, condition=condition_of("(`c11` = `c1`)"))
    kept = [
        output_of(number, f"`c{number}`", ROWS.schema.field(f"c{number}").type)
        for number in (1, 2, 4)
    ]
    order = (sort_key_of("`c11`", is_ascending=False, is_nulls_first=False),)
    nodes: list[PlanNode] = [
        scan_of(OTHER),
        scan_of(ROWS),
        join,
        where(2, "(`c11` < 9)"),
        Project(3, (output_of(11, "`c11`", pa.int64()), *kept)),
        Limit(4, 2, order, is_whole=True),
    ]
    whole = {row["c1"]: row for row in ROWS.to_pylist()}
    expected = {"c11": 2} | {name: whole[2][name] for name in ("c1", "c2", "c4")}
    assert rows_of(nodes, tmp_path, OTHER, ROWS) == [expected, expected]


def test_nested_columns_of_two_inputs_are_united(tmp_path: Path) -> None:
    union = Union((0, 1), ((21, (3, 3)), (22, (2, 2))))
    found = rows_of([scan_of(ROWS), scan_of(ROWS), union], tmp_path, ROWS, ROWS)
    once = [{"c21": row["c3"], "c22": row["c2"]} for row in ROWS.to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, once + once))


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("`c2`.`city`", pa.utf8(), ["Ulm", None, None, "X"]),
        ("`c2`.`at`.`zip`", pa.int32(), [89, None, None, None]),
        ("(`c2` IS NULL)", pa.bool_(), [False, True, False, False]),
        ("(NOT (`c3` IS NULL))", pa.bool_(), [True, True, False, True]),
    ],
)
def test_fields_of_structs(
    tmp_path: Path, text: str, kind: pa.DataType, expected: list[object]
) -> None:
    assert value_of(text, kind, ROWS, tmp_path) == expected


def test_the_field_of_a_struct_is_null_where_the_struct_is() -> None:
    cities = pa.array(["hidden", "Ulm"])
    masked = pa.StructArray.from_arrays([cities], ["city"], mask=pa.array([True, False]))
    rows = pa.table({"c1": masked})
    query = fragment_query(
        [scan_of(rows), Project(0, (output_of(2, "`c1`.`city`", pa.utf8()),))], 1, ANSI
    )
    assert rows_over(query.select.sql, {"r0": rows})["c2"].to_pylist() == [None, "Ulm"]


def test_groups_by_the_field_of_a_struct(tmp_path: Path) -> None:
    counted = call_of(31, "count", "`c2`.`at`.`zip`", pa.int64())
    nodes: list[PlanNode] = [
        scan_of(ROWS),
        where(0, "((`c2`.`city` = 'Ulm') OR (`c2`.`city` IS NULL))"),
        grouped(1, [output_of(30, "`c2`.`city`", pa.utf8())], [counted]),
    ]
    found = rows_of(nodes, tmp_path, ROWS)
    assert sorted(found, key=str) == sorted(
        [{"c30": "Ulm", "c31": 1}, {"c30": None, "c31": 0}], key=str
    )


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (grouped(0, [output_of(30, "`c2`", PLACE)], []), "groups by struct"),
        (where(0, "(`c3` = `c3`)"), "the column c3"),
        (where(0, "(`c2`.`town` = 'Ulm')"), r"the column c2\.town"),
        (where(0, "(`c9`.`town` = 'Ulm')"), r"the column c9\.town"),
        (Project(0, (output_of(30, "`c2`.`at`", PLACE.field("at").type),)), "a field of struct"),
        (Project(0, (output_of(30, "`c3`", PLACE),)), "that would be list"),
    ],
)
def test_what_is_computed_of_nested_columns_is_declined(node: PlanNode, why: str) -> None:
    with pytest.raises(Declined, match=why):
        fragment_query([scan_of(ROWS), node], 1, ANSI)


def test_a_field_with_the_name_of_a_column_is_declined() -> None:
    rows = pa.schema([("c1", pa.struct([("c2", pa.int64())])), ("c2", pa.int64())])
    nodes: list[PlanNode] = [scan_of(rows), where(0, "(`c1`.`c2` = 5)")]
    with pytest.raises(Declined, match=r"the column c1\.c2"):
        fragment_query(nodes, 1, ANSI)
