"""Rows of random and of edge values, under the names and types of the rows of edge values."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from tests.spark.assert_join import conf
from tests.spark.expressions.expression_rows import (
    TEXTS,
    VALUES,
    Compared,
    Expressions,
    zone_offsets_of,
)

from pennon.predicate.expressions import Semantics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN: Final = Path(__file__).parents[2] / "golden" / "expressions"
SESSIONS: Final = (
    (True, "UTC"),
    (False, "UTC"),
    (True, "America/New_York"),
    (False, "Europe/Berlin"),
)
"""ANSI or not, and the session's zone."""

# Of which texts are made: what patterns name, signs of several code units or none of their own
# width, ends of lines, digits of other scripts, and letters whose case is not one to one.
SIGNS: Final = [
    *"aaabbbxxx  %_-+*.,;:|/\\()[]{}0123456789ABZ<>$^&",
    *"éßİıΣσςǅŉﬁÅ",
    *("\t", "\n", "\r", "\r\n", "\x00", "\x1f", "\x7f", "\x85", "\xa0", "\u2003", "\u2028"),
    *("\u0301", "\u0307", "\u200d", "\ufeff", "\ufffd", "\ud7ff", "\ue000", "\uffff", "\uff15"),
    *("\U00010000", "\U0001d4b3", "\U0001f600", "\U0001f1e9\U0001f1ea", "\U0010ffff", "한", "각"),
]
_TIME_ZONES_GAPS: Final = (
    *("2024-03-10 02:30:00", "2024-03-10 07:00:00", "2024-11-03 05:30:00", "2024-11-03 06:30:00"),
    *("2024-03-31 01:00:00", "2024-03-31 02:30:00", "2024-10-27 01:30:00", "1883-11-18 17:00:00"),
)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY: Final = 86_400_000_000

Values = Callable[[random.Random], object]


def integer(bits: int) -> Values:
    """Draw integers of a width: its ends, small ones, powers of two and anything."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def draw(rng: random.Random) -> int:
        near = rng.choice([low, high, 0, 1 << rng.randrange(bits - 1)]) + rng.randint(-2, 2)
        value = rng.choice([near, -near, rng.randint(-20, 20), rng.randint(low, high)])
        return min(max(value, low), high)

    return draw


def double(rng: random.Random) -> float:
    """Draw a DOUBLE: ends of integer types, halves, short texts, any bits, and what is none."""
    match rng.randrange(8):
        case 0:
            return rng.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -2.2e-308])
        case 1:
            near = float(1 << rng.choice([7, 15, 31, 53, 63, 64, 127]))
            return rng.choice([-1, 1]) * math.nextafter(
                near, rng.choice([-math.inf, near, math.inf])
            )
        case 2:
            return rng.randint(-200, 200) / 2
        case 3 | 4:
            return round(rng.uniform(-1000, 1000), rng.randrange(5))
        case 5:
            return rng.uniform(-1, 1) * 10 ** rng.randint(-20, 20)
        case 6:
            return float(rng.randint(-20, 20))
    return struct.unpack("<d", rng.randbytes(8))[0]


def single(rng: random.Random) -> float:
    """Draw a FLOAT."""
    if rng.random() < 0.5:
        return struct.unpack("<f", rng.randbytes(4))[0]
    value = double(rng)
    return value if not math.isfinite(value) or abs(value) < 3e38 else math.copysign(3e38, value)


def decimal(precision: int, scale: int) -> Values:
    """Draw decimals of any number of digits, and those next to what rounding moves."""

    def draw(rng: random.Random) -> Decimal:
        digits = rng.choice([precision, rng.randint(1, precision)])
        number = rng.randrange(10**digits)
        if rng.random() < 0.3:
            number = int(rng.choice("159") + rng.choice("0459") * (digits - 1))
        if rng.random() < 0.2:
            number = rng.randint(0, 3) * 10**scale if precision > scale else 0
        # By its text: a context of Python's would round it.
        text = f"{number:0{scale + 1}d}"
        point = len(text) - scale
        return Decimal(f"{rng.choice(['', '-'])}{text[:point]}.{text[point:]}")

    return draw


def text(rng: random.Random) -> str:
    """Draw a text of some of the signs, or one of the edge values with more around it."""
    drawn = "".join(rng.choices(SIGNS, k=rng.choice([0, 1, 2, 3, 5, 9, 20])))
    few = "".join(rng.choices("abx é%", k=rng.randrange(6)))
    return rng.choice([drawn, few, few, rng.choice(TEXTS), rng.choice(TEXTS) + few])


def day(rng: random.Random) -> int:
    """Draw a date of the years 1 to 9999, and now and then another one that Spark has."""
    match rng.randrange(10):
        case 0:
            return rng.choice([_FIRST_DAY, _LAST_DAY, 0, -1, -141_428, -141_427, 11_016])
        case 1:
            year, month = rng.randint(1, 9999), rng.choice([1, 2, 2, 3, 12])
            last = dt.date(year, month, 28).toordinal() - dt.date(1970, 1, 1).toordinal()
            return last + rng.randint(0, 4)
        case 2:
            return rng.randint(-4_000_000, 6_000_000)
    return rng.choice([rng.randint(_FIRST_DAY, _LAST_DAY), rng.randint(-20_000, 30_000)])


def moment(rng: random.Random) -> int:
    """Draw a timestamp as microseconds: at midnights, whole units, DST's gaps, and anywhere."""
    if rng.random() < 0.15:
        gap = dt.datetime.fromisoformat(rng.choice(_TIME_ZONES_GAPS)).replace(tzinfo=dt.UTC)
        return (gap - _EPOCH) // dt.timedelta(microseconds=1) + rng.choice([-1, 0, 0, 1])
    width = rng.choice([1, 1000, 1_000_000, 60_000_000, 3_600_000_000, _DAY])
    within = rng.randrange(_DAY) // width * width + rng.choice([0, 0, 0, 1, -1])
    return day(rng) * _DAY + within


def integer_text(rng: random.Random) -> str:
    """Draw what may be the text of an integer."""
    number = str(integer(rng.choice([8, 16, 32, 64]))(rng))
    around = rng.choices(["", " ", "\t", "\n", "\x00", "+", "0", ".5", "\xa0", "x"], k=2)
    return rng.choice([number, number, around[0] + number + around[1]])


def day_text(rng: random.Random) -> str:
    """Draw what may be the text of a date."""
    year = rng.choice([f"{rng.randint(1, 9999):04}", "2020", "1999", str(rng.randint(0, 99999))])
    month, of_month = rng.randint(0, 13), rng.choice([1, 28, 29, 30, 31, rng.randint(0, 32)])
    plain = f"{year}-{month:02}-{of_month:02}"
    short = f"{year}-{month}-{of_month}"
    behind = rng.choice(["", " ", "T", "T12:00", " x", "\n", "x"])
    return rng.choice([plain, plain, short, rng.choice(["+", "-", " ", ""]) + plain + behind])


def clock_text(rng: random.Random) -> str:
    """Draw what may be the text of a timestamp."""
    clock = f"{rng.randint(0, 24):02}:{rng.randint(0, 60):02}:{rng.randint(0, 60):02}"
    return f"{day_text(rng)} {clock}"


_DRAWN: Final[Mapping[str, Values]] = {
    "flag": lambda rng: rng.random() < 0.5,
    "i8": integer(8),
    "i16": integer(16),
    "i32": integer(32),
    "i64": integer(64),
    "f32": single,
    "f64": double,
    "dec": decimal(12, 2),
    "dec2": decimal(12, 2),
    "wide": decimal(30, 10),
    "n32": integer(32),
    "n64": integer(64),
    "nf": double,
    "s": text,
    "s2": text,
    "int_text": integer_text,
    "day_text": day_text,
    "day": day_text,
    "compact": lambda rng: day_text(rng).replace("-", ""),
    "clock": clock_text,
    "d": day,
    "ntz": moment,
    "ts": moment,
}


def random_rows(seed: int, count: int) -> pa.Table:
    """Draw rows with the columns of the edge values; a value out of eight is NULL.

    Args:
        seed: What repeats them.
        count: How many.
    """
    rng = random.Random(seed)  # noqa: S311 - rows, not secrets
    columns = {}
    for name, (kind, edges) in VALUES.items():
        draw = _DRAWN[name]
        is_time = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        values = [None if rng.random() < 0.125 else draw(rng) for _ in range(count)]
        if is_time:
            plain = pa.int32() if pa.types.is_date(kind) else pa.int64()
            columns[name] = pa.array(values, plain).cast(kind)
            continue
        ring = [rng.choice(edges) if rng.random() < 0.1 else value for value in values]
        columns[name] = pa.array(ring, kind)
    return pa.table(columns)


def golden_lines() -> list[str]:
    """List the expressions that have golden values: every function that workers take."""
    paths = sorted(GOLDEN.glob("*.sql"))
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith("--")]


def compared_with_spark(
    spark: SparkSession,
    root: Path,
    drawn: tuple[int, int],
    lines: Sequence[str] | None = None,
    *,
    ansi: bool,
    zone: str,
) -> Compared:
    """Compute expressions over random rows.

    Args:
        spark: The session.
        root: Where the rows are written.
        drawn: What repeats the rows, and how many they are.
        lines: The expressions; None for all that have golden values.
        ansi: Whether Spark has errors where it would otherwise have NULL, or wrap.
        zone: The session's.
    """
    settings = {
        "spark.sql.ansi.enabled": str(ansi).lower(),
        "spark.sql.session.timeZone": zone,
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    }
    with conf(spark, settings):
        expressions = Expressions.over(spark, random_rows(*drawn), root / "random")
        offsets = zone_offsets_of(spark, zone)
        is_utc = zone == "UTC"
        semantics = Semantics(ansi=ansi, is_utc=is_utc, zone_offsets=offsets, in_fragments=True)
        return expressions.compare(golden_lines() if lines is None else lines, semantics)
