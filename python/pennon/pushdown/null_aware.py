"""Recognises Spark's null-aware anti join: ``NOT IN`` as its optimizer writes it.

NULL rules: a row is kept where the right side is empty; otherwise only where its value is not NULL,
equals no value of the right side, and the right side has no NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from pennon.errors import PredicateSyntaxError
from pennon.plan import JoinType
from pennon.predicate.parse import parse_expression

if TYPE_CHECKING:
    from pennon.plan import Join


def null_aware_pair(join: Join) -> tuple[exp.Expr, exp.Expr] | None:
    """Find the two values of a null-aware anti join.

    Returns:
        The values in the order of the equality; None for any other join.

    Example:
        >>> from pennon.plan import Join
        >>> text = "(`c1` = `c2`) OR ((`c1` = `c2`) IS NULL)"
        >>> null_aware_pair(Join(0, 1, JoinType.ANTI, text)) is not None
        True
    """
    if join.join_type is not JoinType.ANTI or join.condition is None or join.equated:
        return None
    try:
        tree = _bare(parse_expression(join.condition))
    except PredicateSyntaxError:
        return None
    if not isinstance(tree, exp.Or):
        return None
    equality, unknown = _bare(tree.this), _bare(tree.expression)
    if not (
        isinstance(equality, exp.EQ)
        and isinstance(unknown, exp.Is)
        and isinstance(_bare(unknown.expression), exp.Null)
        and _bare(unknown.this) == equality
    ):
        return None
    return equality.this, equality.expression


def _bare(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree
