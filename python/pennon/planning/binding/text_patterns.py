"""LIKE, startswith, endswith and contains on a text column with a literal.

LIKE stays as it is and is accompanied by the start that it implies. NULL is never LIKE anything,
nor NOT LIKE.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from pennon.planning.binding.bound_predicate import (
    BoundPredicate,
    Compared,
    ComputedCondition,
    SourceColumn,
    all_of,
)
from pennon.predicate.comparison import Comparison, Operator
from pennon.predicate.like import read_pattern


def like(column: SourceColumn, pattern: str, *, negated: bool) -> BoundPredicate | None:
    r"""Bind LIKE or NOT LIKE; None for a pattern whose escapes Spark refuses.

    Args:
        column: A text column.
        pattern: One that is no test of a start, an end or a part: those are other forms.
        negated: Whether it is NOT LIKE.

    Example:
        >>> column = SourceColumn(("s",), 0, pa.string())
        >>> print(like(column, "abc_", negated=False).parts[0].comparison)
        STARTS WITH abc
    """
    read = read_pattern(pattern)
    if read is None:
        return None
    test = read.test(column.expression())
    if negated or not read.leading_text:
        whole = exp.Not(this=test) if negated else test
        return ComputedCondition(whole, sources=(column,), rejected_nulls=(column,))
    start = text_test(exp.StartsWith, column, read.leading_text, negated=False)
    return all_of([start, ComputedCondition(test, sources=(column,))])


def text_test(
    kind: type[exp.Expression], column: SourceColumn, text: str, *, negated: bool
) -> BoundPredicate:
    """Bind startswith, endswith or contains of a text that is not empty, or its NOT."""
    if kind is exp.StartsWith:
        operator = Operator.NOT_STARTS_WITH if negated else Operator.STARTS_WITH
        return Compared(column, Comparison(operator, (pa.scalar(text, column.type),)))
    test = kind(this=column.expression(), expression=exp.Literal.string(text))
    whole = exp.Not(this=test) if negated else test
    return ComputedCondition(whole, is_exact=True, sources=(column,), rejected_nulls=(column,))
