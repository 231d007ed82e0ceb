"""Spark's texts of expressions as trees, where only their shape or their columns are asked for."""

from __future__ import annotations

from sqlglot import exp

from pennon.errors import PredicateSyntaxError, PredicateTooDeep
from pennon.predicate.parse import parse_with_lists


def tree_of(text: str | None) -> exp.Expr | None:
    """Read an expression; None where it has no text, or one that cannot be read."""
    if text is None:
        return None
    try:
        return parse_with_lists(text)
    except (PredicateSyntaxError, PredicateTooDeep):
        return None


def columns_of(text: str | None) -> frozenset[str] | None:
    """Name the columns in an expression; None as ``tree_of``.

    Example:
        >>> sorted(columns_of("(`c1` + `c2`) * `c1`"))
        ['c1', 'c2']
    """
    tree = tree_of(text)
    return None if tree is None else frozenset(node.name for node in tree.find_all(exp.Column))
