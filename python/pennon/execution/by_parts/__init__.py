"""Groups that the memory does not hold, computed part by part: rows are divided by their keys."""

from pennon.execution.by_parts.grouped_parts import GroupedParts
from pennon.execution.by_parts.grouping_division import GroupingDivision, division_of

__all__ = ["GroupedParts", "GroupingDivision", "division_of"]
