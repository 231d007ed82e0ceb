"""The ``__manifest`` table: names, rows, snapshots, the one commit."""

from pennon.manifest.commits.manifest_commit import (
    ConcurrentChange,
    LeafChange,
    ManifestCommitted,
    ManifestOutcome,
    commit_leaves,
)
from pennon.manifest.commits.root_change import change_root, create
from pennon.manifest.dataset.select import LeafQuery
from pennon.manifest.dataset.storage import StorageOptions
from pennon.manifest.format.names import LeafName, ObjectId, leaf_name
from pennon.manifest.format.properties import runtime_properties
from pennon.manifest.snapshot import Snapshot

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
    "change_root",
    "commit_leaves",
    "create",
    "leaf_name",
    "runtime_properties",
]
