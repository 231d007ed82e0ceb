"""Random rows of every kind of column, and how they are compared."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import duckdb
import pyarrow as pa
from tests.torture.statements.conditions import ADDED, for_duckdb

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
