"""Rows of random and of edge values, under the names and types of the rows of edge values."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import pyarrow as pa

DAYS = ["1970-01-01", "1969-12-31", "1582-10-04", "1582-10-15", "0001-01-01", "9999-12-31"]
DAYS += ["2000-02-29", "1900-02-28", "1999-01-31", "1995-03-17", "2024-12-30", "2021-01-03"]
MOMENTS = ["1970-01-01 00:00:00.000000", "1969-12-31 23:59:59.999999", "1582-10-04 12:30:00.5"]
MOMENTS += [
    "0001-01-01 00:00:00.000001",
    "9999-12-31 23:59:59.999999",
    "2000-02-29 13:14:15.161718",
]
MOMENTS += ["1999-01-31 00:00:00", "2024-12-30 11:00:59.000999"]
DAY_TEXTS = ["2020", "+2020-2", "2021-1-5", " 2020-02-29 \n", "1999-12-31T", "0000-12-1 anything"]
DAY_TEXTS += ["-0044-3-15", "0012345-01-01", "-290307-01-01", "+5000000", "\x002020-01-01\x7f"]
DAY_TEXTS += ["2020-01-05 \n2020", "2400-02-29T12:00:00Z", "-0000-2-29"]
TEXTS = ["", "ab", "a%b", "a_b", "é", "éxé", " ab ", "\tab\n", "a\\b", "a\nb", "ABba", "ß", "İi"]
TEXTS += ["aspecial x requestsb", "\U0001d4b3a", "a.(b", "aaxxaa", "a|%b|", "x", "ΑΣ", "b"]

VALUES: dict[str, tuple[pa.DataType, Sequence[object]]] = {
    "flag": (pa.bool_(), [True, False]),
    "i8": (pa.int8(), [0, 1, -1, 7, 63, -64]),
    "i16": (pa.int16(), [0, 1, -1, 2, 3, -7, 100]),
    "i32": (pa.int32(), [0, 1, -1, 7, -7, 10, 1_000_000, 2**30]),
    "i64": (pa.int64(), [0, 1, -1, 5, -11, 2**53 + 1, -(2**60)]),
    "f32": (pa.float32(), [0.0, -0.0, 1.5, math.nan, math.inf, -2.25]),
    "f64": (pa.float64(), [0.0, -0.0, 1.5, math.nan, -math.inf, -2.25, 1e300, 0.1, 3.0]),
    "dec": (
        pa.decimal128(12, 2),
        [Decimal(text) for text in ("0.00", "1.50", "-0.01", "99.99", "-7.25", "1000000000.05")],
    ),
    "dec2": (pa.decimal128(12, 2), [Decimal(text) for text in ("3.00", "-0.05", "0.07", "7.00")]),
    "wide": (
        pa.decimal128(30, 10),
        [Decimal(text) for text in ("0.0000000001", "-12345678901234567890.1234567891", "2.5")],
    ),
    "n32": (pa.int32(), [3, -3, 7, 1, -10]),
    "n64": (pa.int64(), [3, -3, 2**40, 1, -10]),
    "nf": (pa.float64(), [0.5, -3.0, 1e-300, math.inf, math.nan]),
    "s": (pa.string(), TEXTS),
    "s2": (pa.string(), ["", "a", "x", "é", "b", "aa"]),
    "int_text": (pa.string(), ["0", " 12 ", "-7", "+5", "007", "\t3\n", "\x0044\x7f", "-0", "5"]),
    "day_text": (pa.string(), [*DAYS, *DAY_TEXTS]),
    "day": (pa.string(), [*DAYS, "0000-01-01", "+12345-12-31", "-0001-02-28", "-12345-01-01"]),
    "compact": (pa.string(), [day.replace("-", "") for day in DAYS]),
    "clock": (pa.string(), ["1999-01-31 23:59:59", "0001-01-01 00:00:00", "-0044-03-15 12:00:01"]),
    "d": (pa.date32(), [dt.date.fromisoformat(day) for day in DAYS]),
    "ntz": (pa.timestamp("us"), [dt.datetime.fromisoformat(moment) for moment in MOMENTS]),
    "ts": (
        pa.timestamp("us", "UTC"),
        [dt.datetime.fromisoformat(moment + "+00:00") for moment in MOMENTS],
    ),
}


def edge_rows(extra: int = 150) -> pa.Table:
    """Every value of every column, and NULL, in lengths that are prime to each other in effect."""
    columns = {}
    for at, (name, (kind, values)) in enumerate(VALUES.items()):
        ring = [*values, None]
        columns[name] = pa.array(
            [ring[(row * (1 + at % 5) + row // (7 + at)) % len(ring)] for row in range(extra)], kind
        )
    return pa.table(columns)


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
