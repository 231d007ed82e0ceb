"""Intervals that are whole numbers: of months, whose lengths differ, or of microseconds.

NULL rules: an interval of NULL is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

__all__ = ["DAY_MICROS", "whole_interval"]

DAY_MICROS: Final = 86_400_000_000
_UNITS: Final[Mapping[str, tuple[str, int]]] = {
    "YEAR": ("MONTH", 12),
    "MONTH": ("MONTH", 1),
    "DAY": ("MICROSECOND", DAY_MICROS),
    "HOUR": ("MICROSECOND", 3_600_000_000),
    "MINUTE": ("MICROSECOND", 60_000_000),
    "SECOND": ("MICROSECOND", 1_000_000),
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
