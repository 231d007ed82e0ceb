"""The one ``merge_insert`` that commits changes of many leaves, and the changes of root metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pennon.manifest.snapshot import Snapshot

__all__ = ["ConcurrentChange", "LeafChange", "ManifestCommitted", "ManifestOutcome", "commit_leaves"]


@dataclass(frozen=True, slots=True)
class LeafChange:
    """What one commit does to one leaf: make it, or move it to another version."""

    object_id: str
    location: str
    spec_version: int
    values: Mapping[str, pa.Scalar]
    read_version: int | None
    num_rows: int | None = None
    num_bytes: int | None = None
    num_fragments: int | None = None


@dataclass(frozen=True, slots=True)
class ManifestCommitted:
    """The change is visible from this version of the manifest on."""

    version: int


@dataclass(frozen=True, slots=True)
class ConcurrentChange:
    """Another writer committed first: nothing of this change is visible."""

    version: int | None


ManifestOutcome = ManifestCommitted | ConcurrentChange


def commit_leaves(snapshot: Snapshot, changes: Sequence[LeafChange]) -> ManifestOutcome:
    """Commit the changes of all leaves at once, or none."""
    raise NotImplementedError
