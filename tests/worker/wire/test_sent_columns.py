"""What rows become on their way to Spark."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from pennon.worker.wire.tokens import sent_batch, sent_schema

MOST = 10**18 - 1


@pytest.mark.parametrize("start", [0, 1, 7, 8, 9, 17])
@pytest.mark.parametrize("has_null", [False, True])
def test_short_decimals_are_sent_as_their_unscaled_values(start: int, *, has_null: bool) -> None:
    unscaled = [*range(-9, 9), MOST, -MOST, 1234567890123456]
    values: list[int | None] = [
        None if has_null and at % 3 == 1 else value for at, value in enumerate(unscaled)
    ]
    decimals = [None if value is None else Decimal(value).scaleb(-4) for value in values]
    columns = {
        "short": pa.array(decimals, pa.decimal128(18, 4)),
        "long": pa.array(decimals, pa.decimal128(19, 4)),
        "list": pa.array([[value] for value in decimals], pa.list_(pa.decimal128(18, 4))),
    }
    batch = pa.RecordBatch.from_pydict(columns).slice(start)
    schema = sent_schema(batch.schema)
    sent = sent_batch(batch, schema)
    sent.validate(full=True)
    assert schema.types == [pa.int64(), *batch.schema.types[1:]]
    assert sent.to_pydict() == {**batch.to_pydict(), "short": values[start:]}


@pytest.mark.parametrize("values", [[], [None, None]])
def test_columns_without_values_are_sent(values: list[None]) -> None:
    batch = pa.RecordBatch.from_pydict({"c": pa.array(values, pa.decimal128(5, 2))})
    assert sent_batch(batch, sent_schema(batch.schema)).to_pydict() == {"c": values}


def test_metadata_stays_here() -> None:
    field = pa.field("c", pa.decimal128(5, 2), metadata={"a": "b"})
    assert sent_schema(pa.schema([field], {"a": "b"})).equals(
        pa.schema([("c", pa.int64())]), check_metadata=True
    )


def test_a_batch_is_sent_under_the_schema_of_its_stream() -> None:
    """A scan says "not null" of rows where the plan did not know."""
    schema = pa.schema([("c", pa.int32())])
    never_null = pa.schema([pa.field("c", pa.int32(), nullable=False)])
    batch = pa.record_batch([pa.array([1], pa.int32())], schema=never_null)
    assert sent_batch(batch, schema).schema == schema
