"""Dates beyond the years for which DataFusion has a calendar, computed in cycles of 400 years.

NULL rules: NULL stays NULL. The Gregorian calendar repeats after 146,097 days, whole weeks.

| DataFusion, before the year -262143 or after 262142 | Spark | guard |
|---|---|---|
| parts of dates and timestamps are NULL | all years | the part of that day in another cycle |
| texts, months added, dates of timestamps are errors | all years | the same |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.semantics import Declined
from pennon.predicate.typed import (
    NTZ,
    Typed,
    binary,
    call,
    cast,
    choice,
    has_more_nodes,
    integer,
)
from pennon.predicate.values.time_units import MICROS_PER_DAY

if TYPE_CHECKING:
    from collections.abc import Callable

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
            (binary(exp.GT, _number(source), integer(0, _LONG)), exp.Literal.string("+")),
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
    number = _number(source)
    is_near = exp.And(
        this=binary(exp.GTE, number, integer(-most, _LONG)),
        expression=binary(exp.LTE, number.copy(), integer(most, _LONG)),
    )
    return choice((is_near, near(source.tree.copy())), default=far(day_of(source)))


def _number(source: Typed) -> exp.Expr:
    """Count the days of a date, or the microseconds of a timestamp, since 1970."""
    is_date = pa.types.is_date(source.type)
    return cast(cast(source.tree.copy(), _INT) if is_date else source.tree.copy(), _LONG)


def _cycles(day: exp.Expr) -> exp.Expr:
    return _floor_quotient(_number(Typed(day, pa.date32())), _CYCLE_DAYS)


def _in_first_cycle(day: exp.Expr) -> exp.Expr:
    width = integer(_CYCLE_DAYS, _LONG)
    over = binary(exp.Mod, _number(Typed(day, pa.date32())), width)
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
