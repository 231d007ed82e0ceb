"""years, months, days, hours: the levels of one column seen as one composed transform.

The format keeps a day as three fields, year, month and day; together they are one number, the
days since 1970-01-01 (UTC), which is monotone and reduces to months and years. NULL rules: NULL
in, NULL out; a composed value is NULL where one of its levels is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from pennon.errors import HoursOutOfRange, InternalError, TransformOnWrongType
from pennon.predicate.values.time_units import MICROS_PER_HOUR
from pennon.transforms.calendar import (
    Day,
    Hour,
    Month,
    Year,
    column_in_utc,
    months_since_epoch,
)
from pennon.transforms.evaluation import (
    day_numbers,
    micros_utc,
    plain_array,
    plain_type,
    with_nulls_of,
)
from pennon.transforms.transform import Transform, project_monotone

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray
    from sqlglot import exp

    from pennon.predicate.condition import Comparison

_FIRST_YEAR = 1970
_LEVELS: tuple[Year | Month | Day | Hour, ...] = (Year(), Month(), Day(), Hour())


class EpochUnit(StrEnum):
    """What is counted since the epoch, coarse to fine.

    Example:
        >>> EpochUnit.MONTHS.level_types
        ('year', 'month')
    """

    YEARS = "years"
    MONTHS = "months"
    DAYS = "days"
    HOURS = "hours"

    @property
    def fineness(self) -> int:
        """0 for years to 3 for hours."""
        return list(EpochUnit).index(self)

    @property
    def levels(self) -> tuple[Year | Month | Day | Hour, ...]:
        """The calendar fields that make up the unit, coarse to fine."""
        return _LEVELS[: self.fineness + 1]

    @property
    def level_types(self) -> tuple[str, ...]:
        """The specification's names of the levels."""
        return tuple(level.type for level in self.levels)

    def coarser(self, other: EpochUnit) -> EpochUnit:
        """Give the coarser of the two units."""
        return min(self, other, key=lambda unit: unit.fineness)


def unit_of_levels(transform_types: Collection[str]) -> EpochUnit | None:
    """Recognise the composed transform in the transform types of one column's fields.

    Returns:
        The finest unit all of whose levels are there; None when even the year is missing.

    Example:
        >>> unit_of_levels({"year", "month", "bucket"})
        <EpochUnit.MONTHS: 'months'>
    """
    complete = [unit for unit in EpochUnit if set(unit.level_types) <= set(transform_types)]
    return complete[-1] if complete else None


def epoch_value(unit: EpochUnit, level_arrays: Mapping[str, pa.Array]) -> pa.Array:
    """Compose the values of levels into one int32 per row.

    Args:
        unit: What to count.
        level_arrays: Values by level type (``year``, …); those beyond the unit are ignored.

    Returns:
        Units since 1970 (1970-01-01T00 UTC for hours), NULL where a level is NULL.

    Raises:
        HoursOutOfRange: These are more hours than an int32 counts.

    Example:
        >>> epoch_value(EpochUnit.YEARS, {"year": pa.array([2025])}).to_pylist()
        [55]
    """
    arrays = [plain_array(level_arrays[name]) for name in unit.level_types]
    fields = [a.fill_null(1).cast(pa.int64()).to_numpy(zero_copy_only=False) for a in arrays]
    counts = fields[0] - _FIRST_YEAR
    if len(fields) > 1:
        counts = counts * 12 + fields[1] - 1
    if len(fields) > 2:  # noqa: PLR2004
        counts = _first_days(counts) + fields[2] - 1
    if len(fields) > 3:  # noqa: PLR2004
        counts = counts * 24 + fields[3]
    is_null = np.zeros(len(counts), dtype=np.bool_)
    for array in arrays:
        is_null |= array.is_null().to_numpy(zero_copy_only=False)
    if unit is EpochUnit.HOURS:
        _check_hours(counts[~is_null])
    return pa.array(counts, type=pa.int32(), mask=is_null)


def _check_hours(counts: NDArray[np.int64]) -> None:
    beyond = counts[counts != counts.astype(np.int32)]
    if len(beyond):
        moment = np.datetime64(int(beyond[0]), "h")
        raise HoursOutOfRange(value=f"{moment}Z", hours=int(beyond[0]))


def _first_days(months: NDArray[np.int64]) -> NDArray[np.int64]:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Epoch(Transform):
    """A composed transform of time; written as levels, never as a field of its own.

    Example:
        >>> Epoch(EpochUnit.DAYS).sql(["ts"])
        'days(ts)'
    """

    type: ClassVar[str] = "epoch"
    has_monotone_values: ClassVar[bool] = True
    unit: EpochUnit

    @property
    def sql_name(self) -> str:
        """``years``, ``months``, ``days`` or ``hours``."""
        return self.unit.value

    @property
    def levels(self) -> tuple[Transform, ...]:
        """The calendar fields."""
        return self.unit.levels

    @classmethod
    def sql_names(cls) -> tuple[str, ...]:
        """List the units."""
        return tuple(unit.value for unit in EpochUnit)

    @classmethod
    def from_sql(cls, name: str, literals: Sequence[object], num_columns: int) -> Transform:
        """Take one column."""
        if literals or num_columns != 1:
            count = len(literals) + num_columns
            raise cls.invalid_call(name, f"{count} arguments", "one column")
        return cls(EpochUnit(name))

    @classmethod
    def from_message(
        cls, written: Mapping[str, object], read_type: Callable[[object], pa.DataType]
    ) -> Epoch:
        """Read the unit."""
        del read_type
        return cls(EpochUnit(str(written["unit"])))

    def to_message(self, write_type: Callable[[pa.DataType], object]) -> dict[str, object]:
        """Write the unit."""
        del write_type
        return {"type": self.type, "unit": self.unit}

    def to_json(self) -> dict[str, object]:
        """Refuse: the specification has only the levels."""
        raise InternalError(what=f"{self.unit} was to be written as one partition field")

    def expression(self, source_types: Sequence[pa.DataType]) -> str:
        """Give the DataFusion expression over col0 that gives the same values."""
        year, month = (level.expression(source_types) for level in _LEVELS[:2])
        days = f"CAST(CAST({column_in_utc(source_types)} AS DATE) AS INT)"
        match self.unit:
            case EpochUnit.YEARS:
                return f"{year} - 1970"
            case EpochUnit.MONTHS:
                return f"({year} - 1970) * 12 + {month} - 1"
            case EpochUnit.DAYS:
                return days
            case EpochUnit.HOURS:
                return f"{days} * 24 + {Hour().expression(source_types)}"

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give int32."""
        try:
            return self.unit.levels[-1].result_type(source_types)
        except TransformOnWrongType as error:
            raise TransformOnWrongType(**{**error.parameters, "transform": self.unit}) from error

    def apply(self, sources: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Count the units since the epoch."""
        (source,) = sources
        data_type = self.result_type([source.type])
        array = plain_array(source)
        if pa.types.is_null(array.type):
            return array.cast(data_type)
        return with_nulls_of(self._counts(array), array, data_type)

    def _counts(self, array: pa.Array) -> NDArray[np.int64]:
        match self.unit:
            case EpochUnit.YEARS:
                return months_since_epoch(array) // 12
            case EpochUnit.MONTHS:
                return months_since_epoch(array)
            case EpochUnit.DAYS:
                return day_numbers(array)
            case EpochUnit.HOURS:
                hours: NDArray[np.int64] = micros_utc(array) // MICROS_PER_HOUR
                _check_hours(hours)
                return hours

    def project_values(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Project equality and ranges onto a column of composed values."""
        return project_monotone(self, comparison, column, plain_type(source_type))

    def from_fields(
        self, values: Sequence[pa.Array], source_types: Sequence[pa.DataType]
    ) -> pa.Array:
        """Compose the values of the levels."""
        del source_types
        return epoch_value(self.unit, dict(zip(self.unit.level_types, values, strict=True)))

    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give Spark's name of the time transform."""
        del source_types
        return str(self.unit)

    def reduction_to(self, other: Transform, source_type: pa.DataType) -> bool:
        """Whether the other is a coarser unit, or one of this unit's levels."""
        del source_type
        if isinstance(other, Epoch):
            return other.unit.fineness <= self.unit.fineness
        return other in self.unit.levels

    def reduce(self, values: pa.Array, other: Transform, source_type: pa.DataType) -> pa.Array:
        """Count in the coarser unit, or take one level out."""
        del source_type
        counts = values.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
        if isinstance(other, Epoch):
            return with_nulls_of(_coarsen(counts, self.unit, other.unit), values, pa.int32())
        if isinstance(other, Hour):
            return with_nulls_of(counts % 24, values, pa.int32())
        if isinstance(other, Year):
            return with_nulls_of(
                _coarsen(counts, self.unit, EpochUnit.YEARS) + _FIRST_YEAR, values, pa.int32()
            )
        if isinstance(other, Month):
            months = _coarsen(counts, self.unit, EpochUnit.MONTHS)
            return with_nulls_of(months % 12 + 1, values, pa.int32())
        days = _coarsen(counts, self.unit, EpochUnit.DAYS)
        months = _coarsen(days, EpochUnit.DAYS, EpochUnit.MONTHS)
        return with_nulls_of(days - _first_days(months) + 1, values, pa.int32())

    def coarser_of_both(self, other: Transform, source_type: pa.DataType) -> Transform | None:
        """Give the coarser unit."""
        if isinstance(other, Epoch):
            return Epoch(self.unit.coarser(other.unit))
        return Transform.coarser_of_both(self, other, source_type)

    def of_midnights(self) -> Transform | None:
        """Give the days of hours; a date is counted in every coarser unit as its midnight."""
        return Epoch(self.unit.coarser(EpochUnit.DAYS))


def _coarsen(counts: NDArray[np.int64], unit: EpochUnit, coarser: EpochUnit) -> NDArray[np.int64]:
    if unit is EpochUnit.HOURS and coarser is not EpochUnit.HOURS:
        counts = counts // 24
    if unit.fineness >= EpochUnit.DAYS.fineness > coarser.fineness:
        counts = counts.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    if unit is not EpochUnit.YEARS and coarser is EpochUnit.YEARS:
        counts = counts // 12
    return counts
