"""The comparisons of a join that put equal rows into equal partitions, also through casts.

A partition's value is that of the column. A comparison of cast columns is one of the columns only
where the casts keep the value: integers and decimals that get wider, and what is the same moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

_BYTES: Final = {"byte": 1, "short": 2, "integer": 4, "long": 8}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_DATE: Final = "date"
# Partitions take a timestamp without a zone, and a date's midnight, as moments in UTC.
_MOMENTS: Final = {(_DATE, "timestamp_ntz"): False} | dict.fromkeys(
    [(_DATE, "timestamp"), ("timestamp_ntz", "timestamp")], True
)


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of one side of a comparison, under any casts.

    Args:
        attribute: The column.
        types: Spark's names of the column's type and of those that it is cast to, in order.
        in_utc: Whether the casts that depend on a time zone are made in UTC.
    """

    attribute: int
    types: tuple[str, ...]
    in_utc: bool = True

    @property
    def keeps_value(self) -> bool:
        """Whether the casts keep the value.

        Example:
            >>> ComparedColumn(1, ("integer", "long")).keeps_value
            True
            >>> ComparedColumn(1, ("date", "timestamp"), in_utc=False).keeps_value
            False
        """
        return all(self._keeps(old, new) for old, new in pairwise(self.types))

    def _keeps(self, old: str, new: str) -> bool:
        if (old, new) in _MOMENTS:
            return self.in_utc or not _MOMENTS[old, new]
        if old in _BYTES and new in _BYTES:
            return _BYTES[old] < _BYTES[new]
        narrow, wide = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
        return (
            narrow is not None
            and wide is not None
            and narrow[2] == wide[2]
            and int(narrow[1]) < int(wide[1])
        )


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """A comparison by ``=`` or ``<=>`` of a column of each side of a join."""

    left: ComparedColumn
    right: ComparedColumn

    @property
    def equates(self) -> bool:
        """Whether it compares the columns' own values."""
        return self.left.keeps_value and self.right.keeps_value

    @property
    def attributes(self) -> tuple[int, int]:
        """The two columns, the left one first."""
        return self.left.attribute, self.right.attribute

    @property
    def has_casts(self) -> bool:
        """Whether one of them is cast, behind which Spark sees no partitioning."""
        return len(self.left.types) > 1 or len(self.right.types) > 1

    @property
    def is_of_midnights(self) -> bool:
        """Whether a DATE is compared with a timestamp."""
        return (self.left.types[0] == _DATE) != (self.right.types[0] == _DATE)
