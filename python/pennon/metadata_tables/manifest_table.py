"""``table.manifest``: the rows of the format's own table as they are stored.

Spec: "Manifest Table Schema".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.manifest.versions.manifest_history import stored_rows, stored_schema
from pennon.metadata_tables.metadata_table import MetadataTable, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest import Snapshot

__all__ = ["MANIFEST_ROWS"]


def _schema(snapshot: Snapshot) -> pa.Schema:
    return pa.schema([field.remove_metadata() for field in stored_schema(snapshot)])


def _rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    columns = selection.columns or ("object_id",)
    for batch in stored_rows(snapshot, columns):
        yield pa.Table.from_batches([batch])


MANIFEST_ROWS = MetadataTable("manifest", _schema, _rows, needs_manifest=True)
