"""Comparisons of tuples as comparisons of their fields.

``(c, a) IN (('x', 2))`` is ``c <=> 'x' AND a <=> 2``: tuples are structs to Spark.

NULL rules: structs are equal where their fields are, and a NULL field equals a NULL field. No tuple
is NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MOST_TUPLES", "equal_fields", "one_of_tuples"]

# Each becomes a comparison per field, which the rewriting, the projection and the engine walk, in
# trees that grow with them: this many are planned in some 0.2 s.
MOST_TUPLES: Final = 500


def equal_fields(left: exp.Expr, right: exp.Expr) -> exp.Expression | None:
    """Write that two tuples are equal; None where one is no tuple, or has other fields.

    Example:
        >>> from sqlglot import parse_one
        >>> comparison = parse_one("(a, b) = (1, 2)")
        >>> equal_fields(comparison.this, comparison.expression).sql()
        'a IS NOT DISTINCT FROM 1 AND b IS NOT DISTINCT FROM 2'
    """
    fields, others = _fields(left), _fields(right)
    if not fields or len(fields) != len(others):
        return None
    equal = [
        exp.NullSafeEQ(this=field.copy(), expression=other.copy())
        for field, other in zip(fields, others, strict=True)
    ]
    return cast("exp.Expression", exp.and_(*equal, copy=False))


def one_of_tuples(subject: exp.Expr, listed: Sequence[exp.Expr]) -> exp.Expression | None:
    """Write that a tuple is one of a few; None where one is no tuple of as many fields."""
    if not _fields(subject) or len(listed) > MOST_TUPLES:
        return None
    equal = [equal_fields(subject, member) for member in listed]
    comparisons = [one for one in equal if one is not None]
    if len(comparisons) < len(equal):
        return None
    return cast("exp.Expression", exp.or_(*comparisons, copy=False))


def _fields(node: exp.Expr) -> list[exp.Expression]:
    node = node.unnest()
    if not isinstance(node, exp.Tuple | exp.Struct):
        return []
    fields = [
        field.expression if isinstance(field, exp.PropertyEQ) else field
        for field in node.expressions
    ]
    return cast("list[exp.Expression]", fields)
