"""ADD, DROP and REPLACE PARTITION FIELD: from a spec to its next version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.registry import TransformCall

__all__ = ["add_field", "drop_field", "replace_field", "spec_of"]


def spec_of(
    schema: NamespaceSchema,
    calls: Sequence[TransformCall],
    specs: Mapping[int, PartitionSpec] | None = None,
) -> PartitionSpec:
    """Build a spec from PARTITIONED BY: version 1, or the next one when specs exist already."""
    raise NotImplementedError


def add_field(
    specs: Mapping[int, PartitionSpec],
    schema: NamespaceSchema,
    call: TransformCall,
    name: str | None = None,
) -> PartitionSpec:
    """Add a field (or the missing levels of a composed transform) in the next spec version."""
    raise NotImplementedError


def drop_field(
    specs: Mapping[int, PartitionSpec],
    schema: NamespaceSchema,
    dropped: str | TransformCall,
) -> PartitionSpec:
    """Drop a field, by its field id or by its transform, in the next spec version."""
    raise NotImplementedError


def replace_field(
    specs: Mapping[int, PartitionSpec],
    schema: NamespaceSchema,
    dropped: str | TransformCall,
    call: TransformCall,
    name: str | None = None,
) -> PartitionSpec:
    """Drop one field and add another in one step, in the next spec version."""
    raise NotImplementedError
