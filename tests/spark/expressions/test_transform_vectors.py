"""The functions that Spark evaluates itself give the values of the Python transforms.

`tests/golden/transform_vectors.tsv` holds type, input, SQL call and value. Two tests hold both
sides to it; PENNON_REWRITE_GOLDEN=1 writes the file anew from the Python side.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pennon.transforms.bucket import Bucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.epoch import Epoch, EpochUnit
from pennon.transforms.truncate import Truncate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pennon.transforms.transform import Transform

VECTORS = Path(__file__).parents[2] / "golden" / "transform_vectors.tsv"
MICROS = pa.timestamp("us", "UTC")
TYPES: dict[str, pa.DataType] = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DECIMAL(9,2)": pa.decimal128(9, 2),
    "DECIMAL(38,10)": pa.decimal128(38, 10),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": MICROS,
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
WIDTHS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
DATES = ["1582-10-15", "1900-02-28", "1969-12-31", "1970-01-01", "1999-12-31", "2024-02-29"]
TIMES = ["00:00:00", "00:59:59.999999", "23:59:59.999999"]
INPUTS: dict[str, list[str]] = {
    **{
        name: [str(n) for n in (0, 1, -1, -7, 25, 34, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))]
        for name, bits in WIDTHS.items()
    },
    "DECIMAL(9,2)": ["0.00", "12.34", "-12.34", "14.20", "-1.28", "1.27", "-327.68", "9999999.99"],
    "DECIMAL(38,10)": ["1.0000000001", "-9999999999999999999999999999.9999999999", "25.5000000000"],
    "STRING": [
        "",
        "a",
        "ab",
        "abc",
        "abcd",
        "iceberg",
        "añ😀b",
        'it\'s \\ "q"\t\n',
        "日本語テキスト",
    ],
    "BINARY": ["", "00", "00010203", "ff" * 5, "80" * 16],
    "BOOLEAN": ["true", "false"],
    "DATE": DATES,
    "TIMESTAMP": [f"{day} {time}" for day in DATES for time in TIMES],
    "TIMESTAMP_NTZ": [f"{day} {time}" for day in DATES for time in TIMES],
}


@dataclass(frozen=True, slots=True)
class Vector:
    """One value of one transform."""

    type: str
    input: str | None
    call: str
    value: str | None

    def __str__(self) -> str:
        return "\t".join([self.type, json.dumps(self.input), self.call, json.dumps(self.value)])

    @classmethod
    def parse(cls, line: str) -> Vector:
        kind, text, call, value = line.split("\t")
        return cls(kind, json.loads(text), call, json.loads(value))


def transforms_of(kind: str) -> Iterator[tuple[str, Transform]]:
    yield from ((f"bucket({n}, x)", Bucket(n)) for n in (1, 7, 16, 2**31 - 1))
    if kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        fields: list[Transform] = [Year(), Month(), Day(), Hour()]
        counts: list[Transform] = [Epoch(unit) for unit in EpochUnit]
        for transform, name in zip(fields + counts, [*"ymdh", *EpochUnit], strict=True):
            function = getattr(transform, "type", name) if transform in fields else str(name)
            if kind != "DATE" or "hour" not in function:
                yield f"{function}(x)", transform
    elif kind not in ("BINARY", "BOOLEAN"):
        for width in (1, 3, 10, 1000):
            yield f"truncate({width}, x)", Truncate(width)
            yield f"truncate_{width}(x)", Truncate(width)


def arrow_value(kind: str, text: str) -> object:
    if kind in WIDTHS:
        return int(text)
    if kind.startswith("DECIMAL"):
        return Decimal(text)
    if kind == "BINARY":
        return bytes.fromhex(text)
    if kind == "BOOLEAN":
        return text == "true"
    if kind == "DATE":
        return dt.date.fromisoformat(text)
    if kind.startswith("TIMESTAMP"):
        zone = dt.UTC if kind == "TIMESTAMP" else None
        return dt.datetime.fromisoformat(text).replace(tzinfo=zone)
    return text


def literal(kind: str, text: str | None) -> str:
    if text is None:
        return f"CAST(NULL AS {kind})"
    if kind == "BINARY":
        return f"X'{text}'"
    quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"CAST('{quoted}' AS {kind})"


def as_text(value: object) -> str | None:
    return None if value is None else str(value)


def python_vectors() -> list[Vector]:
    vectors = []
    for kind, texts in INPUTS.items():
        inputs: list[str | None] = [*texts, None]
        values = [None if text is None else arrow_value(kind, text) for text in inputs]
        array = pa.array(values, TYPES[kind])
        for call, transform in transforms_of(kind):
            outputs = transform.apply([array]).to_pylist()
            vectors += [
                Vector(kind, text, call, as_text(output))
                for text, output in zip(inputs, outputs, strict=True)
            ]
    return vectors


def golden_vectors() -> list[Vector]:
    return [Vector.parse(line) for line in VECTORS.read_text("utf-8").splitlines()]


@pytest.mark.spec("Supported Transforms")
def test_python_transforms_give_the_golden_values():
    vectors = python_vectors()
    if os.environ.get("PENNON_REWRITE_GOLDEN"):
        VECTORS.write_text("".join(f"{vector}\n" for vector in vectors), "utf-8")
    assert vectors == golden_vectors()


@pytest.mark.spec("Supported Transforms", "Hash Functions 6")
@pytest.mark.parametrize(
    "excluded", ["", "ConvertToLocalRelation"], ids=["interpreted", "compiled"]
)
def test_spark_functions_give_the_golden_values(spark: SparkSession, excluded: str):
    vectors = golden_vectors()
    inputs = {kind: [*INPUTS[kind], None] for kind in TYPES}
    calls = dict.fromkeys((vector.type, vector.call) for vector in vectors)
    rows = [
        ", ".join([str(row), *(literal(kind, at(texts, row)) for kind, texts in inputs.items())])
        for row in range(max(map(len, inputs.values())))
    ]
    names = {kind: f"c{number}" for number, kind in enumerate(inputs)}
    columns = ", ".join("lance." + call.replace("x)", f"{names[kind]})") for kind, call in calls)
    values = ", ".join(f"({row})" for row in rows)
    table = f"VALUES {values} AS t(row, {', '.join(names.values())})"
    rule = f"org.apache.spark.sql.catalyst.optimizer.{excluded}" if excluded else ""
    spark.conf.set("spark.sql.optimizer.excludedRules", rule)
    try:
        found = spark.sql(f"SELECT {columns} FROM {table} ORDER BY row").collect()
    finally:
        spark.conf.unset("spark.sql.optimizer.excludedRules")
    assert vectors == [
        Vector(kind, text, call, as_text(found[row][column]))
        for column, (kind, call) in enumerate(calls)
        for row, text in enumerate(inputs[kind])
    ]


def at(texts: list[str | None], row: int) -> str | None:
    return texts[row] if row < len(texts) else None
