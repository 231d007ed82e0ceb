"""Finds what a partition field is computed by in a condition: ``lower(region)``, ``left(s, 2)``.

All rows of a partition have the same value of it, which its tuple names. Only texts: what has
another natural type than its field, or a zero of two signs, is not the same value everywhere.

NULL rules: the field is NULL where what it is computed by is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp, parse_one

from pennon.predicate.arrow_kinds import is_text
from pennon.predicate.dialect import DataFusion
from pennon.transforms.expression import Expression
from pennon.transforms.truncate import Truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.planning.projection.bound_predicate import SourceColumn
    from pennon.transforms.transform import Transform

_FIRST: Final = "CAST(1 AS BIGINT)"


def with_field_values(
    tree: exp.Expr, transform: Transform, sources: Sequence[SourceColumn], column: exp.Column
) -> exp.Expr:
    """Put a partition field in the place of what it is computed by.

    Args:
        tree: A condition as DataFusion computes it; it is changed.
        transform: The field's.
        sources: Its source columns.
        column: What stands for its value.

    Returns:
        The condition, with whatever else of it untouched.

    Example:
        >>> from pennon.planning.projection.bound_predicate import SourceColumn
        >>> region = SourceColumn(("region",), 1, pa.string())
        >>> tree = parse_one("lower(`region`) = 'eu'", dialect=DataFusion)
        >>> lower = Expression("lower(col0)", pa.string())
        >>> print(with_field_values(tree, lower, [region], exp.column("p")).sql())
        p = 'eu'

    Spec: "Partition Pruning".
    """
    declared = transform.declared_type if isinstance(transform, Expression) else None
    if isinstance(transform, Expression) and declared is not None and is_text(declared):
        named = {f"col{at}": source.expression() for at, source in enumerate(sources)}
        wanted = parse_one(transform.expression_sql, dialect=DataFusion).transform(
            lambda node: (
                named[node.name] if isinstance(node, exp.Column) and node.name in named else node
            )
        )
        text = wanted.sql(dialect=DataFusion)
        return tree.transform(
            lambda node: (
                column.copy()
                if isinstance(node, type(wanted)) and node.sql(dialect=DataFusion) == text
                else node
            ),
            copy=False,
        )
    if isinstance(transform, Truncate) and is_text(sources[0].type):
        for part in tree.find_all(exp.Substring):
            if part.this == sources[0].expression() and _is_start(part, transform.width):
                part.set("this", column.copy())
    return tree


def _is_start(part: exp.Substring, width: int) -> bool:
    """Whether a part of a text is its first characters, and no more than so many."""
    start, length = part.args.get("start"), part.args.get("length")
    if start is None or length is None or start.sql(dialect=DataFusion) != _FIRST:
        return False
    literal = length.find(exp.Literal)
    count = length.this if isinstance(length, exp.Cast) else length
    return count is literal and literal.is_int and 0 <= int(literal.name) <= width
