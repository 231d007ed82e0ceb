"""The ``__manifest`` table: names, rows, snapshots, the one commit."""

from pennon.manifest.commit import LeafChange, commit_leaves
from pennon.manifest.creation import create
from pennon.manifest.names import LeafName, ObjectId, leaf_name
from pennon.manifest.outcome import ConcurrentChange, ManifestCommitted, ManifestOutcome
from pennon.manifest.properties import runtime_properties
from pennon.manifest.root import change_root
from pennon.manifest.select import LeafQuery
from pennon.manifest.snapshot import Snapshot
from pennon.manifest.storage import StorageOptions

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
