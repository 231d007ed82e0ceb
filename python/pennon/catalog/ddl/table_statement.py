"""Parses what ALTER TABLE says of partition fields, write orders, tags and indexes.

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

Tags, by Iceberg's grammar:

| statement | ``TagChange.action`` |
|---|---|
| ``CREATE TAG [IF NOT EXISTS] name [AS OF VERSION n] [RETAIN n DAYS]`` | ``create`` |
| ``CREATE OR REPLACE TAG name …`` | ``create_or_replace`` |
| ``REPLACE TAG name …`` | ``replace`` |
| ``DROP TAG [IF EXISTS] name`` | ``drop`` |

``RETAIN`` counts ``DAYS``, ``HOURS`` or ``MINUTES`` from when the tag was made or moved last.

Indexes, as Spark's grammar and lance-spark's write them: ``CREATE INDEX [IF NOT EXISTS] name [USING
kind] (column)`` with ``WITH`` or ``OPTIONS (key = value, …)`` behind it; ``DROP INDEX [IF EXISTS]
name``; and ``REFRESH INDEX name``, for rows that came later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from pennon.catalog.partitioning import FieldChange
from pennon.catalog.tables.loaded_table import Table, load
from pennon.errors import (
    BranchesNotSupported,
    IndexAlreadyExists,
    IndexNotFound,
    IndexSyntax,
    PartitionFieldSyntax,
    PennonError,
    TagRefused,
    TagSyntax,
    TransformSyntax,
    WriteOrderSyntax,
)
from pennon.manifest.versions.tags import Tag, drop_tag, set_tag, tags_of
from pennon.predicate.parse import SparkSql
from pennon.search import create_index, define_index, drop_index, refresh_indexes
from pennon.transforms.registry import parse_transform

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Name
    from pennon.manifest import Snapshot
    from pennon.manifest.format.properties import IndexDefinition

__all__ = ["OrderChange", "TagChange", "change_tag", "run_statement", "statement_of"]

_FORM: Final = (
    "CREATE INDEX [IF NOT EXISTS] name [USING kind] (column) [WITH (key = value, …)],"
    " DROP INDEX [IF EXISTS] name or REFRESH INDEX name"
)
_USUAL_KIND: Final = "IVF_RQ"
_METRICS: Final = ("distance_type", "metric", "metric_type")


def is_about_indexes(text: str) -> bool:
    """Tell whether the text behind a table's name is of an index.

    Example:
        >>> is_about_indexes("CREATE INDEX i (v)"), is_about_indexes("CREATE TAG q1")
        (True, False)
    """
    return [word.upper() for word in text.split(None, 2)[1:2]] == ["INDEX"]


def change_index(catalog: Catalog, identifier: Name, text: str) -> None:
    """Run a statement.

    Args:
        catalog: The catalog.
        identifier: The table.
        text: What stands behind the table's name.

    Raises:
        IndexSyntax: It is no such statement.
        IndexAlreadyExists: There is an index of that name.
        IndexNotFound: There is none to drop or to refresh.
        IndexRefused: Such a column has no index of this kind.
    """
    words = _IndexWords(text)
    table = load(catalog, identifier)
    table.stored.check_writable("change the indexes of")
    if words.take("CREATE", "INDEX"):
        is_optional = words.take("IF", "NOT", "EXISTS")
        try:
            create_index(table.snapshot, words.definition(table.snapshot, table.name), table.name)
        except IndexAlreadyExists:
            if not is_optional:
                raise
        return
    if words.take("DROP", "INDEX"):
        is_optional = words.take("IF", "EXISTS")
        name = words.word("the name is missing")
        words.end()
        try:
            drop_index(table.snapshot, name, table.name)
        except IndexNotFound:
            if not is_optional:
                raise
        return
    words.expect("REFRESH", "INDEX")
    name = words.word("the name is missing")
    words.end()
    refresh_indexes(table.snapshot, table.name, [name])


_TAG_FORMS: Final = {
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


def run_statement(catalog: Catalog, identifier: Name, text: str) -> bool:
    """Run a statement about a tag or an index, which changes no column or property.

    Args:
        catalog: The catalog.
        identifier: The table.
        text: What stands behind the table's name.

    Returns:
        Whether it is such a statement.

    Raises:
        PennonError: As of ``change_tag`` and ``change_index``.
    """
    if is_about_indexes(text):
        change_index(catalog, identifier, text)
    elif is_about_names(text):
        change_tag(catalog, identifier, tag_change_of(text, catalog.full_name(identifier)))
    else:
        return False
    return True


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
    words = _Words(text)
    action = words.take("CREATE") or words.take("REPLACE") or words.take("DROP")
    if action == "create" and words.take("OR", "REPLACE"):
        action = "create_or_replace"
    words.form = _TAG_FORMS[action.partition("_")[0]]
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

    syntax: type[PennonError] = TagSyntax
    form: str = _TAG_FORMS["create"]

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        try:
            self._tokens: Sequence[Token] = sqlglot.tokenize(text, read=SparkSql)
        except TokenError as error:
            raise self.failure("a quote is not closed") from error

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
            raise self.failure("the name is missing")
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
            raise self.failure(why)
        self._at += 1
        return int(text)

    def duration(self) -> timedelta:
        """Take a number and its unit."""
        count = self.number("RETAIN")
        unit = self._tokens[self._at].text.upper() if self._at < len(self._tokens) else ""
        if unit not in _UNITS:
            raise self.failure("DAYS, HOURS or MINUTES have to follow the number")
        self._at += 1
        if not 0 < count <= _LONGEST:
            why = f"a tag holds for 1 to {_LONGEST} of these"
            raise self.failure(why)
        return count * _UNITS[unit]

    def end(self) -> None:
        """Refuse what is left."""
        if self._at < len(self._tokens):
            why = f"{self._tokens[self._at].text} is too much"
            raise self.failure(why)

    def failure(self, why: str) -> PennonError:
        """Refuse the statement."""
        return self.syntax(text=self._text, why=why, form=self.form)


class _IndexWords(_Words):
    """Those of a statement about an index."""

    syntax = IndexSyntax
    form = _FORM

    def definition(self, snapshot: Snapshot, table: str) -> IndexDefinition:
        """Take what stands behind CREATE INDEX."""
        name = self.word("the name is missing")
        kind = self.word("the kind is missing") if self.take("USING") else _USUAL_KIND
        self.expect("(")
        column = self.word("the column is missing")
        while self.take("."):
            column += "." + self.word("the field is missing")
        if self.take(","):
            raise self.failure("an index is of one column")
        self.expect(")")
        options: dict[str, object] = {}
        if self.take("WITH") or self.take("OPTIONS"):
            options = self._options()
        self.end()
        metric = next((str(options.pop(key)) for key in _METRICS if key in options), None)
        where = options.pop("where", None)
        return define_index(
            snapshot,
            column,
            kind,
            table=table,
            name=name,
            metric=metric,
            where=None if where is None else str(where),
            options=options,
        )

    def _options(self) -> dict[str, object]:
        self.expect("(")
        options: dict[str, object] = {}
        while not self.take(")"):
            key = self.word("an option's name is missing").lower()
            self.take("=")
            options[key] = self.word(f"the value of {key} is missing")
            if not self.take(","):
                self.expect(")")
                break
        return options

    def expect(self, *words: str) -> None:
        """Pass over these words, which have to stand here."""
        if not self.take(*words):
            raise self.failure(" ".join(words) + " is missing")

    def word(self, otherwise: str) -> str:
        """Take a name, a text or a number."""
        if self._at == len(self._tokens) or self._tokens[self._at].text in "(),=;":
            raise self.failure(otherwise)
        self._at += 1
        return self._tokens[self._at - 1].text


# Creates, replaces and drops tags of a table; none of them is a commit.


def change_tag(catalog: Catalog, identifier: Name, asked: TagChange) -> Tag | None:
    """Make, move or drop a tag.

    Args:
        catalog: The catalog.
        identifier: The table: a partitioned namespace or a plain dataset.
        asked: What the statement asks for.

    Returns:
        The tag; None where one was dropped, or there was none to drop.

    Raises:
        TagRefused: The tag cannot have this name, or could not hold what it names.
        TagAlreadyExists: There is one, and it is not to be replaced.
        TagNotFound: There is none to replace or to drop.
        SnapshotNotFound: There is no such version.
        DraftLayout: The namespace has the older draft's layout.
    """
    newest = load(catalog, identifier)
    newest.stored.check_writable("change the tags of")
    existing = tags_of(newest.snapshot.manifest).get(asked.name)
    if asked.action == "drop":
        if existing is not None or not asked.if_exists:
            drop_tag(newest.snapshot.manifest, asked.name, table=newest.name)
        return None
    if existing is not None and asked.if_not_exists:
        return existing
    named = newest
    if asked.version is not None:
        named = load(catalog, identifier, str(asked.version))
    _check_holds(named, asked.name)
    return set_tag(
        named.snapshot.manifest,
        asked.name,
        named.snapshot.version,
        asked.retain,
        table=named.name,
        create=asked.action != "replace",
        replace=asked.action != "create",
    )


def _check_holds(table: Table, name: str) -> None:
    """Refuse a tag that would not hold the rows: in weak mode leaves are read at their newest."""
    if table.snapshot.names_leaf_versions:
        return
    raise TagRefused(
        tag=name,
        table=table.name,
        why=f"its version {table.snapshot.version} leaves open at which versions partitions are"
        " read, so that the rows behind the tag would change",
        advice="Tag a table of strong transactions, or copy this one with CREATE TABLE … AS SELECT",
    )


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
