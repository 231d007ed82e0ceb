"""The definition of a new table, validated before anything is written.

What would be accepted and then not be so is refused: another format, a table whose files outlive
it, a transaction mode that is none, a name that cannot be typed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pennon.catalog.ddl.statement_advice import not_supported
from pennon.catalog.ddl.table_statement import STATEMENT
from pennon.errors import NewTableRefused
from pennon.manifest.transaction_mode import MODES, STRONG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["check_meaning", "check_new_table"]

# Spark names its own default, parquet, where saveAsTable is given no format.
_FORMATS: Final = frozenset({"lance", "pennon", "parquet"})
# Under which Spark hands STORED AS and ROW FORMAT over.
_HIVE: Final = ("hive.stored-as", "hive.input-format", "hive.output-format", "hive.serde")
# Clauses that Spark hands over as transforms: those that are none.
_CLAUSES: Final = {"cluster_by": ["CLUSTER", "BY"], "sorted_bucket": ["SORTED", "BY"]}


def check_meaning(
    catalog: str,
    table: str,
    properties: Mapping[str, str],
    transforms: Sequence[Mapping[str, object]],
) -> None:
    """Refuse CREATE VIEW, which arrives as a property, and what arrives as a transform.

    Raises:
        StatementNotSupported: It says what to type instead.
    """
    words = unquote(properties.get(STATEMENT, "")).split()
    for transform in transforms:
        words = _CLAUSES.get(str(transform.get("function")), words)
    error = not_supported(words, catalog, table)
    if error is not None:
        raise error


def check_new_table(table: str, properties: Mapping[str, str]) -> None:
    """Refuse what a table of Pennon cannot be.

    Args:
        table: The full name, for errors.
        properties: TBLPROPERTIES and Spark's reserved ones: ``provider``, ``external``, ….

    Raises:
        NewTableRefused: Another format, EXTERNAL, or a transaction mode that is none.
    """
    provider = properties.get("provider")
    if provider is not None and provider.lower() not in _FORMATS:
        raise NewTableRefused(
            table=table,
            why=f"its format would be {provider}, and this catalog stores Lance",
            advice="Leave USING out, or write USING lance",
        )
    stored = next((properties[name] for name in _HIVE if name in properties), None)
    if stored is not None:
        raise NewTableRefused(
            table=table,
            why=f"its files would be stored as {stored}, and this catalog stores Lance",
            advice="Leave STORED AS and ROW FORMAT out",
        )
    if properties.get("external", "false").lower() == "true":
        raise NewTableRefused(
            table=table,
            why="DROP TABLE deletes the files of every table, those at a LOCATION too",
            advice="Leave EXTERNAL out, or use the path as the name: lance.`/path/to/table`",
        )
    transaction = properties.get("transaction", STRONG)
    if transaction.lower() not in MODES:
        raise NewTableRefused(
            table=table,
            why=f"'transaction' = '{transaction}' is neither strong nor weak",
            advice="Write one of these, or leave the property out",
        )
