"""Functions of dates and timestamps that are exactly Spark's, and of the spans between them.

NULL rules: every function gives NULL for NULL. Dates are proleptic Gregorian in both engines.

Months are those of Java: a day that is begun counts only where the time of the day is reached, and
a month where its day is; the last day of a month is no exception but in ``months_between``.

| DataFusion | Spark | guard |
|---|---|---|
| date_trunc of weeks and longer counts nanoseconds: 1677 to 2262 | all years | computed by days |
| the days of a week count from 0 | from 1, or from Monday | computed |
| parts of zoned timestamps are the zone's | the session's | ``times`` |
| adds to timestamps as if it were UTC | months and days by the session's clocks | ``times`` |
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
from pennon.predicate.expressions.times import day_of, field, moment, time_of_day
from pennon.predicate.expressions.times import formatted as time_text
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
    MICROS_BY_NAME,
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
    SECONDS_PER_DAY,
)
from pennon.starting_jvm import starting_jvm

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pennon.predicate.condition import Semantics

_DATE_PARTS: Final[Mapping[str, str]] = {
    "YEAR": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "DAY": "DAY",
    "DAYOFMONTH": "DAY",
    "DAYOFYEAR": "DOY",
    "DOY": "DOY",
    "WEEK": "WEEK",
    "WEEKOFYEAR": "WEEK",
}
_TIME_PARTS: Final = frozenset({"HOUR", "MINUTE", "SECOND"})
MICROS_OF_UNITS: Final[Mapping[str, int]] = {
    **MICROS_BY_NAME,
    "DD": MICROS_PER_DAY,
    "WEEK": 7 * MICROS_PER_DAY,
}
# From which day they count, and the number that it has.
_WEEK_PARTS: Final[Mapping[str, tuple[str, int]]] = {
    **dict.fromkeys(("DAYOFWEEK", "DOW"), ("SUNDAY", 1)),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), ("MONDAY", 1)),
    "WEEKDAY": ("MONDAY", 0),
}
_MONTH_UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    "QUARTER": "QUARTER",
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "WEEK": "WEEK",
}
_DAY_NAMES: Final = (
    ("MO", "MON", "MONDAY"),
    ("TU", "TUE", "TUESDAY"),
    ("WE", "WED", "WEDNESDAY"),
    ("TH", "THU", "THURSDAY"),
    ("FR", "FRI", "FRIDAY"),
    ("SA", "SAT", "SATURDAY"),
    ("SU", "SUN", "SUNDAY"),
)
_FIRST_MIDNIGHTS: Final = ("4.1.", "4.2.")
_INT: Final = pa.int32()
_LONG: Final = pa.int64()


def is_part_of_dates(name: str) -> bool:
    """Whether a part is one of the date alone, for ``extract``: a month, a day of the week."""
    return name in _DATE_PARTS or name in _WEEK_PARTS


def is_unit_of_trunc(name: str) -> bool:
    """Whether a unit is one of ``trunc``, which are longer than a day."""
    return name in _MONTH_UNITS


def is_unit_of_days(name: str) -> bool:
    """Whether a unit of ``date_trunc`` is whole days."""
    return name in _MONTH_UNITS or MICROS_OF_UNITS.get(name, 0) >= MICROS_PER_DAY


def local(value: Typed, semantics: Semantics) -> Typed:
    """Take a date or timestamp as the session's clocks show it."""
    if value.type in (pa.date32(), NTZ):
        return value
    if value.type != ZONED:
        raise Declined(why=f"{value.type} as a time")
    return converted(value, NTZ, semantics)


def date(value: Typed) -> Typed:
    """Take a date."""
    if value.type != pa.date32():
        raise Declined(why=f"{value.type} as a date")
    return value


def part(name: str, value: Typed, semantics: Semantics) -> Typed:
    """Extract a field as an INT."""
    source = local(value, semantics)
    if name in _WEEK_PARTS:
        return Typed(_day_of_week(name, source), _INT)
    known = _DATE_PARTS.get(name)
    if known is None:
        if name not in _TIME_PARTS or source.type != NTZ:
            raise Declined(why=f"EXTRACT({name}) of {source.type}")
        known = name
    return Typed(_part(known, source), _INT)


def _part(name: str, source: Typed) -> exp.Expr:
    """Write a field of any date or timestamp without a zone."""
    if name not in _TIME_PARTS:
        return field(name, source)
    time = cast(time_of_day(source), NTZ)
    return cast(exp.Extract(this=exp.var(name), expression=time), _INT)


def _day_of_week(name: str, source: Typed) -> exp.Expr:
    first, number = _WEEK_PARTS[name]
    days = _part("DOW", source) if first == "SUNDAY" else _since_monday(source)
    return cast(binary(exp.Add, days, integer(number, _INT)), _INT)


def _since_monday(source: Typed) -> exp.Expr:
    shifted = binary(exp.Add, _part("DOW", source), integer(6, _INT))
    return binary(exp.Mod, shifted, integer(7, _INT))


def formatted(value: Typed, pattern: Typed, semantics: Semantics) -> Typed:
    """Write a date or timestamp by a pattern (``date_format``)."""
    literal = literal_value(pattern.tree)
    text = None if literal is None or not literal.is_valid else str(literal.as_py())
    return Typed(time_text(local(value, semantics), text), pa.string())


def name_of(part: type[exp.Expr], value: Typed) -> Typed:
    """Write the first letters of a date's day or month (``dayname``, ``monthname``)."""
    return Typed(time_text(date(value), "E" if part is exp.Dayname else "MMM"), pa.string())


def truncated_date(unit: str, value: Typed, semantics: Semantics) -> Typed:
    """Give the first day of a date's week, month, quarter or year (``trunc``)."""
    calendar_unit = _MONTH_UNITS.get(unit)
    source = local(value, semantics)
    if calendar_unit is None:
        raise Declined(why=f"trunc to {unit}")
    return Typed(_first_day(calendar_unit, day_of(source)), pa.date32())


def _first_day(unit: str, day: exp.Expr) -> exp.Expr:
    source = Typed(day, pa.date32())
    if unit == "WEEK":
        return moved_days(day, binary(exp.Sub, integer(0, _INT), _since_monday(source)))
    if unit == "QUARTER":
        thrice = binary(exp.Mul, field("QUARTER", source), integer(3, _INT))
        month = cast(binary(exp.Sub, thrice, integer(2, _INT)), _INT)
        return call("make_date", field("YEAR", source), month, integer(1, _INT))
    number = field("DOY" if unit == "YEAR" else "DAY", source)
    return moved_days(day, binary(exp.Sub, integer(1, _INT), number))


def truncated(unit: str, value: Typed, semantics: Semantics) -> Typed:
    """Give the start of a timestamp's unit (``date_trunc``), in the type of the timestamp."""
    if value.type not in (NTZ, ZONED):
        raise Declined(why=f"date_trunc of {value.type}")
    source = local(value, semantics)
    if unit in _MONTH_UNITS:
        day = Typed(_first_day(_MONTH_UNITS[unit], day_of(source)), pa.date32())
        if value.type == NTZ:
            return converted(day, NTZ, semantics)
        # Of two midnights Spark takes the one before the time since 4.3, and the first one before.
        is_first = starting_jvm().spark.startswith(_FIRST_MIDNIGHTS)
        return moment(day, semantics, near=None if is_first else value)
    if unit not in MICROS_OF_UNITS:
        raise Declined(why=f"date_trunc to {unit}")
    if value.type == ZONED and MICROS_OF_UNITS[unit] <= MICROS_PER_SECOND:
        # Offsets are whole seconds.
        micros = Typed(cast(cast(value.tree, _LONG), NTZ), NTZ)
        return Typed(cast(cast(_floored(micros.tree, MICROS_OF_UNITS[unit]), _LONG), ZONED), ZONED)
    start = Typed(_floored(source.tree, MICROS_OF_UNITS[unit]), NTZ)
    return start if value.type == NTZ else moment(start, semantics, near=value)


def _floored(tree: exp.Expr, width: int) -> exp.Expr:
    wide = pa.int64()
    micros = cast(tree, wide)
    over = binary(exp.Mod, micros, integer(width, wide))
    positive = binary(exp.Mod, binary(exp.Add, over, integer(width, wide)), integer(width, wide))
    return cast(binary(exp.Sub, micros.copy(), positive), NTZ)


def moved_days(day: exp.Expr, count: exp.Expr) -> exp.Expr:
    """Add days to a date, as Spark wraps them."""
    return cast(cast(binary(exp.Add, cast(day.copy(), _INT), count), _INT), pa.date32())


def plus_months(months: int, data_type: pa.DataType, tree: exp.Expr) -> exp.Expr:
    """Add months to a date or timestamp of DataFusion's calendar."""
    interval = exp.Interval(this=exp.Literal.string(str(months)), unit=exp.var("MONTH"))
    return cast(binary(exp.Add, tree, interval), data_type)


def days_between(end: Typed, start: Typed, semantics: Semantics) -> Typed:
    """Count the days from one date to another (``datediff``)."""
    counts = [
        cast(converted(local(operand, semantics), pa.date32(), semantics).tree, _INT)
        for operand in (end, start)
    ]
    return Typed(cast(binary(exp.Sub, *counts), _INT), _INT)


def epoch_days(value: Typed) -> Typed:
    """Count the days of a date since 1970 (``unix_date``)."""
    if value.type != pa.date32():
        raise Declined(why=f"unix_date of {value.type}")
    return Typed(cast(value.tree, _INT), _INT)


def day_of_epoch(value: Typed) -> Typed:
    """Give the date so many days after 1970 (``date_from_unix_date``)."""
    if value.type != _INT:
        raise Declined(why=f"date_from_unix_date of {value.type}")
    return Typed(cast(value.tree, pa.date32()), pa.date32())


def epoch_units(unit: str, value: Typed) -> Typed:
    """Count the whole units of a timestamp since 1970, whatever the zone (``unix_seconds``)."""
    if value.type != ZONED:
        raise Declined(why=f"seconds since 1970 of {value.type}")
    width = integer(MICROS_OF_UNITS[unit], _LONG)
    micros = cast(value.tree, _LONG)
    zero, one = integer(0, _LONG), integer(1, _LONG)
    is_before = binary(exp.LT, binary(exp.Mod, micros, width), zero)
    # The engine cuts towards 1970; to subtract first would wrap at the least number there is.
    begun = choice((is_before, one), default=zero.copy())
    whole = binary(exp.Sub, binary(exp.Div, micros.copy(), width.copy()), begun)
    return Typed(cast(whole, _LONG), _LONG)


def cut_seconds(value: Typed) -> Typed:
    """Count the seconds of a timestamp since 1970, cut towards it (``unix_timestamp``)."""
    if value.type != ZONED:
        raise Declined(why=f"unix_timestamp of {value.type}")
    width = integer(MICROS_PER_SECOND, _LONG)
    return Typed(cast(binary(exp.Div, cast(value.tree, _LONG), width), _LONG), _LONG)


def microseconds(value: Typed, kinds: Collection[pa.DataType]) -> Typed:
    """Count the microseconds of a timestamp since 1970, or make one of them (``window``).

    Args:
        value: The timestamp, or a BIGINT.
        kinds: The types of the timestamps that the number was computed of.
    """
    if value.type in (NTZ, ZONED):
        return Typed(cast(value.tree, _LONG), _LONG)
    if value.type != _LONG or len(kinds) != 1 or not {NTZ, ZONED}.issuperset(kinds):
        raise Declined(why=f"a timestamp made of {value.type}")
    (kind,) = kinds
    return Typed(cast(value.tree, kind), kind)


def next_day(value: Typed, name: Typed) -> Typed:
    """Give the first day after a date that has a name (``next_day``)."""
    text = literal_value(name.tree)
    day_name = None if text is None or not text.is_valid else str(text.as_py()).upper()
    numbers = [at for at, names in enumerate(_DAY_NAMES) if day_name in names]
    if not numbers:
        raise Declined(why="the next of no day")
    ahead = binary(exp.Sub, integer(numbers[0] + 6, _INT), _since_monday(date(value)))
    days = binary(exp.Add, binary(exp.Mod, ahead, integer(7, _INT)), integer(1, _INT))
    return Typed(moved_days(value.tree, days), pa.date32())


def last_day(value: Typed, semantics: Semantics) -> Typed:
    """Give the last day of a date's month."""
    day = converted(local(value, semantics), pa.date32(), semantics)
    following = plus_months(1, pa.date32(), _first_day("MONTH", day.tree))
    return Typed(moved_days(following, integer(-1, _INT)), pa.date32())


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
# In one number of a date's parts, so many days fit into a month.
_MOST_DAYS: Final = 32


def units_between(unit: str, start: Typed, end: Typed, semantics: Semantics) -> Typed:
    """Count the whole units from one timestamp to another (``timestampdiff``), cut."""
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
    return binary(exp.Add, days, _long_part("DAY", day))


def _month_number(day: Typed) -> exp.Expr:
    """Count the months of a date since the year 0."""
    return binary(
        exp.Add,
        binary(exp.Mul, _long_part("YEAR", day), integer(12, _LONG)),
        _long_part("MONTH", day),
    )


def _long_part(name: str, day: Typed) -> exp.Expr:
    return cast(field(name, day), _LONG)


def months_between(end: Typed, start: Typed, semantics: Semantics, *, is_rounded: bool) -> Typed:
    """Count the months from one timestamp to another, a month of 31 days (``months_between``).

    Two days of one number, or two last days of a month, are whole months apart.
    """
    if {start.type, end.type} - {NTZ, ZONED}:
        raise Declined(why=f"months_between of {start.type} and {end.type}")
    if ZONED in (start.type, end.type) and not semantics.is_utc:
        # Spark counts the seconds since a day began, of which one with a change has others.
        raise Declined(why="months_between in a zone that is not UTC")
    moments = [local(time, semantics) for time in (end, start)]
    days = [Typed(day_of(time), pa.date32()) for time in moments]
    months = cast(binary(exp.Sub, *map(_month_number, days)), _DOUBLE)
    numbers = [_long_part("DAY", day) for day in days]
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
    first = _long_part("DAY", Typed(cast(following, pa.date32()), pa.date32()))
    return binary(exp.EQ, first, integer(1, _LONG))


def moment_of(value: Typed, width: int) -> Typed:
    """Give the timestamp so many units after 1970 (``timestamp_seconds``).

    Args:
        value: How many.
        width: Microseconds of a unit.
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
    """Give the timestamp so many seconds after 1970, as ``from_unixtime`` counts: it wraps."""
    if seconds.type != _LONG:
        raise Declined(why=f"from_unixtime of {seconds.type}")
    micros = binary(exp.Mul, seconds.tree, integer(MICROS_PER_SECOND, _LONG))
    return Typed(cast(micros, ZONED), ZONED)


def seconds_with_fraction(value: Typed, semantics: Semantics) -> Typed:
    """Give the seconds of a minute with their fraction, a DECIMAL(8, 6) (``extract(SECOND …)``)."""
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
    """Add to a date, or to a timestamp without a zone."""
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
