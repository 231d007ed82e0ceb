"""Spark 4's SQL as a dialect of sqlglot, for reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Final

from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

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
