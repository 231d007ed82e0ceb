"""Parses predicate text of Spark SQL into a normalised tree.

The forms of the result are those of ``normalize``. Zone-less TIMESTAMP text is UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Final, cast

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser

from pennon.errors import PredicateSyntaxError, PredicateTooDeep
from pennon.predicate.dialect import shortened_predicate
from pennon.predicate.normalize import normalize
from pennon.predicate.values.long_lists import with_lists, without_long_lists

if TYPE_CHECKING:
    from collections.abc import Iterable

# Spark 4's SQL as a dialect of sqlglot, for reading.

# The strongest first; shifts are stronger still.
_BITS: Final[Mapping[TokenType, type[exp.Expr]]] = {
    TokenType.AMP: exp.BitwiseAnd,
    TokenType.CARET: exp.BitwiseXor,
    TokenType.PIPE: exp.BitwiseOr,
}


def _trunc(arguments: list[exp.Expr]) -> exp.Expr:
    match arguments:
        case [time, unit] if _is_unit(unit):
            return exp.DateTrunc(this=time, unit=unit)  # type: ignore[no-untyped-call]
        case _:
            return exp.Anonymous(this="trunc", expressions=arguments)


def _date_trunc(arguments: list[exp.Expr]) -> exp.Expr:
    match arguments:
        case [unit, time] if _is_unit(unit):
            return exp.TimestampTrunc(this=time, unit=exp.var(unit.name))
        case _:
            return exp.Anonymous(this="date_trunc", expressions=arguments)


def _regexp_replace(arguments: list[exp.Expr]) -> exp.Expr:
    match arguments:
        case [_, _, _, *_]:
            return exp.RegexpReplace.from_arg_list(arguments)
        case _:  # sqlglot writes none that removes what matches
            return exp.Anonymous(this="regexp_replace", expressions=arguments)


def _is_unit(unit: exp.Expr) -> bool:
    """Whether sqlglot takes a unit as it is stated.

    It reads ``Q`` as ``QUARTER``, and a column as the unit of its name. Spark knows no such letter
    and makes NULL of it.
    """
    name = unit.name.upper()
    return unit.is_string and name != "" and name not in exp.TimeUnit.UNABBREVIATED_UNIT_NAME


class SparkSql(Spark):
    """Spark's SQL since 4.0, where a doubled quote within a text is one quote.

    Before, as in sqlglot's own dialect, ``'it''s'`` was two texts in a row, ``its``.

    Example:
        >>> from sqlglot import parse_one
        >>> print(parse_one("'it''s'", read=SparkSql).name)
        it's
    """

    class Tokenizer(Spark.Tokenizer):
        """A quote stands for itself behind a backslash, and behind its like."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(SparkParser):
        """The patterns and units of times stay as they are: several of them mean one to sqlglot."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            **SparkParser.FUNCTIONS,
            "DATE_FORMAT": lambda arguments: exp.Anonymous(
                this="date_format", expressions=arguments
            ),
            "DATE_TRUNC": _date_trunc,
            "REGEXP_REPLACE": _regexp_replace,
            "TRUNC": _trunc,
            "FROM_UNIXTIME": lambda arguments: exp.Anonymous(
                this="from_unixtime", expressions=arguments
            ),
        }
        TERM: ClassVar[dict[TokenType, type[exp.Binary]]] = {
            **SparkParser.TERM,
            TokenType.DPIPE: exp.DPipe,
        }

        def _parse_bitwise(self) -> exp.Expr | None:
            """Read operators of bits by Spark's four levels, which are one to sqlglot."""
            level = self._parse_shift
            for token, operator in _BITS.items():
                level = partial(self._parse_bits, token, operator, level)
            return level()

        def _parse_bits(
            self,
            token: TokenType,
            operator: type[exp.Expr],
            read: Callable[[], exp.Expr | None],
        ) -> exp.Expr | None:
            this = read()
            while self._match(token):
                this = self.expression(operator(this=this, expression=read()))
            return this

        def _parse_shift(self) -> exp.Expr | None:
            this = self._parse_term()
            while True:
                if self._match_pair(TokenType.LT, TokenType.LT):
                    operator: type[exp.Expr] = exp.BitwiseLeftShift
                elif self._match_pair(TokenType.GT, TokenType.GT):
                    operator = exp.BitwiseRightShift
                else:
                    return this
                this = self.expression(operator(this=this, expression=self._parse_term()))


# Lance and DataFusion read 50 levels; the parser needs some twenty calls for each.
_MOST_LEVELS: Final = 32
# Operators below each other, without parentheses, as `a + a + …` has: what walks over the tree
# needs some seven calls for each.
_MOST_OPERATORS: Final = 64
# Planning reads the same text several times, and the next query has many of the same.
_KEPT_TREES: Final = 512
_LONGEST_KEPT: Final = 500
_PARENTHESES: Final = re.compile(r"[()]")
# What most expressions of a query are: a column, or a field of a struct in one.
_PATH: Final = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")
_NAME: Final = re.compile(r"`((?:[^`]|``)+)`")
# What the parser says of an operator without its other side: the names of its own classes.
# What sqlglot raises where it takes apart the arguments of a call that has too few, or other ones.
_MISREAD: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_MISSING: Final = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")


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
    return normalize(parse_with_lists(sql))


def parse_with_lists(sql: str) -> exp.Expression:
    """Read one expression of Spark SQL as it stands, the long lists behind columns as one leaf.

    Raises:
        PredicateSyntaxError: The text is no expression; says where.
        PredicateTooDeep: It nests deeper than Lance and DataFusion, too, would read.
    """
    if not isinstance(sql, str):  # users of Python hand over expressions of other libraries
        raise _failure(repr(sql), f"it is {type(sql).__name__}, no text,", None, None)
    text, lists = without_long_lists(sql)
    return with_lists(parse_expression(text), lists)


def parse_expression(sql: str) -> exp.Expression:
    """Read one expression of Spark SQL as it stands.

    Raises:
        PredicateSyntaxError: The text is no expression; says where.
        PredicateTooDeep: It nests deeper than Lance and DataFusion, too, would read.
    """
    path = column_path(sql)
    if path is not None and len(path) == 1:
        return exp.column(path[0], quoted=True)
    return _parsed(sql) if len(sql) > _LONGEST_KEPT else _kept(sql).copy()


def column_path(sql: str) -> tuple[str, ...] | None:
    """Give the names that an expression consists of: a column's, and those down to a field in it.

    Returns:
        The names, as Spark quotes them; None for any other expression.

    Example:
        >>> column_path("`address`.`city`"), column_path("`a` + 1")
        (('address', 'city'), None)
    """
    if _PATH.fullmatch(sql) is None:
        return None
    return tuple(name.replace("``", "`") for name in _NAME.findall(sql))


@lru_cache(maxsize=_KEPT_TREES)
def _kept(sql: str) -> exp.Expression:
    return _parsed(sql)


def _parsed(sql: str) -> exp.Expression:
    if _levels(sql) > _MOST_LEVELS:
        raise PredicateTooDeep(predicate=_cited(sql), most=_MOST_LEVELS)
    try:
        tree = sqlglot.parse_one(sql, read=SparkSql, into=exp.Condition)
    except RecursionError as error:
        raise PredicateTooDeep(predicate=_cited(sql), most=_MOST_LEVELS) from error
    except ParseError as error:
        first: Mapping[str, object] = error.errors[0] if error.errors else {}
        description = str(first.get("description") or "it is no expression").rstrip(".")
        reason = _MISSING.sub("a value is missing", description)
        raise _failure(sql, reason, first.get("line"), first.get("col")) from error
    except TokenError as error:
        raise _failure(sql, "a text or a name does not end", None, None) from error
    except _MISREAD as error:
        raise _failure(sql, "a function has not the arguments that it takes", None, None) from error
    if isinstance(tree, exp.Query | exp.Command | exp.Block):
        raise _failure(sql, "it is no expression", None, None)
    if _is_too_deep(tree):
        raise PredicateTooDeep(predicate=_cited(sql), most=_MOST_OPERATORS)
    return cast("exp.Expression", tree)


def readable_predicates(texts: Iterable[str]) -> list[exp.Expression]:
    """Read predicates that Spark evaluates again; what cannot be read is left to it."""
    trees = []
    for text in texts:
        with suppress(PredicateTooDeep, PredicateSyntaxError):
            trees.append(parse_predicate(text))
    return trees


def _levels(sql: str) -> int:
    """Count how deep parentheses nest, those within texts and names included."""
    if sql.count("(") <= _MOST_LEVELS:
        return 0
    depth = deepest = 0
    for sign in _PARENTHESES.findall(sql):
        depth += 1 if sign == "(" else -1
        deepest = max(deepest, depth)
    return deepest


def _is_too_deep(tree: exp.Expr) -> bool:
    """Whether operators stand deeper below each other; chains of AND and of OR are flat."""
    waiting: list[tuple[exp.Expr, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _MOST_OPERATORS:
            return True
        is_chain = isinstance(node, exp.Connector)
        for child in node.iter_expressions():
            if isinstance(child, exp.Literal | exp.Identifier):
                continue
            is_level = not isinstance(child, exp.Paren) and not (
                is_chain and type(child) is type(node)
            )
            waiting.append((child, depth + is_level))
    return False


def _failure(sql: str, reason: str, line: object, column: object) -> PredicateSyntaxError:
    return PredicateSyntaxError(
        predicate=_cited(sql), reason=reason, line=line or 1, column=column or len(sql)
    )


def _cited(sql: str) -> str:
    return repr(shortened_predicate(sql))
