"""Random arithmetic on integers and decimals against exact numbers in Python, by Spark's rules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.pushdown.computed import value_of

from pennon.errors import FragmentOverflow

WIDE = Context(prec=120)
Row = dict[str, int | Decimal | None]


class DoesNotFitError(Exception):
    """Spark raises ARITHMETIC_OVERFLOW or NUMERIC_VALUE_OUT_OF_RANGE."""


@dataclass(frozen=True)
class Number:
    """An expression: its text, its type (bits of an integer, or digits and scale), its value."""

    text: str
    kind: int | tuple[int, int]
    value: Callable[[Row], Fraction | None]


COLUMNS: dict[str, tuple[int | tuple[int, int], pa.DataType]] = {
    "c1": (32, pa.int32()),
    "c2": (64, pa.int64()),
    "c3": ((9, 2), pa.decimal128(9, 2)),
    "c4": ((20, 4), pa.decimal128(20, 4)),
    "c5": ((38, 6), pa.decimal128(38, 6)),
}
SCHEMA = pa.schema([(name, kind) for name, (_, kind) in COLUMNS.items()])


def fitted(value: Fraction | None, kind: int | tuple[int, int]) -> Fraction | None:
    """Round half up to a type; what does not fit is an error."""
    if value is None:
        return None
    if isinstance(kind, int):
        if not -(2 ** (kind - 1)) <= value < 2 ** (kind - 1):
            raise DoesNotFitError
        return value
    digits, scale = kind
    unscaled = abs(value) * 10**scale
    rounded = (2 * unscaled.numerator + unscaled.denominator) // (2 * unscaled.denominator)
    if rounded >= 10**digits:
        raise DoesNotFitError
    return Fraction(rounded if value >= 0 else -rounded, 10**scale)


def result_kind(
    word: str, left: int | tuple[int, int], right: int | tuple[int, int]
) -> int | tuple[int, int]:
    if isinstance(left, int) or isinstance(right, int):
        return left
    (p1, s1), (p2, s2) = left, right
    if word == "*":
        digits, scale = p1 + p2 + 1, s1 + s2
    else:
        scale = max(s1, s2)
        digits = max(p1 - s1, p2 - s2) + scale + 1
    if digits <= 38:
        return digits, scale
    return 38, max(38 - (digits - scale), min(scale, 6))


def column(name: str) -> Number:
    def value(row: Row) -> Fraction | None:
        found = row[name]
        return None if found is None else Fraction(found)

    return Number(f"`{name}`", COLUMNS[name][0], value)


def applied(word: str, left: Number, right: Number) -> Number:
    kind = result_kind(word, left.kind, right.kind)

    def value(row: Row) -> Fraction | None:
        one, other = left.value(row), right.value(row)
        if one is None or other is None:
            return None
        exact = {"+": one + other, "-": one - other, "*": one * other}[word]
        return fitted(exact, kind)

    return Number(f"({left.text} {word} {right.text})", kind, value)


def cast_to(number: Number, digits: int, scale: int) -> Number:
    return Number(
        f"CAST({number.text} AS DECIMAL({digits},{scale}))",
        (digits, scale),
        lambda row: fitted(number.value(row), (digits, scale)),
    )


@st.composite
def numbers(draw: st.DrawFn, depth: int = 2) -> Number:
    """Build an expression whose operands have types that Spark gives to one operator."""
    if depth == 0 or draw(st.booleans()):
        return column(draw(st.sampled_from(list(COLUMNS))))
    left = draw(numbers(depth - 1))
    if not isinstance(left.kind, int) and draw(st.integers(0, 3)) == 0:
        digits = draw(st.integers(6, 38))
        return cast_to(left, digits, draw(st.integers(0, min(6, digits))))
    right = draw(numbers(depth - 1).filter(lambda right: alike(left, right)))
    return applied(draw(st.sampled_from("+-*")), left, right)


def alike(left: Number, right: Number) -> bool:
    if isinstance(left.kind, int) or isinstance(right.kind, int):
        return left.kind == right.kind
    return True


def values_of(kind: int | tuple[int, int]) -> st.SearchStrategy:
    largest = 2 ** (kind - 1) - 1 if isinstance(kind, int) else 10 ** kind[0] - 1
    whole = st.one_of(
        st.integers(-99, 99), st.sampled_from([largest, -largest]), st.integers(-largest, largest)
    )
    if isinstance(kind, int):
        return st.none() | whole
    return st.none() | whole.map(lambda unscaled: Decimal(unscaled).scaleb(-kind[1], WIDE))


ROWS = st.fixed_dictionaries({name: values_of(kind) for name, (kind, _) in COLUMNS.items()})


def arrow_type(kind: int | tuple[int, int]) -> pa.DataType:
    if isinstance(kind, int):
        return {32: pa.int32(), 64: pa.int64()}[kind]
    return pa.decimal128(*kind)


@hypothesis_settings(max_examples=150, deadline=None)
@given(number=numbers(), rows=st.lists(ROWS, min_size=1, max_size=3))
def test_numbers_are_those_of_spark_or_an_error(number: Number, rows: list[Row]) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    with tempfile.TemporaryDirectory() as folder:
        try:
            expected = [number.value(row) for row in rows]
        except DoesNotFitError:
            with pytest.raises(FragmentOverflow):
                value_of(number.text, arrow_type(number.kind), table, Path(folder))
            return
        found = value_of(number.text, arrow_type(number.kind), table, Path(folder))
    assert [None if value is None else Fraction(value) for value in found] == expected


def test_half_is_rounded_away_from_zero_in_the_oracle() -> None:
    for text in ("0.5", "-0.5", "1.4", "-1.5", "2.5"):
        exact = Decimal(text).quantize(Decimal(1), ROUND_HALF_UP)
        assert fitted(Fraction(text), (5, 0)) == Fraction(exact)
