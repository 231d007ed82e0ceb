"""The merge of sorted streams gives all rows, in Spark's order, whatever the values are."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennon.execution.batches import merged
from pennon.leaf.row_order import SortedCheck
from pennon.spec.write_properties import OrderColumn

# Beyond the BMP UTF-8 and UTF-16 differ: U+FF61 comes before U+1F600 by bytes alone.
TEXTS = st.text(alphabet="aé\uff61\U0001f600\x00\uffff", max_size=3)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "long": (pa.int64(), st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])),
    "double": (
        pa.float64(),
        st.sampled_from([math.nan, -math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324, -1.5]),
    ),
    "float": (pa.float32(), st.sampled_from([math.nan, -0.0, 0.0, math.inf, 1.5])),
    "text": (pa.utf8(), TEXTS),
    "binary": (pa.binary(), st.binary(max_size=2)),
    "boolean": (pa.bool_(), st.booleans()),
    "decimal": (
        pa.decimal128(20, 2),
        st.sampled_from([Decimal("-1.25"), Decimal("0.00"), Decimal("10.00"), Decimal("9.99")]),
    ),
    "date": (pa.date32(), st.dates()),
    "moment": (pa.timestamp("us"), st.datetimes()),
}


def compared(left: object, right: object) -> int:
    """Compare two values as Spark does: NaN is greatest, -0.0 is 0.0, texts go by bytes."""
    if left != left or right != right:  # noqa: PLR0124 - NaN
        return int(left != left) - int(right != right)  # noqa: PLR0124
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.encode(), right.encode()
    return (left > right) - (left < right)  # type: ignore[operator]


def row_comparison(order: list[OrderColumn]) -> Any:
    def compare(left: tuple[object, ...], right: tuple[object, ...]) -> int:
        for mine, theirs, column in zip(left, right, order, strict=False):
            if mine is None or theirs is None:
                found = (mine is not None) - (theirs is not None)
                found = found if column.nulls_first else -found
            else:
                found = compared(mine, theirs) * (-1 if column.is_descending else 1)
            if found:
                return found
        return 0

    return cmp_to_key(compare)


@st.composite
def sorted_streams(draw: st.DrawFn) -> tuple[list[OrderColumn], pa.Schema, list[Any]]:
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    order = [
        OrderColumn(f"c{at}", draw(st.booleans()), draw(st.booleans())) for at in range(len(kinds))
    ]
    schema = pa.schema(
        [*((f"c{at}", VALUES[kind][0]) for at, kind in enumerate(kinds)), ("n", pa.int64())]
    )
    row = st.tuples(*(st.none() | VALUES[kind][1] for kind in kinds))
    streams = []
    for _ in range(draw(st.integers(0, 4))):
        rows = sorted(draw(st.lists(row, max_size=12)), key=row_comparison(order))
        cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
        edges = [0, *cuts, len(rows)]
        streams.append([rows[a:b] for a, b in pairwise(edges)])
    return order, schema, streams


def batch_of(
    rows: list[tuple[object, ...]], numbers: list[int], schema: pa.Schema
) -> pa.RecordBatch:
    columns = [[row[at] for row in rows] for at in range(len(schema) - 1)]
    return pa.record_batch([*columns, numbers], schema=schema)


@given(sorted_streams())
@settings(max_examples=400, deadline=None)
def test_the_merge_is_sorted_as_spark_sorts_and_loses_no_row(case: Any) -> None:
    order, schema, streams = case
    given_rows: list[tuple[object, ...]] = []
    batches: list[list[pa.RecordBatch]] = []
    for stream in streams:
        batches.append([])
        for rows in stream:
            numbers = list(range(len(given_rows), len(given_rows) + len(rows)))
            batches[-1].append(batch_of(rows, numbers, schema))
            given_rows += rows
    found = [
        row
        for batch in merged([iter(batch) for batch in batches], order)
        for row in batch.to_pylist()
    ]
    assert sorted(row["n"] for row in found) == list(range(len(given_rows)))
    key = row_comparison(order)
    ordered = [given_rows[row["n"]] for row in found]
    assert [key(row) for row in ordered] == sorted(key(row) for row in ordered)


@given(sorted_streams(), st.randoms())
@settings(max_examples=300, deadline=None)
def test_the_check_of_a_run_knows_what_is_sorted(case: Any, random: Any) -> None:
    order, schema, streams = case
    rows = [row for stream in streams for part in stream for row in part]
    random.shuffle(rows) if random.random() < 0.3 else None
    key = row_comparison(order)
    is_sorted = [key(row) for row in rows] == sorted(key(row) for row in rows)
    check = SortedCheck(order)
    cut = len(rows) // 2
    for part in (rows[:cut], rows[cut:]):
        check.observe(batch_of(part, [0] * len(part), schema).columns[:-1])
    assert check.is_sorted == is_sorted


def test_streams_that_follow_each_other_are_handed_on_as_they_are() -> None:
    batches = [pa.record_batch({"a": [n, n + 1]}) for n in range(0, 8, 2)]
    streams = [iter(batches[2:]), iter(batches[:2])]
    assert list(merged(streams, [OrderColumn("a")])) == batches


@pytest.mark.parametrize("num_streams", [2, 5])
def test_a_stream_is_read_only_as_far_as_it_is_needed(num_streams: int) -> None:
    pulled = [0] * num_streams

    def stream(number: int) -> Any:
        for first in range(0, 100, 10):
            pulled[number] += 1
            yield pa.record_batch({"a": range(first, first + 10)})

    for at, _ in enumerate(merged([stream(n) for n in range(num_streams)], [OrderColumn("a")])):
        assert max(pulled) <= at + 2
