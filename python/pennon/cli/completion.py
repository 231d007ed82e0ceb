"""What Tab completes at the prompt: names of tables and columns where they can stand, keywords.

Behind FROM, JOIN, INTO and the like stand tables, behind CALL procedures; elsewhere the columns of
the tables that the statement names, by their aliases, too. Names are asked for when they are needed
and kept for some seconds, so that a large lake is not listed with each key.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pennon.errors import PennonError
from pennon.maintenance.procedures import PROCEDURES

if TYPE_CHECKING:
    from pennon.namespace.lake import Lake

__all__ = ["KEYWORDS", "LakeNames", "completions"]

# fmt: off
KEYWORDS: Final = (
    "ADD", "ALTER", "AND", "AS", "ASC", "BETWEEN", "BY", "CALL", "CASE", "CHANGES", "COLUMN",
    "COMMENT", "CREATE", "CROSS", "DATE", "DELETE", "DESC", "DESCRIBE", "DISTINCT", "DROP", "ELSE",
    "END", "EXISTS", "EXPLAIN", "EXTENDED", "FIELD", "FROM", "FULL", "GROUP", "HAVING", "IN",
    "INNER", "INSERT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "MATCHED", "MERGE",
    "NAMESPACE", "NAMESPACES", "NOT", "NULL", "ON", "OR", "ORDER", "OUTER", "OVER", "OVERWRITE",
    "PARTITION", "PARTITIONED", "PARTITIONS", "PROPERTIES", "RENAME", "REPLACE", "RIGHT", "SELECT",
    "SET", "SHOW", "TABLE", "TABLES", "TAG", "TBLPROPERTIES", "THEN", "TIMESTAMP", "TO", "TRUNCATE",
    "UNION", "UPDATE", "USING", "VALUES", "VERSION", "WHEN", "WHERE", "WITH",
)
# fmt: on
_TABLE_FOLLOWS: Final = frozenset(
    [
        *("FROM", "JOIN", "INTO", "TABLE", "UPDATE", "DESCRIBE", "DESC", "EXTENDED", "OVERWRITE"),
        *("PARTITIONS", "TBLPROPERTIES", "EXISTS"),
    ]
)
_PROCEDURES: Final = (*PROCEDURES, "explain_scan", "explain_join")
_TYPED: Final = re.compile(r"[\w.`$]*$")
_WORD_BEFORE: Final = re.compile(r"(\w+)\s+$")
_NAMED: Final = re.compile(
    r"\b(?:FROM|JOIN|INTO|TABLE|UPDATE|USING)\s+([\w.`$]+)(?:\s+(?:AS\s+)?(\w+))?", re.IGNORECASE
)
_KEPT_SECONDS: Final = 10.0


@dataclass
class LakeNames:
    """The names of a catalog, as they were some seconds ago.

    Args:
        catalog: The catalog's name in SQL.
        lake: Opens it, when the first name is asked for.
    """

    catalog: str
    lake: Callable[[], Lake]
    _kept: dict[str, tuple[float, Sequence[str]]] = field(default_factory=dict)

    def tables(self) -> Sequence[str]:
        """Give the full names of all tables."""
        return self._fresh("", lambda: [f"{self.catalog}.{n}" for n in self.lake().list_tables()])

    def columns(self, table: str) -> Sequence[str]:
        """Give the columns of a table by its full name; none where there is no such table."""
        name = table.removeprefix(f"{self.catalog}.")
        return self._fresh(table, lambda: self.lake().load_table(name).schema.names)

    def _fresh(self, key: str, ask: Callable[[], Sequence[str]]) -> Sequence[str]:
        asked, names = self._kept.get(key, (0.0, ()))
        if not asked or time.monotonic() - asked > _KEPT_SECONDS:
            try:
                names = ask()
            except PennonError:
                names = ()
            self._kept[key] = time.monotonic(), names
        return names


def completions(statement: str, before: str, names: LakeNames) -> list[tuple[str, int]]:
    """Tell what can stand where the cursor is.

    Args:
        statement: The whole text.
        before: What of it is left of the cursor.
        names: The catalog's names.

    Returns:
        Texts, each with how many characters left of the cursor it takes the place of.
    """
    match = _TYPED.search(before)
    typed = match.group() if match is not None else ""
    lead = before[: len(before) - len(typed)]
    word = _WORD_BEFORE.search(lead)
    previous = word.group(1).upper() if word is not None else ""
    begins = _no_quotes(typed)
    texts = dict.fromkeys(_candidates(previous, typed, statement, names))
    # A word that is half typed may look like a table's alias.
    fitting = (text for text in texts if _no_quotes(text).startswith(begins) and text != typed)
    return [(text, len(typed)) for text in fitting]


def _candidates(previous: str, typed: str, statement: str, names: LakeNames) -> Iterator[str]:
    if previous == "CALL":
        yield from (f"{names.catalog}.system.{procedure}(" for procedure in _PROCEDURES)
        return
    if previous in _TABLE_FOLLOWS:
        yield from names.tables()
        if previous != "EXTENDED" and "." not in typed:
            yield from KEYWORDS
        return
    named = _named_tables(statement, names)
    if "." in typed:
        head = typed.partition(".")[0]
        yield from (f"{head}.{column}" for column in _columns(named.get(head, ""), names))
        yield from names.tables()
        return
    for table in dict.fromkeys(named.values()):
        yield from _columns(table, names)
    yield from (alias for alias in named if alias)
    yield from KEYWORDS


def _named_tables(statement: str, names: LakeNames) -> Mapping[str, str]:
    """Give the tables that a statement names, by alias or last name."""
    tables: dict[str, str] = {}
    for table, alias in _NAMED.findall(statement):
        full = table if table.startswith(f"{names.catalog}.") else ""
        if full:
            is_alias = alias and alias.upper() not in KEYWORDS
            tables[alias if is_alias else full.rpartition(".")[2]] = full
    return tables


def _columns(table: str, names: LakeNames) -> Iterator[str]:
    for column in names.columns(table) if table else ():
        yield column if re.fullmatch(r"[A-Za-z_]\w*", column) else f"`{column}`"


def _no_quotes(text: str) -> str:
    return text.replace("`", "").lower()
