"""The finite set of values that a predicate allows for a column, where it names one.

``a = 1 AND b IN (2, 3)`` binds a to {1} and b to {2, 3}; ``c BETWEEN 5 AND 9`` binds an integer c
to five values. A transform of bound columns is evaluated on the values themselves, by the code
that computes it for rows.

NULL rules: IS NULL binds a column to {NULL}; a NULL among the values is evaluated like any
other, since an expression need not give NULL for NULL (format reading 23). Both zeros are one value
here, and ``Transform.project_bound`` evaluates both.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.planning.binding.bound_predicate import AllOf, AnyOf, BoundPredicate, Compared
from pennon.planning.binding.time_ranges import time_scalar
from pennon.predicate.comparison import Operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.planning.binding.bound_predicate import SourceColumn
    from pennon.predicate.comparison import Comparison

MOST_VALUES = 1_000
_NAN: Final = {
    data_type: pa.scalar(math.nan, pa.float64()).cast(data_type)
    for data_type in (pa.float16(), pa.float32(), pa.float64())
}

Domain = frozenset[pa.Scalar]
_LESS = (Operator.LESS, Operator.LESS_OR_EQUAL)
_RANGES = (*_LESS, Operator.GREATER, Operator.GREATER_OR_EQUAL)


def domain_of(column: SourceColumn, predicate: BoundPredicate) -> Domain | None:
    """Find the values of a column for which the predicate can be TRUE.

    Returns:
        At most 1,000 values, NULL as an invalid scalar; None when there may be more.

    Example:
        >>> from pennon.planning.binding.bound_predicate import SourceColumn
        >>> from pennon.predicate.comparison import Comparison
        >>> column = SourceColumn(("a",), 0, pa.int32())
        >>> equal = Compared(column, Comparison(Operator.EQUAL, (pa.scalar(5, pa.int32()),)))
        >>> domain_of(column, equal)
        frozenset({<pyarrow.Int32Scalar: 5>})
    """
    match predicate:
        case AllOf(parts):
            return _of_all(column, parts)
        case AnyOf(parts):
            return _of_any(column, parts)
        case Compared() if predicate.column == column:
            return _of_comparison(column, predicate.comparison) or _of_range(column, [predicate])
        case _:
            return None


def _of_all(column: SourceColumn, parts: Sequence[BoundPredicate]) -> Domain | None:
    ranges = [
        part
        for part in parts
        if isinstance(part, Compared)
        and part.column == column
        and part.comparison.operator in _RANGES
    ]
    domains = [domain_of(column, part) for part in parts if part not in ranges]
    intersection: Domain | None = _of_range(column, ranges)
    for domain in domains:
        if domain is not None:
            intersection = domain if intersection is None else intersection & domain
    return intersection


def _of_any(column: SourceColumn, parts: Sequence[BoundPredicate]) -> Domain | None:
    union: Domain = frozenset()
    for part in parts:
        domain = domain_of(column, part)
        if domain is None or len(union) + len(domain) > 2 * MOST_VALUES:
            return None
        union |= domain
    return union if len(union) <= MOST_VALUES else None


def _of_comparison(column: SourceColumn, comparison: Comparison) -> Domain | None:
    match comparison.operator:
        case Operator.IS_NULL:
            return frozenset({pa.scalar(None, column.type)})
        case Operator.EQUAL | Operator.IN if len(comparison.literals) <= MOST_VALUES:
            return frozenset(map(_member, comparison.literals))
        case _:
            return None


def _member(literal: pa.Scalar) -> pa.Scalar:
    """Give a literal so that sets find it again: NaN is equal to no other, so there is one."""
    if not pa.types.is_floating(literal.type) or not math.isnan(literal.as_py()):
        return literal
    return _NAN[literal.type]


def _of_range(column: SourceColumn, ranges: Sequence[Compared]) -> Domain | None:
    """Enumerate a short range of integers or dates."""
    data_type = column.type
    if not ranges or not (pa.types.is_integer(data_type) or pa.types.is_date(data_type)):
        return None
    is_date = pa.types.is_date(data_type)
    bits = 32 if is_date else data_type.bit_width
    is_signed = is_date or pa.types.is_signed_integer(data_type)
    low = -(1 << (bits - 1)) if is_signed else 0
    high = (1 << (bits - 1)) - 1 if is_signed else (1 << bits) - 1
    for part in ranges:
        operator = part.comparison.operator
        if operator not in _RANGES:
            return None
        literal = part.comparison.literal
        bound = int(literal.cast(pa.date32()).value) if is_date else int(literal.as_py())
        if operator in _LESS:
            high = min(high, bound - (operator is Operator.LESS))
        else:
            low = max(low, bound + (operator is Operator.GREATER))
    if high - low >= MOST_VALUES:
        return None
    values = range(low, high + 1)
    return frozenset(
        time_scalar(value, data_type) if is_date else pa.scalar(value, data_type)
        for value in values
    )
