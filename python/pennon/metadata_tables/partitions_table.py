"""``table.partitions``: one row per partition, from the manifest alone; no leaf is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.metadata_tables.metadata_table import MetadataTable, Selection
from pennon.metadata_tables.partition_tuple import (
    LEAF_COLUMNS,
    leaf_columns,
    partition_names,
    tuple_condition,
    tuple_fields,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest import Snapshot

__all__ = ["PARTITIONS"]

_COUNTS = {
    "record_count": "num_rows",
    "file_count": "num_fragments",
    "total_data_file_size_in_bytes": "num_bytes",
}


def _schema(snapshot: Snapshot) -> pa.Schema:
    counts = [pa.field(name, pa.int64()) for name in _COUNTS]
    others = [pa.field("read_version", pa.uint64()), pa.field("name", pa.utf8())]
    return pa.schema([*tuple_fields(snapshot), *LEAF_COLUMNS, *counts, *others])


def _rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    condition = tuple_condition(snapshot, _schema(snapshot), selection.predicates)
    leaves = snapshot.leaves(condition).table
    columns = leaf_columns(snapshot, leaves)
    columns |= {name: leaves[counted] for name, counted in _COUNTS.items()}
    columns["read_version"] = leaves["read_version"]
    if "name" in selection.columns:
        columns["name"] = partition_names(snapshot, leaves)
    yield pa.table(columns)


PARTITIONS = MetadataTable("partitions", _schema, _rows)
