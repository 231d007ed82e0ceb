"""Statements that Pennon's tables do not support, and what to use instead.

Such statements are Spark's for tables with directories as partitions, or another table format's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.errors import StatementNotSupported

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["not_supported"]


@dataclass(frozen=True, slots=True)
class _Advice:
    """Why a statement means nothing, and what to type; both may name the table and its catalog."""

    words: tuple[str, ...]
    why: str
    advice: str


_VALUES: Final = "a partition is made of its rows' values"
_NO_STATEMENT: Final = "it is no statement for tables of Pennon"
_DELETE: Final = (
    "DELETE FROM {table} WHERE …, which reads no row where the condition decides whole partitions"
)
_NO_KEYS: Final = "the format has no identifier fields"
_MERGE: Final = "MERGE INTO {table} … ON …, which names the columns that identify a row"
_HISTORY: Final = "SELECT * FROM {table}.history, or {table}.snapshots for what each commit did"
_OF_PARTITION: Final = "what is known of a PARTITION stands in a metadata table"
_PARTITIONS: Final = (
    "SELECT * FROM {table}.partitions, with WHERE partition.<field> = … for some of them"
)
_OWN_FILES: Final = "each table has files of its own"
_COPY: Final = "CREATE TABLE {table} PARTITIONED BY (…) AS SELECT * FROM …"
_ONE_FIELD: Final = "a statement is about one partition field"
_ADVICE: Final = (
    # In front of those of PARTITION, which FIELDS would be taken for.
    _Advice(
        ("ADD", "PARTITION", "FIELDS"),
        _ONE_FIELD,
        "ALTER TABLE {table} ADD PARTITION FIELD …, once for each",
    ),
    _Advice(
        ("DROP", "PARTITION", "FIELDS"),
        _ONE_FIELD,
        "ALTER TABLE {table} DROP PARTITION FIELD …, once for each",
    ),
    _Advice(("ADD", "PARTITION"), _VALUES, "INSERT INTO {table} …, which makes it with its rows"),
    _Advice(("DROP", "PARTITION"), _VALUES, _DELETE),
    _Advice(("TRUNCATE", "TABLE"), _VALUES, _DELETE),
    _Advice(("PARTITION",), _VALUES, "UPDATE {table} SET …, which moves rows where they belong"),
    _Advice(
        ("RECOVER", "PARTITIONS"),
        "its manifest names every partition",
        "CALL {catalog}.system.adopt(table => '{name}', path => '…'), which takes datasets into it",
    ),
    _Advice(
        ("MSCK",),
        "its manifest names every partition",
        "CALL {catalog}.system.check(table => '{name}'), which looks for what is missing",
    ),
    _Advice(
        ("ANALYZE", "TABLE"),
        "its statistics stand with its partitions",
        "CALL {catalog}.system.analyze(table => '{name}')",
    ),
    _Advice(("SET", "IDENTIFIER", "FIELDS"), _NO_KEYS, _MERGE),
    _Advice(("DROP", "IDENTIFIER", "FIELDS"), _NO_KEYS, _MERGE),
    _Advice(
        ("CLUSTER", "BY"),
        "rows are clustered by the partition fields and the write order",
        "PARTITIONED BY (bucket(16, …)) for a new table, ALTER TABLE {table} ADD PARTITION FIELD"
        " bucket(16, …) or ALTER TABLE {table} WRITE ORDERED BY … for one that is there",
    ),
    _Advice(
        ("SORTED", "BY"),
        "rows are sorted by the write order, not within buckets",
        "bucketBy(…) without sortBy(…), or CLUSTERED BY (…) INTO … BUCKETS without SORTED BY, then"
        " ALTER TABLE {table} WRITE ORDERED BY …",
    ),
    _Advice(
        ("VACUUM",),
        _NO_STATEMENT,
        "CALL {catalog}.system.vacuum(table => '{name}'), which deletes files that no version"
        " names, or expire_snapshots, which deletes old versions",
    ),
    _Advice(("FSCK",), _NO_STATEMENT, "CALL {catalog}.system.check(table => '{name}')"),
    _Advice(("REORG", "TABLE"), _NO_STATEMENT, "CALL {catalog}.system.compact(table => '{name}')"),
    _Advice(("SHALLOW", "CLONE"), _OWN_FILES, _COPY),
    _Advice(("DEEP", "CLONE"), _OWN_FILES, _COPY),
    _Advice(("OPTIMIZE",), _NO_STATEMENT, "CALL {catalog}.system.compact(table => '{name}')"),
    _Advice(
        ("RESTORE",),
        _NO_STATEMENT,
        "CALL {catalog}.system.rollback(table => '{name}', version => 3)",
    ),
    _Advice(("DESCRIBE", "HISTORY"), _NO_STATEMENT, _HISTORY),
    _Advice(("DESC", "HISTORY"), _NO_STATEMENT, _HISTORY),
    _Advice(
        ("DESCRIBE", "DETAIL"),
        _NO_STATEMENT,
        "DESCRIBE TABLE EXTENDED {table}, or SELECT * FROM {table}.files",
    ),
    # Behind DETAIL and HISTORY: what else arrives is of a PARTITION.
    _Advice(("DESCRIBE",), _OF_PARTITION, _PARTITIONS),
    _Advice(("DESC",), _OF_PARTITION, _PARTITIONS),
    _Advice(
        ("CREATE", "VIEW"),
        "the catalog {catalog} keeps tables alone",
        "CREATE TEMPORARY VIEW …, or CREATE VIEW spark_catalog.default.… for one that stays",
    ),
)
_FILLERS: Final = frozenset({"IF", "NOT", "EXISTS", "OR", "REPLACE"})


def not_supported(words: Sequence[str], catalog: str, table: str) -> StatementNotSupported | None:
    """Find what to say of a statement.

    Args:
        words: The first words of the statement besides the table's name.
        catalog: The catalog's name.
        table: The table's full name.

    Returns:
        The error, or None for a statement that has a meaning.

    Example:
        >>> not_supported(["OPTIMIZE"], "lance", "lance.shop.orders").parameters["advice"]
        "CALL lance.system.compact(table => 'shop.orders')"
    """
    stated = [word.upper() for word in words if word.upper() not in _FILLERS]
    for advice in _ADVICE:
        if tuple(stated[: len(advice.words)]) == advice.words and "FIELD" not in stated:
            name = table.removeprefix(f"{catalog}.")
            parts = {"catalog": catalog, "table": table, "name": name}
            return StatementNotSupported(
                statement=" ".join(advice.words),
                table=table,
                why=advice.why.format(**parts),
                advice=advice.advice.format(**parts),
            )
    return None
