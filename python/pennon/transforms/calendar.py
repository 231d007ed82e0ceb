"""year, month, day, hour: calendar fields of dates and timestamps, always in UTC.

NULL rules: NULL in, NULL out. A zoned timestamp counts by its instant, not by its zone, though
DataFusion's ``date_part`` would give local time; the derived expression casts to UTC first.
Only ``year`` is monotone: a lone ``month`` is the month of any year, so ranges do not prune it.

Spec: "Supported Transforms".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from pennon.errors import TransformOnWrongType
from pennon.predicate.condition import Operator
from pennon.predicate.values.time_units import MICROS_PER_DAY, MICROS_PER_HOUR
from pennon.transforms.evaluation import (
    day_numbers,
    from_scalars,
    micros_utc,
    plain_array,
    plain_type,
    with_nulls_of,
)
from pennon.transforms.transform import Transform, one_of_values, project_monotone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from sqlglot import exp

    from pennon.predicate.condition import Comparison

_FIRST_YEAR = 1970
_MONTHS = 12


def months_since_epoch(array: pa.Array) -> NDArray[np.int64]:
    """Give months since 1970-01 (UTC), rounded down."""
    days = day_numbers(array).astype("datetime64[D]")
    return days.astype("datetime64[M]").astype(np.int64)


def column_in_utc(source_types: Sequence[pa.DataType]) -> str:
    """Spell the one column so that DataFusion takes its parts in UTC."""
    data_type = plain_type(source_types[0])
    if pa.types.is_timestamp(data_type) and data_type.tz not in (None, "UTC"):
        return "arrow_cast(col0, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    return "col0"


class CalendarField(Transform):
    """What the four calendar fields share."""

    __slots__ = ()

    is_level = True
    has_monotone_values = True

    def expression(self, source_types: Sequence[pa.DataType]) -> str:
        """Give the derived DataFusion expression, in UTC."""
        return f"date_part('{self.type}', {column_in_utc(source_types)})"

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give int32."""
        (source_type,) = source_types
        data_type = plain_type(source_type)
        if not (
            pa.types.is_date(data_type)
            or pa.types.is_timestamp(data_type)
            or pa.types.is_null(data_type)
        ):
            raise TransformOnWrongType(
                transform=self.type, type=data_type, allowed="dates and timestamps"
            )
        return pa.int32()

    def apply(self, sources: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Compute the field of every row."""
        (source,) = sources
        data_type = self.recorded_type([source.type])
        array = plain_array(source)
        if pa.types.is_null(array.type):
            return array.cast(data_type)
        return with_nulls_of(self.field(array), array, data_type)

    def field(self, array: pa.Array) -> NDArray[np.int64]:
        """Compute the field of dates or timestamps, anything for NULL."""
        raise NotImplementedError

    def project_values(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Project equality; a range meets every month, day and hour."""
        if comparison.operator in (Operator.EQUAL, Operator.IN):
            literals = from_scalars(comparison.literals, plain_type(source_type))
            return one_of_values(column, self.apply([literals]))
        return None

    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give Pennon's function of the same name."""
        del source_types
        return self.type

    def of_midnights(self) -> Transform | None:
        """Give the field: that of a date is that of its midnight."""
        return self


@dataclass(frozen=True, slots=True)
class Year(CalendarField):
    """Partition by the calendar year.

    Example:
        >>> import datetime
        >>> Year().apply([pa.array([datetime.date(2025, 12, 10)])])[0]
        <pyarrow.Int32Scalar: 2025>

    Spec: "Supported Transforms".
    """

    type: ClassVar[str] = "year"

    def field(self, array: pa.Array) -> NDArray[np.int64]:
        """Compute the year."""
        return months_since_epoch(array) // _MONTHS + _FIRST_YEAR

    def project_values(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Project equality and ranges: years never decrease."""
        return project_monotone(self, comparison, column, source_type)


@dataclass(frozen=True, slots=True)
class Month(CalendarField):
    """Partition by the month of the year, 1 to 12.

    Spec: "Supported Transforms".
    """

    type: ClassVar[str] = "month"

    def field(self, array: pa.Array) -> NDArray[np.int64]:
        """Compute the month."""
        return months_since_epoch(array) % _MONTHS + 1

    def monotone_values(self, source: pa.Array) -> pa.Array:
        """Count the months since 1970."""
        return pa.array(months_since_epoch(source))


@dataclass(frozen=True, slots=True)
class Day(CalendarField):
    """Partition by the day of the month, 1 to 31.

    Spec: "Supported Transforms".
    """

    type: ClassVar[str] = "day"

    def field(self, array: pa.Array) -> NDArray[np.int64]:
        """Compute the day."""
        first = months_since_epoch(array).astype("datetime64[M]").astype("datetime64[D]")
        return day_numbers(array) - first.astype(np.int64) + 1

    def monotone_values(self, source: pa.Array) -> pa.Array:
        """Count the days since 1970."""
        return pa.array(day_numbers(source))


@dataclass(frozen=True, slots=True)
class Hour(CalendarField):
    """Partition by the hour of the day, 0 to 23; a DATE has none.

    Spec: "Supported Transforms".
    """

    type: ClassVar[str] = "hour"

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give int32."""
        (source_type,) = source_types
        data_type = plain_type(source_type)
        if not (pa.types.is_timestamp(data_type) or pa.types.is_null(data_type)):
            raise TransformOnWrongType(transform=self.type, type=data_type, allowed="timestamps")
        return pa.int32()

    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give the function's name for timestamps; a date has no hour in Spark either."""
        data_type = plain_type(source_types[0])
        return self.type if pa.types.is_timestamp(data_type) else None

    def recorded_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give int32 for dates and times too: other writers record the hour 0 of a date."""
        data_type = plain_type(source_types[0])
        if pa.types.is_date(data_type) or pa.types.is_time(data_type):
            return pa.int32()
        return self.result_type(source_types)

    def field(self, array: pa.Array) -> NDArray[np.int64]:
        """Compute the hour."""
        return micros_utc(array) % MICROS_PER_DAY // MICROS_PER_HOUR

    def monotone_values(self, source: pa.Array) -> pa.Array:
        """Count the hours since 1970."""
        return pa.array(micros_utc(source) // MICROS_PER_HOUR)

    def of_midnights(self) -> Transform | None:
        """Give None: a date has no hour."""
        return None
