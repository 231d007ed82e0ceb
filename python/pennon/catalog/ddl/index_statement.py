"""Reads and runs statements about indexes, as Spark's grammar and lance-spark's write them.

What may stand behind the table's name: ``CREATE INDEX [IF NOT EXISTS] name [USING kind] (column)``
with ``WITH`` or ``OPTIONS (key = value, …)`` behind it; ``DROP INDEX [IF EXISTS] name``; and
``REFRESH INDEX name``, for rows that came later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import TokenType
from sqlglot.errors import TokenError

from pennon.catalog.tables.loaded_table import load
from pennon.errors import IndexAlreadyExists, IndexNotFound, IndexSyntax
from pennon.predicate.parse import SparkSql
from pennon.search import create_index, define_index, drop_index, refresh_indexes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import Token

    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Name
    from pennon.manifest import Snapshot
    from pennon.manifest.format.properties import IndexDefinition

__all__ = ["change_index", "is_about_indexes"]

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
    if words.took("CREATE", "INDEX"):
        is_optional = words.took("IF", "NOT", "EXISTS")
        try:
            create_index(table.snapshot, words.definition(table.snapshot, table.name), table.name)
        except IndexAlreadyExists:
            if not is_optional:
                raise
        return
    if words.took("DROP", "INDEX"):
        is_optional = words.took("IF", "EXISTS")
        name = words.name("the name is missing")
        words.end()
        try:
            drop_index(table.snapshot, name, table.name)
        except IndexNotFound:
            if not is_optional:
                raise
        return
    words.expect("REFRESH", "INDEX")
    name = words.name("the name is missing")
    words.end()
    refresh_indexes(table.snapshot, table.name, [name])


class _IndexWords:
    """The tokens of a statement, read one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self._tokens: Sequence[Token] = sqlglot.tokenize(text, read=SparkSql)
        except TokenError as error:
            raise self._failure("a quote is not closed") from error
        self._at = 0

    def definition(self, snapshot: Snapshot, table: str) -> IndexDefinition:
        """Take what stands behind CREATE INDEX."""
        name = self.name("the name is missing")
        kind = self.name("the kind is missing") if self.took("USING") else _USUAL_KIND
        self.expect("(")
        column = self.name("the column is missing")
        while self.took("."):
            column += "." + self.name("the field is missing")
        if self.took(","):
            raise self._failure("an index is of one column")
        self.expect(")")
        options: dict[str, object] = {}
        if self.took("WITH") or self.took("OPTIONS"):
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
        while not self.took(")"):
            key = self.name("an option's name is missing").lower()
            self.took("=")
            options[key] = self.name(f"the value of {key} is missing")
            if not self.took(","):
                self.expect(")")
                break
        return options

    def took(self, *words: str) -> bool:
        """Pass over these words, where they stand here."""
        here = self._tokens[self._at : self._at + len(words)]
        is_there = [token.text.upper() for token in here] == list(words)
        if not is_there or any(token.token_type is TokenType.STRING for token in here):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Pass over these words, which have to stand here."""
        if not self.took(*words):
            raise self._failure(" ".join(words) + " is missing")

    def name(self, otherwise: str) -> str:
        """Take a name, a text or a number."""
        if self._at == len(self._tokens) or self._tokens[self._at].text in "(),=;":
            raise self._failure(otherwise)
        self._at += 1
        return self._tokens[self._at - 1].text

    def end(self) -> None:
        """Refuse what is left."""
        if self._at < len(self._tokens):
            too_much = self._tokens[self._at].text
            raise self._failure(too_much + " is too much")

    def _failure(self, why: str) -> IndexSyntax:
        return IndexSyntax(text=self._text, why=why, form=_FORM)
