"""Rows whose types are not those of the columns: what is stored as it is, and what needs a cast."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import WriteColumnUnknown, WriteTypeMismatch

DAY = date(2025, 12, 10)
MOMENT = datetime(2025, 12, 10, tzinfo=UTC)
ZONED = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("given", "column"),
    [
        (pa.array(["1"]), pa.int32()),
        (pa.array(["1"]).dictionary_encode(), pa.int32()),
        (pa.array(["1.5"]), pa.float64()),
        (pa.array(["1.50"]), pa.decimal128(10, 2)),
        (pa.array(["true"]), pa.bool_()),
        (pa.array(["2025-12-10"]), pa.date32()),
        (pa.array(["2025-12-10 00:00:00"]), pa.timestamp("us")),
        (pa.array(["a"]), pa.binary()),
        (pa.array([b"1"]), pa.int32()),
        (pa.array([b"a"]), pa.string()),
        (pa.array([1]), pa.string()),
        (pa.array([1.5]), pa.string()),
        (pa.array([1]), pa.bool_()),
        (pa.array([True]), pa.int32()),
        (pa.array([True]), pa.string()),
        (pa.array([1], pa.int32()), pa.date32()),
        (pa.array([1]), ZONED),
        (pa.array([DAY]), pa.int32()),
        (pa.array([MOMENT], ZONED), pa.int64()),
        (pa.array([MOMENT], ZONED), pa.string()),
        (pa.array([time(1)]), pa.int64()),
        (pa.array([timedelta(1)]), pa.int64()),
        (pa.array([["1"]]), pa.list_(pa.int32())),
        (pa.array([[MOMENT]], pa.list_(ZONED)), pa.list_(pa.date32())),
        (pa.array([{"a": "1"}]), pa.struct({"a": pa.int32()})),
        (
            pa.array([[("a", "1")]], pa.map_(pa.string(), pa.string())),
            pa.map_(pa.string(), pa.int32()),
        ),
    ],
)
def test_a_value_of_another_kind_is_refused(
    tmp_path: Path, given: pa.Array, column: pa.DataType
) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64(), "c": column}), ["id"])
    before = table.version
    rows = pa.table({"id": pa.array([1]), "c": given})
    with pytest.raises(WriteTypeMismatch, match=r"to column c of .* explicit CAST"):
        table.append(rows)
    with pytest.raises(WriteTypeMismatch, match="to column c of "):
        table.overwrite_partitions(rows)
    with pytest.raises(WriteTypeMismatch, match="to column c of "):
        table.merge(rows, on="id").when_not_matched_insert_all().execute()
    assert table.refresh().version == before


@pytest.mark.parametrize(
    ("given", "column", "stored"),
    [
        (pa.array([1]), pa.int8(), 1),
        (pa.array([1], pa.int8()), pa.int64(), 1),
        (pa.array([1], pa.uint8()), pa.float32(), 1.0),
        (pa.array([2.0]), pa.int32(), 2),
        (pa.array([7]), pa.decimal128(10, 2), Decimal("7.00")),
        (pa.array([7], pa.uint64()), pa.decimal128(3, 2), Decimal("7.00")),
        (pa.array([Decimal("1.5")]), pa.decimal128(20, 4), Decimal("1.5000")),
        (pa.array([Decimal("1.5")]), pa.float64(), 1.5),
        (pa.array(["a"]).dictionary_encode(), pa.string(), "a"),
        (pa.array(["a"], pa.large_string()), pa.string(), "a"),
        (pa.array([DAY]), ZONED, MOMENT),
        (pa.array([MOMENT], pa.timestamp("ns", "UTC")), pa.date32(), DAY),
        (pa.array([MOMENT.replace(tzinfo=None)]), ZONED, MOMENT),
        (pa.array([None]), pa.list_(pa.int32()), None),
        (pa.array([[1]]), pa.list_(pa.int32()), [1]),
    ],
)
def test_a_value_of_the_same_kind_is_stored_where_it_fits(
    tmp_path: Path, given: pa.Array, column: pa.DataType, stored: object
) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"c": column}))
    table.append(pa.table({"c": given}))
    assert table.scan().to_arrow().to_pylist() == [{"c": stored}]


@pytest.mark.parametrize(
    ("given", "column"),
    [
        (pa.array([300]), pa.int8()),
        (pa.array([-1]), pa.uint8()),
        (pa.array([1.5]), pa.int32()),
        (pa.array([float("nan")]), pa.int32()),
        (pa.array([10]), pa.decimal128(3, 2)),
        (pa.array([Decimal("1.005")]), pa.decimal128(10, 2)),
        (pa.array([MOMENT.replace(hour=1)], ZONED), pa.date32()),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
    ],
)
def test_a_value_that_would_lose_something_is_refused(
    tmp_path: Path, given: pa.Array, column: pa.DataType
) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"c": column}))
    with pytest.raises(WriteTypeMismatch, match="to column c of "):
        table.append(pa.table({"c": given}))


def test_an_update_stores_text_by_a_cast_alone(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64(), "name": pa.string()}))
    table.append([{"id": 1, "name": "a"}])
    for value in ("id + 1", 7):
        with pytest.raises(WriteTypeMismatch, match="to column name of "):
            table.update({"name": value})
    table.update({"name": "CAST(id + 1 AS STRING)"})
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "name": "2"}]


def test_the_values_of_an_update_are_stored_as_those_of_an_append(tmp_path: Path) -> None:
    tags = pa.map_(pa.string(), pa.int32())
    columns = {"l": pa.list_(pa.int32()), "tags": tags, "st": pa.struct({"a": pa.int32()})}
    table = pennon.create(tmp_path / "t", pa.schema(columns))
    table.append([{"l": [0]}])
    wide = pa.map_(pa.string(), pa.int64())
    for values in (
        {"l": [1], "tags": {"x": 1}, "st": {"a": 1}},
        {"l": pa.scalar([1]), "tags": pa.scalar([("x", 1)], wide), "st": pa.scalar({"a": 1})},
    ):
        table.update({"l": None, "tags": None, "st": None})
        table.update(values)
        assert table.scan().to_arrow().to_pylist() == [
            {"l": [1], "tags": [("x", 1)], "st": {"a": 1}}
        ]
    for wrong in ({"zz": 1}, pa.scalar({"zz": 1})):
        with pytest.raises(WriteColumnUnknown, match=r"column st\.zz to "):
            table.update({"st": wrong})
    with pytest.raises(WriteTypeMismatch, match="to column l of "):
        table.update({"l": ["1"]})
