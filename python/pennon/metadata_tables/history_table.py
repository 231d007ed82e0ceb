"""``table.history``: when each version became the current one.

A namespace has one line of versions: each of them is an ancestor of the current one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.manifest.versions.manifest_history import versions_until
from pennon.metadata_tables.metadata_table import MetadataTable, Selection
from pennon.metadata_tables.snapshots_table import parents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest import Snapshot

__all__ = ["HISTORY"]

_SCHEMA = pa.schema(
    {
        "made_current_at": pa.timestamp("us", "UTC"),
        "snapshot_id": pa.int64(),
        "parent_id": pa.int64(),
        "is_current_ancestor": pa.bool_(),
    }
)


def _schema(_: Snapshot) -> pa.Schema:
    return _SCHEMA


def _rows(snapshot: Snapshot, _: Selection) -> Iterator[pa.Table]:
    versions = versions_until(snapshot)
    yield pa.table(
        {
            "made_current_at": versions["committed_at"],
            "snapshot_id": versions["version"],
            "parent_id": parents(versions["version"]),
            "is_current_ancestor": pa.array([True] * len(versions), pa.bool_()),
        }
    )


HISTORY = MetadataTable("history", _schema, _rows)
