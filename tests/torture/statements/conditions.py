"""Random conditions, in words that Pennon and DuckDB read alike."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Final

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
