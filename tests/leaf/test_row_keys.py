"""Rows that a query has no use for are left out before Spark is sent them, and no other row is."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.present import present

from pennon.leaf import LeafSource, LeafViews
from pennon.leaf.read import row_keys, source
from pennon.leaf.read.metadata_columns import LEAF, ROW_ADDRESS
from pennon.leaf.read.row_keys import RowKeys
from pennon.manifest.dataset.select import rows_by_id

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 100_000
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SMALL = st.integers(-5, 5)
# The type, a value of it for a small number, and what Spark has inside for it.
KINDS: dict[str, tuple[pa.DataType, Callable, Callable]] = {
    "int16": (pa.int16(), int, int),
    "int64": (pa.int64(), lambda at: at << 50, lambda at: at << 50),
    "date": (pa.date32(), lambda at: (EPOCH + dt.timedelta(at)).date(), int),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        lambda at: EPOCH + dt.timedelta(microseconds=at),
        int,
    ),
    "text": (pa.utf8(), lambda at: f"'{at}\\", lambda at: f"'{at}\\"),
    "unsigned": (pa.uint64(), lambda at: (at + 5) << 60, lambda at: str((at + 5) << 60)),
    "decimal": (pa.decimal128(20, 2), lambda at: Decimal(at) / 4, lambda at: f"{at / 4:.2f}"),
    "boolean": (pa.bool_(), lambda at: at > 0, lambda at: "true" if at > 0 else "false"),
}


def test_keys_that_an_unsigned_column_cannot_have_are_left_out() -> None:
    keys = RowKeys("k", (), ("-1", "7", "18446744073709551616"), has_null=False)
    assert present(keys.values(pa.uint64())).to_pylist() == [7]
    keys = RowKeys("k", (-1, 7, 1 << 32), (), has_null=False)
    assert present(keys.values(pa.uint32())).to_pylist() == [7]


@pytest.mark.parametrize("data_type", [pa.int64(), pa.date32(), pa.utf8(), pa.uint64()])
def test_keys_of_another_type_leave_out_no_row(data_type: pa.DataType) -> None:
    is_number = data_type in (pa.int64(), pa.date32())
    keys = RowKeys("k", () if is_number else (1,), ("1",) if is_number else (), has_null=False)
    assert keys.values(data_type) is None
    rows = pa.record_batch({"k": pa.nulls(3, data_type)})
    assert sum(batch.num_rows for batch in keys.matching(iter([rows]))) == 3


def keys_of(values: list, column: str = "k") -> RowKeys:
    numbers = tuple(value for value in values if isinstance(value, int))
    return RowKeys(column, numbers, tuple(set(values) - set(numbers)), has_null=False)


@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(st.lists(st.none() | SMALL, max_size=8), max_size=6),
    st.lists(SMALL, max_size=6),
)
def test_rows_of_the_keys_and_no_others_are_left(
    kind: str, batches: list[list[int | None]], keys: list[int]
) -> None:
    data_type, value, inside = KINDS[kind]
    rows = [
        pa.record_batch(
            {"k": pa.array([None if at is None else value(at) for at in batch], data_type)}
        )
        for batch in batches
    ]
    left = keys_of([inside(at) for at in keys]).matching(iter(rows))
    wanted = {value(at) for at in keys}
    given_rows = [row for batch in rows for row in batch.column("k").to_pylist()]
    assert [row for batch in left for row in batch.column("k").to_pylist()] == [
        row for row in given_rows if row in wanted
    ]


def test_rows_of_a_type_that_is_not_compared_are_all_left() -> None:
    rows = pa.record_batch({"k": pa.array([0.5, None])})
    assert list(keys_of([0]).matching(iter([rows]))) == [rows]


def test_looking_ends_where_most_rows_have_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_keys, "_TRIED_ROWS", 6)
    batch = pa.record_batch({"k": pa.array([1, 2, 3])})
    for keys, left in (([1, 2], 2 + 2 + 3), ([1], 1 + 1 + 1)):
        kept = keys_of(keys).matching(iter([batch] * 3))
        assert sum(rows.num_rows for rows in kept) == left


@pytest.fixture(scope="module", params=["addresses", "stable row ids"])
def leaf(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> lance.LanceDataset:
    """A leaf of two fragments, in which each seventh row was deleted and the key was renamed."""
    is_stable = request.param == "stable row ids"
    path = str(tmp_path_factory.mktemp("keys") / "leaf")
    for first in (0, ROWS // 2):
        numbers = range(first, first + ROWS // 2)
        table = pa.table(
            {
                "old": pa.array([None if at % 11 == 0 else at for at in numbers], pa.int64()),
                "text": [f"text {at}" for at in numbers],
            }
        )
        mode = "append" if first else "create"
        dataset = lance.write_dataset(table, path, mode=mode, enable_stable_row_ids=is_stable)
    dataset.update_field_metadata(
        {name: {"lance:field_id": str(at)} for at, name in enumerate(("old", "text"))}
    )
    dataset.delete("old % 7 = 0")
    return dataset


def field(at: int, name: str, data_type: pa.DataType) -> pa.Field:
    return pa.field(name, data_type, metadata={"lance:field_id": str(at)})


SCHEMA = pa.schema([field(1, "text", pa.utf8()), field(0, "k", pa.int64()), ROW_ADDRESS, LEAF])


def scanned(leaf: lance.LanceDataset, keys: RowKeys | None, **scan: Any) -> pa.Table:
    views = LeafViews(SCHEMA, SCHEMA)
    batches = LeafSource(leaf, "place").batches(views, keys=keys, **scan)
    return pa.Table.from_batches(list(batches), views.schema)


@pytest.mark.parametrize("share", [2, 1000])
@pytest.mark.parametrize(
    "scan", [{}, {"filter_sql": "`text` < 'text 5'"}, {"fragments": (1, 2)}], ids=str
)
def test_few_rows_are_fetched_by_their_keys_as_many_are_scanned(
    leaf: lance.LanceDataset,
    share: int,
    scan: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched: list[int] = []

    def noted(dataset: lance.LanceDataset, ids: list[int], names: list[str]) -> pa.Table:
        fetched.append(len(ids))
        return rows_by_id(dataset, ids, names)

    monkeypatch.setattr(source, "rows_by_id", noted)
    work: list[tuple[int, int]] = []
    numbers = range(0, ROWS + 10, share)
    found = scanned(leaf, keys_of(list(numbers)), counted=lambda *cost: work.append(cost), **scan)
    rows = scanned(leaf, None, **scan)
    assert found.equals(rows.filter(pa.compute.is_in(rows["k"], pa.array(numbers)))), share
    assert 0 < found.num_rows < ROWS // share
    assert fetched == ([found.num_rows] if share == 1000 else [])
    assert work[0][0] >= found.num_rows
