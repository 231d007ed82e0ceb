# ruff: noqa: DTZ001 - zone-less times and odd letters are cases
"""Columns of a table of each type that a partition field may be made of, and their edge values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from tests.strategies.predicates import MICRO, MOMENTS, TEXTS
from tests.strategies.predicates import sql_literal as _typed_literal

if TYPE_CHECKING:
    from random import Random

_ONE_NULL_IN: Final = 6
# Boundaries of levels of time, also those of other zones, leap days, the change of calendar.
_MOMENTS: Final = [
    *MOMENTS,
    dt.datetime(1582, 10, 15),
    dt.datetime(1883, 11, 18, 17),
    dt.datetime(1900, 3, 1) - MICRO,
    dt.datetime(2011, 12, 30, 9, 59, 59, 999_999),
    dt.datetime(2013, 3, 10, 6, 59, 59, 999_999),
    dt.datetime(2013, 3, 10, 7),
    dt.datetime(2013, 11, 3, 5, 30),
    dt.datetime(2013, 11, 3, 6, 30),
    dt.datetime(2024, 2, 29),
]
_SMALL: Final = [0, 1, -1, 5, 7, -7, 9, 10, 11, -9, -10, -11, 25, 100, -100]


def _integers(bits: int) -> list[object]:
    return [*_SMALL, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 2]


_FLOATS: Final[list[object]] = [0.0, -0.0, 1.5, -1.5, 5.0, 0.1, 1e30, math.inf, -math.inf, math.nan]
VALUES: Final[dict[str, list[object]]] = {
    "TINYINT": _integers(8),
    "SMALLINT": _integers(16),
    "INT": _integers(32),
    "BIGINT": [*_integers(64), 3_000_000_000, 2**53 + 1],
    "DECIMAL(10,2)": [
        Decimal(text)
        for text in ("0.00", "5.00", "12.34", "-0.01", "9.99", "-99999999.99", "10.00", "-10.00")
    ],
    "DECIMAL(38,10)": [
        Decimal(text) for text in ("0E-10", "5.0000000000", "-0.0000000001", f"{'9' * 28}.5")
    ],
    "FLOAT": _FLOATS,
    "DOUBLE": [*_FLOATS, 1e300, 2.0**53 + 2],
    "STRING": [*TEXTS, "A", "AB", "Abc", "1", "5", " 5", "a\x00", "\U0010ffff", "2013-01-01", "ﬁ"],
    "BINARY": [b"", b"\x00", b"\x00\xff", b"ab", b"abc", b"\xff", b"\xff\xff"],
    "BOOLEAN": [True, False],
    "DATE": [*sorted({moment.date() for moment in _MOMENTS})],
    "TIMESTAMP": [moment.replace(tzinfo=dt.UTC) for moment in _MOMENTS],
    "TIMESTAMP_NTZ": list(_MOMENTS),
}
TYPES: Final = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DECIMAL(10,2)": pa.decimal128(10, 2),
    "DECIMAL(38,10)": pa.decimal128(38, 10),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
# Every type stands once, those that functions meet most stand twice.
COLUMNS: Final = {
    "y": "TINYINT",
    "h": "SMALLINT",
    "i": "INT",
    "j": "INT",
    "l": "BIGINT",
    "m": "DECIMAL(10,2)",
    "w": "DECIMAL(38,10)",
    "e": "FLOAT",
    "f": "DOUBLE",
    "s": "STRING",
    "t": "STRING",
    "x": "BINARY",
    "o": "BOOLEAN",
    "d": "DATE",
    "ts": "TIMESTAMP",
    "n": "TIMESTAMP_NTZ",
}
WIDER: Final = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT"),
    "SMALLINT": ("INT", "BIGINT"),
    "INT": ("BIGINT",),
    "FLOAT": ("DOUBLE",),
    "DECIMAL(10,2)": ("DECIMAL(12,2)",),
}
TYPES["DECIMAL(12,2)"] = pa.decimal128(12, 2)
VALUES["DECIMAL(12,2)"] = VALUES["DECIMAL(10,2)"]
_INTEGERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_HASHED: Final = ("bucket(4, {0})", "bucket(16, {0})")
_TIMES: Final = ("years({0})", "months({0})", "days({0})", *_HASHED[:1], "year({0})", "month({0})")
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_INTEGERS, ("{0}", "truncate(10, {0})", "truncate(7, {0})", *_HASHED)),
    **dict.fromkeys(
        ("DECIMAL(10,2)", "DECIMAL(12,2)", "DECIMAL(38,10)"), ("{0}", "truncate(10, {0})", *_HASHED)
    ),
    **dict.fromkeys(("FLOAT", "DOUBLE"), ("{0}",)),
    "STRING": (
        "{0}",
        "truncate(1, {0})",
        "truncate(2, {0})",
        "expression('lower(col0)', {0})",
        *_HASHED,
    ),
    "BINARY": ("{0}", *_HASHED),
    "BOOLEAN": ("{0}", "bucket(4, {0})"),
    "DATE": ("{0}", *_TIMES),
    "TIMESTAMP": ("{0}", *_TIMES, "hours({0})", "day({0})"),
    "TIMESTAMP_NTZ": ("{0}", *_TIMES, "hours({0})"),
}


def random_rows(random: Random, columns: dict[str, str], first: int, count: int) -> pa.Table:
    """Rows of edge values, numbered in the column ``id``."""
    arrays = {"id": pa.array(range(first, first + count), pa.int64())}
    for name, kind in columns.items():
        chosen = [
            None if random.randrange(_ONE_NULL_IN) == 0 else random.choice(VALUES[kind])
            for _ in range(count)
        ]
        arrays[name] = pa.array(chosen, TYPES[kind])
    return pa.table(arrays)


def literal(value: object, kind: str) -> str:
    """Write a value of a type as SQL."""
    if value is None or kind in ("STRING", "BINARY", "BOOLEAN", "DATE", "TIMESTAMP"):
        return _typed_literal(value)
    if kind == "TIMESTAMP_NTZ":
        return _typed_literal(value)
    if isinstance(value, float) and not math.isfinite(value):
        text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    else:
        text = str(value)
    return f"CAST('{text}' AS {kind})"
