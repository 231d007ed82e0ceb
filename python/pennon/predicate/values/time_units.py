"""The units of times: of Arrow's types, by name, and the moment from which they count."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence


# Arrow types: which are text, binary, numbers, times or lists.


def is_text(data_type: pa.DataType) -> bool:
    """Whether values are strings."""
    return bool(
        pa.types.is_string(data_type)
        or pa.types.is_large_string(data_type)
        or pa.types.is_string_view(data_type)
    )


def is_binary(data_type: pa.DataType) -> bool:
    """Whether values are bytes, of fixed or any length."""
    return bool(
        pa.types.is_binary(data_type)
        or pa.types.is_large_binary(data_type)
        or pa.types.is_binary_view(data_type)
        or pa.types.is_fixed_size_binary(data_type)
    )


def is_number(data_type: pa.DataType) -> bool:
    """Whether values are integers, floats or decimals."""
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_decimal(data_type)
    )


def is_moment(data_type: pa.DataType) -> bool:
    """Whether values are dates or timestamps."""
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))


def is_list(data_type: pa.DataType) -> bool:
    """Whether values are lists, of fixed or any length."""
    return bool(
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
        or pa.types.is_list_view(data_type)
        or pa.types.is_large_list_view(data_type)
    )


def storage_type(data_type: pa.DataType) -> pa.DataType:
    """Give the integer type in which values of integers, dates, times or timestamps are kept."""
    if pa.types.is_integer(data_type):
        return data_type
    return pa.int32() if data_type.bit_width == pa.int32().bit_width else pa.int64()


def stored_integer(scalar: pa.Scalar) -> int:
    """Give the integer that stands for an integer, date, time or timestamp."""
    return int(scalar.as_py() if pa.types.is_integer(scalar.type) else scalar.value)


def of_stored_integer(value: int, data_type: pa.DataType) -> pa.Scalar | None:
    """Give the scalar that an integer stands for; None where it does not fit the type."""
    storage = storage_type(data_type)
    bits = storage.bit_width
    is_unsigned = pa.types.is_unsigned_integer(storage)
    low, high = (0, 1 << bits) if is_unsigned else (-(1 << bits - 1), 1 << bits - 1)
    return pa.scalar(value, storage).cast(data_type) if low <= value < high else None


EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
"""Timestamps count from it, dates from its day."""

SECONDS_PER_HOUR: Final = 3_600
SECONDS_PER_DAY: Final = 24 * SECONDS_PER_HOUR
MILLIS_PER_DAY: Final = 1_000 * SECONDS_PER_DAY
"""The step of ``date64``."""
MICROS_PER_MILLI: Final = 1_000
MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_MINUTE: Final = 60 * MICROS_PER_SECOND
MICROS_PER_HOUR: Final = SECONDS_PER_HOUR * MICROS_PER_SECOND
MICROS_PER_DAY: Final = SECONDS_PER_DAY * MICROS_PER_SECOND
NANOS_PER_MICRO: Final = 1_000
NANOS_PER_DAY: Final = MICROS_PER_DAY * NANOS_PER_MICRO
MICROS_BY_NAME: Final[Mapping[str, int]] = {
    "MICROSECOND": 1,
    "MILLISECOND": MICROS_PER_MILLI,
    "SECOND": MICROS_PER_SECOND,
    "MINUTE": MICROS_PER_MINUTE,
    "HOUR": MICROS_PER_HOUR,
    "DAY": MICROS_PER_DAY,
}
"""How many microseconds the units are that SQL names, but those whose lengths differ."""

UNITS_PER_SECOND: Final[Mapping[str, int]] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of a unit of Arrow are a second."""
MICROS_PER_UNIT: Final[Mapping[str, int]] = {"s": 10**6, "ms": 10**3, "us": 1}
"""How many microseconds a unit is; nanoseconds are no whole ones."""
NANOS_PER_UNIT: Final[Mapping[str, int]] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""How many nanoseconds a unit is."""
UNIT_NAMES: Final[Mapping[str, str]] = {
    "s": "Second",
    "ms": "Millisecond",
    "us": "Microsecond",
    "ns": "Nanosecond",
}
"""What DataFusion calls a unit."""


# How far the clocks of a time zone are before UTC, as Java's rules have it.
#
# NULL rules: NULL stays NULL.
#
# Where clocks are put forward, the times between do not exist: they are as far behind the change as
# they would have been. Where clocks are put back, times are there twice: the earlier one is meant,
# unless another one is near that belongs to the later offset.
#
# A zone that changes its offset in the last known year does so by the same rules ever after, and
# the Gregorian calendar repeats after 400 years.

_CYCLE_YEARS: Final = 400
_CYCLE_MICROS: Final = 146_097 * MICROS_PER_DAY
_KINDS_OF_YEARS: Final = 28  # so many years, without the end of a century, are of every kind
_MARGIN_MICROS: Final = 2 * MICROS_PER_DAY
_LEAST, _MOST = np.iinfo(np.int64).min + _MARGIN_MICROS, np.iinfo(np.int64).max - _MARGIN_MICROS

Micros = np.ndarray[tuple[int], np.dtype[np.int64]]


class MomentOutOfRange(ValueError):
    """A timestamp at the end of all that there are, whose clocks show none."""


@dataclass(frozen=True, slots=True)
class ZoneOffsets:
    """The offsets of a zone, all in microseconds.

    Args:
        changes: When they change, in order.
        offsets: The offset before all changes, then the one behind each.
        repeats_from: Since when the changes repeat every 400 years; None if there are no more.
    """

    changes: Micros
    offsets: Micros
    repeats_from: int | None = None

    @property
    def before(self) -> Micros:
        """The offset before each change."""
        return self.offsets[:-1]

    @property
    def after(self) -> Micros:
        """The offset behind each change."""
        return self.offsets[1:]

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Self:
        """Take the numbers that Java gives.

        Args:
            numbers: The last year of which it gives changes, the first offset, then of each
                change its second since 1970 and the offset behind it.

        Example:
            >>> zone = ZoneOffsets.of([2129, 0, 3600, 7200])  # two hours before UTC since 01:00
            >>> zone.clocks(np.array([0, 3_600_000_000])).tolist()
            [0, 10800000000]
        """
        last_year, seconds, offsets = numbers[0], list(numbers[2::2]), list(numbers[1::2])
        repeats_from = None
        if seconds and _year_of(seconds[-1]) == last_year:
            continued = _continued(list(zip(seconds, offsets[1:], strict=True)), last_year)
            seconds += [second for second, _ in continued]
            offsets += [offset for _, offset in continued]
            repeats_from = _start_of(last_year + _CYCLE_YEARS + 1) * MICROS_PER_SECOND
        changes = np.array(seconds, np.int64) * MICROS_PER_SECOND
        return cls(changes, np.array(offsets, np.int64) * MICROS_PER_SECOND, repeats_from)

    def clocks(self, moments: Micros) -> Micros:
        """Give what clocks show at moments: microseconds of the local time.

        Raises:
            MomentOutOfRange: One is too close to the end of all timestamps.
        """
        return moments + self._offsets(moments)

    def moments(self, clocks: Micros, near: Micros | None = None) -> Micros:
        """Give the moments at which clocks show these times.

        Args:
            clocks: What clocks show.
            near: Moments whose offsets are preferred where clocks show a time twice.

        Raises:
            MomentOutOfRange: One is too close to the end of all timestamps.
        """
        known, beyond = self._in_known(clocks)
        # Until the later of the two times that a change has, the offset before it holds.
        at = np.searchsorted(self.changes + np.maximum(self.before, self.after), known, "right")
        offsets = self.offsets[at]
        if near is not None and len(self.changes):
            offsets_near = self._offsets(near)
            later = np.minimum(at, len(self.changes) - 1)
            is_twice = (at < len(self.changes)) & (known >= (self.changes + self.after)[later])
            is_twice &= self.after[later] == offsets_near
            offsets = np.where(is_twice, self.after[later], offsets)
        return known - offsets + beyond

    def midnights(self, clocks: Micros, near: Micros | None = None) -> Micros:
        """Give the moments at which the days begin of which these are the midnights.

        A day whose midnight does not exist begins when clocks are put forward.

        Args:
            clocks: What clocks show.
            near: Moments whose offsets are preferred where there are two midnights.

        Raises:
            MomentOutOfRange: One is too close to the end of all timestamps.
        """
        known, beyond = self._in_known(clocks)
        at = np.searchsorted(self.changes + np.maximum(self.before, self.after), known, "right")
        begun = known - self.offsets[at]
        if len(self.changes):
            change = self.changes[np.minimum(at, len(self.changes) - 1)]
            is_skipped = (at < len(self.changes)) & (begun > change)
            is_skipped &= (self.after > self.before)[np.minimum(at, len(self.changes) - 1)]
            begun = np.where(is_skipped, change, begun)
        begun = begun + beyond
        if near is None:
            return begun
        offsets_near = self._offsets(near)
        return np.where(
            self._offsets(clocks - offsets_near) == offsets_near, clocks - offsets_near, begun
        )

    def _offsets(self, moments: Micros) -> Micros:
        known, _ = self._in_known(moments)
        return self.offsets[np.searchsorted(self.changes, known, "right")]

    def _in_known(self, times: Micros) -> tuple[Micros, Micros | int]:
        """Move times into the years whose changes are known; say by how much."""
        if len(times) and (times.min() < _LEAST or times.max() > _MOST):
            raise MomentOutOfRange("a timestamp is out of range")
        if self.repeats_from is None or not len(times) or times.max() < self.repeats_from:
            return times, 0
        cycles = np.maximum((times - self.repeats_from) // _CYCLE_MICROS + 1, 0)
        beyond = np.where(times < self.repeats_from, 0, cycles) * _CYCLE_MICROS
        return times - beyond, beyond


@lru_cache(maxsize=16)
def zone_offsets(numbers: tuple[int, ...]) -> ZoneOffsets:
    """Take the numbers that Java gives, once for all queries of a zone."""
    return ZoneOffsets.of(numbers)


def _continued(changes: Sequence[tuple[int, int]], last_year: int) -> list[tuple[int, int]]:
    """Give the changes of the next 400 years: those of a year of the same kind."""
    of_years: dict[int, list[tuple[int, int]]] = {}
    for second, offset in changes:
        of_years.setdefault(_year_of(second), []).append((second, offset))
    years = range(last_year + 1 - _KINDS_OF_YEARS, last_year + 1)
    of_kinds = {_kind_of(year): year for year in years}
    continued = []
    for year in range(last_year + 1, last_year + _CYCLE_YEARS + 1):
        alike = of_kinds[_kind_of(year)]
        later = _start_of(year) - _start_of(alike)
        continued += [(second + later, offset) for second, offset in of_years.get(alike, ())]
    return continued


def _year_of(second: int) -> int:
    return (EPOCH + dt.timedelta(seconds=second)).year


def _start_of(year: int) -> int:
    return (dt.date(year, 1, 1) - EPOCH.date()).days * SECONDS_PER_DAY


def _kind_of(year: int) -> tuple[int, int]:
    """Tell a year by the day of the week on which it begins, and its length."""
    return dt.date(year, 1, 1).weekday(), _start_of(year + 1) - _start_of(year)


# The calendar, and how functions of times that never decrease are inverted: from a value to the
# first time of which it is not less. Times are days or microseconds since 1970.

_MONTHS: Final = {"MONTH": 1, "MON": 1, "MM": 1, "QUARTER": 3, "YEAR": 12, "YYYY": 12, "YY": 12}
_MONDAY_BEFORE_EPOCH: Final = 3


def days_from_civil(year: int, month: int) -> int:
    """Count the days from 1970-01-01 to the first of a month, proleptic Gregorian, any year.

    Example:
        >>> days_from_civil(1970, 2)
        31
    """
    shifted = year - (month <= 2)  # noqa: PLR2004 - years start in March, after the leap day
    era, of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + day_of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Turn days since 1970-01-01 into year, month and day, proleptic Gregorian, any year.

    Example:
        >>> civil_from_days(-1)
        (1969, 12, 31)
    """
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    day_of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return era * 400 + year + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1  # noqa: PLR2004


def micros_of_day(day: int) -> int:
    """Give the first microsecond of a day."""
    return day * MICROS_PER_DAY


def first_day_from(micros: int) -> int:
    """Give the first day that begins at a time, or later."""
    return -(-micros // MICROS_PER_DAY)


def first_day_of_year(year: int) -> int:
    """Give the first day of a year."""
    return days_from_civil(year, 1)


def _first_day_of_month(months: int) -> int:
    return days_from_civil(1970 + months // 12, months % 12 + 1)


def _first_of_cut_second(seconds: int) -> int:
    width = MICROS_PER_SECOND
    return seconds * width if seconds > 0 else (seconds - 1) * width + 1


UNITS_OF_DAYS: Final = ("years", "months", "days")
FIRST_OF_UNIT: Final[Mapping[str, Callable[[int], int]]] = {
    "years": lambda years: first_day_of_year(1970 + years),
    "months": _first_day_of_month,
    "days": lambda days: days,
    "hours": lambda hours: hours * MICROS_PER_HOUR,
    "seconds": lambda seconds: seconds * MICROS_PER_SECOND,
    "cut seconds": _first_of_cut_second,
    "milliseconds": lambda milliseconds: milliseconds * MICROS_PER_MILLI,
    "microseconds": lambda microseconds: microseconds,
}


def unit_from(unit: str, *, is_days: bool) -> Callable[[int], int] | None:
    """Give the function that finds the next start of a unit; None for an unknown unit."""
    per_day = 1 if is_days else MICROS_PER_DAY
    if unit in _MONTHS:
        months = _MONTHS[unit]
        return lambda bound: per_day * _month_from(-(-bound // per_day), months)
    if unit == "WEEK":
        return lambda bound: per_day * _monday_from(-(-bound // per_day))
    if unit not in MICROS_BY_NAME:
        return None
    width = (
        max(MICROS_BY_NAME[unit] * per_day // MICROS_PER_DAY, 1)
        if is_days
        else MICROS_BY_NAME[unit]
    )
    return lambda bound: -(-bound // width) * width


def moved_before(moved: int, bound: int) -> int:
    """Give what comes to a bound when it is moved."""
    return bound - moved


def months_before(months: int, per_day: int, bound: int) -> int:
    """The first time that comes to ``bound`` or later when so many months are added.

    A month without such a day has its last one instead, which is before: the next month it is.
    """
    day, of_day = divmod(bound, per_day)
    year, month, day_of_month = civil_from_days(day)
    count = year * 12 + month - 1 - months
    first, following = (days_from_civil(at // 12, at % 12 + 1) for at in (count, count + 1))
    if day_of_month > following - first:
        return following * per_day
    return (first + day_of_month - 1) * per_day + of_day


def _month_from(day: int, months: int) -> int:
    """The first day, at or after ``day``, that starts a group of months."""
    year, month, day_of_month = civil_from_days(day)
    count = year * 12 + month - 1 + (day_of_month > 1)
    count = -(-count // months) * months
    return days_from_civil(count // 12, count % 12 + 1)


def _monday_from(day: int) -> int:
    return -(-(day + _MONDAY_BEFORE_EPOCH) // 7) * 7 - _MONDAY_BEFORE_EPOCH
