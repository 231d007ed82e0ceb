"""Ranges over the levels year, month, day, hour of one time column, compared as one value.

The spec knows the levels as single fields only; a range of the column is a range of the tuple
(year, month, …) in lexicographic order. Any order and any subset of the levels works: those that
follow on each other from ``year`` are the tuple, the others answer for themselves.

NULL rules: the levels are NULL together and only for NULL; range conditions are not true for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.planning.binding.time_ranges import civil_from_days
from pennon.predicate.comparison import Comparison, Operator
from pennon.predicate.condition import condition, is_not_null, is_null
from pennon.predicate.connectives import and_all, or_all
from pennon.predicate.values.time_units import SECONDS_PER_DAY, SECONDS_PER_HOUR, UNITS_PER_SECOND
from pennon.transforms.registry import LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


LevelTuple = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LevelRanges:
    """The levels of one column that follow on each other from the year.

    Args:
        columns: Their manifest columns, the year's first; at least two.
        type: Arrow type of the source column.

    Spec: "Supported Transforms".
    """

    columns: tuple[exp.Column, ...]
    type: pa.DataType

    def inclusive(self, comparison: Comparison) -> exp.Expression | None:
        """Project a comparison onto the levels; None when every partition has to be kept.

        Example:
            >>> from pennon.predicate.dialect import DataFusion
            >>> levels = LevelRanges((exp.column("y"), exp.column("m")), pa.date32())
            >>> later = Comparison(Operator.GREATER, (pa.scalar(0, pa.int32()).cast(pa.date32()),))
            >>> levels.inclusive(later).sql(dialect=DataFusion)
            '`y` > 1970 OR (`y` = 1970 AND `m` >= 1)'
        """
        counts = [_count(literal) for literal in comparison.literals]
        match comparison.operator:
            case Operator.IS_NULL:
                return is_null(self.columns[0])
            case Operator.IS_NOT_NULL | Operator.NOT_EQUAL | Operator.NOT_IN:
                return self._unequal(counts)
            case Operator.EQUAL | Operator.IN:
                return self._one_of(counts)
            case Operator.LESS:
                return self._compared(Operator.LESS, counts[0] - 1, with_equal=True)
            case Operator.LESS_OR_EQUAL:
                return self._compared(Operator.LESS, counts[0], with_equal=True)
            case Operator.GREATER:
                return self._compared(Operator.GREATER, counts[0] + 1, with_equal=True)
            case Operator.GREATER_OR_EQUAL:
                return self._compared(Operator.GREATER, counts[0], with_equal=True)
            case _:
                return None

    def strict(self, comparison: Comparison) -> exp.Expression | None:
        """Give a condition under which all rows satisfy the comparison; None for never known."""
        counts = [_count(literal) for literal in comparison.literals]
        match comparison.operator:
            case Operator.IS_NULL:
                return is_null(self.columns[0])
            case Operator.IS_NOT_NULL:
                return is_not_null(self.columns[0])
            case Operator.EQUAL | Operator.IN if self._is_one_value:
                return self.inclusive(comparison)
            case Operator.NOT_EQUAL | Operator.NOT_IN:
                return self._none_of(counts)
            case Operator.LESS:
                return self._compared(Operator.LESS, counts[0], with_equal=False)
            case Operator.LESS_OR_EQUAL:
                return self._compared(Operator.LESS, counts[0] + 1, with_equal=False)
            case Operator.GREATER:
                return self._compared(Operator.GREATER, counts[0], with_equal=False)
            case Operator.GREATER_OR_EQUAL:
                return self._compared(Operator.GREATER, counts[0] - 1, with_equal=False)
            case _:
                return None

    @property
    def _is_one_value(self) -> bool:
        """Whether a tuple holds one value of the column: all levels of a date down to the day."""
        return bool(pa.types.is_date(self.type)) and len(self.columns) >= LEVELS.index("day") + 1

    def _unequal(self, counts: Sequence[int]) -> exp.Expression:
        if counts and self._is_one_value:
            return self._none_of(counts)
        return is_not_null(self.columns[0])

    def _none_of(self, counts: Sequence[int]) -> exp.Expression:
        if not counts:
            return is_not_null(self.columns[0])
        outside = exp.Not(this=exp.Paren(this=self._one_of(counts)))
        return and_all([is_not_null(self.columns[0]), outside])

    def _one_of(self, counts: Sequence[int]) -> exp.Expression:
        return self._nested(sorted({self._tuple(count) for count in counts}), 0)

    def _nested(self, tuples: Sequence[LevelTuple], depth: int) -> exp.Expression:
        """Write membership with the tuples of one year together, then of one month."""
        column = self.columns[depth]
        if depth == len(self.columns) - 1:
            return _one_of_integers(column, [bounds[depth] for bounds in tuples])
        alike: dict[tuple[LevelTuple, ...], list[int]] = {}
        for value, group in groupby(tuples, key=lambda bounds: bounds[depth]):
            below = tuple(bounds[depth + 1 :] for bounds in group)
            alike.setdefault(below, []).append(value)
        padding = (0,) * (depth + 1)
        return or_all(
            [
                and_all(
                    [
                        _one_of_integers(column, values),
                        self._nested([padding + bounds for bounds in below], depth + 1),
                    ]
                )
                for below, values in alike.items()
            ]
        )

    def _compared(self, operator: Operator, count: int, *, with_equal: bool) -> exp.Expression:
        """Compare the tuple of levels with that of a value, lexicographically."""
        compared: exp.Expression | None = None
        for column, value in reversed(list(zip(self.columns, self._tuple(count), strict=True))):
            if compared is None:
                last = operator.negated.flipped if with_equal else operator
                compared = _compare_integer(last, column, value)
                continue
            equal = _compare_integer(Operator.EQUAL, column, value)
            compared = or_all(
                [_compare_integer(operator, column, value), and_all([equal, compared])]
            )
        return exp.true() if compared is None else compared

    def _tuple(self, count: int) -> LevelTuple:
        return level_values(count, self.type)[: len(self.columns)]


def level_ranges(columns: Mapping[str, exp.Column], source_type: pa.DataType) -> LevelRanges | None:
    """Recognise the levels of one column among its single fields; None for less than two.

    Args:
        columns: Manifest column by the name of the level.
        source_type: Arrow type of the column.
    """
    following: list[exp.Column] = []
    for level in LEVELS:
        if level not in columns:
            break
        following.append(columns[level])
    return LevelRanges(tuple(following), source_type) if len(following) > 1 else None


def level_values(count: int, data_type: pa.DataType) -> tuple[int, int, int, int]:
    """Give year, month, day and hour (UTC) of a date or timestamp by its count of days or units."""
    if pa.types.is_date(data_type):
        return (*civil_from_days(count), 0)
    day, of_day = divmod(count, SECONDS_PER_DAY * UNITS_PER_SECOND[data_type.unit])
    return (*civil_from_days(day), of_day // (SECONDS_PER_HOUR * UNITS_PER_SECOND[data_type.unit]))


def _count(literal: pa.Scalar) -> int:
    data_type = literal.type
    return int(literal.cast(pa.date32()).value if pa.types.is_date(data_type) else literal.value)


def _compare_integer(operator: Operator, column: exp.Column, value: int) -> exp.Expression:
    return condition(Comparison(operator, (pa.scalar(value, pa.int32()),)), column)


def _one_of_integers(column: exp.Column, values: Sequence[int]) -> exp.Expression:
    literals = tuple(pa.scalar(value, pa.int32()) for value in values)
    return condition(Comparison(Operator.IN, literals), column)
