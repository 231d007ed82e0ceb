"""PartitionField and PartitionSpec: the objects of the format, their JSON and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

from pennon.transforms.transform import Transform

__all__ = ["PartitionField", "PartitionSpec"]

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec: how one partition value is derived from a row."""

    field_id: str
    source_ids: tuple[int, ...]
    transform: Transform | None
    expression: str | None
    result_type: pa.DataType
    extra: Mapping[str, object] = field(default=_NOTHING)

    @property
    def column(self) -> str:
        """The column of ``__manifest`` that holds this field's values."""
        return "partition_field_" + self.field_id


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """One version of a namespace's partitioning."""

    spec_version: int
    fields: tuple[PartitionField, ...]
    extra: Mapping[str, object] = field(default=_NOTHING)

    def to_json(self) -> str:
        """Write the text of ``partition_spec_v<N>``."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, text: str, key: str) -> PartitionSpec:
        """Read the text of ``partition_spec_v<N>``."""
        raise NotImplementedError
