"""Making a new partitioned namespace."""

from __future__ import annotations

from collections.abc import Mapping

from pennon.manifest.snapshot import Snapshot, StorageOptions
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema

__all__ = ["create"]


def create(
    location: str,
    schema: NamespaceSchema,
    spec: PartitionSpec,
    properties: Mapping[str, str] | None = None,
    *,
    strong: bool = True,
    comment: str | None = None,
    storage_options: StorageOptions | None = None,
) -> Snapshot:
    """Create the ``__manifest`` of a new partitioned namespace."""
    raise NotImplementedError
