"""Combines conditions by AND and OR, without repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def and_all(conditions: Iterable[exp.Expression]) -> exp.Expression:
    """Join by AND; nothing is TRUE.

    Example:
        >>> and_all([exp.column("a"), exp.true(), exp.column("a")]).sql()
        'a'
    """
    return _joined(conditions, exp.And, is_dominant=is_false, neutral=exp.true())


def or_all(conditions: Iterable[exp.Expression]) -> exp.Expression:
    """Join by OR; nothing is FALSE.

    Example:
        >>> or_all([exp.column("a"), exp.true()]).sql()
        'TRUE'
    """
    return _joined(conditions, exp.Or, is_dominant=is_true, neutral=exp.false())


def is_true(condition: exp.Expression) -> bool:
    """Whether a condition is the literal TRUE."""
    return isinstance(condition, exp.Boolean) and bool(condition.this)


def is_false(condition: exp.Expression) -> bool:
    """Whether a condition is the literal FALSE."""
    return isinstance(condition, exp.Boolean) and not condition.this


def _joined(
    conditions: Iterable[exp.Expression],
    kind: type[exp.And | exp.Or],
    *,
    is_dominant: Callable[[exp.Expression], bool],
    neutral: exp.Expression,
) -> exp.Expression:
    kept: dict[exp.Expression, None] = {}
    for condition in conditions:
        plain = _without_parentheses(condition)
        if is_dominant(plain):
            return plain
        if plain != neutral:
            kept[plain] = None
    tree: exp.Expression | None = None
    other = exp.Or if kind is exp.And else exp.And
    for plain in kept:
        part = exp.Paren(this=plain) if isinstance(plain, other) else plain
        tree = part if tree is None else kind(this=tree, expression=part)
    return neutral if tree is None else _without_parentheses(tree)


def _without_parentheses(condition: exp.Expression) -> exp.Expression:
    while isinstance(condition, exp.Paren):
        condition = condition.this
    return condition
