"""Metadata tables read as Arrow tables, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.failures_by_name import by_name
from pennon.errors import TableNotFound
from pennon.maintenance.read_failures import naming_causes_at
from pennon.metadata_tables import Selection, tables_of

if TYPE_CHECKING:
    from pennon.catalog.tables.loaded_table import Table

__all__ = ["read_metadata_table"]


def read_metadata_table(table: Table, name: str) -> pa.Table:
    """Read all rows of a metadata table.

    Args:
        table: The table at a version.
        name: The metadata table.

    Raises:
        TableNotFound: There is none of that name; lists those there are. Or the table was dropped.
        TableMadeAnew: It was, and another one was made in its place.
        SnapshotExpired: The version has expired.
    """
    metadata_tables = tables_of(has_manifest=table.stored.has_manifest)
    definition = metadata_tables.get(name.lower())
    if definition is None:
        near = f"the metadata tables of {table.name} are {', '.join(sorted(metadata_tables))}"
        raise TableNotFound(table=f"{table.name}.{name}", near=near)
    with by_name(table.name), naming_causes_at(table.snapshot):
        schema = definition.schema(table.snapshot)
        parts = definition.rows(table.snapshot, Selection(tuple(schema.names)))
        tables = [part.select(schema.names).cast(schema) for part in parts]
    return pa.concat_tables(tables) if tables else schema.empty_table()
