"""The implementation of ``StoredTable`` for each table layout."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pennon.catalog.layouts.partitioned_table import PartitionedTable
from pennon.catalog.layouts.plain_table import PlainTable
from pennon.errors import DraftLayout
from pennon.manifest.table_layout import TableLayout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.catalog.layouts.stored_table import StoredTable
    from pennon.manifest import Snapshot

__all__ = ["STORED_TABLES", "stored_table"]


# A read-only table over a namespace of the older draft.


@dataclass(frozen=True, slots=True)
class DraftTable(PartitionedTable):
    """A namespace of the draft at one version of its manifest."""

    def check_writable(self, verb: str) -> None:
        """Refuse every change.

        Raises:
            DraftLayout: Always; it names the command that makes the table writable.
        """
        raise DraftLayout(verb=verb, location=self.snapshot.location)


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
