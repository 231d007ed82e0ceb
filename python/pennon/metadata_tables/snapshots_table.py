"""``table.snapshots``: the versions that VERSION AS OF and TIMESTAMP AS OF can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.manifest.manifest_history import versions_until
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
    }
)


def parents(versions: pa.Array) -> pa.Array:
    """Give the version before each, which need not be there any more; the first has none."""
    return pa.array([each - 1 if each > 1 else None for each in versions.to_pylist()], pa.int64())


def _schema(_: Snapshot) -> pa.Schema:
    return _SCHEMA


def _rows(snapshot: Snapshot, _: Selection) -> Iterator[pa.Table]:
    found = versions_until(snapshot)
    yield pa.table(
        {
            "committed_at": found["committed_at"],
            "snapshot_id": found["version"],
            "parent_id": parents(found["version"]),
        }
    )


SNAPSHOTS = MetadataTable("snapshots", _schema, _rows)
