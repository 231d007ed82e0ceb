"""Spark 4's SQL as a dialect of sqlglot, for reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser


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


def _is_unit(unit: exp.Expr) -> bool:
    """Whether sqlglot takes a unit as it is stated.

    It reads ``Q`` as ``QUARTER``, and a column as the unit of its name. Spark knows no such letter
    and makes NULL of it.
    """
    return unit.is_string and unit.name.upper() not in exp.TimeUnit.UNABBREVIATED_UNIT_NAME


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
            "TRUNC": _trunc,
            "FROM_UNIXTIME": lambda arguments: exp.Anonymous(
                this="from_unixtime", expressions=arguments
            ),
        }
