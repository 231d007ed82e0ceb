"""The implementation of ``StoredTable`` for each table layout."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pennon.catalog.layouts.draft_table import DraftTable
from pennon.catalog.layouts.partitioned_table import PartitionedTable
from pennon.catalog.layouts.plain_table import PlainTable
from pennon.manifest.table_layout import TableLayout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.catalog.layouts.stored_table import StoredTable
    from pennon.manifest import Snapshot

__all__ = ["STORED_TABLES", "stored_table"]

STORED_TABLES: Final[Mapping[TableLayout, type[StoredTable]]] = MappingProxyType(
    {
        TableLayout.PARTITIONED: PartitionedTable,
        TableLayout.PLAIN: PlainTable,
        TableLayout.DRAFT: DraftTable,
    }
)


def stored_table(name: str, snapshot: Snapshot) -> StoredTable:
    """Give what can be done to a table that was opened.

    Args:
        name: Its name, for errors.
        snapshot: The version.
    """
    return STORED_TABLES[snapshot.layout](name, snapshot)
