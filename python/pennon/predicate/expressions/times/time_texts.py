"""Dates and timestamps as texts: Spark's cast, and what ``date_format`` writes.

NULL rules: NULL stays NULL.

| DataFusion | Spark | guard |
|---|---|---|
| a T before the time, a fraction of 3 or 6 digits | a space, no zeros at the end | made of parts |
| formats of chrono | of Java: letters count, quotes | each field is written by itself |
| no names of a locale | English ones | by their number |

Declined: years by eras or weeks, zones, days of a year, fractions of more than six digits.
"""

from __future__ import annotations

import re
from functools import partial, reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.times import calendar_cycles
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import (
    NTZ,
    Typed,
    binary,
    call,
    cast,
    choice,
    enclosed,
    integer,
)
from pennon.predicate.values.time_units import MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

_INT: Final = pa.int32()
_LONG: Final = pa.int64()
# The fields of a pattern, texts in quotes, and signs that mean themselves.
_PIECES: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[-/.:,;_|()+*=@!?~ ]+")
# How long each unit of the clock is in microseconds, and how many there are.
_CLOCK: Final = {
    "H": (MICROS_PER_HOUR, 24),
    "m": (MICROS_PER_MINUTE, 60),
    "s": (MICROS_PER_SECOND, 60),
}
_FRACTIONS: Final = 6
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_SHORT: Final = 3
_SHORT_NAMES: Final = ("E", "EE", "EEE")


def timestamp_text(source: Typed) -> exp.Expr:
    """Write a timestamp without a zone, as Spark's cast does.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> column = Typed(exp.column("c1"), NTZ)
        >>> len(timestamp_text(column).sql(dialect=DataFusion)) < 4000
        True
    """
    micros = binary(exp.Mod, calendar_cycles.time_of_day(source), integer(MICROS_PER_SECOND, _LONG))
    digits = call("rtrim", _fraction(source), exp.Literal.string("0"))
    fraction = choice(
        (binary(exp.EQ, micros, integer(0, _LONG)), exp.Literal.string("")),
        default=binary(exp.DPipe, exp.Literal.string("."), digits),
    )
    pieces = ("HH", ":", "mm", ":", "ss")
    clock = [_clock(piece, source) if piece != ":" else _sign(piece) for piece in pieces]
    return _joined([_day_text(source), _sign(" "), *clock, fraction])


def formatted(source: Typed, pattern: str | None) -> exp.Expr:
    """Write a date, or a timestamp without a zone, by a pattern of Java.

    Raises:
        Declined: A pattern that is computed, or has other fields, or none.
    """
    pieces = [] if pattern is None else [match.group() for match in _PIECES.finditer(pattern)]
    # Signs alone would be there for NULL, too.
    if "".join(pieces) != pattern or not any(piece[0].isalpha() for piece in pieces):
        raise Declined(why=f"the pattern {pattern}")
    written = [_written(piece, source) for piece in pieces]
    if any(piece is None for piece in written):
        raise Declined(why=f"the pattern {pattern} of {source.type}")
    return _joined([piece for piece in written if piece is not None])


def name_of_day(source: Typed) -> exp.Expr:
    """Write the first letters of a date's day of the week (``dayname``)."""
    return _named(_since_monday(source), [name[:_SHORT] for name in _DAYS], first=0)


def name_of_month(source: Typed) -> exp.Expr:
    """Write the first letters of a date's month (``monthname``)."""
    return _named(_number(_month(source)), [name[:_SHORT] for name in _MONTHS], first=1)


def _written(piece: str, source: Typed) -> exp.Expr | None:
    if piece.startswith("'"):
        inner = piece[1:-1].replace("''", "'")
        return _sign(inner or "'")
    if not piece[0].isalpha():
        return _sign(piece)
    written = _calendar(piece, source)
    return _clock(piece, source) if written is None and source.type == NTZ else written


def _calendar(piece: str, source: Typed) -> exp.Expr | None:
    """Write a field of a date; a year may have more than four digits, and a sign."""
    day = _day_text(source)
    match piece:
        case "yyyy":
            return call("left", day, integer(-6, _LONG))
        case "yy":
            return call("right", call("left", day, integer(-6, _LONG)), integer(2, _LONG))
        case "MM":
            return _month(source)
        case "dd":
            return call("right", day, integer(2, _LONG))
        case "M":
            return _without_zero(_month(source))
        case "d":
            return _without_zero(call("right", day, integer(2, _LONG)))
        case "MMM":
            return name_of_month(source)
        case "MMMM":
            return _named(_number(_month(source)), _MONTHS, first=1)
        case "EEEE":
            return _named(_since_monday(source), _DAYS, first=0)
        case short if short in _SHORT_NAMES:
            return name_of_day(source)
    return None


def _clock(piece: str, source: Typed) -> exp.Expr | None:
    """Write a field of a time of the day."""
    letter, count = piece[0], len(piece)
    if letter == "S" and count <= _FRACTIONS:
        return call("left", _fraction(source), integer(count, _LONG))
    if piece == "a":
        is_morning = binary(exp.LT, _units("H", source), integer(12, _LONG))
        is_later = exp.Not(this=is_morning.copy())
        return choice((is_morning, _sign("AM")), (is_later, _sign("PM")), default=None)
    if count > len("HH"):
        return None
    if letter == "h":
        # 12, 1, …, 11
        before = binary(exp.Add, _units("H", source), integer(11, _LONG))
        over = binary(exp.Mod, before, integer(12, _LONG))
        number = binary(exp.Add, over, integer(1, _LONG))
    elif letter in _CLOCK:
        number = _units(letter, source)
    else:
        return None
    digits = cast(enclosed(number), pa.string())
    return digits if count == 1 else _filled(digits, count)


def _units(letter: str, source: Typed) -> exp.Expr:
    width, most = _CLOCK[letter]
    whole = binary(exp.Div, calendar_cycles.time_of_day(source), integer(width, _LONG))
    return binary(exp.Mod, whole, integer(most, _LONG))


def _fraction(source: Typed) -> exp.Expr:
    """Write the six digits behind a timestamp's second."""
    micros = binary(exp.Mod, calendar_cycles.time_of_day(source), integer(MICROS_PER_SECOND, _LONG))
    return _filled(cast(enclosed(micros), pa.string()), _FRACTIONS)


def _filled(digits: exp.Expr, count: int) -> exp.Expr:
    return call("lpad", digits, integer(count, _LONG), _sign("0"))


def _day_text(source: Typed) -> exp.Expr:
    return calendar_cycles.text(calendar_cycles.day_of(source))


def _month(source: Typed) -> exp.Expr:
    last = call("right", _day_text(source), integer(5, _LONG))
    return call("left", last, integer(2, _LONG))


def _since_monday(source: Typed) -> exp.Expr:
    """Count the days since Monday: the first of 1970 was a Thursday."""
    days = cast(cast(calendar_cycles.day_of(source), _INT), _LONG)
    over = binary(exp.Mod, days, integer(7, _LONG))
    return binary(exp.Mod, binary(exp.Add, over, integer(10, _LONG)), integer(7, _LONG))


def _number(digits: exp.Expr) -> exp.Expr:
    return cast(digits, _LONG)


def _without_zero(digits: exp.Expr) -> exp.Expr:
    return cast(_number(digits), pa.string())


def _named(number: exp.Expr, names: Sequence[str], *, first: int) -> exp.Expr:
    """Write the name of a number; it is computed once."""
    ifs = [
        exp.If(this=integer(at, _LONG), true=exp.Literal.string(name))
        for at, name in enumerate(names, first)
    ]
    return exp.Case(this=enclosed(number), ifs=ifs)


def _sign(text: str) -> exp.Expr:
    return exp.Literal.string(text)


def _joined(pieces: Sequence[exp.Expr | None]) -> exp.Expr:
    present = [piece for piece in pieces if piece is not None]
    return reduce(partial(binary, exp.DPipe), present)
