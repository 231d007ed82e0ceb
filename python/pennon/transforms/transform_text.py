"""Parses and writes transforms as SQL: ``months(ordered_at)``, ``bucket(16, customer_id)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from pennon.errors import TransformSyntax
from pennon.predicate.spark_dialect import SparkSql

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["parse_transform"]

_Argument = dict[str, object]
# Both are typed as if the name belonged to the transform.
_NAME: Final = (
    "the name of a new field stands behind AS in SQL, and is the second argument of"
    " add_partition_field in Python"
)


def parse_transform(text: str) -> dict[str, object]:
    """Read one entry of PARTITIONED BY into the form that ``registry.from_spark`` takes.

    Args:
        text: A column, or a transform of columns; names with blanks or dots in backquotes.

    Raises:
        TransformSyntax: The text is neither.

    Example:
        >>> parse_transform("bucket(16, customer_id)")
        {'function': 'bucket', 'arguments': [{'literal': 16}, {'column': ['customer_id']}]}

    Spec: "Transform Schema".
    """
    try:
        tokens = sqlglot.tokenize(text, read=SparkSql)
    except TokenError as error:
        raise TransformSyntax(transform=text, why="a quote is not closed") from error
    if not tokens:
        raise TransformSyntax(transform=text, why="it is empty")
    _check_no_marker(text, tokens)
    end = _end(text, tokens)
    if end < len(tokens):
        raise TransformSyntax(transform=text, why=_too_much(text, tokens[end]))
    if len(tokens) > 1 and tokens[1].token_type is TokenType.L_PAREN:
        return {"function": tokens[0].text, "arguments": _arguments(text, tokens[2:-1])}
    return {"function": "identity", "arguments": [_argument(text, tokens)]}


def _check_no_marker(text: str, tokens: Sequence[Token]) -> None:
    """Refuse ``?`` and ``:n``: Spark fills in neither in what it does not parse itself."""
    for before, token in zip((None, *tokens), tokens, strict=False):
        begins = before is None or before.token_type in (TokenType.L_PAREN, TokenType.COMMA)
        if token.token_type is TokenType.PLACEHOLDER or (
            begins and token.token_type is TokenType.COLON
        ):
            why = "parameter markers are not taken here, write the values themselves"
            raise TransformSyntax(transform=text, why=why)


def _end(text: str, tokens: Sequence[Token]) -> int:
    """Give the index behind the transform or the column; the rest is for ``_argument`` to judge."""
    if len(tokens) > 1 and tokens[1].token_type is TokenType.L_PAREN:
        depth = 0
        for at, token in enumerate(tokens):
            depth += token.token_type is TokenType.L_PAREN
            depth -= token.token_type is TokenType.R_PAREN
            if at > 0 and depth == 0:
                return at + 1
        raise TransformSyntax(transform=text, why="the closing parenthesis is missing")
    at = 1
    while at + 1 < len(tokens) and tokens[at].token_type is TokenType.DOT:
        at += 2
    behind = tokens[at : at + 1]
    is_cut = bool(behind) and _is_name(tokens[0])
    if is_cut and (behind[0].token_type is TokenType.R_PAREN or _is_name(behind[0])):
        return at
    return len(tokens)


def _too_much(text: str, first: Token) -> str:
    why = f"'{text[first.start :].strip()}' at its end is too much"
    if first.token_type is TokenType.R_PAREN:
        return why
    return f"{why}: {_NAME}"


def _arguments(text: str, tokens: Sequence[Token]) -> list[_Argument]:
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.COMMA:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [_argument(text, piece) for piece in pieces]


def _argument(text: str, tokens: Sequence[Token]) -> _Argument:
    match tokens:
        case [*texts] if texts and all(token.token_type is TokenType.STRING for token in texts):
            # A doubled quote comes as two strings.
            return {"literal": "'".join(token.text for token in texts)}
        case [token] if token.token_type is TokenType.NUMBER and token.text.isdecimal():
            return {"literal": int(token.text)}
        case [dash, token] if (dash.token_type, token.token_type) == (
            TokenType.DASH,
            TokenType.NUMBER,
        ) and token.text.isdecimal():
            return {"literal": -int(token.text)}
    names, dots = tokens[::2], tokens[1::2]
    is_path = (
        len(names) == len(dots) + 1
        and all(_is_name(token) for token in names)
        and all(token.token_type is TokenType.DOT for token in dots)
    )
    if not is_path:
        shown = " ".join(token.text for token in tokens) or "nothing"
        raise TransformSyntax(transform=text, why=f"{shown} is neither a column nor a literal")
    return {"column": [token.text for token in names]}


def _is_name(token: Token) -> bool:
    return token.token_type is TokenType.IDENTIFIER or token.text.replace("_", "a").isalnum()
