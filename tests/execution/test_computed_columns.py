"""Expressions of Python's callers, computed as Spark computes them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from pennon.errors import PredicateNotEvaluable, PredicateSyntaxError
from pennon.execution.run import ComputedColumns


def value_of(text: str, row: dict[str, object] | None = None) -> object:
    rows = pa.RecordBatch.from_pylist([row or {"i": 0}])
    return ComputedColumns([text], rows.schema, "t").of(rows)[0][0].as_py()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5 & 1 << 2", 4),
        ("1 | 1 & 2", 1),
        ("1 | 2 ^ 3", 1),
        ("7 ^ 3 & 5", 6),
        ("2 + 1 << 1", 6),
        ("64 >> 1 >> 2", 8),
    ],
)
def test_operators_of_bits_have_the_levels_that_spark_reads_them_by(text: str, value: int) -> None:
    assert value_of(f"CAST(i AS INT) + ({text})") == value


def test_parts_of_times_are_those_of_spark() -> None:
    row = {"d": dt.date(2024, 1, 1), "t": None, "s": "abcabc"}  # a Monday
    for text, value in {
        "extract(DAYOFWEEK_ISO FROM d)": 1,
        "extract(DOW_ISO FROM date_add(d, 6))": 7,
        "weekday(d)": 0,
        "dayofweek(d)": 2,
        "date_format(CAST(NULL AS TIMESTAMP), 'a')": None,
        "CAST(timestampadd(DAY, 1, d) AS STRING)": "2024-01-02 00:00:00",
        "instr(s, 'b')": 2,
    }.items():
        assert value_of(text, {key: value for key, value in row.items() if value}) == value, text


@pytest.mark.parametrize(
    "text",
    [
        "instr(s, 'b', 1, 2)",
        "regexp_replace(s, 'a')",
        "substr(s)",
        "round(i, 'x')",
        "map(s)",
        "date_trunc('', t)",
    ],
)
def test_a_call_of_other_arguments_is_refused_in_order(text: str) -> None:
    schema = pa.schema({"s": pa.utf8(), "i": pa.int32(), "t": pa.timestamp("us", "UTC")})
    with pytest.raises((PredicateNotEvaluable, PredicateSyntaxError)):
        ComputedColumns([text], schema, "t")
