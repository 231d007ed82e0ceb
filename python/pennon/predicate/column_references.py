"""References to columns: those of a tree, the fields of a struct with their column, as one path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["quoted_columns", "reference_path", "referenced_paths", "replaced_references"]


def reference_path(node: exp.Expr) -> tuple[str, ...] | None:
    """Give the names of a column reference from the top; None when the node is no column.

    Example:
        >>> from sqlglot import parse_one
        >>> reference_path(parse_one("a.b")), reference_path(parse_one("a + b"))
        (('a', 'b'), None)
    """
    if isinstance(node, exp.Dot):
        outer = reference_path(node.this)
        inner = node.expression
        return (
            None if outer is None or not isinstance(inner, exp.Identifier) else (*outer, inner.name)
        )
    return tuple(part.name for part in node.parts) if isinstance(node, exp.Column) else None


def referenced_paths(tree: exp.Expr) -> set[tuple[str, ...]]:
    """List the column references of a tree, nested fields as a whole.

    Example:
        >>> from sqlglot import parse_one
        >>> sorted(referenced_paths(parse_one("a + b.c > a")))
        [('a',), ('b', 'c')]
    """
    return {path for _, path in _outermost(tree)}


def replaced_references(
    tree: exp.Expr, replacement: Callable[[tuple[str, ...]], exp.Expression]
) -> exp.Expression:
    """Replace every column reference of a tree that is nobody else's, in place.

    Args:
        tree: Without a parent.
        replacement: What stands for a path, nested fields as a whole.

    Returns:
        The tree; another one where it was a column reference itself.

    Example:
        >>> from sqlglot import parse_one
        >>> replaced_references(parse_one("a + b.c"), lambda path: exp.column(path[-1])).sql()
        'a + c'
    """
    root = exp.Paren(this=tree)
    for inner, path in _outermost(root):
        inner.replace(replacement(path))
    whole: exp.Expression = root.this
    whole.pop()
    return whole


def quoted_columns(names: Iterable[str]) -> list[exp.Expr]:
    """Name columns as they are spelt.

    Example:
        >>> [column.sql() for column in quoted_columns(["a.b", "C"])]
        ['"a.b"', '"C"']
    """
    return [exp.column(name, quoted=True) for name in names]


def _outermost(tree: exp.Expr) -> list[tuple[exp.Expr, tuple[str, ...]]]:
    return [
        (inner, path)
        for inner in tree.find_all(exp.Column, exp.Dot)
        if (path := reference_path(inner)) is not None and not isinstance(inner.parent, exp.Dot)
    ]
