"""Chains of AND and of OR: their operands, and conditions combined without repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def operands(condition: exp.Expr, connector: type[exp.Connector]) -> list[exp.Expression]:
    """List the operands of a chain of one connector, whose tree may be as deep as it is long.

    Returns:
        The operands without parentheses around them; a condition of another form alone.

    Example:
        >>> chain = exp.condition("a AND (b AND (c OR d))")
        >>> [operand.sql() for operand in operands(chain, exp.And)]
        ['a', 'b', 'c OR d']
    """
    listed: list[exp.Expression] = []
    waiting = [condition]
    while waiting:
        bare = waiting.pop().unnest()
        if isinstance(bare, connector):
            waiting += [bare.expression, bare.this]
        else:
            listed.append(cast("exp.Expression", bare))
    return listed


def and_all(conditions: Iterable[exp.Expr]) -> exp.Expression:
    """Join by AND; nothing is TRUE.

    Example:
        >>> and_all([exp.column("a"), exp.true(), exp.column("a")]).sql()
        'a'
    """
    return _joined(conditions, exp.And, neutral=True)


def or_all(conditions: Iterable[exp.Expr]) -> exp.Expression:
    """Join by OR; nothing is FALSE.

    Example:
        >>> or_all([exp.column("a"), exp.true()]).sql()
        'TRUE'
    """
    return _joined(conditions, exp.Or, neutral=False)


def is_true(condition: exp.Expr) -> bool:
    """Whether a condition is the literal TRUE."""
    return isinstance(condition, exp.Boolean) and bool(condition.this)


def is_false(condition: exp.Expr) -> bool:
    """Whether a condition is the literal FALSE."""
    return isinstance(condition, exp.Boolean) and not condition.this


def _joined(
    conditions: Iterable[exp.Expr], connector: type[exp.And | exp.Or], *, neutral: bool
) -> exp.Expression:
    kept: dict[exp.Expression, None] = {}
    for condition in conditions:
        for operand in operands(condition, connector):
            if not isinstance(operand, exp.Boolean):
                kept[operand] = None
            elif bool(operand.this) is not neutral:
                return operand
    if len(kept) == 1:
        return next(iter(kept))
    if not kept:
        return exp.Boolean(this=neutral)
    return _tree(connector, [_enclosed(operand) for operand in kept])


def _enclosed(operand: exp.Expression) -> exp.Expression:
    return exp.Paren(this=operand) if isinstance(operand, exp.Connector) else operand


def _tree(connector: type[exp.And | exp.Or], parts: Sequence[exp.Expression]) -> exp.Expression:
    """Build a shallow tree, so that thousands of operands do not nest thousands deep."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return connector(this=_tree(connector, parts[:half]), expression=_tree(connector, parts[half:]))
