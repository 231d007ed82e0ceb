"""Defaults of columns that Python adds: in the type that the column has, in old rows and in new."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentRefused, DefaultNotOfType
from pennon.namespace import PartitionedNamespace

NOON = datetime(2025, 1, 2, 12, 0, 5, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> PartitionedNamespace:
    made = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64()}))
    made.append([{"id": 1}])
    return made


@pytest.mark.parametrize(
    ("data_type", "default"),
    [
        *((pa.timestamp(unit), NOON.replace(tzinfo=None)) for unit in ("s", "ms", "us", "ns")),
        *((pa.timestamp(unit, "UTC"), NOON) for unit in ("s", "ms", "us")),
        (pa.timestamp("ns", "Europe/Berlin"), NOON),
        (pa.date64(), date(2025, 1, 2)),
        (pa.date32(), date(2025, 1, 2)),
        (pa.uint32(), 2**32 - 1),
        (pa.float16(), 0.5),
        (pa.dictionary(pa.int8(), pa.string()), "it's"),
        (pa.binary(2), b"\x00\xff"),
    ],
    ids=str,
)
def test_a_default_is_the_same_in_old_rows_and_in_new_ones(
    table: PartitionedNamespace, data_type: pa.DataType, default: object
) -> None:
    table.add_column("more", data_type, default=default)
    table.append([{"id": 2}])
    assert table.scan(columns=["more"]).to_arrow()["more"].to_pylist() == [default, default]


def test_a_default_that_the_column_would_cut_off_is_refused(table: PartitionedNamespace) -> None:
    with pytest.raises(DefaultNotOfType, match="no value of type timestamp"):
        table.add_column("more", pa.timestamp("ns"), default=pa.scalar(1, pa.timestamp("ns")))


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (pa.list_(pa.int64()), [1]),
        (pa.list_(pa.int64(), 2), [1, 2]),
        (pa.struct({"a": pa.int64()}), {"a": 1}),
        (pa.map_(pa.string(), pa.int64()), {"a": 1}),
    ],
    ids=str,
)
def test_a_default_of_several_values_is_refused_and_rows_are_updated(
    table: PartitionedNamespace, data_type: pa.DataType, value: object
) -> None:
    with pytest.raises(ArgumentRefused, match="Give none, and update the rows"):
        table.add_column("more", data_type, default=value)
    table.add_column("more", data_type)
    table.update({"more": value})
    (row,) = table.scan().to_arrow().to_pylist(maps_as_pydicts="strict")
    assert row["more"] == value
