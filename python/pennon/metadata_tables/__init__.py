"""A table's metadata as tables, under the names that users of Iceberg know."""

from pennon.metadata_tables.known_tables import METADATA_TABLES, tables_of
from pennon.metadata_tables.metadata_table import MetadataTable, Selection

__all__ = ["METADATA_TABLES", "MetadataTable", "Selection", "tables_of"]
