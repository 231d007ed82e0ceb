"""Literals as DataFusion, Lance and JSON text read them back."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING

import datafusion
import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import column, exp, parse_one

from pennon.predicate.condition import Comparison, Operator, condition
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_expression
from pennon.predicate.values.conversion import convert
from pennon.predicate.values.literals import from_text, literal_value, to_expression, to_text

if TYPE_CHECKING:
    from pathlib import Path

_NAN, _INF = float("nan"), float("inf")
_NOON = dt.datetime(2013, 1, 1, 12, 0, 0, 1)  # noqa: DTZ001
_FIRST, _LAST = dt.datetime.min, dt.datetime.max  # noqa: DTZ901
_VALUES: dict[pa.DataType, list[object]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, 0, 127],
    pa.int32(): [-(2**31), 0, 2**31 - 1],
    pa.int64(): [-(2**63), -5, 2**63 - 1],
    pa.uint64(): [0, 2**63 - 1],
    pa.float32(): [1.5, 0.1, -3.4e38, _INF, -_INF, _NAN, 0.0],
    pa.float64(): [1.5, 0.1, 5e-324, 1.7e308, _INF, -_INF, _NAN, 0.0],
    pa.decimal128(10, 2): [Decimal("12.34"), Decimal("-99999999.99"), Decimal("0.00")],
    pa.decimal128(38, 0): [Decimal(10**38 - 1), Decimal(-(10**38) + 1)],
    pa.string(): ["", 'it\'s \\ "q" `b` %_', "é😀", "\n\t", "DATE '2013-01-01'", "%s; --"],
    pa.large_string(): ["é"],
    pa.binary(): [b"", b"\x00\xff'\\"],
    pa.date32(): [dt.date(2013, 1, 1), dt.date.min, dt.date.max],
    pa.timestamp("us"): [_NOON, _FIRST, _LAST],
    pa.timestamp("us", "UTC"): [_NOON, _FIRST, _LAST],
    pa.timestamp("ns"): [1356998400000000001, 0],
    pa.timestamp("ms", "UTC"): [_NOON.replace(microsecond=0)],
    pa.time64("us"): [dt.time(1, 2, 3, 4), dt.time(0)],
}
_CASES = [(kind, value) for kind, values in _VALUES.items() for value in values]


def _same(left: object, right: object) -> bool:
    both_nan = isinstance(left, float) and isinstance(right, float) and math.isnan(left)
    return math.isnan(right) if both_nan else left == right  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "value"), _CASES, ids=str)
def test_datafusion_and_lance_find_exactly_the_row(
    kind: pa.DataType, value: object, tmp_path: Path
) -> None:
    rows = pa.table({"c": pa.array([*_VALUES[kind], None], kind)})
    literal = pa.scalar(value, kind)
    where = condition(Comparison(Operator.EQUAL, (literal,)), column("c")).sql(dialect=DataFusion)
    context = datafusion.SessionContext()
    context.from_arrow(rows, name="t")
    by_datafusion = context.sql(f"SELECT c FROM t WHERE {where}").to_arrow_table()
    leaf = lance.write_dataset(rows, tmp_path / "t.lance")
    by_lance = leaf.scanner(filter=where).to_table()
    for found in (by_datafusion, by_lance):
        assert found.num_rows == 1
        assert _same(found["c"][0].as_py(), literal.as_py())


def to_scalar(literal: exp.Expr, kind: pa.DataType) -> pa.Scalar | None:
    """Read a literal as planning does, to compare it with a column of a type."""
    scalar = literal_value(literal)
    return None if scalar is None else convert(scalar, kind)


@pytest.mark.parametrize(("kind", "value"), _CASES, ids=str)
def test_literals_and_texts_give_the_scalar_back(kind: pa.DataType, value: object) -> None:
    scalar = pa.scalar(value, kind)
    for found in (to_scalar(to_expression(scalar), kind), from_text(to_text(scalar), kind)):
        assert found is not None
        assert found.type == kind
        assert _same(found.as_py(), scalar.as_py())


@pytest.mark.parametrize(("kind", "value"), _CASES, ids=str)
def test_a_literal_read_back_and_written_again_is_the_same_text(
    kind: pa.DataType, value: object
) -> None:
    text = to_expression(pa.scalar(value, kind)).sql(dialect=DataFusion)
    assert parse_one(text, dialect=DataFusion).sql(dialect=DataFusion) == text


def test_moments_beyond_python_years_survive(tmp_path: Path) -> None:
    for kind, value in ((pa.date32(), 5_000_000), (pa.timestamp("us", "UTC"), 2**60)):
        storage = pa.int32() if kind == pa.date32() else pa.int64()
        scalar = pa.scalar(value, storage).cast(kind)
        found = to_scalar(to_expression(scalar), kind)
        assert found is not None
        assert found.value == value
        text = to_text(scalar)
        again = from_text(text, kind)
        assert again is not None
        assert again.value == value
        where = f"c = {to_expression(scalar).sql(dialect=DataFusion)}"
        rows = pa.table({"c": pa.array([value, 0], storage).cast(kind)})
        context = datafusion.SessionContext()
        context.from_arrow(rows, name="t")
        assert context.sql(f"SELECT count(*) AS n FROM t WHERE {where}").to_pydict() == {"n": [1]}
        leaf = lance.write_dataset(rows, tmp_path / f"{value}.lance")
        assert leaf.scanner(filter=where).count_rows() == 1


@given(st.text())
def test_any_string_is_the_same_string_in_datafusion(text: str) -> None:
    sql = to_expression(pa.scalar(text)).sql(dialect=DataFusion)
    assert datafusion.SessionContext().sql(f"SELECT {sql} AS v").to_pydict() == {"v": [text]}


@pytest.mark.parametrize(
    ("sql", "kind", "expected"),
    [
        ("5", pa.int64(), 5),
        ("5L", pa.int8(), 5),
        ("-5", pa.decimal128(5, 2), Decimal("-5.00")),
        (f"-{'9' * 34}.9999", pa.decimal128(38, 4), Decimal(f"-{'9' * 34}.9999")),
        ("CAST('12.34' AS DECIMAL(10,2))", pa.decimal128(12, 3), Decimal("12.340")),
        ("'5'", pa.int32(), 5),
        ("5.5", pa.int32(), None),
        ("'1_000'", pa.int32(), None),
        ("300", pa.int8(), None),
        ("5", pa.string(), None),
        ("0.1D", pa.float32(), None),
        ("0.1", pa.float64(), 0.1),
        ("CAST('NaN' AS DOUBLE)", pa.int32(), None),
        ("X'00FF'", pa.binary(), b"\x00\xff"),
        ("DATE '2013-01-01'", pa.timestamp("us"), dt.datetime(2013, 1, 1)),  # noqa: DTZ001
        ("TIMESTAMP '2013-01-01 12:00:00'", pa.date32(), None),
        ("TIMESTAMP '2013-01-01 00:00:00'", pa.date32(), dt.date(2013, 1, 1)),
        (
            "TIMESTAMP '2013-01-01 02:00:00+02:00'",
            pa.timestamp("us", "UTC"),
            dt.datetime(2013, 1, 1, tzinfo=dt.UTC),
        ),
        ("c", pa.int32(), None),
    ],
)
def test_a_literal_is_read_only_where_it_is_exact(
    sql: str, kind: pa.DataType, expected: object
) -> None:
    found = to_scalar(parse_expression(sql), kind)
    assert (None if found is None else found.as_py()) == expected
