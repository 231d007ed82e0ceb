"""Random rows of every kind of column, how they are compared, and conditions on them.

The conditions are in words that Pennon and DuckDB read alike.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import duckdb
import pyarrow as pa

_HIGHEST: Final = "\U0010ffff"
_ALWAYS: Final = (
    *("uid < 30", "uid IN (1, 2, 3, 50)", "uid % 3 = 1", "uid = 17", "uid > 100000"),
    "uid BETWEEN 20 AND 60",
)
_BY_COLUMN: Final[dict[str, tuple[str, ...]]] = {
    "k": (
        *("k = 'a'", "k IS NULL", "k IS NOT NULL", "k <> 'a'", "k > 'b'", "k IN ('a', 'bc')"),
        *("k NOT IN ('a', 'bc')", "k LIKE 'b%'", "coalesce(k, 'a') = 'a'", "k <= ''"),
        *("k IS DISTINCT FROM 'a'", "k IN ('ä', 'zz')"),
    ),
    "v": (
        *("v > 50", "v < 0", "v = 7", "v IS NULL", "v BETWEEN 10 AND 30", "NOT (v > 10)"),
        *("v = 2147483647", "v >= -2147483648", "v IN (7, 0)", "v < 3.5", "v % 7 = 3"),
    ),
    "f": (
        *("f > 1.0", "f = 0.0", "f >= 0.0", "f < 0.0", "f IS NULL", "f <= -1.0", "f <> 1.5"),
        *("NOT (f > 1.0)", "f IN (1.5, 0.0)", "f > CAST('Infinity' AS DOUBLE)"),
        *("f = CAST('NaN' AS DOUBLE)", "f < CAST('NaN' AS DOUBLE)"),
    ),
    "d": (
        *("d < DATE '2020-02-10'", "d >= DATE '2021-01-01'", "d = DATE '1969-03-01'", "d IS NULL"),
        *("d BETWEEN DATE '2020-01-15' AND DATE '2020-02-15'", "NOT (d >= DATE '2021-01-01')"),
    ),
    "t": (
        *("t >= TIMESTAMP '2021-11-30 23:00:00Z'", "t < TIMESTAMP '1969-12-30 22:59:59Z'"),
        *("t = TIMESTAMP '1969-12-01 22:59:59.999999Z'", "t > TIMESTAMP '2000-01-01 00:00:00Z'"),
        "t IS NULL",
    ),
    "dec": (
        *("dec > 0", "dec = 0.001", "dec < -1", "dec >= 10000000000000", "dec IS NULL"),
        "dec <= 0",
    ),
    "s": (
        *("s > 'x'", "s < 'x'", "s = 'p%_q'", "s = 'it''s'", "s LIKE 'xx%'", "s LIKE 'ä%'"),
        *("s IS NULL", f"s >= '{_HIGHEST}'", f"s > '{_HIGHEST * 69}'", f"s > '{'x' * 64}'"),
        *(f"s = '{'x' * 64}{_HIGHEST}'", "s = '\uffff\uffff'", "s > '\uffff'"),
    ),
    "b": ("b", "NOT b", "b IS NULL", "b = true", "b <> false"),
    "n": ("n.x > 4", "n.y = 'a'", "n IS NULL", "n.x IS NULL", "n.x IS NOT NULL"),
}
_OF_ADDED_COLUMNS: Final = ("{0} IS NULL", "{0} > 5", "{0} = 7", "{0} < 3", "NOT ({0} > 5)")
ADDED: Final = ("c_1", "c_2", "c_3")
"""The names of columns that come and go; each holds small integers."""


def condition(choose: random.Random, columns: Collection[str]) -> str:
    """Choose a condition, or two of them, on columns that are there."""
    known = [text for name, texts in _BY_COLUMN.items() if name in columns for text in texts]
    known += [text.format(name) for name in ADDED if name in columns for text in _OF_ADDED_COLUMNS]
    known += _ALWAYS
    first, second = choose.choice(known), choose.choice(known)
    combined = choose.random()
    if combined < 0.25:
        return f"({first}) AND ({second})"
    if combined < 0.45:
        return f"({first}) OR ({second})"
    return f"NOT ({first})" if combined < 0.5 else first


def as_literal(text: str) -> str:
    """Write a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def for_duckdb(text: str) -> str:
    """Write a condition's instants as DuckDB does."""
    return text.replace("Z'", "+00'").replace("TIMESTAMP '", "TIMESTAMPTZ '")


Row = Mapping[str, object]

SCHEMA: Final = pa.schema(
    [
        ("uid", pa.int64()),
        ("k", pa.utf8()),
        ("v", pa.int32()),
        ("f", pa.float64()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("dec", pa.decimal128(20, 3)),
        ("s", pa.utf8()),
        ("b", pa.bool_()),
        ("n", pa.struct([("x", pa.int32()), ("y", pa.utf8())])),
    ]
)
SPECS: Final[tuple[tuple[str, ...], ...]] = (
    *((), ("k",), ("b",), ("bucket(3, uid)",), ("months(d)",), ("days(t)",), ("truncate(10, v)",)),
    *(("truncate(1, k)", "bucket(2, uid)"), ("k", "years(d)"), ("bucket(4, uid, k)",)),
)
FIELDS: Final = (
    *("k", "b", "bucket(2, uid)", "years(d)", "months(t)", "hours(t)", "truncate(20, v)"),
)


def random_row(choose: random.Random, uid: int, columns: Iterable[str]) -> Row:
    """Choose a row; each value but the identifier is NULL at times."""
    highest, edge = "\U0010ffff", 2**31
    cents = choose.choice([0, 1, -1, 10**16, -(10**16), choose.randrange(10**6)])
    texts = [
        *("x" * choose.randint(0, 200), "x" * 64 + highest, highest * 70, "\uffff\uffff"),
        *("ä" * choose.randint(30, 70), "p%_q", "it's"),
    ]
    values: dict[str, object] = {
        "k": choose.choice(["a", "b", "bc", "ä", "", "Z"]),
        "v": choose.choice([choose.randrange(-50, 100), 0, 7, -edge, edge - 1]),
        "f": choose.choice([math.nan, -0.0, 0.0, math.inf, -math.inf, choose.random() * 10, 1.5]),
        "d": dt.date(
            1969 + choose.choice([0, 51, 52]), choose.randint(1, 3), choose.randint(1, 28)
        ),
        "t": dt.datetime(
            choose.choice([1969, 2021]),
            *(choose.randint(11, 12), choose.choice([1, 30]), choose.randint(22, 23), 59, 59),
            choose.choice([0, 999_999]),
            tzinfo=dt.UTC,
        ),
        "dec": decimal.Decimal(cents) / 1000,
        "s": choose.choice(texts),
        "b": choose.random() < 0.5,
        "n": {"x": _or_null(choose, choose.randrange(9)), "y": _or_null(choose, "b")},
        **{name: choose.choice([1, 7, 9]) for name in ADDED},
    }
    return {name: uid if name == "uid" else _or_null(choose, values[name]) for name in columns}


def _or_null(choose: random.Random, value: object) -> object:
    return None if choose.random() < 0.1 else value


def positions(engine: duckdb.DuckDBPyConnection, rows: pa.Table, condition: str) -> set[int]:
    """Say which rows fulfil a condition, by DuckDB."""
    numbered = rows.append_column("position", pa.array(range(len(rows)), pa.int64()))
    engine.register("numbered", numbered)
    query = f"SELECT position FROM numbered WHERE {for_duckdb(condition)}"
    try:
        return {position for (position,) in engine.execute(query).fetchall()}
    finally:
        engine.unregister("numbered")


def as_bag(rows: Iterable[Row], columns: Iterable[str]) -> Counter[tuple[str, ...]]:
    """Give rows as a bag, NaN equal to itself and 0.0 to -0.0."""
    names = list(columns)
    return Counter(tuple(_compared(row.get(name)) for name in names) for row in rows)


def _compared(value: object) -> str:
    if isinstance(value, float):
        return "0.0" if value == 0 else repr(value)
    if isinstance(value, dt.datetime):
        return repr(value.timestamp())
    if isinstance(value, decimal.Decimal):
        return repr(value.normalize() + 0)
    if isinstance(value, dict):
        return repr([(name, _compared(inner)) for name, inner in value.items()])
    return repr(value)
