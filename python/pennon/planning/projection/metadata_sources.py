"""Metadata columns in predicates: ``_partition.region = 'eu'``, ``_spec_version < 3``.

All rows of a leaf have the same value in them, which stands in the manifest: a comparison of one is
decided for every leaf, whichever spec it has. Of the metadata columns that the manifest does not
have, ``_leaf`` and the row's address, none prunes.

NULL rules: a field that a leaf's spec lacks is NULL there, as its column in the manifest is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from sqlglot import exp

from pennon.caching import PerObject
from pennon.leaf.read.metadata_columns import (
    PARTITION,
    SPEC_VERSIONS,
    metadata_columns,
)
from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.manifest.partition_struct import struct_fields
from pennon.planning.binding.source_columns import resolve_column
from pennon.planning.projection.inclusive_projection import ProjectedField
from pennon.transforms.registry import IDENTITY

if TYPE_CHECKING:
    from pennon.manifest.snapshot import Snapshot

__all__ = ["known_columns", "metadata_sources"]


def known_columns(snapshot: Snapshot) -> pa.Schema:
    """Give the columns that a query can name: the table's own, and its metadata columns.

    Args:
        snapshot: The table.
    """
    own = snapshot.schema.arrow
    beside = tuple(metadata_columns(struct_fields(snapshot), own))
    kept = _KNOWN.of(own)
    if beside not in kept:
        kept[beside] = pa.schema([*own, *beside])
    return kept[beside]


_KNOWN: Final[PerObject[pa.Schema, dict[tuple[pa.Field, ...], pa.Schema]]] = PerObject(lambda _: {})


def metadata_sources(snapshot: Snapshot, version: int) -> tuple[ProjectedField, ...]:
    """Give what the leaves of a spec version have in metadata columns.

    Args:
        snapshot: The table; a plain one has no spec and no tuple.
        version: That of the spec.

    Spec: "Partition Spec", "Manifest Table Schema".
    """
    if not snapshot.layout.has_manifest:
        return ()
    schema = pa.schema(metadata_columns(struct_fields(snapshot), snapshot.schema.arrow))
    names = schema.names
    fields: list[ProjectedField] = []
    for field in struct_fields(snapshot) if PARTITION.name in names else ():
        source = resolve_column([PARTITION.name, field.name], schema)
        column = exp.column(PARTITION_PREFIX + field.name, quoted=True)
        fields.append(ProjectedField(IDENTITY, column, (source,)))
    for name in (name for name in SPEC_VERSIONS if name in names):
        # No column: the same number for every leaf of the spec stands in its place.
        number = cast("exp.Column", exp.cast(exp.Literal.number(version), "INT"))
        source = resolve_column([name], schema)
        fields.append(ProjectedField(IDENTITY, number, (source,)))
    return tuple(fields)
