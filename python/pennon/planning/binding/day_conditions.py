"""Conditions on the day of a time column as ranges of the column, found by trying the days.

``date_format(ts, 'yyyy-MM') = '2024-03'`` says nothing of a partition that has a year and a month.
What it says of days does: it is computed for each day of one cycle of the calendar, 1800 to 2199,
and the days for which it is true are ranges of the column, or its months. Beyond the cycle it may
be true, unless it asks only for what all cycles have in common. ``hour(ts)`` is nothing of the day,
and says nothing here. The day is the one on the session's clock.

NULL rules: NULL is tried beside the days, for conditions that are true for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    ComparedDatePart,
    all_of,
    any_of,
    is_null,
)
from pennon.planning.binding.source_columns import resolve_column
from pennon.planning.binding.time_ranges import between_days
from pennon.predicate.column_references import reference_path
from pennon.predicate.comparison import Comparison, Operator
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions import Declined, typed_expression
from pennon.predicate.values.arrow_kinds import is_moment
from pennon.predicate.values.intervals import whole_interval
from pennon.predicate.values.literals import arrow_type, literal_value
from pennon.predicate.values.time_units import MICROS_PER_DAY
from pennon.transforms.registry import expression, from_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pennon.planning.binding.bound_predicate import SourceColumn
    from pennon.predicate.expressions import Semantics

__all__ = ["implied_by_days"]

_DAY: Final = "col0"
# Functions of dates that no year changes.
_CYCLIC: Final = (
    *(exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth),
    *(exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear),
)
_OF_DATES: Final = (
    *(exp.Year, exp.LastDay, exp.AddMonths, exp.TsOrDsAdd, exp.DateTrunc, exp.DateDiff),
    *_CYCLIC,
)
_CYCLIC_PARTS: Final = frozenset(
    {"QUARTER", "MONTH", "DAY", "DAYOFMONTH", "DAYOFWEEK", "DOW", "DAYOFYEAR", "DOY", "WEEK"}
)
_DATE_LETTERS: Final = frozenset("yMd")
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
        for child in list(node.iter_expressions()):
            day = self.day(child) if _takes_day(node) or self.is_date(child) else None
            if day is not None:
                self.is_cyclic &= _is_cyclic(node)
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


def _takes_day(node: exp.Expr) -> bool:
    """Whether a function takes the day alone of the times that it is given."""
    if isinstance(node, exp.Extract):
        return node.name.upper() == "YEAR" or node.name.upper() in _CYCLIC_PARTS
    if _is_format(node):
        return _letters(node) <= _DATE_LETTERS
    return isinstance(node, _OF_DATES)


def _is_cyclic(node: exp.Expr) -> bool:
    if isinstance(node, exp.Extract):
        return node.name.upper() in _CYCLIC_PARTS
    if _is_format(node):
        return "y" not in _letters(node)
    return isinstance(node, _CYCLIC)


def _is_format(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "date_format"


def _letters(node: exp.Expr) -> set[str]:
    """Give the letters of a format's pattern; those of no date where it is computed."""
    pattern = literal_value(node.expressions[-1])
    text = "?" if pattern is None or not pattern.is_valid else str(pattern.as_py())
    return set(text) - set("-/.:, _")
