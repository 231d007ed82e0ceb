"""What functions of columns have in common: arithmetic of its own, beside that of Pennon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

LEVELS = ("years", "months", "days", "hours")
TEXT = ("s", "b", "region", "dep")
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Field:
    """One partition field: a function with a parameter, of columns."""

    function: str
    columns: tuple[str, ...]
    parameter: int | str = 0

    @property
    def sql(self) -> str:
        """Its spelling in ``PARTITIONED BY``."""
        listed = ", ".join(self.columns)
        match self.function:
            case "identity":
                return listed
            case "bucket" | "truncate" | "multi_bucket":
                return f"{self.function}({self.parameter}, {listed})"
            case "expression":
                return f"expression('{self.parameter}', {listed})"
        return f"{self.function}({listed})"


def common(one: Sequence[Field], other: Sequence[Field]) -> tuple[Field, ...]:
    """List the finest functions that follow from fields of one and of the other."""
    found = [
        both
        for mine in one
        for theirs in other
        if mine.columns == theirs.columns and (both := meet(mine, theirs)) is not None
    ]
    for ours, others in ((one, other), (other, one)):
        known = {field.columns[0] for field in ours if field.function == "identity"}
        found += [
            other for other in others if len(other.columns) > 1 and known.issuperset(other.columns)
        ]
    return tuple(dict.fromkeys(found))


def fit(one: Field, other: Field) -> bool:
    """Whether two fields of equal columns have a function in common."""
    return one.columns == other.columns and meet(one, other) is not None


def meet(one: Field, other: Field) -> Field | None:
    """Find the finest function of the same values that follows from either.

    Args:
        one: A function of columns.
        other: A function of columns that have the same values.

    Example:
        >>> meet(Field("bucket", ("id",), 6), Field("bucket", ("id",), 4)).sql
        'bucket(2, id)'
    """
    if (one.function, one.parameter) == (other.function, other.parameter):
        return one
    for fine, coarse in ((one, other), (other, one)):
        if len(fine.columns) == 1 and _follows(coarse, fine):
            return replace(one, function=coarse.function, parameter=coarse.parameter)
    if one.function != other.function:
        return None
    mine, theirs = one.parameter, other.parameter
    assert isinstance(mine, int)
    assert isinstance(theirs, int)
    match one.function:
        case "bucket" | "multi_bucket":
            count = math.gcd(mine, theirs)
            return replace(one, parameter=count) if count > 1 else None
        case "truncate" if one.columns[0] not in TEXT:
            width = math.lcm(mine, theirs)
            return replace(one, parameter=width) if width <= _LARGEST else None
    return None


def _follows(coarse: Field, fine: Field) -> bool:
    """Whether the coarse function of a column is one of the fine one's value."""
    if fine.function == "identity":
        return True
    if fine.function in LEVELS:
        level = LEVELS.index(fine.function)
        if coarse.function in LEVELS:
            return LEVELS.index(coarse.function) <= level
        # The month of the year follows from the month, and from any day in it.
        return f"{coarse.function}s" in LEVELS and LEVELS.index(f"{coarse.function}s") <= level
    if fine.function == coarse.function == "truncate" and fine.columns[0] in TEXT:
        return int(coarse.parameter) <= int(fine.parameter)
    return False
