"""The examples in Spark's descriptions of its functions, and where their literals stand.

An example is kept as Spark writes it: its tokens only say which signs are a literal, and of which
kind, so that another literal, or a column, can be written in its place.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import SqlglotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = ["Example", "Literal", "example_of", "examples_of_spark"]

_TYPED: Final = {
    TokenType.DATE: "date",
    TokenType.TIMESTAMP: "timestamp",
    TokenType.TIMESTAMPTZ: "timestamp",
    TokenType.TIMESTAMPLTZ: "timestamp",
    TokenType.TIMESTAMPNTZ: "ntz",
}
_SUFFIXES: Final = {
    "L": "bigint",
    "S": "smallint",
    "Y": "tinyint",
    "D": "double",
    "F": "float",
    "BD": "decimal",
}
_UNITS: Final = (
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "DAYOFWEEK", "DOW", "DOY"),
    *("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"),
)
# Those of functions that only the grammar knows, so that nothing describes them.
_OF_THE_GRAMMAR: Final = (
    "timestampadd(HOUR, 8, TIMESTAMP'2024-03-10 01:30:00')",
    "timestampadd(MONTH, -1, TIMESTAMP_NTZ'2024-03-31 00:00:00')",
    "timestampdiff(DAY, TIMESTAMP'2024-03-09 02:30:00', TIMESTAMP'2024-03-11 01:30:00')",
    "dateadd(WEEK, 3, DATE'2024-02-29')",
    "datediff(MONTH, DATE'2024-01-31', DATE'2024-02-29')",
    "trim(BOTH 'SL' FROM 'SSparkSQLS')",
    "CASE WHEN 1 > 0 THEN 'a' WHEN 2.5 > 1 THEN 'b' ELSE 'c' END",
    "CAST('2016-07-30 12:00:00' AS TIMESTAMP)",
    "CAST('10' AS INT)",
    "CAST(2.5 AS STRING)",
    "CAST(TIMESTAMP'2024-11-03 01:30:00' AS DATE)",
    "TIMESTAMP'2024-03-10 01:30:00' + INTERVAL 1 DAY",
    "DATE'2024-01-31' - DATE'2023-02-28'",
)


@dataclass(frozen=True, slots=True)
class Literal:
    """Signs of an example: the first, the one behind the last, and the kind of the literal."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Example:
    """An expression with literals, and the group of functions that Spark counts it among."""

    text: str
    group: str
    literals: tuple[Literal, ...]

    @property
    def scope(self) -> str:
        """Give the signs before the first parenthesis: mostly the name of a function."""
        return self.text.partition("(")[0]

    def written(self, literal: Literal) -> str:
        """Give a literal as it stands there."""
        return self.text[literal.start : literal.end]

    def with_parts(self, parts: Sequence[str]) -> str:
        """Write a part in the place of each literal."""
        text = self.text
        for literal, part in reversed(list(zip(self.literals, parts, strict=True))):
            text = text[: literal.start] + part + text[literal.end :]
        return text


def examples_of_spark(spark: SparkSession) -> list[Example]:
    """List the examples of all functions that have literals and read no rows, in a fixed order."""
    catalog = spark._jsparkSession.sessionState().catalog()
    assert spark._jvm is not None
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    examples = {text: example_of(text, "grammar") for text in _OF_THE_GRAMMAR}
    for row in sorted(spark.sql("SHOW FUNCTIONS").collect()):
        try:
            described = catalog.lookupFunctionInfo(identifier(row.function))
        except PySparkException:
            continue  # an operator that is described, but no function
        # A description is for people: this takes statements out of it, none apart.
        for text in re.findall(r"> SELECT (.*?);\n", described.getExamples(), re.DOTALL):
            examples.setdefault(text, example_of(text, described.getGroup()))
    return [example for example in examples.values() if example is not None]


def example_of(text: str, group: str) -> Example | None:
    """Read an example.

    Returns:
        It, or None where it has no literal, reads rows or has several columns.
    """
    try:
        tokens = tokenize(text, read="spark")
    except SqlglotError:
        return None
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and token.token_type in (TokenType.FROM, TokenType.COMMA):
            return None
    literals = tuple(_literals(tokens))
    return Example(text, group, literals) if literals else None


def _literals(tokens: Sequence[Token]) -> Iterator[Literal]:
    at = 0
    while at < len(tokens):
        token, behind = tokens[at], tokens[at + 1 : at + 6]
        kind, count = _literal(token, behind)
        if kind:
            last = tokens[at + count - 1]
            yield Literal(token.start, last.end + 1, kind)
        at += count


def _literal(token: Token, behind: Sequence[Token]) -> tuple[str, int]:
    """Give the kind of the literal that begins here, none being ``''``, and its tokens."""
    kinds = [token.token_type, *(following.token_type for following in behind)]
    match kinds:
        case [TokenType.INTERVAL, TokenType.STRING | TokenType.NUMBER, _, *_]:
            return "interval", 5 if len(behind) > 3 and behind[2].text.upper() == "TO" else 3
        case [named, TokenType.STRING, *_] if named in _TYPED:
            return _TYPED[named], 2
        case [TokenType.VAR | TokenType.TIME, TokenType.STRING, *_]:
            return "", 2  # TIME'…', and names of a column
        case [TokenType.NUMBER, TokenType.DCOLON, _, *_] if behind[0].start == token.start:
            return _SUFFIXES.get(behind[1].text.upper(), ""), 3
        case [TokenType.NUMBER, *_]:
            return _number(token.text), 1
        case [TokenType.HEX_STRING, *_]:
            return "binary", 1
        case [TokenType.TRUE | TokenType.FALSE, *_]:
            return "boolean", 1
        case [TokenType.STRING | TokenType.RAW_STRING, *_]:
            return "time text" if _is_time(token.text) else "string", 1
        case [_, TokenType.COMMA | TokenType.FROM, *_] if token.text.upper() in _UNITS:
            return "unit", 1
    return "", 1


def _number(text: str) -> str:
    if "e" in text.lower():
        return "double"
    if "." in text:
        return "decimal"
    return "int" if int(text) < 2**31 else "bigint"


def _is_time(text: str) -> bool:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is None and text[4:8:3] == "--"
