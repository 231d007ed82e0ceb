"""Rows from Python keep the defaults and the lengths of columns, as Spark's statements do."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.catalog.columns.spark_types import CURRENT_DEFAULT
from pennon.errors import DefaultNotComputed, TextTooLong
from pennon.namespace import PartitionedNamespace
from pennon.spec.column_names import LENGTH_LIMIT


def made(tmp_path: Path, kind: pa.DataType, default: str) -> PartitionedNamespace:
    column = pa.field("N", kind, metadata={CURRENT_DEFAULT: default})
    return pennon.create(tmp_path / "t", pa.schema([pa.field("id", pa.int64()), column]))


def values(table: PartitionedNamespace) -> list[object]:
    found = table.scan().to_arrow().sort_by("id")
    return list(found["N"].to_pylist())


def test_every_write_gives_a_column_that_it_leaves_out_its_default(tmp_path: Path) -> None:
    table = made(tmp_path, pa.int32(), "3 + 4")
    table.append(
        iter([pa.table({"id": [1]}), pa.table({"id": [2], "n": pa.array([5], pa.int32())})])
    )
    table.merge([{"id": 1}, {"id": 3}], "id").when_matched_update_all().execute()
    table.merge([{"id": 1}, {"id": 3}], "id").when_not_matched_insert_all().execute()
    assert values(table) == [7, 5, 7]
    table.append([{"id": 4, "N": None}])
    assert values(table) == [7, 5, 7, None]
    table.overwrite([{"id": 1}])
    assert values(table) == [7]


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        (pa.int64(), "CAST(5 AS TINYINT)", 5),
        (pa.float64(), "1.5", 1.5),
        (pa.string(), "upper('it')", "IT"),
        (pa.bool_(), "TRUE", True),
        (pa.date32(), "DATE '2020-01-02'", dt.date(2020, 1, 2)),
        (
            pa.timestamp("us", "UTC"),
            "TIMESTAMP '2020-01-02'",
            dt.datetime(2020, 1, 2, tzinfo=dt.UTC),
        ),
        (pa.int32(), "NULL", None),
    ],
)
def test_a_default_is_computed_as_spark_does(
    tmp_path: Path, kind: pa.DataType, default: str, value: object
) -> None:
    table = made(tmp_path, kind, default)
    table.append([{"id": 1}])
    assert values(table) == [value]


def test_a_default_of_the_present_moment_is_that_of_the_write(tmp_path: Path) -> None:
    table = made(tmp_path, pa.timestamp("us", "UTC"), "current_timestamp()")
    before = dt.datetime.now(dt.UTC)
    table.append([{"id": 1}, {"id": 2}])
    first, second = values(table)
    assert first == second
    assert isinstance(first, dt.datetime)
    assert before <= first <= dt.datetime.now(dt.UTC)


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (pa.string(), "current_user()"),
        (pa.int8(), "300"),
        (pa.timestamp("us", "UTC"), "DATE '2020-01-02'"),
        (pa.int32(), "1 +"),
    ],
)
def test_a_default_that_is_not_computed_here_is_no_null(
    tmp_path: Path, kind: pa.DataType, default: str
) -> None:
    table = made(tmp_path, kind, default)
    with pytest.raises(DefaultNotComputed, match=r"without the column N to .* \(" + default[:3]):
        table.append([{"id": 1}])
    table.append([{"id": 1, "N": None}])
    assert values(table) == [None]


def test_a_column_that_is_added_with_a_default_has_it_in_later_rows(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64()}))
    table.append([{"id": 1}])
    table.add_column("N", pa.int32(), default=6, nullable=False)
    table.append([{"id": 2}])
    assert values(table) == [6, 6]


def test_no_statement_stores_a_text_that_is_too_long(tmp_path: Path) -> None:
    limited = pa.field("a", pa.utf8(), metadata={LENGTH_LIMIT: "varchar(3)"})
    table = pennon.create(tmp_path / "t", pa.schema([pa.field("id", pa.int64()), limited]))
    table.append([{"id": 1, "a": "abc"}])
    merge = table.merge([{"id": 1, "a": "abcd"}, {"id": 2, "a": "abcd"}], "id")
    with pytest.raises(TextTooLong):
        merge.when_matched_update_all().execute()
    with pytest.raises(TextTooLong):
        merge.when_not_matched_insert_all().execute()
    with pytest.raises(TextTooLong):
        table.update({"a": "concat(a, 'd')"})
    table.update({"a": "'x  '"})
    assert table.scan().to_arrow()["a"].to_pylist() == ["x  "]
