"""``table.snapshots``: the versions that VERSION AS OF and TIMESTAMP AS OF can name."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import NamespaceHasNoManifest
from pennon.manifest.versions.history import (
    HistoryEntry,
    dataset_history,
    history,
    stored_rows,
    stored_schema,
    versions_until,
)
from pennon.manifest.versions.tags import MAIN, tags_of
from pennon.metadata_tables.metadata_table import MetadataTable, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest import Snapshot
    from pennon.spec.partition_spec import PartitionField

__all__ = ["HISTORY", "MANIFEST_ROWS", "REFS", "SNAPSHOTS", "SPECS"]

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


# ``table.history``: when each version became the current one.
#
# A namespace has one line of versions: each of them is an ancestor of the current one.

_HISTORY_SCHEMA = pa.schema(
    {
        "made_current_at": pa.timestamp("us", "UTC"),
        "snapshot_id": pa.int64(),
        "parent_id": pa.int64(),
        "is_current_ancestor": pa.bool_(),
    }
)


def _history_schema(_: Snapshot) -> pa.Schema:
    return _HISTORY_SCHEMA


def _history_rows(snapshot: Snapshot, _: Selection) -> Iterator[pa.Table]:
    versions = versions_until(snapshot)
    yield pa.table(
        {
            "made_current_at": versions["committed_at"],
            "snapshot_id": versions["version"],
            "parent_id": parents(versions["version"]),
            "is_current_ancestor": pa.array([True] * len(versions), pa.bool_()),
        }
    )


HISTORY = MetadataTable("history", _history_schema, _history_rows)


# ``table.refs``: the main branch and the tags.

_REFS_SCHEMA = pa.schema(
    {
        "name": pa.utf8(),
        "type": pa.utf8(),
        "snapshot_id": pa.int64(),
        "max_reference_age_in_ms": pa.int64(),
        "set_at": pa.timestamp("us", "UTC"),
    }
)
_MILLISECOND = timedelta(milliseconds=1)


def _refs_schema(_: Snapshot) -> pa.Schema:
    return _REFS_SCHEMA


def _refs_rows(snapshot: Snapshot, _: Selection) -> Iterator[pa.Table]:
    rows: list[dict[str, object]] = [
        {"name": MAIN, "type": "BRANCH", "snapshot_id": snapshot.version}
    ]
    rows += [
        {
            "name": tag.name,
            "type": "TAG",
            "snapshot_id": tag.version,
            "max_reference_age_in_ms": None if tag.retain is None else tag.retain // _MILLISECOND,
            "set_at": tag.set_at,
        }
        for tag in tags_of(snapshot.manifest).values()
    ]
    yield pa.Table.from_pylist(rows, _REFS_SCHEMA)


REFS = MetadataTable("refs", _refs_schema, _refs_rows)


# ``table.specs``: one row per field of each partition spec; a spec without fields has one row.

_SPECS_SCHEMA = pa.schema(
    {
        "spec_version": pa.int32(),
        "is_current": pa.bool_(),
        "position": pa.int32(),
        "field_id": pa.utf8(),
        "transform": pa.utf8(),
        "source_columns": pa.list_(pa.utf8()),
        "result_type": pa.utf8(),
    }
)


def _specs_schema(_: Snapshot) -> pa.Schema:
    return _SPECS_SCHEMA


def _specs_rows(snapshot: Snapshot, _: Selection) -> Iterator[pa.Table]:
    current = snapshot.current_spec.spec_version
    rows: list[dict[str, object]] = []
    for version, spec in sorted(snapshot.specs.items()):
        row: dict[str, object] = {"spec_version": version, "is_current": version == current}
        fields = [
            {**row, "position": at, **_described(snapshot, field)}
            for at, field in enumerate(spec.fields)
        ]
        rows += fields or [row]
    yield pa.Table.from_pylist(rows, _SPECS_SCHEMA)


def _described(snapshot: Snapshot, field: PartitionField) -> dict[str, object]:
    sources = [snapshot.schema.field_by_id(id_) for id_ in field.source_ids]
    # A dropped column has no name any more; its id is what the spec says.
    names = [
        f"<dropped column {source}>" if column is None else str(column)
        for source, column in zip(field.source_ids, sources, strict=True)
    ]
    return {
        "field_id": field.field_id,
        "transform": field.derivation.sql(names),
        "source_columns": names,
        "result_type": str(field.result_type),
    }


SPECS = MetadataTable("specs", _specs_schema, _specs_rows)


# ``table.manifest``: the rows of the format's own table as they are stored.
#
# Spec: "Manifest Table Schema".


def _manifest_schema(snapshot: Snapshot) -> pa.Schema:
    return pa.schema([field.remove_metadata() for field in stored_schema(snapshot)])


def _manifest_rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    columns = selection.columns or ("object_id",)
    for batch in stored_rows(snapshot, columns):
        yield pa.Table.from_batches([batch])


MANIFEST_ROWS = MetadataTable("manifest", _manifest_schema, _manifest_rows, needs_manifest=True)
