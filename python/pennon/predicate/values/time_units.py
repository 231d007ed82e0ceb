"""The units of times: of Arrow's types, by name, and the moment from which they count."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
"""Timestamps count from it, dates from its day."""

SECONDS_PER_HOUR: Final = 3_600
SECONDS_PER_DAY: Final = 24 * SECONDS_PER_HOUR
MILLIS_PER_DAY: Final = 1_000 * SECONDS_PER_DAY
"""The step of ``date64``."""
MICROS_PER_MILLI: Final = 1_000
MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_MINUTE: Final = 60 * MICROS_PER_SECOND
MICROS_PER_HOUR: Final = SECONDS_PER_HOUR * MICROS_PER_SECOND
MICROS_PER_DAY: Final = SECONDS_PER_DAY * MICROS_PER_SECOND
NANOS_PER_MICRO: Final = 1_000
NANOS_PER_DAY: Final = MICROS_PER_DAY * NANOS_PER_MICRO
MICROS_BY_NAME: Final[Mapping[str, int]] = {
    "MICROSECOND": 1,
    "MILLISECOND": MICROS_PER_MILLI,
    "SECOND": MICROS_PER_SECOND,
    "MINUTE": MICROS_PER_MINUTE,
    "HOUR": MICROS_PER_HOUR,
    "DAY": MICROS_PER_DAY,
}
"""How many microseconds the units are that SQL names, but those whose lengths differ."""

UNITS_PER_SECOND: Final[Mapping[str, int]] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of a unit of Arrow are a second."""
MICROS_PER_UNIT: Final[Mapping[str, int]] = {"s": 10**6, "ms": 10**3, "us": 1}
"""How many microseconds a unit is; nanoseconds are no whole ones."""
NANOS_PER_UNIT: Final[Mapping[str, int]] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""How many nanoseconds a unit is."""
UNIT_NAMES: Final[Mapping[str, str]] = {
    "s": "Second",
    "ms": "Millisecond",
    "us": "Microsecond",
    "ns": "Nanosecond",
}
"""What DataFusion calls a unit."""
