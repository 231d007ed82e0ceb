"""``table.snapshots``: the versions that VERSION AS OF and TIMESTAMP AS OF can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import NamespaceHasNoManifest
from pennon.manifest.versions.dataset_history import dataset_history
from pennon.manifest.versions.history import HistoryEntry, history
from pennon.manifest.versions.manifest_history import versions_until
from pennon.metadata_tables.metadata_table import MetadataTable, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest import Snapshot

__all__ = ["SNAPSHOTS", "parents"]

_SCHEMA = pa.schema(
    {
        "committed_at": pa.timestamp("us", "UTC"),
        "snapshot_id": pa.int64(),
        "parent_id": pa.int64(),
        "operation": pa.utf8(),
        "summary": pa.map_(pa.utf8(), pa.utf8()),
    }
)


def parents(versions: pa.ChunkedArray) -> pa.Array:
    """Give the version before each, which need not be there any more; the first has none."""
    return pa.array(
        [version - 1 if version > 1 else None for version in versions.to_pylist()], pa.int64()
    )


def _schema(_: Snapshot) -> pa.Schema:
    return _SCHEMA


def _rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    versions = versions_until(snapshot)
    columns = {
        "committed_at": versions["committed_at"],
        "snapshot_id": versions["version"],
        "parent_id": parents(versions["version"]),
    }
    if {"operation", "summary"} & {*selection.columns}:
        entries = _entries(snapshot)
        made = [entries.get(version) for version in versions["version"].to_pylist()]
        operations = [None if entry is None else entry.operation for entry in made]
        columns["operation"] = pa.array(operations, pa.utf8())
        summaries = [[] if entry is None else _summary(entry) for entry in made]
        columns["summary"] = pa.array(summaries, _SCHEMA.field("summary").type)
    yield pa.table(columns)


def _entries(snapshot: Snapshot) -> dict[int, HistoryEntry]:
    """Give what made each version; nothing is known of a table that was dropped meanwhile."""
    location = snapshot.location
    if snapshot.layout.has_manifest:
        try:
            entries = history(location, snapshot.storage_options)
        except NamespaceHasNoManifest:
            return {}
    else:
        entries = dataset_history(snapshot.manifest, location)
    return {entry.version: entry for entry in entries}


def _summary(entry: HistoryEntry) -> list[tuple[str, str]]:
    """Write a commit's record under the keys that Iceberg has for it."""
    record = entry.record
    if record is None:
        return []
    is_of_metadata = record.added_rows is None and record.removed_rows is None
    stated = {
        "added-records": record.added_rows,
        "deleted-records": record.removed_rows,
        "changed-partition-count": record.partitions or (None if is_of_metadata else 0),
        "base-version": record.base_version or None,
        "spec-version": record.spec_version or None,
        "schema-id": record.schema_id,
        "commit-id": record.identity.id,
        "user": record.identity.user,
        "application": record.identity.application,
        "query-id": record.identity.query_id,
        "epoch": record.identity.epoch,
    }
    return [(name, str(value)) for name, value in stated.items() if value not in (None, "")]


SNAPSHOTS = MetadataTable("snapshots", _schema, _rows)
