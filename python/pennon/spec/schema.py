"""The namespace schema: the columns that all leaves share, each with an id that is never reused.

Every field, nested ones included, carries its id in its metadata under ``lance:field_id``. Fresh ids are given
depth-first in the order in which Lance numbers the fields of a new dataset, so that the ids of a fresh leaf equal
the namespace's. A map has an unnamed level ("entries") between itself and its key: it takes an id that no field shows.
The items of a fixed-size list of numbers take none in Lance; here they take none either.

The highest id ever given is kept under ``pennon:highest_field_id`` in the schema's own metadata as soon as it is
higher than every id in use, so that the id of a dropped column is never given again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

__all__ = ["FIELD_ID", "HIGHEST_FIELD_ID", "NamespaceSchema", "SchemaField"]

FIELD_ID = b"lance:field_id"
HIGHEST_FIELD_ID = b"pennon:highest_field_id"

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field of the namespace schema and where it is."""

    path: tuple[str, ...]
    field: pa.Field
    id: int


@dataclass(frozen=True, slots=True)
class NamespaceSchema:
    """The schema of a partitioned namespace."""

    arrow: pa.Schema
    extra: Mapping[str, object] = field(default=_NOTHING)

    def walk(self) -> Iterator[SchemaField]:
        """Yield every field that has an id, depth-first."""
        raise NotImplementedError

    @property
    def highest_id(self) -> int:
        """The highest field id ever given, −1 for none."""
        raise NotImplementedError

    def field_by_id(self, field_id: int) -> SchemaField | None:
        """Find a field by its id."""
        raise NotImplementedError

    def field_by_path(self, path: tuple[str, ...]) -> SchemaField | None:
        """Find a field by its names from the top."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Write the text of the ``schema`` property."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, text: str) -> NamespaceSchema:
        """Read the text of the ``schema`` property."""
        raise NotImplementedError

    @classmethod
    def with_fresh_ids(cls, schema: pa.Schema) -> NamespaceSchema:
        """Give every field of a schema without ids its id."""
        raise NotImplementedError
