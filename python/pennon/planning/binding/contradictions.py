"""Finds conjunctions that no row satisfies, such as ``c < 1 AND c > 2``.

``c BETWEEN 9 AND 5`` is two comparisons, and a partition of ``truncate(10, c)`` satisfies both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pennon.planning.binding.bound_predicate import FALSE, AllOf, BoundPredicate, Compared
from pennon.predicate.comparison import Operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.planning.binding.bound_predicate import SourceColumn
    from pennon.predicate.comparison import Comparison

__all__ = ["without_contradiction"]

_HIGH: Final = (Operator.LESS, Operator.LESS_OR_EQUAL)
_LOW: Final = (Operator.GREATER, Operator.GREATER_OR_EQUAL)
_VALUES: Final = (Operator.EQUAL, Operator.IN)


def without_contradiction(predicate: BoundPredicate) -> BoundPredicate:
    """Turn an AND into FALSE where the comparisons of one column exclude each other.

    Example:
        >>> from pennon.planning.binding.bound_predicate import SourceColumn
        >>> from pennon.predicate.comparison import Comparison
        >>> column = SourceColumn(("a",), 0, pa.int32())
        >>> above, below = (
        ...     Compared(column, Comparison(operator, (pa.scalar(5, pa.int32()),)))
        ...     for operator in (Operator.GREATER, Operator.LESS)
        ... )
        >>> without_contradiction(AllOf((above, below)))
        Constant(value=False)
    """
    if not isinstance(predicate, AllOf):
        return predicate
    by_column: dict[SourceColumn, list[Comparison]] = {}
    for part in predicate.parts:
        if not isinstance(part, Compared) or not part.is_exact:
            continue
        # Floats have two zeros and many NaNs.
        if not pa.types.is_floating(part.column.type):
            by_column.setdefault(part.column, []).append(part.comparison)
    contradicts = any(
        len(comparisons) > 1 and _is_empty(comparisons) for comparisons in by_column.values()
    )
    return FALSE if contradicts else predicate


def _is_empty(comparisons: Sequence[Comparison]) -> bool:
    """Whether no value satisfies all comparisons of one column."""
    operators = {comparison.operator for comparison in comparisons}
    if Operator.IS_NULL in operators:
        return len(operators) > 1
    low = [
        (_key(comparison), comparison.operator)
        for comparison in comparisons
        if comparison.operator in _LOW
    ]
    high = [
        (_key(comparison), comparison.operator)
        for comparison in comparisons
        if comparison.operator in _HIGH
    ]
    lists = [comparison.literals for comparison in comparisons if comparison.operator in _VALUES]
    if lists:
        values = set.intersection(*({_ordered(one) for one in list_} for list_ in lists))
        return not any(_is_between(value, low, high) for value in values)
    if not low or not high:
        return False
    least, most = max(key for key, _ in low), min(key for key, _ in high)
    if least == most:
        return not _is_between(least, low, high)
    return bool(least > most)


def _is_between(
    value: Any, low: Sequence[tuple[Any, Operator]], high: Sequence[tuple[Any, Operator]]
) -> bool:
    above = all(
        value > bound or (value == bound and operator is Operator.GREATER_OR_EQUAL)
        for bound, operator in low
    )
    below = all(
        value < bound or (value == bound and operator is Operator.LESS_OR_EQUAL)
        for bound, operator in high
    )
    return above and below


def _key(comparison: Comparison) -> Any:
    return _ordered(comparison.literal)


def _ordered(literal: pa.Scalar) -> Any:
    """Give a literal's place in the order of its type, to the nanosecond."""
    return literal.value if pa.types.is_temporal(literal.type) else literal.as_py()
