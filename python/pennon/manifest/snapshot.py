"""An immutable view of one partitioned namespace at one version of its ``__manifest``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from sqlglot import exp

from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema

__all__ = ["LeafQuery", "Snapshot", "StorageOptions"]

StorageOptions = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LeafQuery:
    """The SQL that ran over ``__manifest`` and the leaves that it found."""

    sql: str
    table: pa.Table


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One partitioned namespace as it was at one version of its manifest."""

    location: str
    version: int
    schema: NamespaceSchema
    specs: Mapping[int, PartitionSpec]
    is_strong: bool
    properties: Mapping[str, str]
    storage_options: Mapping[str, str]

    @staticmethod
    def open(
        location: str,
        version: int | None = None,
        timestamp: datetime | None = None,
        storage_options: StorageOptions | None = None,
    ) -> Snapshot:
        """Open a namespace at its latest version, at a version, or as of a time."""
        raise NotImplementedError

    @property
    def current_spec(self) -> PartitionSpec:
        """The spec that new data is written with: the one of the highest version."""
        return self.specs[max(self.specs)]

    def partition_type(self, field_id: str) -> pa.DataType:
        """The Arrow type of a partition field's column in this manifest."""
        raise NotImplementedError

    def leaves(
        self,
        condition: exp.Expression | None = None,
        flags: Sequence[exp.Expression] = (),
    ) -> LeafQuery:
        """Run one SQL over the manifest's table rows."""
        raise NotImplementedError
