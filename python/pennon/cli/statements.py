"""Splits SQL text into statements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Statement", "cut_statements", "has_sql", "statements_of"]

# A script of SQL: BEGIN … END, with or without a label before it.
_SCRIPT: Final = re.compile(r"(?:\w+\s*:\s*)?BEGIN\b", re.IGNORECASE)
_WORD: Final = re.compile(r"\w+")
# `END IF` closes what no word below opened, while END alone closes a BEGIN or a CASE.
_ENDS_OF_OTHERS: Final = frozenset({"IF", "WHILE", "FOR", "LOOP", "REPEAT"})
_EXPECTED: Final = re.compile(r"\s*--!\s*(\w+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    Args:
        sql: Its text without the ``;``.
        expected: The condition that it is meant to fail with: ``--! CONDITION`` behind it.
    """

    sql: str
    expected: str | None = None


def statements_of(text: str) -> list[Statement]:
    r"""Split a text at each ``;`` outside of quotes, comments and scripts.

    Args:
        text: Any number of statements of Spark SQL; the last one needs no ``;``.

    Returns:
        The statements, each with the condition that it is meant to fail with; what holds only
        blanks and comments is left out.

    Example:
        >>> for statement in statements_of("SELECT ';'; /* ; */; SELECT 2 -- two; really"):
        ...     print(statement.sql)
        SELECT ';'
        SELECT 2 -- two; really
        >>> [
        ...     statement.expected
        ...     for statement in statements_of("SELECT 1; SELECT x;\n--! UNRESOLVED_COLUMN")
        ... ]
        [None, 'UNRESOLVED_COLUMN']
    """
    pieces, rest = cut_statements(text)
    parts = [*pieces, rest]
    behind = [_EXPECTED.match(part) for part in [*parts[1:], ""]]
    return [
        Statement(part.strip(), None if match is None else match.group(1))
        for part, match in zip(parts, behind, strict=True)
        if has_sql(part)
    ]


def cut_statements(text: str) -> tuple[list[str], str]:
    """Cut off the statements that are complete.

    Args:
        text: What was typed so far.

    Returns:
        The statements that a ``;`` has ended, without it, and what stands behind the last one.
    """
    pieces: list[str] = []
    start = place = depth = 0
    is_script = False
    last_word = ""
    while place < len(text):
        behind = _skip(text, place)
        if behind != place:
            place = behind
            continue
        character = text[place]
        if character == ";" and depth == 0:
            pieces.append(text[start:place])
            place = start = place + 1
            is_script, last_word = False, ""
            continue
        word = _WORD.match(text, place)
        if word is None:
            place += 1
            continue
        if not has_sql(text[start:place]):
            is_script = _SCRIPT.match(text, place) is not None
        if is_script:
            depth = max(0, depth + _step(word.group().upper(), last_word, text, word.end()))
        last_word = word.group().upper()
        place = word.end()
    return pieces, text[start:]


def has_sql(piece: str) -> bool:
    """Tell whether a text holds more than blanks and comments."""
    place = 0
    while place < len(piece):
        if piece[place].isspace():
            place += 1
            continue
        behind = _skip_comment(piece, place)
        if behind == place:
            return True
        place = behind
    return False


def _step(word: str, before: str, text: str, end: int) -> int:
    """Tell how a word of a script changes the number of open BEGINs and CASEs."""
    if word in ("BEGIN", "CASE") and before != "END":
        return 1
    if word != "END":
        return 0
    following = _WORD.match(text, _skip_blanks(text, end))
    is_other = following is not None and following.group().upper() in _ENDS_OF_OTHERS
    return 0 if is_other else -1


def _skip_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _skip(text: str, place: int) -> int:
    """Give the place behind the comment or the quoted text that begins here, else the same."""
    if text[place] in "'\"`":
        return _quote_end(text, place)
    return _skip_comment(text, place)


def _skip_comment(text: str, place: int) -> int:
    if text.startswith("--", place):
        newline = text.find("\n", place)
        return len(text) if newline < 0 else newline
    if text.startswith("/*", place):
        end = text.find("*/", place + 2)
        return len(text) if end < 0 else end + 2
    return place


def _quote_end(text: str, start: int) -> int:
    """Find the place behind the quote that closes the one at ``start``."""
    quote = text[start]
    place = start + 1
    while place < len(text):
        if text[place] == "\\" and quote != "`":
            place += 2
        elif text[place] == quote:
            return place + 1
        else:
            place += 1
    return len(text)
