"""Reads the days of a condition as ranges of times in the time zone of a session.

``date(t) = DATE '2025-01-02'`` is a whole day of the session, from its first moment to that of the
next day, which partitions are chosen by. The day of a NULL time is NULL, and so is the range.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final, cast

from sqlglot import exp

from pennon.predicate.spark_dialect import SparkSql

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ranges_of_days"]

_DAYS_OF_TIMES: Final = (exp.Cast, exp.TryCast, exp.TsOrDsToDate)
_MIRRORED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}


def ranges_of_days(
    condition: exp.Expression, is_zoned: Callable[[exp.Column], bool]
) -> exp.Expression:
    """Compare times with the moments where days begin, for the days of times with days.

    Args:
        condition: Changed in place where it is not as a whole such a comparison.
        is_zoned: Whether a column has times of a zone; the days of others are those of no zone.

    Returns:
        The condition, whose times are without a zone those of the session.

    Example:
        >>> from pennon.predicate.parse import parse_expression
        >>> print(ranges_of_days(parse_expression("date(t) < '2025-01-31'"), lambda _: True))
        t < CAST('2025-01-31' AS TIMESTAMPTZ)
    """

    def changed(node: exp.Expr) -> exp.Expr:
        ranges = _ranges(node, is_zoned)
        return node if ranges is None else ranges

    return cast("exp.Expression", condition.transform(changed, copy=False))


def _ranges(node: exp.Expr, is_zoned: Callable[[exp.Column], bool]) -> exp.Expr | None:
    """Give what a comparison of days says of times; None where it is none."""
    kind, day_of, stated = type(node), node.this, []
    if kind in _MIRRORED:
        if _day(day_of) is not None:
            kind, day_of, stated = _MIRRORED[kind], node.expression, [node.this]
        else:
            stated = [node.expression]
    elif isinstance(node, exp.Between):
        stated = [node.args["low"], node.args["high"]]
    elif isinstance(node, exp.In):
        stated = node.expressions
    days = [day for part in stated if (day := _day(part)) is not None]
    column = _timed_column(day_of)
    if not days or len(days) < len(stated) or column is None or not is_zoned(column):
        return None
    return _range(kind, column, [(_moment(day), _moment(_next(day))) for day in days])


def _range(
    kind: type[exp.Expr], column: exp.Column, days: Sequence[tuple[exp.Expr, exp.Expr]]
) -> exp.Expr:
    start, end = days[0][0], days[-1][1]
    match kind:
        case exp.LT:
            return exp.LT(this=column.copy(), expression=start)
        case exp.GTE:
            return exp.GTE(this=column.copy(), expression=start)
        case exp.LTE:
            return exp.LT(this=column.copy(), expression=end)
        case exp.GT:
            return exp.GTE(this=column.copy(), expression=end)
        case exp.NEQ:
            return exp.paren(exp.not_(_within(column, start, end)), copy=False)
        case exp.Between:
            return exp.paren(_within(column, start, end), copy=False)
    every = [_within(column, first, last) for first, last in days]
    return exp.paren(reduce(lambda left, right: exp.or_(left, right, copy=False), every))


def _within(column: exp.Column, start: exp.Expr, end: exp.Expr) -> exp.Expr:
    return exp.and_(
        exp.GTE(this=column.copy(), expression=start), exp.LT(this=column.copy(), expression=end)
    )


def _timed_column(part: exp.Expr) -> exp.Column | None:
    """Give the column whose day is compared; None where it is no day of a column."""
    if not isinstance(part, _DAYS_OF_TIMES) or not isinstance(part.this, exp.Column):
        return None
    is_day = isinstance(part, exp.TsOrDsToDate) or part.to.is_type("DATE")
    return part.this if is_day else None


def _day(part: exp.Expr) -> date | None:
    """Read a literal day, bare or of its type; None for all else, also where a time is behind."""
    if isinstance(part, exp.Cast) and part.is_type("DATE"):
        part = part.this
    if not isinstance(part, exp.Literal) or not part.is_string:
        return None
    numbers = part.name.strip().split("-")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):  # noqa: PLR2004
        return None
    try:
        return date(*map(int, numbers))
    except ValueError:
        return None


def _moment(day: date) -> exp.Expr:
    """Write the first moment of a day of the session, as its SQL does."""
    return exp.cast(exp.Literal.string(f"{day:%Y-%m-%d}"), "TIMESTAMP", dialect=SparkSql)


def _next(day: date) -> date:
    return day + timedelta(days=1) if day < date.max else day
