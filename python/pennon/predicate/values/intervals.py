"""Intervals that are whole numbers: of months, whose lengths differ, or of microseconds.

NULL rules: an interval of NULL is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.predicate.values.literals import literal_value
from pennon.predicate.values.time_units import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

__all__ = ["whole_interval"]

_UNITS: Final[Mapping[str, tuple[str, int]]] = {
    "YEAR": ("MONTH", 12),
    "MONTH": ("MONTH", 1),
    "DAY": ("MICROSECOND", MICROS_PER_DAY),
    "HOUR": ("MICROSECOND", MICROS_PER_HOUR),
    "MINUTE": ("MICROSECOND", MICROS_PER_MINUTE),
    "SECOND": ("MICROSECOND", MICROS_PER_SECOND),
    "MICROSECOND": ("MICROSECOND", 1),
}


def whole_interval(interval: exp.Interval) -> tuple[str, int] | None:
    """Read an interval as a number of MONTH or MICROSECOND; None for another, or one computed.

    Example:
        >>> from sqlglot import parse_one
        >>> whole_interval(parse_one("INTERVAL '2' YEAR"))
        ('MONTH', 24)
    """
    unit, literal = interval.text("unit").upper().removesuffix("S"), literal_value(interval.this)
    if unit not in _UNITS or literal is None or not literal.is_valid:
        return None
    try:
        count = int(str(literal.as_py()))
    except ValueError:
        return None
    counted, factor = _UNITS[unit]
    return counted, count * factor
