"""The column side of a comparison: a column, or a cast or function of time around one.

NULL rules: every cast and function that is understood here gives NULL for NULL only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.planning.binding.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Compared,
    ComparedDatePart,
    SourceColumn,
    all_of,
    any_of,
)
from pennon.planning.binding.literal_fit import (
    compare_integer,
    fit,
    fit_in,
    is_mixed,
    is_widened,
    one_list,
)
from pennon.planning.binding.source_columns import resolve_column, transform_call
from pennon.planning.binding.time_ranges import TimeTerm, time_term
from pennon.predicate.condition import Operator, reference_path
from pennon.predicate.expressions.functions import monotone_of
from pennon.predicate.values.literals import arrow_type
from pennon.predicate.values.time_units import (
    MICROS_PER_DAY,
    NANOS_PER_MICRO,
    NANOS_PER_UNIT,
    first_day_of_year,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_CALENDAR = {"MONTH": "month", "DAY": "day", "DAYOFMONTH": "day", "HOUR": "hour"}
_EPOCH_UNITS = ("years", "months", "days", "hours")
# What these count is no day and no point in time.
_NUMBERS = ("years", "units")


@dataclass(frozen=True, slots=True)
class _Widened:
    """A number column under casts that keep every value; ``target`` is the last one's type."""

    column: SourceColumn
    target: pa.DataType


@dataclass(frozen=True, slots=True)
class _CalendarTerm:
    """``month``, ``day`` or ``hour`` of a time column."""

    part: str
    column: SourceColumn


_Term = SourceColumn | _Widened | TimeTerm | _CalendarTerm


@dataclass(frozen=True, slots=True)
class ColumnTerms:
    """Compares columns, and casts and functions of them, with literals.

    Args:
        schema: The full schema of the table.
        is_utc: Whether zoned timestamps turn into dates and years in UTC; else no function of
            them is understood.
        slack_days: How far from UTC the session's clock may be where it is taken for it; what is
            compared then holds wherever the comparison does, and elsewhere.
    """

    schema: pa.Schema
    is_utc: bool
    slack_days: int = 0

    def compare(
        self, operator: Operator, node: exp.Expression, literal: pa.Scalar
    ) -> BoundPredicate | None:
        """Compare a term with a literal that is not NULL; None when either is not understood."""
        term = self._term(node)
        match term:
            case SourceColumn():
                return self._compare_column(operator, term, literal)
            case _Widened():
                if pa.types.is_floating(term.target) and not pa.types.is_string(literal.type):
                    literal = pa.scalar(float(literal.as_py()), pa.float64())
                fitted = fit(operator, literal, term.column)
                return None if fitted is None else _inexact(fitted)
            case TimeTerm():
                return self._compare_time(operator, term, literal)
            case _CalendarTerm():
                return _compare_calendar(operator, term, literal)
            case None:
                return None

    def compare_in(
        self, node: exp.Expression, literals: Sequence[pa.Scalar], *, negated: bool
    ) -> BoundPredicate | None:
        """Compare a term with a list of literals."""
        term = self._term(node)
        if isinstance(term, SourceColumn):
            if pa.types.is_decimal(term.type) and is_mixed(literals):
                return None
            fitted = fit_in(literals, term, negated=negated)
            if fitted is not None:
                return _exact_by_type(fitted)
        operator = Operator.NOT_EQUAL if negated else Operator.EQUAL
        parts: list[BoundPredicate] = []
        for literal in literals:
            part = self.compare(operator, node, literal)
            if part is None:
                return None
            parts.append(part)
        if isinstance(term, SourceColumn | _Widened):
            column = term if isinstance(term, SourceColumn) else term.column
            return one_list(parts, column, negated=negated)
        return all_of(parts) if negated else any_of(parts)

    def _compare_column(
        self, operator: Operator, column: SourceColumn, literal: pa.Scalar
    ) -> BoundPredicate | None:
        fitted = fit(operator, literal, column)
        if fitted is not None:
            return _exact_by_type(fitted)
        term = time_term(column)
        return None if term is None else self._compare_time(operator, term, literal)

    def _compare_time(
        self, operator: Operator, term: TimeTerm, literal: pa.Scalar
    ) -> BoundPredicate | None:
        data_type = literal.type
        if term.counts in _NUMBERS:
            value = _number(literal)
            return None if value is None else self._ranges(term, operator, value)
        if pa.types.is_date(data_type):
            days = Fraction(int(literal.cast(pa.date32()).value))
            if term.counts == "micros" and not self._may_convert(term.column.type):
                return None
            value = days if term.counts == "days" else days * MICROS_PER_DAY
            return self._ranges(term, operator, value)
        if not pa.types.is_timestamp(data_type):
            return None
        if not self._may_convert(data_type, term.column.type):
            return None
        micros = Fraction(int(literal.value) * NANOS_PER_UNIT[data_type.unit], NANOS_PER_MICRO)
        in_micros = self._in_micros(term)
        return None if in_micros is None else self._ranges(in_micros, operator, micros)

    def _ranges(self, term: TimeTerm, operator: Operator, value: Fraction) -> BoundPredicate:
        return term.ranges(operator, value, slack_days=self.slack_days)

    def _term(self, node: exp.Expression) -> _Term | None:
        path = reference_path(node)
        if path is not None:
            return resolve_column(path, self.schema)
        match node:
            case exp.Paren():
                return self._term(node.this)
            case exp.Cast():
                return self._cast(node)
            case exp.Anonymous():
                return self._transformed(node)
            case exp.Extract() if node.name.upper() in _CALENDAR:
                return self._calendar(node.name.upper(), node.expression)
        return self._monotone(node)

    def _monotone(self, node: exp.Expression) -> TimeTerm | None:
        """A function of a time that never decreases."""
        monotone = monotone_of(node)
        if monotone is None:
            return None
        operand = node.args[monotone.operand]
        time = self._moment(operand) if monotone.is_of_moments else self._time(operand)
        if time is not None and monotone.takes:
            time = time.to_days() if monotone.takes == "days" else self._in_micros(time)
        step = None if time is None else monotone.inverse(node, time.counts == "days")
        if time is None or step is None:
            return None
        steps = time.steps if step is int else (*time.steps, step)
        return TimeTerm(time.column, monotone.gives or time.counts, steps)

    def _transformed(self, node: exp.Anonymous) -> _Term | None:
        """A transform of time that is called as a function: it is in UTC in every session."""
        call = transform_call(node)
        path = None if call is None else reference_path(call.argument)
        if call is None or path is None:
            return None
        column = resolve_column(path, self.schema)
        time = time_term(column)
        if time is None:
            return None
        if call.name in _EPOCH_UNITS:
            return time.since_epoch(call.name)
        if call.name == "year":
            return TimeTerm(column, "years", (*time.to_days().steps, first_day_of_year))
        part = _CALENDAR.get(call.name.upper())
        return None if part is None else _CalendarTerm(part, column)

    def _moment(self, node: exp.Expression) -> TimeTerm | None:
        """What counts in UTC; a time without a zone would be one of the session's."""
        column = self._term(node)
        if not isinstance(column, SourceColumn) or not pa.types.is_timestamp(column.type):
            return None
        return None if column.type.tz is None else TimeTerm(column, "micros")

    def _cast(self, node: exp.Cast) -> _Term | None:
        inner, target = self._term(node.this), arrow_type(node.to)
        if target is None or inner is None:
            return None
        if isinstance(inner, SourceColumn):
            if inner.type.equals(target) or (
                pa.types.is_string(inner.type) and pa.types.is_string(target)
            ):
                return inner
            if is_widened(inner.type, target):
                return _Widened(inner, target)
        if isinstance(inner, _Widened) and is_widened(inner.target, target):
            return _Widened(inner.column, target)
        if pa.types.is_int64(target):
            moment = self._moment(node.this)
            return None if moment is None else moment.since_epoch("seconds")
        time = self._time(node.this)
        if time is None:
            return None
        if pa.types.is_date(target):
            return time.to_days()
        if pa.types.is_timestamp(target) and self._may_convert(target, time.column.type):
            return self._in_micros(time)
        return None

    def _time(self, node: exp.Expression) -> TimeTerm | None:
        """A term of time, where the session's time zone is known to change nothing."""
        term = self._term(node)
        if isinstance(term, SourceColumn):
            term = time_term(term)
        if not isinstance(term, TimeTerm) or term.counts in _NUMBERS:
            return None
        # The slack is for one turn from a point in time to the clock, and one back.
        if self.slack_days and term.steps and term.counts == "micros":
            return None
        return term if self._may_convert(term.column.type) else None

    def _in_micros(self, term: TimeTerm) -> TimeTerm | None:
        if self.slack_days and term.steps and term.counts != "micros":
            return None
        return term.to_micros()

    def _calendar(self, name: str, node: exp.Expression) -> _CalendarTerm | None:
        part = _CALENDAR.get(name)
        time = self._time(node)
        if part is None or time is None or self.slack_days:
            return None
        is_day = time.counts == "days"
        is_plain = time == time_term(time.column) or time == _as_days(time.column)
        if not is_plain or (part == "hour" and is_day):
            return None
        return _CalendarTerm(part, time.column)

    def _may_convert(self, *kinds: pa.DataType) -> bool:
        return self.is_utc or not any(
            pa.types.is_timestamp(data_type) and data_type.tz is not None for data_type in kinds
        )


def _as_days(column: SourceColumn) -> TimeTerm | None:
    term = time_term(column)
    return None if term is None else term.to_days()


def _number(literal: pa.Scalar) -> Fraction | None:
    data_type = literal.type
    if pa.types.is_integer(data_type) or pa.types.is_decimal(data_type):
        return Fraction(literal.as_py())
    return None


def _exact_by_type(predicate: BoundPredicate) -> BoundPredicate:
    """Mark comparisons of floats as inexact: DataFusion orders NaN and -0.0 in its own way."""
    if isinstance(predicate, Compared) and pa.types.is_floating(predicate.column.type):
        return _inexact(predicate)
    if isinstance(predicate, AllOf | AnyOf):
        return replace(predicate, parts=tuple(_exact_by_type(part) for part in predicate.parts))
    return predicate


def _inexact(predicate: BoundPredicate) -> BoundPredicate:
    match predicate:
        case Compared():
            if predicate.comparison.operator.is_unary:
                return predicate
            return replace(predicate, is_exact=False)
        case AllOf(parts) | AnyOf(parts):
            return replace(predicate, parts=tuple(_inexact(part) for part in parts))
        case _:
            return predicate


def _compare_calendar(
    operator: Operator, term: _CalendarTerm, literal: pa.Scalar
) -> BoundPredicate | None:
    value = _number(literal)
    if value is None:
        return None
    part = SourceColumn(term.column.path, term.column.field_id, pa.int32())
    predicate = compare_integer(operator, value, part)
    if not isinstance(predicate, Compared):
        return predicate
    if predicate.comparison.operator.is_unary:
        return Compared(term.column, predicate.comparison, is_exact=False)
    return ComparedDatePart(term.part, term.column, predicate.comparison)
