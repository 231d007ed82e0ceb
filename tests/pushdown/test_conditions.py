"""Random conditions: as a filter that reaches Lance's reader, and by Spark's rules in Python."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.pushdown.computed import computed, relation, scan_of
from tests.pushdown.stated_nodes import where

MONEY: Final = pa.decimal128(9, 2)
EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without zone
SCHEMA: Final = pa.schema(
    {
        "c0": pa.int64(),
        "c1": pa.int32(),
        "c2": pa.float64(),
        "c3": pa.utf8(),
        "c4": MONEY,
        "c5": pa.date32(),
        "c6": pa.timestamp("us"),
        "c7": pa.bool_(),
    }
)
VALUES: Final[dict[str, list[object]]] = {
    "c1": [-(2**31), -1, 0, 1, 2**31 - 1],
    "c2": [0.0, -0.0, math.nan, -math.nan, 1.5, -math.inf],
    "c3": ["", "a", "A", "a%", "ä", "it's", "\\"],
    "c4": [Decimal("0.00"), Decimal("-1.10"), Decimal("9999999.99")],
    "c5": [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "c6": [EPOCH, EPOCH - dt.timedelta(microseconds=1), EPOCH + dt.timedelta(days=9999)],
    "c7": [True, False],
}
TYPES: Final = {"c1": "INT", "c2": "DOUBLE", "c4": "DECIMAL(9,2)"}
Row = dict[str, Any]
Condition = tuple[str, Callable[[Row], bool | None]]
ROWS = st.fixed_dictionaries(
    {name: st.none() | st.sampled_from(values) for name, values in VALUES.items()}
)


def literal(name: str, value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case dt.datetime():
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ', timespec='microseconds')}'"
        case dt.date():
            return f"DATE '{value}'"
        case int():
            return f"CAST({value} AS INT)"
    return f"CAST('{value}' AS {TYPES[name]})"


def rank(value: object) -> Any:
    """Order as Spark does: one zero; NaN equals itself and is the greatest; bytes of texts."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def compared(operator: str, one: object, other: object) -> bool | None:
    if operator == "<=>":
        return (one is None) == (other is None) and (one is None or rank(one) == rank(other))
    if one is None or other is None:
        return None
    left, right = rank(one), rank(other)
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    name = draw(st.sampled_from(list(VALUES)))
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
    value = draw(st.sampled_from([None, *VALUES[name]]))
    text = f"(`{name}` {operator} {literal(name, value)})"
    return text, lambda row: compared(operator, row[name], value)


@st.composite
def memberships(draw: st.DrawFn) -> Condition:
    name = draw(st.sampled_from(list(VALUES)))
    values = draw(st.lists(st.sampled_from([None, *VALUES[name]]), min_size=1, max_size=3))
    if all(value is None for value in values):
        values.append(VALUES[name][0])

    def found(row: Row) -> bool | None:
        answers = [compared("=", row[name], value) for value in values]
        return True if True in answers else None if None in answers else False

    return f"(`{name}` IN ({', '.join(literal(name, value) for value in values)}))", found


@st.composite
def others(draw: st.DrawFn) -> Condition:
    name = draw(st.sampled_from(list(VALUES)))
    part = draw(st.sampled_from(["", "a", "%", "ä"]))
    choices: list[Condition] = [
        (f"(`{name}` IS NULL)", lambda row: row[name] is None),
        (f"(`{name}` IS NOT NULL)", lambda row: row[name] is not None),
        ("`c7`", lambda row: row["c7"]),
        (
            f"STARTSWITH(`c3`, '{part}')",
            lambda row: None if row["c3"] is None else row["c3"].startswith(part),
        ),
        (
            "((`c4` * CAST('2' AS DECIMAL(1,0))) < CAST('0.00' AS DECIMAL(11,2)))",
            lambda row: None if row["c4"] is None else row["c4"] < 0,
        ),
    ]
    return draw(st.sampled_from(choices))


def negated(condition: Condition) -> Condition:
    text, answer = condition

    def opposite(row: Row) -> bool | None:
        found = answer(row)
        return None if found is None else not found

    return f"(NOT {text})", opposite


def connected(word: str, left: Condition, right: Condition) -> Condition:
    decisive = word == "OR"

    def answer(row: Row) -> bool | None:
        answers = [left[1](row), right[1](row)]
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive

    return f"({left[0]} {word} {right[0]})", answer


CONDITIONS = st.recursive(
    comparisons() | memberships() | others(),
    lambda inner: (
        inner.map(negated) | st.builds(connected, st.sampled_from(["AND", "OR"]), inner, inner)
    ),
    max_leaves=4,
)


@pytest.mark.parametrize("held_bytes", [0, 64 << 20])
@hypothesis_settings(max_examples=40, deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=12), condition=CONDITIONS)
def test_a_filter_keeps_the_rows_that_spark_keeps(
    held_bytes: int, rows: list[Row], condition: Condition
) -> None:
    """Through Lance's own provider, which takes the filter, and over rows in memory."""
    text, answer = condition
    numbered = [{"c0": at, **row} for at, row in enumerate(rows)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("pennon.execution.small_leaves.HELD_BYTES", held_bytes)
        leaf = pa.Table.from_pylist(numbered, SCHEMA)
        read = relation(Path(folder), "leaf", SCHEMA, [leaf])
        found = computed([scan_of(SCHEMA), where(0, text)], [read])["c0"].to_pylist()
    assert sorted(found) == [row["c0"] for row in numbered if answer(row)]
