"""Spans of time: between two moments, added to them, and as moments after 1970.

NULL rules: every function gives NULL for NULL.

Months are those of Java: a day that is begun counts only where the time of the day is reached, and
a month where its day is; the last day of a month is no exception but in ``months_between``.

| DataFusion | Spark | guard |
|---|---|---|
| a difference of two BIGINTs wraps | never | quotients and remainders apart |
| seconds with a fraction are a DOUBLE | DECIMAL(8, 6) | of microseconds |
| a product of BIGINTs wraps | an error | in decimals, cast back |
| an interval is added as if in UTC | months and days by the clocks | ``_moved_in_zone`` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined, Semantics
from pennon.predicate.expressions.casts import converted
from pennon.predicate.expressions.time_functions import (
    MICROS_OF_UNITS,
    local,
    moved_days,
    part,
    plus_months,
)
from pennon.predicate.expressions.times import day_of, moment, time_of_day
from pennon.predicate.typed import (
    NTZ,
    ZONED,
    Typed,
    binary,
    call,
    cast,
    choice,
    double,
    integer,
    lossy_cast,
)
from pennon.predicate.values.literals import literal_value
from pennon.predicate.values.time_units import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
    SECONDS_PER_DAY,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_INT: Final = pa.int32()
_LONG: Final = pa.int64()
_DOUBLE: Final = pa.float64()
_MICROS: Final[Mapping[str, int]] = {
    "SECOND": MICROS_PER_SECOND,
    "MINUTE": MICROS_PER_MINUTE,
    "HOUR": MICROS_PER_HOUR,
    "DAY": MICROS_PER_DAY,
    "WEEK": 7 * MICROS_PER_DAY,
}
_MONTHS: Final[Mapping[str, int]] = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
# DataFusion's calendar ends in the year 262142.
_MOST_MONTHS: Final = 12 * 100_000
_ANY_SESSION: Final = Semantics()  # dates have the same parts in all of them
# In one number of a date's parts, so many days fit into a month.
_MOST_DAYS: Final = 32


def units_between(unit: str, start: Typed, end: Typed, semantics: Semantics) -> Typed:
    """Count the whole units from one timestamp to another (``timestampdiff``), cut.

    Raises:
        Declined: No timestamps, a zone that is not UTC, or another unit.
    """
    if {start.type, end.type} - {NTZ, ZONED}:
        raise Declined(why=f"timestampdiff of {start.type} and {end.type}")
    if unit in _MONTHS:
        return _whole_months(_MONTHS[unit], local(start, semantics), local(end, semantics))
    width = _MICROS.get(unit)
    if width is None:
        raise Declined(why=f"timestampdiff of {unit}")
    units = integer(width, _LONG)
    whole: list[exp.Expr] = []
    rest: list[exp.Expr] = []
    for time in (end, start):
        micros = cast(local(time, semantics).tree, _LONG)
        whole.append(binary(exp.Div, micros, units.copy()))
        rest.append(binary(exp.Mod, micros.copy(), units.copy()))
    left = binary(exp.Sub, *rest)
    count = binary(exp.Add, binary(exp.Sub, *whole), binary(exp.Div, left, units.copy()))
    left = binary(exp.Mod, left.copy(), units.copy())
    zero, one = integer(0, _LONG), integer(1, _LONG)
    # What is left points the other way where whole units were counted too many.
    is_less = binary(exp.And, binary(exp.GT, count, zero), binary(exp.LT, left, zero.copy()))
    is_more = binary(
        exp.And,
        binary(exp.LT, count.copy(), zero.copy()),
        binary(exp.GT, left.copy(), zero.copy()),
    )
    counted = choice(
        (is_less, binary(exp.Sub, count.copy(), one)),
        (is_more, binary(exp.Add, count.copy(), one.copy())),
        default=count.copy(),
    )
    return Typed(cast(counted, _LONG), _LONG)


def _whole_months(months: int, start: Typed, end: Typed) -> Typed:
    micros = [cast(time.tree.copy(), _LONG) for time in (start, end)]
    times = [time_of_day(time) for time in (start, end)]
    is_back = binary(exp.LT, micros[1], micros[0])
    moved = choice(
        (exp.And(this=is_back, expression=binary(exp.GT, times[1], times[0])), integer(1, _INT)),
        (is_back.copy(), integer(0, _INT)),
        (binary(exp.LT, times[1].copy(), times[0].copy()), integer(-1, _INT)),
        default=integer(0, _INT),
    )
    day = binary(exp.Add, cast(day_of(end), _INT), moved)
    last = Typed(cast(cast(day, _INT), pa.date32()), pa.date32())
    first = Typed(day_of(start), pa.date32())
    between = binary(exp.Sub, _in_one_number(last), _in_one_number(first))
    whole = binary(exp.Div, between, integer(_MOST_DAYS, _LONG))
    return Typed(cast(binary(exp.Div, whole, integer(months, _LONG)), _LONG), _LONG)


def _in_one_number(day: Typed) -> exp.Expr:
    days = binary(exp.Mul, _month_number(day), integer(_MOST_DAYS, _LONG))
    return binary(exp.Add, days, _part("DAY", day))


def _month_number(day: Typed) -> exp.Expr:
    """Count the months of a date since the year 0."""
    return binary(
        exp.Add, binary(exp.Mul, _part("YEAR", day), integer(12, _LONG)), _part("MONTH", day)
    )


def _part(name: str, day: Typed) -> exp.Expr:
    return cast(part(name, day, _ANY_SESSION).tree, _LONG)


def months_between(end: Typed, start: Typed, semantics: Semantics, *, is_rounded: bool) -> Typed:
    """Count the months from one timestamp to another, a month of 31 days (``months_between``).

    Two days of one number, or two last days of a month, are whole months apart.

    Raises:
        Declined: No timestamps, or a zone that is not UTC.
    """
    if {start.type, end.type} - {NTZ, ZONED}:
        raise Declined(why=f"months_between of {start.type} and {end.type}")
    if ZONED in (start.type, end.type) and not semantics.is_utc:
        # Spark counts the seconds since a day began, of which one with a change has others.
        raise Declined(why="months_between in a zone that is not UTC")
    moments = [local(time, semantics) for time in (end, start)]
    days = [Typed(day_of(time), pa.date32()) for time in moments]
    months = cast(binary(exp.Sub, *map(_month_number, days)), _DOUBLE)
    numbers = [_part("DAY", day) for day in days]
    is_whole = exp.Or(
        this=binary(exp.EQ, *numbers),
        expression=exp.paren(binary(exp.And, *map(_is_last_of_month, days))),
    )
    seconds = [
        binary(exp.Div, time_of_day(time), integer(MICROS_PER_SECOND, _LONG)) for time in moments
    ]
    apart = binary(exp.Sub, *[number.copy() for number in numbers])
    apart = binary(exp.Mul, apart, integer(SECONDS_PER_DAY, _LONG))
    apart = binary(exp.Add, apart, binary(exp.Sub, *seconds))
    fraction = binary(exp.Div, cast(apart, _DOUBLE), double(31 * SECONDS_PER_DAY))
    counted = binary(exp.Add, months.copy(), fraction)
    if is_rounded:
        digits = binary(exp.Mul, counted, double(100_000_000))
        below = call("floor", digits)
        is_up = binary(exp.GTE, binary(exp.Sub, digits.copy(), below), double(0.5))
        up = choice((is_up, double(1)), default=double(0))
        counted = binary(exp.Div, binary(exp.Add, below.copy(), up), double(100_000_000))
    return Typed(choice((is_whole, months), default=counted), _DOUBLE)


def _is_last_of_month(day: Typed) -> exp.Expr:
    following = cast(binary(exp.Add, cast(day.tree, _INT), integer(1, _INT)), _INT)
    first = _part("DAY", Typed(cast(following, pa.date32()), pa.date32()))
    return binary(exp.EQ, first, integer(1, _LONG))


def moment_of(value: Typed, width: int) -> Typed:
    """Give the timestamp so many units after 1970 (``timestamp_seconds``).

    Args:
        value: How many.
        width: Microseconds of a unit.

    Raises:
        Declined: No integer.
    """
    if not value.is_integer:
        raise Declined(why=f"a timestamp of {value.type}")
    exact = pa.decimal128(19, 0)
    factor = cast(exp.Literal.string(str(width)), pa.decimal128(7, 0))
    micros = binary(exp.Mul, cast(value.tree, exact), factor)
    is_small = width == 1 or value.type.bit_width < _LONG.bit_width
    whole = cast(micros, _LONG) if is_small else lossy_cast(micros, _LONG)
    return Typed(cast(whole, ZONED), ZONED, can_fail=not is_small)


def wrapped_moment_of(seconds: Typed) -> Typed:
    """Give the timestamp so many seconds after 1970, as ``from_unixtime`` counts: it wraps.

    Raises:
        Declined: No BIGINT.
    """
    if seconds.type != _LONG:
        raise Declined(why=f"from_unixtime of {seconds.type}")
    micros = binary(exp.Mul, seconds.tree, integer(MICROS_PER_SECOND, _LONG))
    return Typed(cast(micros, ZONED), ZONED)


def seconds_with_fraction(value: Typed, semantics: Semantics) -> Typed:
    """Give the seconds of a minute with their fraction, a DECIMAL(8, 6) (``extract(SECOND …)``).

    Raises:
        Declined: No timestamp, or a zone that is not UTC.
    """
    if value.type not in (NTZ, ZONED):
        raise Declined(why=f"the seconds of {value.type}")
    minute = integer(MICROS_PER_MINUTE, _LONG)
    over = binary(exp.Mod, cast(local(value, semantics).tree, _LONG), minute)
    micros = binary(exp.Mod, binary(exp.Add, over, minute.copy()), minute.copy())
    least = cast(exp.Literal.string("0.000001"), pa.decimal128(6, 6))
    kept = pa.decimal128(8, 6)
    return Typed(cast(binary(exp.Mul, cast(micros, pa.decimal128(8, 0)), least), kept), kept)


def moved_by_days(value: Typed, days: Typed, *, is_backward: bool) -> Typed:
    """Add days to a date, or take them away (``date_add``, ``date_sub``), as Spark wraps them."""
    if value.type != pa.date32() or not days.is_integer or days.type.bit_width > _INT.bit_width:
        raise Declined(why=f"days added to {value.type}")
    count = cast(days.tree, _INT)
    if is_backward:
        count = binary(exp.Sub, integer(0, _INT), count)
    return Typed(moved_days(value.tree, count), pa.date32())


def moved_by_interval(
    value: Typed,
    interval: exp.Interval,
    semantics: Semantics,
    *,
    is_backward: bool = False,
    is_elapsed: bool = False,
) -> Typed:
    """Add an interval of months, days or a time to a date or timestamp; or take it away.

    Months keep the day of the month, or take the last one there is. Of hours and shorter units an
    interval has whole days, which clocks count, and ``timestampadd`` none (``is_elapsed``).

    Raises:
        Declined: The interval is none of these, or a date would get a time.
    """
    unit, count = interval.text("unit").upper().removesuffix("S"), literal_value(interval.this)
    if count is None or (unit not in _MONTHS and unit not in MICROS_OF_UNITS):
        raise Declined(why=f"an interval of {unit}")
    try:
        number = int(str(count.as_py())) * (-1 if is_backward else 1)
    except ValueError as error:
        raise Declined(why="an interval of a fraction") from error
    is_short = is_elapsed and MICROS_OF_UNITS.get(unit, MICROS_PER_DAY) < MICROS_PER_DAY
    if value.type == ZONED and not (semantics.is_utc or is_short):
        return _moved_in_zone(value, unit, number, semantics)
    if value.type == ZONED and unit in MICROS_OF_UNITS:
        return Typed(
            cast(_later(value, number * MICROS_OF_UNITS[unit]), ZONED), ZONED, can_fail=True
        )
    return converted(_moved_clock(local(value, semantics), unit, number), value.type, semantics)


def _moved_in_zone(value: Typed, unit: str, number: int, semantics: Semantics) -> Typed:
    """Move months and whole days by the clocks of the zone, and the rest as time that passes.

    Where the clocks show the new time twice, the offset stays the one that it was.
    """
    days, micros = 0, 0
    if unit in MICROS_OF_UNITS:
        days, micros = divmod(abs(number) * MICROS_OF_UNITS[unit], MICROS_PER_DAY)
    sign = -1 if number < 0 else 1
    by_clocks = ("DAY", sign * days) if unit in MICROS_OF_UNITS else (unit, number)
    moved = value
    if by_clocks[1]:
        clock = local(Typed(value.tree.copy(), ZONED), semantics)
        moved = moment(_moved_clock(clock, *by_clocks), semantics, near=value)
    if micros:
        moved = Typed(cast(_later(moved, sign * micros), ZONED), ZONED)
    return Typed(moved.tree, ZONED, can_fail=True)


def _moved_clock(source: Typed, unit: str, number: int) -> Typed:
    """Add to a date, or to a timestamp without a zone.

    Raises:
        Declined: A date would get a time, or DataFusion's calendar may not reach so far.
    """
    if unit in _MONTHS:
        if abs(number) * _MONTHS[unit] > _MOST_MONTHS:
            raise Declined(why=f"{number} {unit} added")
        moved = plus_months(number * _MONTHS[unit], source.type, source.tree)
    elif source.type == pa.date32():
        if MICROS_OF_UNITS[unit] % MICROS_PER_DAY:
            raise Declined(why="a time added to a date")
        days = number * (MICROS_OF_UNITS[unit] // MICROS_PER_DAY)
        moved = moved_days(source.tree, integer(days, _INT))
    else:
        moved = cast(_later(source, number * MICROS_OF_UNITS[unit]), NTZ)
    return Typed(moved, source.type, can_fail=True)


def _later(value: Typed, micros: int) -> exp.Expr:
    """Give the number of a timestamp so many microseconds later; one too large is an error."""
    # exact in 38 digits; DataFusion's BIGINT would wrap
    exact = pa.decimal128(20, 0)
    counted = cast(cast(value.tree, _LONG), exact)
    return cast(binary(exp.Add, counted, cast(exp.Literal.string(str(micros)), exact)), _LONG)
