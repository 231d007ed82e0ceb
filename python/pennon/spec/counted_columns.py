"""The table property that selects the columns with statistics: their number, or their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pennon.spec.column_names import listed_columns

__all__ = ["STATISTICS_COLUMNS", "CountedColumns"]

STATISTICS_COLUMNS: Final = "write.statistics.columns"
# As many as Delta counts: tables have the columns that people ask for first, and each costs
# 20 to 40 bytes of every partition's row.
_DEFAULT: Final = 32


@dataclass(frozen=True, slots=True)
class CountedColumns:
    """Which columns are counted.

    Args:
        first: So many of the first ones that can be.
        names: Instead of these: columns by name in lower case, fields of structs by a path with
            dots; a struct's name stands for all its fields.
    """

    first: int = _DEFAULT
    names: frozenset[str] | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> CountedColumns:
        """Read a table's properties; what is not understood names no column.

        Example:
            >>> CountedColumns.of({}).first
            32
            >>> sorted(CountedColumns.of({"write.statistics.columns": "price, place.city"}).names)
            ['place.city', 'price']
        """
        text = properties.get(STATISTICS_COLUMNS, "").strip()
        if not text:
            return cls()
        if text.isdecimal():
            return cls(int(text))
        return cls(0, frozenset(name.lower() for name in listed_columns(text)))

    def has(self, path: tuple[str, ...], num_before: int) -> bool:
        """Whether a column is counted.

        Args:
            path: Its names from the top.
            num_before: How many columns before it are counted.
        """
        if self.names is None:
            return num_before < self.first
        lowered = [name.lower() for name in path]
        return any(".".join(lowered[:end]) in self.names for end in range(1, len(path) + 1))
