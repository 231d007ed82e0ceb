"""Predicate text of Spark SQL to a normalised tree.

The forms of the result are those of ``normalize``. Zone-less TIMESTAMP text is UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from pennon.errors import PredicateSyntaxError
from pennon.predicate.normalize import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping


def parse_predicate(sql: str) -> exp.Expression:
    """Read one boolean expression of Spark SQL.

    Args:
        sql: For example ``a.b = 5 AND day < DATE '2025-12-10'``.

    Returns:
        The normalised tree.

    Raises:
        PredicateSyntaxError: The text is no expression; says where.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> parse_predicate("NOT (5 > c OR s LIKE 'p%')").sql(dialect=DataFusion)
        "`c` >= 5 AND NOT starts_with(`s`, 'p')"
    """
    return normalize(parse_expression(sql))


def parse_expression(sql: str) -> exp.Expression:
    """Read one expression of Spark SQL as it stands.

    Raises:
        PredicateSyntaxError: The text is no expression; says where.
    """
    try:
        tree = sqlglot.parse_one(sql, read="spark", into=exp.Condition)
    except ParseError as error:
        first: Mapping[str, object] = error.errors[0] if error.errors else {}
        reason = str(first.get("description") or "it is no expression").rstrip(".")
        raise _failure(sql, reason, first.get("line"), first.get("col")) from error
    except TokenError as error:
        raise _failure(sql, "a text or a name does not end", None, None) from error
    if isinstance(tree, exp.Query | exp.Command | exp.Block):
        raise _failure(sql, "it is no expression", None, None)
    return cast("exp.Expression", tree)


def _failure(sql: str, reason: str, line: object, column: object) -> PredicateSyntaxError:
    return PredicateSyntaxError(
        predicate=repr(sql), reason=reason, line=line or 1, column=column or len(sql)
    )
