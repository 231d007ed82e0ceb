"""Dates and timestamps as texts: Spark's cast, and what ``date_format`` writes.

NULL rules: NULL stays NULL.

| DataFusion | Spark | guard |
|---|---|---|
| a T before the time, a fraction of 3 or 6 digits | a space, no zeros at the end | made of parts |
| formats of chrono | of Java: letters count, quotes | each field is written by itself |
| no names of a locale | English ones | by their number |

Declined: years by eras or weeks, zones, days of a year, fractions of more than six digits.

Dates beyond the years for which DataFusion has a calendar, computed in cycles of 400 years.

NULL rules: NULL stays NULL. The Gregorian calendar repeats after 146,097 days, whole weeks.

| DataFusion, before the year -262143 or after 262142 | Spark | guard |
|---|---|---|
| parts of dates and timestamps are NULL | all years | the part of that day in another cycle |
| texts, months added, dates of timestamps are errors | all years | the same |

Timestamps with a zone as the clocks of the session show them, and back.

NULL rules: NULL stays NULL.

In UTC both are the same number. Elsewhere functions of ``execution/functions.py``
compute with the offsets that the session's Java has of its zone; DataFusion's own may be of another
year.
"""

from __future__ import annotations

import re
from functools import partial, reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.typed import (
    NTZ,
    ZONED,
    Typed,
    binary,
    call,
    cast,
    choice,
    enclosed,
    has_more_nodes,
    integer,
)
from pennon.predicate.values.time_units import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pennon.predicate.condition import Semantics

_CYCLE_DAYS: Final = 146_097
_CYCLE_YEARS: Final = 400
_KNOWN_DAYS: Final = 90_000_000  # to either side of 1970; the calendar ends after 95 millions
_MOST_NODES: Final = 400
_INT: Final = pa.int32()
_LONG: Final = pa.int64()


def year(source: Typed) -> exp.Expr:
    """Give the year of a date or a timestamp without a zone, as an INT."""
    return _known_or(
        source,
        _year,
        lambda day: binary(
            exp.Add,
            _year(_in_first_cycle(day)),
            cast(binary(exp.Mul, _cycles(day), integer(_CYCLE_YEARS, _LONG)), _INT),
        ),
    )


def same_in_cycles(source: Typed, compute: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Compute what is the same for the days of all cycles: a month, a day of the week.

    Args:
        source: A date, or a timestamp without a zone.
        compute: What of it, by DataFusion's calendar.
    """
    return _known_or(source, compute, lambda day: compute(_in_first_cycle(day)))


def moved_in_cycles(source: Typed, compute: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Compute a date of a date; what lies in another cycle moves by as much as that.

    Args:
        source: A date; or a timestamp without a zone, which keeps its time of the day.
        compute: Which one, by DataFusion's calendar.
    """

    def moved(day: exp.Expr) -> exp.Expr:
        in_cycle = cast(compute(_in_first_cycle(day)), pa.date32())
        days = cast(cast(in_cycle, _INT), _LONG)
        between = binary(exp.Mul, _cycles(day), integer(_CYCLE_DAYS, _LONG))
        moved_date = cast(cast(binary(exp.Add, days, between), _INT), pa.date32())
        return moved_date if pa.types.is_date(source.type) else _at_time_of(source, moved_date)

    return _known_or(source, compute, moved)


def text(day: exp.Expr) -> exp.Expr:
    """Write a date: more than four digits of a year have a sign before them."""

    def written(day: exp.Expr) -> exp.Expr:
        source = Typed(day, pa.date32())
        sign = choice(
            (binary(exp.GT, _of_calendar(source), integer(0, _LONG)), exp.Literal.string("+")),
            default=exp.Literal.string(""),
        )
        months = call("right", _text(_in_first_cycle(day)), integer(6, _LONG))
        digits = cast(year(source), pa.string())
        return binary(exp.DPipe, binary(exp.DPipe, exp.paren(sign), digits), months)

    return _known_or(Typed(day, pa.date32()), _text, written)


def time_of_day(source: Typed) -> exp.Expr:
    """Count the microseconds of a timestamp since midnight."""
    width = integer(MICROS_PER_DAY, _LONG)
    over = binary(exp.Mod, cast(source.tree.copy(), _LONG), width)
    return binary(exp.Mod, binary(exp.Add, over, width.copy()), width.copy())


def _at_time_of(source: Typed, day: exp.Expr) -> exp.Expr:
    exact = pa.decimal128(20, 0)  # DataFusion's BIGINT would wrap
    midnight = cast(cast(cast(day, NTZ), _LONG), exact)
    micros = binary(exp.Add, midnight, cast(time_of_day(source), exact))
    return cast(cast(exp.paren(micros), _LONG), NTZ)


def day_of(source: Typed) -> exp.Expr:
    """Give the day of a date or timestamp, counted in UTC."""
    if pa.types.is_date(source.type):
        return source.tree.copy()
    days = _floor_quotient(cast(source.tree.copy(), _LONG), MICROS_PER_DAY)
    return cast(cast(days, _INT), pa.date32())


def _known_or(
    source: Typed,
    near: Callable[[exp.Expr], exp.Expr],
    far: Callable[[exp.Expr], exp.Expr],
) -> exp.Expr:
    """Choose by the day whether DataFusion's calendar has it.

    Raises:
        Declined: An operand of many terms, which would be there several times.
    """
    if has_more_nodes(source.tree, _MOST_NODES):
        raise Declined(why="a date of many terms")
    if isinstance(source.tree, exp.Cast) and isinstance(source.tree.this, exp.Literal):
        return near(source.tree.copy())
    most = _KNOWN_DAYS * (1 if pa.types.is_date(source.type) else MICROS_PER_DAY)
    number = _of_calendar(source)
    is_near = exp.And(
        this=binary(exp.GTE, number, integer(-most, _LONG)),
        expression=binary(exp.LTE, number.copy(), integer(most, _LONG)),
    )
    return choice((is_near, near(source.tree.copy())), default=far(day_of(source)))


def _of_calendar(source: Typed) -> exp.Expr:
    """Count the days of a date, or the microseconds of a timestamp, since 1970."""
    is_date = pa.types.is_date(source.type)
    return cast(cast(source.tree.copy(), _INT) if is_date else source.tree.copy(), _LONG)


def _cycles(day: exp.Expr) -> exp.Expr:
    return _floor_quotient(_of_calendar(Typed(day, pa.date32())), _CYCLE_DAYS)


def _in_first_cycle(day: exp.Expr) -> exp.Expr:
    width = integer(_CYCLE_DAYS, _LONG)
    over = binary(exp.Mod, _of_calendar(Typed(day, pa.date32())), width)
    rest = binary(exp.Mod, binary(exp.Add, over, width.copy()), width.copy())
    return cast(cast(rest, _INT), pa.date32())


def _floor_quotient(number: exp.Expr, width: int) -> exp.Expr:
    """Divide and round down; nothing in between is beyond 64 bits."""
    by = integer(width, _LONG)
    is_below = binary(exp.LT, binary(exp.Mod, number, by), integer(0, _LONG))
    quotient = binary(exp.Div, number.copy(), by.copy())
    return binary(exp.Sub, quotient, cast(exp.paren(is_below), _LONG))


def _year(tree: exp.Expr) -> exp.Expr:
    return cast(exp.Extract(this=exp.var("YEAR"), expression=tree), _INT)


def _text(tree: exp.Expr) -> exp.Expr:
    return cast(tree, pa.string())


CLOCK: Final = "zone_clock"
MOMENT: Final = "zone_moment"
MOMENT_NEAR: Final = "zone_moment_near"
MOMENT_OF_DAY: Final = "zone_moment_of_day"
MOMENT_OF_DAY_NEAR: Final = "zone_moment_of_day_near"


def uses_zone(sql: str) -> bool:
    """Whether a query calls one of the functions."""
    return f"{CLOCK}(" in sql or MOMENT in sql


def knows_zone(semantics: Semantics) -> bool:
    """Whether timestamps with a zone have a local time here."""
    return semantics.is_utc or bool(semantics.zone_offsets)


def clock(value: Typed, semantics: Semantics) -> Typed:
    """Take a timestamp with a zone as one without: what the session's clocks show.

    Raises:
        Declined: The session's zone is not known.
    """
    _check_known(semantics)
    micros = cast(value.tree, _LONG)
    return Typed(cast(micros if semantics.is_utc else call(CLOCK, micros), NTZ), NTZ)


def moment(value: Typed, semantics: Semantics, *, near: Typed | None = None) -> Typed:
    """Give the moment at which the session's clocks show a time; of a date, at which it begins.

    Args:
        value: A date, or a timestamp without a zone.
        semantics: The session's.
        near: A timestamp with a zone, whose offset is preferred where clocks show the time twice.

    Raises:
        Declined: The session's zone is not known.
    """
    _check_known(semantics)
    micros = cast(cast(value.tree, NTZ) if pa.types.is_date(value.type) else value.tree, _LONG)
    return Typed(cast(_moment(micros, value, semantics, near), ZONED), ZONED)


def _moment(micros: exp.Expr, value: Typed, semantics: Semantics, near: Typed | None) -> exp.Expr:
    if semantics.is_utc:
        return micros
    is_day = pa.types.is_date(value.type)
    if near is None:
        return call(MOMENT_OF_DAY if is_day else MOMENT, micros)
    function = MOMENT_OF_DAY_NEAR if is_day else MOMENT_NEAR
    return call(function, micros, cast(near.tree.copy(), _LONG))


def _check_known(semantics: Semantics) -> None:
    if not knows_zone(semantics):
        raise Declined(why="a timestamp in a zone that is not UTC")


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
    micros = binary(exp.Mod, time_of_day(source), integer(MICROS_PER_SECOND, _LONG))
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
    whole = binary(exp.Div, time_of_day(source), integer(width, _LONG))
    return binary(exp.Mod, whole, integer(most, _LONG))


def _fraction(source: Typed) -> exp.Expr:
    """Write the six digits behind a timestamp's second."""
    micros = binary(exp.Mod, time_of_day(source), integer(MICROS_PER_SECOND, _LONG))
    return _filled(cast(enclosed(micros), pa.string()), _FRACTIONS)


def _filled(digits: exp.Expr, count: int) -> exp.Expr:
    return call("lpad", digits, integer(count, _LONG), _sign("0"))


def _day_text(source: Typed) -> exp.Expr:
    return text(day_of(source))


def _month(source: Typed) -> exp.Expr:
    last = call("right", _day_text(source), integer(5, _LONG))
    return call("left", last, integer(2, _LONG))


def _since_monday(source: Typed) -> exp.Expr:
    """Count the days since Monday: the first of 1970 was a Thursday."""
    days = cast(cast(day_of(source), _INT), _LONG)
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
