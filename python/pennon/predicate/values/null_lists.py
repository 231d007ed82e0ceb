"""Lists of values beside each other, written so that DataFusion keeps SQL's third value.

DataFusion 54 merges lists on one operand as sets: ``NOT (a IN (1, 2, 3, 4) AND a IN (5, 6, 7, 8))``
and ``a NOT IN (…) OR a NOT IN (…)`` become TRUE, also where ``a`` is NULL and the condition is
NULL. It makes a list of ``a = 1 OR a = 2 OR …`` as well. Lance's filters do the same.

So where one operand has several lists in a condition, each is written as ``(list AND a IS NOT
NULL) OR (a IS NULL AND NULL)``: whatever the list becomes, NULL stays NULL.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterator

_FEWEST: Final = 2
# A union of types is made anew each time that it is written, and is asked slowly.
_LISTS_AND_ORS: Final = (exp.In, exp.Or)


def with_null_safe_lists(tree: exp.Expr) -> exp.Expr:
    """Rewrite the lists that DataFusion would merge.

    Returns:
        The tree itself where no operand has two lists, else a copy.

    Example:
        >>> from sqlglot import parse_one
        >>> print(with_null_safe_lists(parse_one("a IN (1, 2) OR b IN (1, 2)")))
        a IN (1, 2) OR b IN (1, 2)
    """
    counts: Counter[exp.Expr] = Counter()
    for node in _lists_and_ors(tree):
        if isinstance(node, exp.In):
            if not _is_safe(node):
                counts[node.this] += 1
        elif not isinstance(_above(node), exp.Or):
            compared = Counter(operand.this for operand in _operands(node) if _is_equality(operand))
            counts.update(value for value, count in compared.items() if count >= _FEWEST)
    risky = {value for value, count in counts.items() if count >= _FEWEST}
    return tree.transform(lambda node: _rewritten(node, risky)) if risky else tree


def _lists_and_ors(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Walk a tree that may be all of a query: sqlglot's own walk takes a third of writing it."""
    waiting: list[object] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, exp.Expr):
            if isinstance(node, _LISTS_AND_ORS):
                yield node
            waiting += node.args.values()


def _rewritten(node: exp.Expr, risky: set[exp.Expr]) -> exp.Expr:
    is_list = isinstance(node, exp.In) or _is_equality(node)
    if not is_list or node.this not in risky or _is_safe(node):
        return node
    operand = node.this
    is_null = exp.Is(this=operand.copy(), expression=exp.Null())
    certain = exp.And(this=node.copy(), expression=exp.Not(this=is_null.copy()))
    unknown = exp.And(this=is_null, expression=exp.Null())
    return exp.paren(
        exp.Or(this=exp.paren(certain, copy=False), expression=exp.paren(unknown, copy=False)),
        copy=False,
    )


def _is_equality(node: exp.Expr) -> bool:
    return isinstance(node, exp.EQ) and not node.expression.find(exp.Column)


def _is_safe(node: exp.Expr) -> bool:
    """Whether a list has been rewritten already."""
    above = _above(node)
    other = above.expression if isinstance(above, exp.And) else None
    if not isinstance(other, exp.Not) or not isinstance(other.this, exp.Is):
        return False
    is_same: bool = other.this.this == node.this
    return is_same


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    waiting = [node]
    while waiting:
        tree = waiting.pop()
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.Or):
            waiting += [tree.this, tree.expression]
        else:
            yield tree


def _above(node: exp.Expr) -> exp.Expr | None:
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return above
