"""Values of metadata columns come back from the texts of splits as they went in."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from pennon.leaf.read.metadata_columns import constant_of, constant_texts

VALUES: dict[str, pa.Array] = {
    "int8": pa.array([-128, 127, None], pa.int8()),
    "int64": pa.array([-(1 << 63), (1 << 63) - 1, None], pa.int64()),
    "boolean": pa.array([True, False, None]),
    "text": pa.array(['a"b\\c\n\u00fc\u2028', "", None]),
    "binary": pa.array([b"\x00\xff'", b"", None], pa.binary()),
    "decimal": pa.array([Decimal("-0.0000001"), Decimal("9" * 31 + ".9999999"), None]),
    "date": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "zoned": pa.array([-1, 253_402_300_799_999_999, None], pa.timestamp("us", "UTC")),
    "zoneless": pa.array([-62_135_596_800_000_000, 1, None], pa.timestamp("us")),
    "float": pa.array([-0.0, math.inf, None], pa.float32()),
    "double": pa.array([5e-324, 0.1, None], pa.float64()),
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_value_survives(kind: str) -> None:
    values = VALUES[kind]
    texts = constant_texts({"_partition": {"other": values, "v": values}, "_spec_version": values})
    # Of a struct some fields can be left out.
    tuple_column = pa.field("_partition", pa.struct([pa.field("v", values.type)]))
    for row, text in enumerate(texts.to_pylist()):
        stored = json.loads(text)
        alone = constant_of(pa.field("_spec_version", values.type), stored)
        within = constant_of(tuple_column, stored)["v"]
        for found in (alone, within):
            assert found.type == values.type
            assert repr(found.as_py()) == repr(values[row].as_py())


def test_what_was_not_written_is_null() -> None:
    column = pa.field("_partition", pa.struct([pa.field("v", pa.int32())]))
    assert constant_of(column, {}).as_py() is None
    assert constant_of(pa.field("_spec_version", pa.int32()), {}).as_py() is None
