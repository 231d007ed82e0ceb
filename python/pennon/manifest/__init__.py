"""The ``__manifest`` table: names, rows, snapshots, the one commit."""

from pennon.manifest.commit import (
    ConcurrentChange,
    LeafChange,
    ManifestCommitted,
    ManifestOutcome,
    commit_leaves,
)
from pennon.manifest.creation import create
from pennon.manifest.names import LeafName, ObjectId, leaf_name
from pennon.manifest.snapshot import LeafQuery, Snapshot, StorageOptions

__all__ = [
    "ConcurrentChange",
    "LeafChange",
    "LeafName",
    "LeafQuery",
    "ManifestCommitted",
    "ManifestOutcome",
    "ObjectId",
    "Snapshot",
    "StorageOptions",
    "commit_leaves",
    "create",
    "leaf_name",
]
