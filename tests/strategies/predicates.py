# ruff: noqa: DTZ001, FBT001, RUF001, S311 - zone-less times, SQL's truth values, odd letters
"""Rows, specs and predicates for the property tests, and SQL's three-valued logic in Python.

The oracle of a predicate is written here, next to its text, from SQL's rules alone: True, False
or None for NULL. Nothing of ``pennon.planning`` is used.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

Row = Mapping[str, object]
Oracle = Callable[[Row], "bool | None"]

UTC = dt.UTC
MICRO = dt.timedelta(microseconds=1)
MOMENTS = [
    dt.datetime(1, 1, 1),
    dt.datetime(1582, 10, 4, 23, 59, 59, 999_999),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1970, 1, 1),
    dt.datetime(2000, 2, 29, 12),
    dt.datetime(2012, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2013, 1, 1),
    dt.datetime(2013, 1, 1, 0, 0, 0, 1),
    dt.datetime(2013, 1, 1, 5) - MICRO,
    dt.datetime(2013, 1, 1, 5),
    dt.datetime(2013, 2, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
]
INTS = [0, 1, -1, 5, 7, -7, 9, 10, 11, -10, 25, 2**31 - 1, -(2**31)]
TEXTS = ["", "a", "ab", "abc", "abcd", "b", "é", "éa", "𝒳y", "𝒳", "%", "_x", "it's", "a$\\b"]

VALUES: dict[str, list[object]] = {
    "i": [*INTS],
    "l": [*INTS, 3_000_000_000, 2**63 - 1, -(2**63)],
    "s": [*TEXTS],
    "d": [*sorted({moment.date() for moment in MOMENTS})],
    "ts": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    "n": [*MOMENTS],
    "f": [0.0, -0.0, 1.5, -1.5, 1e300, math.inf, -math.inf, math.nan],
    "m": [Decimal(text) for text in ("0.00", "12.34", "-0.01", "9.99", "-99999999.99", "10.00")],
    "o": [True, False],
    "x": [b"", b"\x00", b"\x00\xff", b"ab"],
}
TYPES: dict[str, pa.DataType] = {
    "i": pa.int32(),
    "l": pa.int64(),
    "s": pa.string(),
    "d": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "n": pa.timestamp("us"),
    "f": pa.float64(),
    "m": pa.decimal128(10, 2),
    "o": pa.bool_(),
    "x": pa.binary(),
}
SCHEMA = pa.schema(
    [
        pa.field(name, kind, metadata={"lance:field_id": str(number)})
        for number, (name, kind) in enumerate(TYPES.items())
    ]
)


def values(column: str) -> st.SearchStrategy[object]:
    """A value of the column, NULL now and then."""
    return st.one_of(st.none(), *[st.sampled_from(VALUES[column])] * 4)


def random_rows(random: Random, count: int = 60) -> list[Row]:
    """Rows of all edge values, a fifth of them NULL."""
    return [
        {
            name: None if random.random() < 0.2 else random.choice(known)
            for name, known in VALUES.items()
        }
        for _ in range(count)
    ]


rows = st.integers(0, 2**32).map(lambda seed: random_rows(Random(seed)))


@dataclass(frozen=True)
class Predicate:
    """SQL text and what it means."""

    sql: str
    oracle: Oracle


def sql_literal(value: object) -> str:
    """Write a value as Spark SQL, as the JVM side does."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value) if abs(value) < 2**31 else f"CAST('{value}' AS BIGINT)"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)".replace("'nan'", "'NaN'").replace(
                "inf'", "Infinity'"
            )
        case Decimal():
            return f"CAST('{value}' AS DECIMAL(10, 2))"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            kind, zone = ("TIMESTAMP", "+00:00") if value.tzinfo else ("TIMESTAMP_NTZ", "")
            text = value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
            return f"{kind} '{text}{zone}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def order_key(value: object) -> object:
    """Spark's order: NaN equals NaN and is greatest, the zeros are equal."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    return _not(_and(_not(left), _not(right)))


_COMPARE: dict[str, Callable[[object, object], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared(left: object, operator: str, right: object) -> bool | None:
    """Compare two values of one type."""
    if left is None or right is None:
        return None
    return _COMPARE[operator](order_key(left), order_key(right))


def _of_function(
    sql: str, function: Callable[[object], object], column: str, operator: str, value: object
) -> Predicate:
    def oracle(row: Row) -> bool | None:
        source = row[column]
        return None if source is None else compared(function(source), operator, value)

    return Predicate(f"{sql} {operator} {sql_literal(value)}", oracle)


@st.composite
def comparisons(draw: st.DrawFn, column: str) -> Predicate:
    """The column against a literal of its type, on either side."""
    value = draw(values(column))
    operator = draw(st.sampled_from(list(_COMPARE)))
    text = f"{column} {operator} {sql_literal(value)}"
    if draw(st.booleans()):
        text = f"{sql_literal(value)} {_FLIPPED[operator]} {column}"
    return Predicate(text, lambda row: compared(row[column], operator, value))


@st.composite
def lists(draw: st.DrawFn, column: str) -> Predicate:
    """IN and NOT IN, NULL among the values now and then."""
    items = draw(st.lists(values(column), min_size=1, max_size=5))
    is_negated = draw(st.booleans())

    def oracle(row: Row) -> bool | None:
        none: bool | None = False
        found = reduce(_or, (compared(row[column], "=", item) for item in items), none)
        return _not(found) if is_negated else found

    word = "NOT IN" if is_negated else "IN"
    return Predicate(f"{column} {word} ({', '.join(map(sql_literal, items))})", oracle)


@st.composite
def nulls(draw: st.DrawFn, column: str) -> Predicate:
    """IS NULL, IS NOT NULL, <=>, BETWEEN."""
    low, high = draw(values(column)), draw(values(column))
    between = f"{column} BETWEEN {sql_literal(low)} AND {sql_literal(high)}"
    return draw(
        st.sampled_from(
            [
                Predicate(f"{column} IS NULL", lambda row: row[column] is None),
                Predicate(f"{column} IS NOT NULL", lambda row: row[column] is not None),
                Predicate(
                    f"{column} <=> {sql_literal(low)}",
                    lambda row: (
                        row[column] is None
                        if low is None
                        else bool(compared(row[column], "=", low))
                    ),
                ),
                Predicate(
                    between,
                    lambda row: _and(
                        compared(row[column], ">=", low), compared(row[column], "<=", high)
                    ),
                ),
            ]
        )
    )


@st.composite
def texts(draw: st.DrawFn) -> Predicate:
    """Prefixes and patterns on the text column."""
    prefix = draw(st.sampled_from([text for text in TEXTS if not set(text) & set("%_\\")]))
    tests: list[tuple[str, Callable[[str], bool]]] = [
        (f"s LIKE {sql_literal(prefix + '%')}", lambda text: text.startswith(prefix)),
        (f"startswith(s, {sql_literal(prefix)})", lambda text: text.startswith(prefix)),
        (f"endswith(s, {sql_literal(prefix)})", lambda text: text.endswith(prefix)),
        (f"s LIKE {sql_literal(prefix)}", lambda text: text == prefix),
        ("s LIKE 'a_c%'", lambda text: len(text) > 2 and text[0] == "a" and text[2] == "c"),
        (r"s LIKE '\\%%'", lambda text: text.startswith("%")),
    ]
    sql, test = draw(st.sampled_from(tests))

    def oracle(row: Row) -> bool | None:
        return None if row["s"] is None else test(str(row["s"]))

    return Predicate(sql, oracle)


def _day(value: object) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value  # type: ignore[return-value]


@st.composite
def times(draw: st.DrawFn) -> Predicate:
    """Functions of time columns, and casts between dates and timestamps."""
    column = draw(st.sampled_from(["d", "ts", "n"]))
    operator = draw(st.sampled_from(list(_COMPARE)))
    year = draw(st.sampled_from([1969, 1970, 2012, 2013]))
    zone = UTC if column == "ts" else None
    target = "TIMESTAMP_NTZ" if column == "n" else "TIMESTAMP"
    first = dt.datetime(year, draw(st.sampled_from([1, 2])), 1, tzinfo=zone or UTC)
    if column == "n":
        first = first.replace(tzinfo=None)

    def midnight(value: object) -> dt.datetime:
        day = _day(value)
        return dt.datetime(day.year, day.month, day.day, tzinfo=first.tzinfo)

    moment = draw(st.sampled_from([first, first + MICRO]))
    kinds = [
        _of_function(f"year({column})", lambda v: _day(v).year, column, operator, year),
        _of_function(f"month({column})", lambda v: _day(v).month, column, operator, first.month),
        _of_function(f"CAST({column} AS DATE)", _day, column, operator, first.date()),
        _of_function(
            f"date_trunc('month', {column})",
            lambda v: midnight(v).replace(day=1),
            column,
            operator,
            moment,
        )
        if column != "d"
        else _of_function(f"CAST(d AS {target})", midnight, column, operator, moment),
    ]
    return draw(st.sampled_from(kinds))


@st.composite
def odd_literals(draw: st.DrawFn) -> Predicate:
    """Literals of another type, and arithmetic, which no partition value decides.

    The sum is one of BIGINTs: one of INTs raises an error for the largest of them.
    """
    operator = draw(st.sampled_from(list(_COMPARE)))
    number = draw(st.sampled_from([Decimal("5.5"), Decimal("-0.5"), 5, 3_000_000_000, -(2**40)]))
    text = f"CAST('{number}' AS DECIMAL(20, 1))" if isinstance(number, Decimal) else str(number)
    is_sum = draw(st.booleans()) and draw(st.booleans())
    left = "CAST(i AS BIGINT) + 1" if is_sum and number == 5 else "i"
    added = 1 if left != "i" else 0

    def oracle(row: Row) -> bool | None:
        value = row["i"]
        return None if value is None else compared(int(str(value)) + added, operator, number)

    return Predicate(f"{left} {operator} {text}", oracle)


constants = st.sampled_from(
    [
        Predicate("TRUE", lambda _: True),
        Predicate("FALSE", lambda _: False),
        Predicate("NULL", lambda _: None),
    ]
)


def atoms(columns: Sequence[str]) -> st.SearchStrategy[Predicate]:
    """One predicate, mostly on the given columns."""
    some = st.sampled_from([*columns] * 3 + list(TYPES))
    kinds = [some.flatmap(of) for of in (comparisons, comparisons, lists, nulls)]
    if "s" in columns:
        kinds.append(texts())
    if {"d", "ts", "n"} & set(columns):
        kinds.append(times())
    return st.one_of(*kinds, *kinds, odd_literals(), constants)


def _negated(inner: Predicate) -> Predicate:
    return Predicate(f"NOT ({inner.sql})", lambda row: _not(inner.oracle(row)))


def _both(pair: tuple[Predicate, Predicate]) -> Predicate:
    a, b = pair
    return Predicate(f"({a.sql}) AND ({b.sql})", lambda row: _and(a.oracle(row), b.oracle(row)))


def _either(pair: tuple[Predicate, Predicate]) -> Predicate:
    a, b = pair
    return Predicate(f"({a.sql}) OR ({b.sql})", lambda row: _or(a.oracle(row), b.oracle(row)))


def predicates(columns: Sequence[str], depth: int = 4) -> st.SearchStrategy[Predicate]:
    """Trees of AND, OR and NOT on some columns."""
    return trees(atoms(columns), depth)


def trees(leaves: st.SearchStrategy[Predicate], depth: int) -> st.SearchStrategy[Predicate]:
    """Trees of AND, OR and NOT."""
    if depth == 0:
        return leaves
    below = trees(leaves, depth - 1)
    return st.one_of(
        leaves,
        below.map(_negated),
        st.tuples(below, below).map(_both),
        st.tuples(below, below).map(_either),
    )
