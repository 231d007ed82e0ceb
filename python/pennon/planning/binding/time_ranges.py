"""Conditions on functions of a time column as ranges of the column itself, in UTC.

``year(c) = 2013`` is ``c >= 2013-01-01 AND c < 2014-01-01``; ``CAST(ts AS DATE) <= d`` is
``ts < d + 1``. All the functions here never decrease, so that "f(x) >= threshold" is
"x >= another threshold", and every condition is a set of ranges between thresholds.

NULL rules: every function gives NULL for NULL only; the ranges are never true for NULL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from pennon.errors import PartitionExpressionFailed
from pennon.planning.binding.bound_predicate import (
    FALSE,
    TRUE,
    BoundPredicate,
    Compared,
    ComparedDatePart,
    SourceColumn,
    all_of,
    any_of,
    is_not_null,
    is_null,
)
from pennon.planning.binding.source_columns import resolve_column
from pennon.predicate.condition import Comparison, Operator, reference_path
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions import Declined, typed_expression
from pennon.predicate.expressions.functions import Unit, asked_of_times
from pennon.predicate.values.literals import arrow_type, whole_interval
from pennon.predicate.values.time_units import (
    FIRST_OF_UNIT,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    MILLIS_PER_DAY,
    UNITS_OF_DAYS,
    UNITS_PER_SECOND,
    first_day_from,
    is_moment,
    micros_of_day,
)
from pennon.transforms.registry import expression, from_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pennon.predicate.expressions import Semantics

__all__ = ["implied_by_days"]

Interval = tuple[int | None, int | None]
"""From the first (included) to the second (excluded); None is no bound."""


@dataclass(frozen=True, slots=True)
class TimeTerm:
    """A column under functions that never decrease, counted in days, microseconds or years.

    Args:
        column: The time column.
        counts: ``days``, ``micros``, ``years`` or ``units`` (since 1970): what the term's integer
            value counts.
        steps: For each function, outermost last: threshold on its value to threshold on its input.
    """

    column: SourceColumn
    counts: str
    steps: tuple[Callable[[int], int], ...] = ()

    def to_days(self) -> TimeTerm:
        """CAST(… AS DATE)."""
        if self.counts == "days":
            return self
        return TimeTerm(self.column, "days", (*self.steps, micros_of_day))

    def to_micros(self) -> TimeTerm:
        """CAST(… AS TIMESTAMP)."""
        if self.counts == "micros":
            return self
        return TimeTerm(self.column, "micros", (*self.steps, first_day_from))

    def since_epoch(self, unit: str) -> TimeTerm:
        """Whole units since 1970: ``years(…)`` to ``hours(…)``, or seconds."""
        counted = self.to_days() if unit in UNITS_OF_DAYS else self.to_micros()
        return TimeTerm(self.column, "units", (*counted.steps, FIRST_OF_UNIT[unit]))

    def ranges(self, operator: Operator, value: Fraction, *, slack_days: int = 0) -> BoundPredicate:
        """Compare the term with a number of what it counts.

        Args:
            operator: How.
            value: With what.
            slack_days: How far the session's clock may be from UTC. With it the ranges have every
                value for which the comparison is true, and others around them.

        Example:
            >>> column = SourceColumn(("d",), 0, pa.date32())
            >>> term = TimeTerm(column, "days").since_epoch("years")
            >>> [str(part.comparison) for part in term.ranges(Operator.EQUAL, Fraction(0)).parts]
            ['>= 1970-01-01', '< 1971-01-01']
        """
        mapped = [
            (self._threshold(low, -slack_days), self._threshold(high, slack_days))
            for low, high in _intervals(operator, value)
        ]
        match mapped:
            case [(None, int(end)), (int(start), None)] if end >= start:
                mapped = [(None, None)]
        return any_of([_between(self.column, low, high) for low, high in mapped])

    def _threshold(self, bound: int | None, slack_days: int) -> int | None:
        if bound is None:
            return None
        # A point in time is some hours off on the clock, and the clock's time as a point in time.
        bound += slack_days * MICROS_PER_DAY if self.counts == "micros" else 0
        for step in reversed(self.steps):
            bound = step(bound)
        if self.counts_days_of_column:
            return bound + slack_days
        return _in_unit(bound + slack_days * MICROS_PER_DAY, self.column.type)

    @property
    def counts_days_of_column(self) -> bool:
        """Whether the column itself is a date."""
        return bool(pa.types.is_date(self.column.type))


def time_term(column: SourceColumn) -> TimeTerm | None:
    """Start a term from a plain column; None for a column that is no date and no timestamp."""
    if pa.types.is_date(column.type):
        return TimeTerm(column, "days")
    return TimeTerm(column, "micros") if pa.types.is_timestamp(column.type) else None


def _intervals(operator: Operator, value: Fraction) -> tuple[Interval, ...]:
    first_from, first_after = math.ceil(value), math.floor(value) + 1
    match operator:
        case Operator.EQUAL:
            return ((first_from, first_after),) if first_from < first_after else ()
        case Operator.NOT_EQUAL:
            if first_from == first_after:
                return ((None, None),)
            return (None, first_from), (first_after, None)
        case Operator.LESS:
            return ((None, first_from),)
        case Operator.LESS_OR_EQUAL:
            return ((None, first_after),)
        case Operator.GREATER:
            return ((first_after, None),)
        case _:
            return ((first_from, None),)


def _between(column: SourceColumn, low: int | None, high: int | None) -> BoundPredicate:
    """The range, inexact: Spark's functions of times follow its session's time zone."""
    if low is not None and high is not None and low >= high:
        return FALSE
    first, last = _limits(column.type)
    if (low is not None and low > last) or (high is not None and high <= first):
        return FALSE
    parts = []
    if low is not None and high == low + 1:
        return Compared(column, _comparison(Operator.EQUAL, low, column), is_exact=False)
    if low is not None and low > first:
        parts.append(_comparison(Operator.GREATER_OR_EQUAL, low, column))
    if high is not None and high <= last:
        parts.append(_comparison(Operator.LESS, high, column))
    if not parts:
        return is_not_null(column, exact=False)
    return all_of([Compared(column, part, is_exact=False) for part in parts])


def between_days(column: SourceColumn, low: int | None, high: int | None) -> BoundPredicate:
    """Bound a time column by days since 1970 in UTC, the first included; None is no bound.

    Example:
        >>> parts = between_days(SourceColumn(("d",), 0, pa.date32()), 0, 31).parts
        >>> [str(part.comparison) for part in parts]
        ['>= 1970-01-01', '< 1970-02-01']
    """
    if pa.types.is_date(column.type):
        return _between(column, low, high)
    first, last = (
        None if day is None else _in_unit(day * MICROS_PER_DAY, column.type) for day in (low, high)
    )
    return _between(column, first, last)


def _comparison(operator: Operator, count: int, column: SourceColumn) -> Comparison:
    return Comparison(operator, (time_scalar(count, column.type),))


def time_scalar(count: int, data_type: pa.DataType) -> pa.Scalar:
    """Make a date from days, or a timestamp from a count of its unit."""
    if pa.types.is_date64(data_type):
        return pa.scalar(count * MILLIS_PER_DAY, pa.int64()).cast(data_type)
    return pa.scalar(count, pa.int32() if pa.types.is_date(data_type) else pa.int64()).cast(
        data_type
    )


def _limits(data_type: pa.DataType) -> tuple[int, int]:
    bits = 31 if pa.types.is_date(data_type) else 63
    return -(1 << bits), (1 << bits) - 1


def _in_unit(micros: int, data_type: pa.DataType) -> int:
    return -(-micros * UNITS_PER_SECOND[data_type.unit] // MICROS_PER_SECOND)


# Conditions on the day of a time column as ranges of the column, found by trying the days.
#
# ``date_format(ts, 'yyyy-MM') = '2024-03'`` says nothing of a partition that has a year and a
# month. What it says of days does: it is computed for each day of one cycle of the calendar, 1800
# to 2199, and the days for which it is true are ranges of the column, or its months. Beyond the
# cycle it may be true, unless it asks only for what all cycles have in common. ``hour(ts)`` is
# nothing of the day, and says nothing here. The day is the one on the session's clock.
#
# NULL rules: NULL is tried beside the days, for conditions that are true for it.

_DAY: Final = "col0"
_FIRST: Final = -62_091  # 1800-01-01
_END: Final = 84_006  # 2200-01-01, a whole cycle later
_MOST_RANGES: Final = 32
_PARTS: Final = tuple(from_json({"type": name}) for name in ("month", "day"))
_EVERY: Final = (range(1, 13), range(1, 32))


@dataclass(frozen=True, slots=True)
class _TrueDays:
    """Where a condition is true: ranges of days, all of their months and days of a month; NULL."""

    ranges: tuple[tuple[int | None, int | None], ...]
    parts: tuple[tuple[int, ...], ...]
    of_null: bool


def implied_by_days(
    node: exp.Expression, schema: pa.Schema, semantics: Semantics
) -> BoundPredicate:
    """Find what a time column satisfies wherever a condition on its day is true.

    Args:
        node: Any condition.
        schema: The full schema of the table.
        semantics: The session's.

    Returns:
        The predicate; TRUE where nothing is known, which includes conditions on other columns, on
        several, or on the time of the day.

    Raises:
        UnknownColumn: The table has no column of that name.

    Example:
        >>> from pennon.predicate.expressions import Semantics
        >>> from pennon.predicate.parse import parse_predicate
        >>> schema = pa.schema([("d", pa.date32())])
        >>> march = parse_predicate("date_format(d, 'yyyy-MM') = '2024-03'")
        >>> before, within, after = implied_by_days(march, schema, Semantics()).parts
        >>> [str(part.comparison) for part in within.parts]
        ['>= 2024-03-01', '< 2024-04-01']

    Spec: "Partition Pruning".
    """
    condition = _condition_on_day(node, schema, semantics)
    if condition is None:
        return TRUE
    try:
        value = typed_expression(condition.tree, {_DAY: pa.date32()}, semantics, pa.bool_())
    except Declined:
        return TRUE
    true_days = _true_days(
        value.tree.sql(dialect=DataFusion), condition.slack_days, is_cyclic=condition.is_cyclic
    )
    return TRUE if true_days is None else _predicate(condition.column, true_days)


def _predicate(column: SourceColumn, true_days: _TrueDays) -> BoundPredicate:
    ranges = any_of([between_days(column, low, high) for low, high in true_days.ranges])
    parts = [
        ComparedDatePart(part.type, column, Comparison(Operator.IN, _integers(values)))
        for part, every, values in zip(_PARTS, _EVERY, true_days.parts, strict=True)
        if len(values) < len(every)
    ]
    return any_of([is_null(column) if true_days.of_null else FALSE, all_of([ranges, *parts])])


def _integers(values: tuple[int, ...]) -> tuple[pa.Scalar, ...]:
    return tuple(pa.scalar(value, pa.int32()) for value in values)


@lru_cache(maxsize=1024)
def _true_days(condition: str, slack_days: int, *, is_cyclic: bool) -> _TrueDays | None:
    """Try all days; None for a condition that is an error for one of them."""
    days = pa.array(np.arange(_FIRST, _END, dtype=np.int32)).cast(pa.date32())
    rows = pa.concat_arrays([days, pa.array([None], pa.date32())])
    try:
        values = expression(condition, pa.bool_()).apply([rows])
    except PartitionExpressionFailed:
        return None
    is_true = values.fill_null(False).to_numpy(zero_copy_only=False)
    of_null, of_days = bool(is_true[-1]), _widened(is_true[:-1], slack_days, is_cyclic=is_cyclic)
    if not is_cyclic:
        # Beyond the cycle there are all months and days.
        return _TrueDays(_ranges(of_days), tuple(map(tuple, _EVERY)), of_null)
    near = days.filter(pa.array(of_days))
    parts = tuple(tuple(sorted(part.apply([near]).unique().to_pylist())) for part in _PARTS)
    return _TrueDays(((None, None),) if len(near) else (), parts, of_null)


def _widened(is_true: NDArray[np.bool_], slack_days: int, *, is_cyclic: bool) -> NDArray[np.bool_]:
    """Add the days around; those beyond the cycle are its own again, or true."""
    near = is_true.copy()
    for distance in range(1, slack_days + 1):
        near |= np.roll(is_true, distance) | np.roll(is_true, -distance)
    if slack_days and not is_cyclic:
        near[:slack_days] = near[-slack_days:] = True
    return near


def _ranges(is_true: NDArray[np.bool_]) -> tuple[tuple[int | None, int | None], ...]:
    """List where days are true, and all beyond; those near each other as one where there are many.

    Of gaps alike it leaves those around the year 2000, the middle of the cycle.
    """
    padded = np.concatenate([[True], is_true, [True]])
    changes = np.flatnonzero(padded[1:] != padded[:-1])
    gaps = changes.reshape(-1, 2)  # from the first day that is not true to the next that is
    from_middle = np.abs(gaps[:, 0] - len(is_true) // 2)
    widest = np.sort(np.lexsort((from_middle, gaps[:, 0] - gaps[:, 1]))[: _MOST_RANGES - 1])
    bounds = [None, *(int(day) + _FIRST for day in gaps[widest].reshape(-1)), None]
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class _ConditionOnDay:
    """A condition on the day of one column.

    Args:
        column: Which column.
        tree: The condition over ``_DAY``, a date.
        slack_days: How far the column's day in UTC may be from the one that is meant.
        is_cyclic: Whether the same holds of a day 400 years later.
    """

    column: SourceColumn
    tree: exp.Expression
    slack_days: int
    is_cyclic: bool


def _condition_on_day(
    node: exp.Expression, schema: pa.Schema, semantics: Semantics
) -> _ConditionOnDay | None:
    """Write a condition over the day of its only column; None where it asks for anything else."""
    days = _Days(schema)
    root = exp.Paren(this=node.copy())
    if not days.replaced_below(root) or len(days.columns) != 1:
        return None
    is_shifted = days.is_zoned and not semantics.is_utc
    # Months are not as long as each other: what is a day off may be some days off behind them.
    if is_shifted and "MONTH" in days.moved_by:
        return None
    (column,) = days.columns
    tree: exp.Expression = root.this
    tree.pop()
    # A clock is less than a day off from UTC, and skips less than one where it would be moved to.
    slack_days = 1 + bool(days.moved_by) if is_shifted else 0
    return _ConditionOnDay(column, tree, slack_days, days.is_cyclic)


@dataclass(slots=True)
class _Days:
    """Replaces times by their days, and remembers what it has met."""

    schema: pa.Schema
    columns: set[SourceColumn] = field(default_factory=set)
    moved_by: set[str] = field(default_factory=set)
    is_zoned: bool = False
    is_cyclic: bool = True

    def replaced_below(self, node: exp.Expr) -> bool:
        """Replace every time below a node; False where one stands for more than its day."""
        asked = asked_of_times(node)
        takes_day = asked is not None and asked.unit is Unit.DAY
        for child in list(node.iter_expressions()):
            day = self.day(child) if takes_day or self.is_date(child) else None
            if day is not None:
                self.is_cyclic &= asked is not None and asked.is_cyclic
                child.replace(day)
            elif reference_path(child) is not None or not self.replaced_below(child):
                return False
        return True

    def is_date(self, node: exp.Expr) -> bool:
        """Whether a node has no time of the day."""
        if isinstance(node, exp.TsOrDsToDate):
            return True
        if isinstance(node, exp.Cast):
            return bool(arrow_type(node.to) == pa.date32())
        path = reference_path(node)
        return path is not None and pa.types.is_date(resolve_column(path, self.schema).type)

    def day(self, node: exp.Expr) -> exp.Expr | None:
        """Write the day of a time over the day of its column; None where it is another's."""
        match node:
            case exp.Paren() | exp.TsOrDsToDate():
                return self.day(node.this)
            case exp.Cast():
                target = arrow_type(node.to)
                if target is None or not (
                    pa.types.is_date(target) or pa.types.is_timestamp(target)
                ):
                    return None
                self.is_zoned |= pa.types.is_timestamp(target) and target.tz is not None
                return self.day(node.this)
            case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
                return self._moved(node, node.expression)
        path = reference_path(node)
        if path is None:
            return None
        column = resolve_column(path, self.schema)
        if not is_moment(column.type):
            return None
        self.is_zoned |= pa.types.is_timestamp(column.type) and column.type.tz is not None
        self.columns.add(column)
        return exp.column(_DAY, quoted=True)

    def _moved(self, node: exp.Add | exp.Sub, interval: exp.Interval) -> exp.Expr | None:
        whole, day = whole_interval(interval), self.day(node.this)
        if whole is None or day is None:
            return None
        unit, count = whole
        if unit == "MICROSECOND":
            unit, count, rest = "DAY", *divmod(count, MICROS_PER_DAY)
            if rest:
                return None
        self.moved_by.add(unit)
        moved = exp.Interval(this=exp.Literal.string(str(count)), unit=exp.var(unit))
        return exp.paren(type(node)(this=day, expression=moved))
