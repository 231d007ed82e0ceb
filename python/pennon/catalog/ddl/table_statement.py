"""Parses ALTER TABLE … PARTITION FIELD and ALTER TABLE … WRITE.

The JVM sends what stands behind the table's name as the value of one table property: that is a
statement which Spark's grammar can carry anywhere (scripts, EXECUTE IMMEDIATE, variables).

| statement | meaning |
|---|---|
| ``ADD PARTITION FIELD transform [AS name]`` | ``FieldChange("add", …)`` |
| ``DROP PARTITION FIELD name or transform`` | ``FieldChange("drop", …)`` |
| ``REPLACE PARTITION FIELD name or transform WITH transform`` | ``FieldChange("replace", …)`` |
| ``WRITE [DISTRIBUTED BY PARTITION] [LOCALLY] ORDERED BY columns`` | ``OrderChange(columns)`` |
| ``WRITE [DISTRIBUTED BY PARTITION] UNORDERED`` | ``OrderChange(None)`` |
| ``WRITE DISTRIBUTED BY PARTITION`` | ``OrderChange(None)``, as in Iceberg |

Every write is distributed by partition and ordered file by file: the words that ask for it change
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from pennon.catalog.partitioning import FieldChange
from pennon.errors import PartitionFieldSyntax, TransformSyntax, WriteOrderSyntax
from pennon.predicate.spark_dialect import SparkSql
from pennon.transforms.transform_text import parse_transform

__all__ = ["STATEMENT", "OrderChange", "statement_of"]

STATEMENT: Final = "pennon.statement"
_QUOTED: Final = (TokenType.IDENTIFIER, TokenType.STRING)
_FORMS: Final = {
    "add": "ADD PARTITION FIELD <column or transform> [AS name]",
    "drop": "DROP PARTITION FIELD <name, column or transform>",
    "replace": "REPLACE PARTITION FIELD <name, column or transform> WITH <column or transform> "
    "[AS name]",
}


@dataclass(frozen=True, slots=True)
class OrderChange:
    """A change of the write order.

    Args:
        order: The columns as text; None for WRITE UNORDERED.
    """

    order: str | None


def statement_of(value: str) -> FieldChange | OrderChange:
    """Read a statement.

    Args:
        value: The property's value; ``%``, ``'`` and backslashes are written as in a URL.

    Raises:
        PartitionFieldSyntax: What follows FIELD is no field; the error shows the form.
        WriteOrderSyntax: What follows WRITE is no order.

    Example:
        >>> statement_of("ADD PARTITION FIELD bucket(16, id) AS shard").name
        'shard'
        >>> statement_of("WRITE LOCALLY ORDERED BY id, ts DESC")
        OrderChange(order='id, ts DESC')

    Spec: "Partition Evolution".
    """
    text = unquote(value)
    words = text.split(None, 1)
    first, rest = words[0].lower(), (words[1] if len(words) > 1 else "")
    if first == "write":
        return _order_change(rest)
    field = rest.split(None, 2)[2:]
    return _field_change(first, field[0] if field else "")


def _order_change(text: str) -> OrderChange:
    tokens = _tokens(text)
    if tokens is None:
        raise WriteOrderSyntax(order=text, reason="a quote is not closed")
    at = _after(tokens, 0, "DISTRIBUTED", "BY", "PARTITION")
    if tokens and (len(tokens) == at or _after(tokens, at, "UNORDERED") == len(tokens) == at + 1):
        return OrderChange(None)
    at = _after(tokens, at, "LOCALLY")
    start = _after(tokens, at, "ORDERED", "BY")
    if start == at or start == len(tokens):
        why = "it is neither ORDERED BY with columns nor UNORDERED"
        raise WriteOrderSyntax(order=f"WRITE {text}", reason=why)
    return OrderChange(text[tokens[start].start :])


def _after(tokens: Sequence[Token], at: int, *words: str) -> int:
    """Give the index after these words, or the same one where they do not follow."""
    words_here = [token.text.upper() for token in tokens[at : at + len(words)]]
    return at + len(words) if words_here == list(words) else at


def _tokens(text: str) -> list[Token] | None:
    try:
        return list(sqlglot.tokenize(text, read=SparkSql))
    except TokenError:
        return None


def _field_change(action: str, text: str) -> FieldChange:
    tokens = _tokens(text)
    if tokens is None:
        raise _failure(action, text, "a quote is not closed")
    if any(token.token_type is TokenType.COMMA for token in _top_level(tokens)):
        raise _failure(action, text, "it is more than one field")
    rest: Sequence[Token] = tokens
    field: Mapping[str, object] | None = None
    if action != "add":
        before, rest = _split_at(tokens, "WITH")
        if action == "replace" and not rest:
            raise _failure(action, text, "the word WITH and a field behind it are missing")
        field = _field(action, text, before if action == "replace" else tokens)
    if action == "drop":
        return FieldChange(action, None, field)
    new, name = _split_at(rest, "AS")
    if len(new) < len(rest) and len(name) != 1:
        raise _failure(action, text, "one name has to follow AS")
    return FieldChange(action, _field(action, text, new), field, name[0].text if name else None)


def _field(action: str, text: str, tokens: Sequence[Token]) -> Mapping[str, object]:
    if not tokens:
        raise _failure(action, text, "the field is missing")
    try:
        return parse_transform(text[tokens[0].start : tokens[-1].end + 1])
    except TransformSyntax as error:
        raise _failure(action, text, error.parameters["why"]) from error


def _split_at(tokens: Sequence[Token], word: str) -> tuple[Sequence[Token], Sequence[Token]]:
    """Split at a word that stands in no parentheses; nothing is behind it where it is not there."""
    for token in _top_level(tokens):
        if token.token_type not in _QUOTED and token.text.upper() == word:
            at = tokens.index(token)
            return tokens[:at], tokens[at + 1 :]
    return tokens, ()


def _top_level(tokens: Sequence[Token]) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        depth -= token.token_type is TokenType.R_PAREN
        if depth == 0:
            yield token
        depth += token.token_type is TokenType.L_PAREN


def _failure(action: str, text: str, why: str) -> PartitionFieldSyntax:
    statement = f"{action.upper()} PARTITION FIELD"
    return PartitionFieldSyntax(text=text, statement=statement, why=why, form=_FORMS[action])
