"""Spark 4's SQL as a dialect of sqlglot, for reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser


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
        """The patterns of dates stay as they are: several of them mean one to the parser."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            **SparkParser.FUNCTIONS,
            "DATE_FORMAT": lambda arguments: exp.Anonymous(
                this="date_format", expressions=arguments
            ),
            "FROM_UNIXTIME": lambda arguments: exp.Anonymous(
                this="from_unixtime", expressions=arguments
            ),
        }
