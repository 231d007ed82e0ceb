"""Every metadata table by its name."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pennon.metadata_tables.changes_table import CHANGES
from pennon.metadata_tables.partition_tables import FILES, INDEXES, PARTITIONS
from pennon.metadata_tables.version_tables import HISTORY, MANIFEST_ROWS, REFS, SNAPSHOTS, SPECS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.metadata_tables.metadata_table import MetadataTable

__all__ = ["METADATA_TABLES", "tables_of"]

_ALL = (CHANGES, FILES, HISTORY, INDEXES, MANIFEST_ROWS, PARTITIONS, REFS, SNAPSHOTS, SPECS)
METADATA_TABLES: Mapping[str, MetadataTable] = MappingProxyType(
    {metadata_table.name: metadata_table for metadata_table in _ALL}
)


def tables_of(*, has_manifest: bool) -> Mapping[str, MetadataTable]:
    """Give the metadata tables of a table, by name.

    Args:
        has_manifest: Whether it is a partitioned namespace, and no plain dataset.

    Example:
        >>> tables_of(has_manifest=True).keys() - tables_of(has_manifest=False).keys()
        {'manifest'}
    """
    return {
        name: metadata_table
        for name, metadata_table in METADATA_TABLES.items()
        if has_manifest or not metadata_table.needs_manifest
    }
