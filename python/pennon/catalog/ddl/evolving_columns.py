"""The columns that WITH SCHEMA EVOLUTION adds or widens, and how it casts the new values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pennon.catalog.ddl.column_changes import changed_columns
from pennon.catalog.tables.loaded_table import Table
from pennon.errors import UnsupportedTableChange

if TYPE_CHECKING:
    from pennon.manifest import Snapshot

__all__ = ["evolves_by"]


def evolves_by(name: str, snapshot: Snapshot, change: Mapping[str, object]) -> bool:
    """Whether the table follows its source in one column.

    A column that the table lacks is added, and an error then names whatever prevents it. A type is
    followed where it is wider; where it is narrower, or where partition values would change, the
    column keeps its own, and Spark casts the values as it does for every INSERT.

    Args:
        name: The table's name, for errors.
        snapshot: The table.
        change: As the protocol has it.

    Example:
        >>> evolves_by(
        ...     "shop.orders",
        ...     snapshot,
        ...     {"change": "update_type", "column": ["id"], "type": '"byte"'},
        ... )  # doctest: +SKIP
        False
    """
    if change.get("change") != "update_type":
        return True
    try:
        changed_columns(Table(name, (), snapshot), snapshot.schema, change)
    except UnsupportedTableChange:
        return False
    return True
