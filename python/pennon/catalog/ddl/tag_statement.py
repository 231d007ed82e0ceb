"""Parses ALTER TABLE … TAG, by Iceberg's grammar.

| statement | ``TagChange.action`` |
|---|---|
| ``CREATE TAG [IF NOT EXISTS] name [AS OF VERSION n] [RETAIN n DAYS]`` | ``create`` |
| ``CREATE OR REPLACE TAG name …`` | ``create_or_replace`` |
| ``REPLACE TAG name …`` | ``replace`` |
| ``DROP TAG [IF EXISTS] name`` | ``drop`` |

``RETAIN`` counts ``DAYS``, ``HOURS`` or ``MINUTES`` from when the tag was made or moved last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from pennon.errors import BranchesNotSupported, TagSyntax
from pennon.predicate.spark_dialect import SparkSql

__all__ = ["TagChange", "is_about_names", "tag_change_of"]

_FORMS: Final = {
    "create": "CREATE [OR REPLACE] TAG [IF NOT EXISTS] name [AS OF VERSION n]"
    " [RETAIN n DAYS | HOURS | MINUTES]",
    "replace": "REPLACE TAG name [AS OF VERSION n] [RETAIN n DAYS | HOURS | MINUTES]",
    "drop": "DROP TAG [IF EXISTS] name",
}
_UNITS: Final = {
    "DAYS": timedelta(days=1),
    "HOURS": timedelta(hours=1),
    "MINUTES": timedelta(minutes=1),
}
_QUOTED: Final = (TokenType.IDENTIFIER, TokenType.STRING)
_LONGEST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class TagChange:
    """A change of a tag.

    Args:
        action: ``create``, ``create_or_replace``, ``replace`` or ``drop``.
        name: The tag.
        version: The version that it shall name; None for the newest.
        retain: How long it holds; None is for ever.
        if_not_exists: Whether a tag that is there stays as it is.
        if_exists: Whether there need be none to drop.
    """

    action: str
    name: str
    version: int | None = None
    retain: timedelta | None = None
    if_not_exists: bool = False
    if_exists: bool = False


def is_about_names(text: str) -> bool:
    """Tell whether the text behind a table's name is of a tag or a branch.

    Example:
        >>> is_about_names("CREATE OR REPLACE TAG q1"), is_about_names("DROP PARTITION FIELD q1")
        (True, False)
    """
    words = [word.upper() for word in text.split(None, 4)[:4]]
    first = words[3:4] if words[1:3] == ["OR", "REPLACE"] else words[1:2]
    return first in (["TAG"], ["BRANCH"])


def tag_change_of(text: str, table: str) -> TagChange:
    """Read a statement.

    Args:
        text: What stands behind the table's name, without comments.
        table: The table's name, for errors.

    Raises:
        TagSyntax: It is no such statement; the error shows the form.
        BranchesNotSupported: It is about a branch.

    Example:
        >>> change = tag_change_of(
        ...     "CREATE TAG IF NOT EXISTS q1 AS OF VERSION 7 RETAIN 90 DAYS", "t"
        ... )
        >>> (change.name, change.version, change.retain.days, change.if_not_exists)
        ('q1', 7, 90, True)
    """
    try:
        words = _Words(text, sqlglot.tokenize(text, read=SparkSql))
    except TokenError as error:
        raise TagSyntax(text=text, why="a quote is not closed", form=_FORMS["create"]) from error
    action = words.take("CREATE") or words.take("REPLACE") or words.take("DROP")
    if action == "create" and words.take("OR", "REPLACE"):
        action = "create_or_replace"
    words.form = _FORMS[action.partition("_")[0]]
    if words.take("BRANCH"):
        raise BranchesNotSupported(
            statement=f"{action.replace('_', ' ').upper()} BRANCH", table=table
        )
    words.take("TAG")
    if action == "drop":
        if_exists = bool(words.take("IF", "EXISTS"))
        change = TagChange(action, words.name(), if_exists=if_exists)
    else:
        if_not_exists = action == "create" and bool(words.take("IF", "NOT", "EXISTS"))
        name = words.name()
        version = words.number("VERSION") if words.take("AS", "OF", "VERSION") else None
        retain = words.duration() if words.take("RETAIN") else None
        change = TagChange(action, name, version, retain, if_not_exists)
    words.end()
    return change


class _Words:
    """The tokens of a statement, read one after the other."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.form = _FORMS["create"]
        self._text = text
        self._tokens = tokens
        self._at = 0

    def take(self, *words: str) -> str:
        """Pass over these words; give them in small letters, or nothing where others follow."""
        words_here = self._tokens[self._at : self._at + len(words)]
        is_there = [token.text.upper() for token in words_here] == list(words)
        if not is_there or any(token.token_type in _QUOTED for token in words_here):
            return ""
        self._at += len(words)
        return "_".join(words).lower()

    def name(self) -> str:
        """Take the tag's name, whose parts a tokenizer may have taken for several words."""
        start = self._at
        if start == len(self._tokens):
            raise self._failure("the name is missing")
        first = self._tokens[start]
        self._at += 1
        if first.token_type in _QUOTED:
            return first.text
        # As in release-1.0: what stands together without a blank is one name.
        while self._at < len(self._tokens) and (
            self._tokens[self._at].start == self._tokens[self._at - 1].end + 1
        ):
            self._at += 1
        return self._text[first.start : self._tokens[self._at - 1].end + 1]

    def number(self, of: str) -> int:
        """Take a whole number."""
        text = self._tokens[self._at].text if self._at < len(self._tokens) else ""
        if not text.isdecimal():
            why = f"a whole number has to follow {of}"
            raise self._failure(why)
        self._at += 1
        return int(text)

    def duration(self) -> timedelta:
        """Take a number and its unit."""
        count = self.number("RETAIN")
        unit = self._tokens[self._at].text.upper() if self._at < len(self._tokens) else ""
        if unit not in _UNITS:
            raise self._failure("DAYS, HOURS or MINUTES have to follow the number")
        self._at += 1
        if not 0 < count <= _LONGEST:
            why = f"a tag holds for 1 to {_LONGEST} of these"
            raise self._failure(why)
        return count * _UNITS[unit]

    def end(self) -> None:
        """Refuse what is left."""
        if self._at < len(self._tokens):
            why = f"{self._tokens[self._at].text} is too much"
            raise self._failure(why)

    def _failure(self, why: str) -> TagSyntax:
        return TagSyntax(text=self._text, why=why, form=self.form)
