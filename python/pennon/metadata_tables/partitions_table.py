"""``table.partitions``: one row per partition, from the manifest alone; no leaf is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.manifest.column_bounds import BESIDE
from pennon.manifest.partition_name import partition_names
from pennon.manifest.versions.last_changes import last_changes
from pennon.manifest.versions.manifest_history import versions_until
from pennon.metadata_tables.metadata_table import MetadataTable, Selection
from pennon.metadata_tables.partition_tuple import (
    LEAF_COLUMNS,
    leaf_columns,
    tuple_condition,
    tuple_fields,
)
from pennon.metadata_tables.readable_metrics import (
    READABLE_METRICS,
    metrics_field,
    readable_metrics,
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
# As Iceberg calls them. They need a look at every version that is left.
_LAST_CHANGE = (
    pa.field("last_updated_at", pa.timestamp("us", "UTC")),
    pa.field("last_updated_snapshot_id", pa.int64()),
)


def _schema(snapshot: Snapshot) -> pa.Schema:
    counts = [pa.field(name, pa.int64()) for name in _COUNTS]
    others = [pa.field("read_version", pa.uint64()), pa.field("name", pa.utf8())]
    metrics = metrics_field(snapshot) if snapshot.layout.records_commits else []
    own = [*tuple_fields(snapshot), *LEAF_COLUMNS, *counts, *others, *_LAST_CHANGE]
    return pa.schema([*own, *metrics])


def _rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    condition = tuple_condition(snapshot, _schema(snapshot), selection.predicates)
    has_metrics = READABLE_METRICS in selection.columns
    leaves = snapshot.leaves(condition, (), BESIDE if has_metrics else ()).table
    columns = leaf_columns(snapshot, leaves)
    columns |= {name: leaves[counted] for name, counted in _COUNTS.items()}
    columns["read_version"] = leaves["read_version"]
    if "name" in selection.columns:
        columns["name"] = partition_names(snapshot, leaves)
    if {column.name for column in _LAST_CHANGE} & {*selection.columns}:
        columns |= _last_change(snapshot, leaves)
    if has_metrics:
        columns[READABLE_METRICS] = readable_metrics(snapshot, leaves)
    yield pa.table(columns)


def _last_change(snapshot: Snapshot, leaves: pa.Table) -> dict[str, pa.Array]:
    """Tell at which version each partition became what it is; NULL where that is not known."""
    versions: list[int | None] = [None] * len(leaves)
    if snapshot.layout.records_commits:
        changes = last_changes(snapshot)
        versions = list(map(changes.get, leaves["object_id"].to_pylist()))
    listed = versions_until(snapshot) if any(versions) else None
    times: dict[int | None, object] = {}
    if listed is not None:
        times = dict(zip(*(column.to_pylist() for column in listed.columns), strict=True))
    at, by = _LAST_CHANGE
    return {
        at.name: pa.array([times.get(version) for version in versions], at.type),
        by.name: pa.array(versions, by.type),
    }


PARTITIONS = MetadataTable("partitions", _schema, _rows)
