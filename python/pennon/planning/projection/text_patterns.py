"""LIKE, startswith, endswith and contains on a text column with a literal.

A pattern that only asks for a start, an end or a part is that test; any other LIKE stays as it is
and is accompanied by the start that it implies. NULL is never LIKE anything, nor NOT LIKE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.planning.projection.bound_predicate import (
    FALSE,
    BoundPredicate,
    Compared,
    Opaque,
    SourceColumn,
    all_of,
    is_not_null,
)
from pennon.predicate.comparison import Comparison, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPE = "\\"


@dataclass(frozen=True, slots=True)
class _Wildcard:
    """``%`` or ``_`` of a pattern."""

    sign: str


def like(column: SourceColumn, pattern: str, *, negated: bool) -> BoundPredicate | None:
    """Bind LIKE or NOT LIKE; None for a pattern that ends in its escape character.

    Example:
        >>> column = SourceColumn(("s",), 0, pa.string())
        >>> print(like(column, "abc%", negated=False).comparison)
        STARTS WITH abc
    """
    tokens = list(_tokens(pattern))
    if any(token == _ESCAPE for token in tokens):
        return None
    signs = [token.sign if isinstance(token, _Wildcard) else "" for token in tokens]
    text = "".join(token for token in tokens if isinstance(token, str))
    middle = signs[1:-1]
    if not any(signs):
        operator = Operator.NOT_EQUAL if negated else Operator.EQUAL
        return Compared(column, Comparison(operator, (pa.scalar(text, column.type),)))
    if signs[-1] == "%" and not any(signs[:-1]):
        return text_test(exp.StartsWith, column, text, negated=negated)
    if signs[0] == "%" and not any(signs[1:]):
        return text_test(exp.EndsWith, column, text, negated=negated)
    if signs[0] == "%" and signs[-1] == "%" and not any(middle):
        return text_test(exp.Contains, column, text, negated=negated)
    literal = exp.Literal.string(pattern)
    test = exp.Like(this=column.expression(), expression=literal)
    start = "".join(str(token) for token in tokens[: next(i for i, s in enumerate(signs) if s)])
    if negated or not start:
        return Opaque(exp.Not(this=test) if negated else test)
    return all_of([text_test(exp.StartsWith, column, start, negated=False), Opaque(test)])


def text_test(
    kind: type[exp.Expression], column: SourceColumn, text: str, *, negated: bool
) -> BoundPredicate:
    """Bind startswith, endswith or contains, or its NOT."""
    if not text:
        return FALSE if negated else is_not_null(column)
    if kind is exp.StartsWith:
        operator = Operator.NOT_STARTS_WITH if negated else Operator.STARTS_WITH
        return Compared(column, Comparison(operator, (pa.scalar(text, column.type),)))
    test = kind(this=column.expression(), expression=exp.Literal.string(text))
    return Opaque(exp.Not(this=test) if negated else test, is_exact=True)


def _tokens(pattern: str) -> Iterator[str | _Wildcard]:
    characters = iter(pattern)
    for character in characters:
        if character == _ESCAPE:
            yield next(characters, _ESCAPE)
        else:
            yield _Wildcard(character) if character in "%_" else character
