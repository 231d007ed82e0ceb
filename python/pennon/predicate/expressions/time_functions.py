"""Functions of dates and timestamps that are exactly Spark's.

NULL rules: every function gives NULL for NULL. Dates are proleptic Gregorian in both engines.

| DataFusion | Spark | guard |
|---|---|---|
| date_trunc of weeks and longer counts nanoseconds: 1677 to 2262 | all years | computed by days |
| the days of a week count from 0 | from 1, or from Monday | computed |
| parts of zoned timestamps are the zone's | the session's | ``zoned_times`` |
| years beyond 262142 have no parts | all years | ``calendar_cycles`` |
| adds to timestamps as if it were UTC | months and days by the session's clocks | ``zoned_times`` |
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.expressions import times as calendar_cycles
from pennon.predicate.expressions import times as time_texts
from pennon.predicate.expressions import times as zoned_times
from pennon.predicate.expressions.casts import converted
from pennon.predicate.typed import NTZ, ZONED, Typed, binary, call, cast, choice, integer
from pennon.predicate.values.literals import literal_value
from pennon.predicate.values.time_units import MICROS_BY_NAME, MICROS_PER_DAY, MICROS_PER_SECOND
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


def is_unit_of_days(name: str) -> bool:
    """Whether a unit of ``date_trunc`` is whole days."""
    return name in _MONTH_UNITS or MICROS_OF_UNITS.get(name, 0) >= MICROS_PER_DAY


def local(value: Typed, semantics: Semantics) -> Typed:
    """Take a date or timestamp as the session's clocks show it.

    Raises:
        Declined: It is none, or depends on a zone that is not known.
    """
    if value.type in (pa.date32(), NTZ):
        return value
    if value.type != ZONED:
        raise Declined(why=f"{value.type} as a time")
    return converted(value, NTZ, semantics)


def date(value: Typed) -> Typed:
    """Take a date.

    Raises:
        Declined: It is none.
    """
    if value.type != pa.date32():
        raise Declined(why=f"{value.type} as a date")
    return value


def part(name: str, value: Typed, semantics: Semantics) -> Typed:
    """Extract a field as an INT.

    Raises:
        Declined: The field is not one of both engines, or the value has none.
    """
    source = local(value, semantics)
    if name in _WEEK_PARTS:
        return Typed(_day_of_week(name, source), _INT)
    field = _DATE_PARTS.get(name)
    if field is None:
        if name not in _TIME_PARTS or source.type != NTZ:
            raise Declined(why=f"EXTRACT({name}) of {source.type}")
        field = name
    return Typed(_part(field, source), _INT)


def _part(name: str, source: Typed) -> exp.Expr:
    """Write a field of any date or timestamp without a zone."""
    if name == "YEAR":
        return calendar_cycles.year(source)
    if name not in _TIME_PARTS:
        return calendar_cycles.same_in_cycles(source, partial(_field, name))
    return _field(name, cast(calendar_cycles.time_of_day(source), NTZ))


def _field(name: str, tree: exp.Expr) -> exp.Expr:
    """Write a field by DataFusion's calendar."""
    return cast(exp.Extract(this=exp.var(name), expression=tree.copy()), _INT)


def _day_of_week(name: str, source: Typed) -> exp.Expr:
    first, number = _WEEK_PARTS[name]
    days = _part("DOW", source) if first == "SUNDAY" else _since_monday(source)
    return cast(binary(exp.Add, days, integer(number, _INT)), _INT)


def _since_monday(source: Typed) -> exp.Expr:
    shifted = binary(exp.Add, _part("DOW", source), integer(6, _INT))
    return binary(exp.Mod, shifted, integer(7, _INT))


def formatted(value: Typed, pattern: Typed, semantics: Semantics) -> Typed:
    """Write a date or timestamp by a pattern (``date_format``).

    Raises:
        Declined: A pattern that is computed, or has fields that are not written so, or none.
    """
    literal = literal_value(pattern.tree)
    text = None if literal is None or not literal.is_valid else str(literal.as_py())
    return Typed(time_texts.formatted(local(value, semantics), text), pa.string())


def name_of(part: type[exp.Expr], value: Typed) -> Typed:
    """Write the name of a date's day or month (``dayname``, ``monthname``)."""
    write = time_texts.name_of_day if part is exp.Dayname else time_texts.name_of_month
    return Typed(write(date(value)), pa.string())


def truncated_date(unit: str, value: Typed, semantics: Semantics) -> Typed:
    """Give the first day of a date's week, month, quarter or year (``trunc``).

    Raises:
        Declined: Another unit, for which Spark gives NULL.
    """
    calendar_unit = _MONTH_UNITS.get(unit)
    source = local(value, semantics)
    if calendar_unit is None:
        raise Declined(why=f"trunc to {unit}")
    return Typed(_first_day(calendar_unit, calendar_cycles.day_of(source)), pa.date32())


def _first_day(unit: str, day: exp.Expr) -> exp.Expr:
    if unit == "WEEK":
        since = _since_monday(Typed(day, pa.date32()))
        return moved_days(day, binary(exp.Sub, integer(0, _INT), since))
    source = Typed(day, pa.date32())
    return calendar_cycles.moved_in_cycles(source, partial(_first_known_day, unit))


def _first_known_day(unit: str, day: exp.Expr) -> exp.Expr:
    if unit == "YEAR":
        month = integer(1, _INT)
    elif unit == "QUARTER":
        thrice = binary(exp.Mul, _field("QUARTER", day), integer(3, _INT))
        month = cast(binary(exp.Sub, thrice, integer(2, _INT)), _INT)
    else:
        month = _field("MONTH", day)
    return call("make_date", _field("YEAR", day), month, integer(1, _INT))


def truncated(unit: str, value: Typed, semantics: Semantics) -> Typed:
    """Give the start of a timestamp's unit (``date_trunc``), in the type of the timestamp.

    Raises:
        Declined: Another unit, for which Spark gives NULL, or no timestamp.
    """
    if value.type not in (NTZ, ZONED):
        raise Declined(why=f"date_trunc of {value.type}")
    source = local(value, semantics)
    if unit in _MONTH_UNITS:
        day = Typed(_first_day(_MONTH_UNITS[unit], calendar_cycles.day_of(source)), pa.date32())
        if value.type == NTZ:
            return converted(day, NTZ, semantics)
        # Of two midnights Spark takes the one before the time since 4.3, and the first one before.
        is_first = starting_jvm().spark.startswith(_FIRST_MIDNIGHTS)
        return zoned_times.moment(day, semantics, near=None if is_first else value)
    if unit not in MICROS_OF_UNITS:
        raise Declined(why=f"date_trunc to {unit}")
    if value.type == ZONED and MICROS_OF_UNITS[unit] <= MICROS_PER_SECOND:
        # Offsets are whole seconds.
        micros = Typed(cast(cast(value.tree, _LONG), NTZ), NTZ)
        return Typed(cast(cast(_floored(micros.tree, MICROS_OF_UNITS[unit]), _LONG), ZONED), ZONED)
    start = Typed(_floored(source.tree, MICROS_OF_UNITS[unit]), NTZ)
    return start if value.type == NTZ else zoned_times.moment(start, semantics, near=value)


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

    Raises:
        Declined: A number that was not computed of timestamps of one type.
    """
    if value.type in (NTZ, ZONED):
        return Typed(cast(value.tree, _LONG), _LONG)
    if value.type != _LONG or len(kinds) != 1 or not {NTZ, ZONED}.issuperset(kinds):
        raise Declined(why=f"a timestamp made of {value.type}")
    (kind,) = kinds
    return Typed(cast(value.tree, kind), kind)


def next_day(value: Typed, name: Typed) -> Typed:
    """Give the first day after a date that has a name (``next_day``).

    Raises:
        Declined: No date, or a name that is computed or none of a day.
    """
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
    following = calendar_cycles.moved_in_cycles(day, _first_of_next_month)
    return Typed(moved_days(following, integer(-1, _INT)), pa.date32())


def _first_of_next_month(day: exp.Expr) -> exp.Expr:
    return plus_months(1, pa.date32(), _first_known_day("MONTH", day))
