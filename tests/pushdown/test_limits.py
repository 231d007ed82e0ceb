"""The first rows by an order, against Python's sorting by Spark's rules."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.present import present
from tests.pushdown.computed import ANSI, computed, grouped, relation, scan_of
from tests.pushdown.stated_nodes import call_of, condition_of, output_of, sort_key_of

from pennon.plan import Join, JoinType, Limit, Offset, PlanNode, SortKey
from pennon.predicate.condition import Declined
from pennon.pushdown.query import fragment_query

VALUES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    pa.int8(): st.integers(-128, 127),
    pa.float64(): st.sampled_from([0.0, -0.0, math.nan, -math.nan, 1.5, math.inf, -math.inf]),
    pa.float32(): st.sampled_from([0.0, -0.0, math.nan, -math.nan, 1.5, -1.5]),
    pa.utf8(): st.sampled_from(["", "a", "A", "ä", "a ", "b", "\uffff", "\U0001f600"]),
    pa.decimal128(9, 2): st.integers(-500, 500).map(lambda cents: Decimal(cents).scaleb(-2)),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(dt.date(1, 1, 1), dt.date(2100, 1, 1)),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.UTC)),
}


@st.composite
def ordered(draw: st.DrawFn) -> tuple[pa.Table, tuple[SortKey, ...], int]:
    """Rows of two columns, an order by one or both of them, and how many are wanted."""
    count = draw(st.integers(0, 40))
    columns = [
        pa.array(draw(st.lists(st.none() | VALUES[kind], min_size=count, max_size=count)), kind)
        for kind in draw(st.lists(st.sampled_from(list(VALUES)), min_size=2, max_size=2))
    ]
    texts = draw(st.permutations(["`c1`", "`c2`"]))[: draw(st.integers(1, 2))]
    keys = tuple(
        sort_key_of(text, is_ascending=draw(st.booleans()), is_nulls_first=draw(st.booleans()))
        for text in texts
    )
    return pa.table(columns, names=["c1", "c2"]), keys, draw(st.integers(0, 12))


def rank(value: object, key: SortKey) -> tuple[int, object]:
    """NULLs stand where the key says, NaN above all numbers, texts by their bytes."""
    if value is None:
        return (-1 if key.is_nulls_first else 1, 0)
    if isinstance(value, float):
        return (0, Directed((math.isnan(value), 0.0 if math.isnan(value) else value), key))
    return (0, Directed(value.encode() if isinstance(value, str) else value, key))


class Directed:
    """A value that is compared in the direction of its key."""

    def __init__(self, value: object, key: SortKey) -> None:
        self.value, self.is_ascending = value, key.is_ascending

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Directed) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: Directed) -> bool:
        below = self.value < other.value  # type: ignore[operator]
        return below if self.is_ascending else self.value != other.value and not below


def ranks(rows: list[dict], keys: tuple[SortKey, ...]) -> list[tuple]:
    return [tuple(rank(row[present(key.value.column)], key) for key in keys) for row in rows]


@pytest.mark.slow
@hypothesis_settings(max_examples=150, deadline=None)
@given(ordered())
def test_the_first_rows_are_those_of_spark(case: tuple) -> None:
    table, keys, count = case
    with tempfile.TemporaryDirectory() as folder:
        rows = relation(Path(folder), "leaf", table.schema, [table])
        found = computed([scan_of(table), Limit(0, count, keys)], [rows]).to_pylist()
    given = table.to_pylist()
    assert ranks(found, keys) == sorted(ranks(given, keys))[:count]
    assert not Counter(map(repr, found)) - Counter(map(repr, given))


@hypothesis_settings(max_examples=50, deadline=None)
@given(ordered(), st.tuples(st.integers(0, 12), st.booleans()))
def test_the_rows_after_the_first_are_those_of_spark(case: tuple, cut: tuple[int, bool]) -> None:
    (table, keys, more), (skipped, is_cut) = case, cut
    count = skipped + more if is_cut else None
    above: list[PlanNode] = [Limit(1, count)] if is_cut else []
    with tempfile.TemporaryDirectory() as folder:
        rows = relation(Path(folder), "leaf", table.schema, [table])
        nodes = [scan_of(table), Limit(0, count, keys), *above, Offset(1 + is_cut, skipped)]
        found = computed(nodes, [rows]).to_pylist()
    given = table.to_pylist()
    assert sorted(ranks(found, keys)) == sorted(ranks(given, keys))[skipped:count]
    assert not Counter(map(repr, found)) - Counter(map(repr, given))


@pytest.mark.parametrize("is_ascending", [True, False])
@pytest.mark.parametrize("is_nulls_first", [True, False])
@pytest.mark.parametrize("function", ["max", "min", "sum"])
def test_the_first_groups_may_have_no_value(
    tmp_path: Path, function: str, *, is_ascending: bool, is_nulls_first: bool
) -> None:
    values = [None if number % 3 == 0 else (number * 7) % 20 for number in range(12)]
    table = pa.table({"c1": list(range(12)), "c2": pa.array(values, pa.int64())})
    group = grouped(
        0, (output_of(11, "`c1`", pa.int64()),), (call_of(12, function, "`c2`", pa.int64()),)
    )
    keys = (sort_key_of("`c12`", is_ascending=is_ascending, is_nulls_first=is_nulls_first),)
    rows = relation(tmp_path, "leaf", table.schema, [table])
    for count in (1, 4, 5, 9, 20):
        found = computed([scan_of(table), group, Limit(1, count, keys)], [rows]).to_pylist()
        every = [{"c12": value} for value in values]
        assert ranks(found, keys) == sorted(ranks(every, keys))[:count]


def test_any_rows_will_do_without_an_order(tmp_path: Path) -> None:
    table = pa.table({"c1": list(range(9))})
    rows = relation(tmp_path, "leaf", table.schema, [table])
    for count in (0, 4, 100):
        found = computed([scan_of(table), Limit(0, count)], [rows])
        assert found.num_rows == min(count, 9)


def test_an_order_that_is_not_certain_is_declined() -> None:
    schema = pa.schema([("c1", pa.binary()), ("c2", pa.int64())])
    by_number = sort_key_of("`c2`", is_ascending=True, is_nulls_first=True)
    for limit in (
        Limit(0, 5, (by_number, sort_key_of("`c1`", is_ascending=True, is_nulls_first=True))),
        Limit(0, 5, (sort_key_of(None, is_ascending=True, is_nulls_first=True),)),
        Limit(0, 10_000_000, (by_number,)),
    ):
        with pytest.raises(Declined):
            fragment_query([scan_of(schema), limit], 1, ANSI)
    with pytest.raises(Declined):
        fragment_query([scan_of(schema), Limit(0, 5, (by_number,)), Limit(1, 5)], 2, ANSI)


@pytest.mark.parametrize("is_first", [True, False])
def test_what_a_join_wants_does_not_change_the_first_rows(tmp_path: Path, is_first: bool) -> None:  # noqa: FBT001
    table = pa.table({"c1": list(range(3000)), "c2": [(at * 7919) % 3000 for at in range(3000)]})
    wanted = pa.table({"c11": list(range(0, 3000, 3))})
    top = Limit(0, 30, (sort_key_of("`c2`", is_ascending=True, is_nulls_first=True),))
    sides: list[PlanNode] = [scan_of(table), top, Limit(1, 30, is_whole=True), scan_of(wanted)]
    left, right = (2, 3) if is_first else (3, 2)
    nodes: list[PlanNode] = [
        *sides,
        Join(left, right, JoinType.INNER, condition_of("(`c1` = `c11`)"), equated=((1, 11),)),
    ]
    rows = [relation(tmp_path, "top", table.schema, [table])]
    rows.append(relation(tmp_path, "wanted", wanted.schema, [wanted]))
    found = computed(nodes, rows if is_first else rows[::-1]).to_pylist()
    first = sorted(table.to_pylist(), key=lambda row: row["c2"])[:30]
    assert {row["c1"] for row in found} == {row["c1"] for row in first if row["c1"] % 3 == 0}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_limit_of_one_side_says_nothing_of_the_other(is_first: bool) -> None:  # noqa: FBT001
    order = (sort_key_of("`c2`", is_ascending=True, is_nulls_first=True),)
    schemas = [pa.schema([(name, pa.int64()), ("c2", pa.int64())]) for name in ("c1", "c11")]
    of_all_tasks: list[PlanNode] = [scan_of(schemas[0]), Limit(0, 3, is_whole=True)]
    of_a_task: list[PlanNode] = [scan_of(schemas[1]), Limit(2, 3, order)]
    left, right = (1, 3) if is_first else (3, 1)
    join = Join(left, right, JoinType.INNER, condition_of("(`c1` = `c11`)"), equated=((1, 11),))
    with pytest.raises(Declined, match="within a query of several tasks"):
        fragment_query([*of_all_tasks, *of_a_task, join], 4, ANSI)
