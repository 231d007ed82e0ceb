"""The partitions that can satisfy a predicate: existing ones and future ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from sqlglot import exp

from pennon.caching import PerObject
from pennon.leaf.read.metadata_columns import PARTITION, SPEC_VERSIONS, metadata_columns
from pennon.manifest.format.names import ObjectId
from pennon.manifest.format.rows import PARTITION_PREFIX
from pennon.manifest.partition_struct import struct_fields
from pennon.planning.binding.source_columns import resolve_column
from pennon.planning.projection.inclusive_projection import ProjectedField
from pennon.predicate.condition import is_false, operands
from pennon.predicate.dialect import DataFusion
from pennon.transforms.registry import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.manifest.snapshot import Snapshot
    from pennon.planning.binding.bound_predicate import BoundPredicate
    from pennon.planning.projection.inclusive_projection import SpecProjection
    from pennon.spec import PartitionSpec

__all__ = ["has_no_others", "known_columns", "metadata_sources"]


# Metadata columns in predicates: ``_partition.region = 'eu'``, ``_spec_version < 3``.
#
# All rows of a leaf have the same value in them, which stands in the manifest: a comparison of one
# is decided for every leaf, whichever spec it has. Of the metadata columns that the manifest does
# not have, ``_leaf`` and the row's address, none prunes.
#
# NULL rules: a field that a leaf's spec lacks is NULL there, as its column in the manifest is.


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


_LEAVES = "leaves"


def has_no_others(
    snapshot: Snapshot,
    projections: Mapping[int, SpecProjection],
    bound: BoundPredicate,
    leaves: Mapping[str, Mapping[str, pa.Scalar]],
) -> bool:
    """Whether no partition but some given ones can ever have a row for which a predicate is true.

    Args:
        snapshot: The namespace.
        projections: Those of its spec versions.
        bound: The predicate.
        leaves: Partition values by field id, by the object ids of leaves.

    Returns:
        True where each spec version has at most one such partition, and it is given; False where
        there may be others.

    Spec: "Partition Pruning".
    """
    for version, projection in projections.items():
        spec = snapshot.specs[version]
        condition = projection.inclusive(bound)
        if is_false(condition):
            continue
        if not {field.column for field in spec.fields} <= _fixed(snapshot, condition):
            return False
        own = [values for name, values in leaves.items() if _spec_version(name) == version]
        if not _has_any(snapshot, spec, condition, own):
            return False
    return True


def _fixed(snapshot: Snapshot, condition: exp.Expression) -> set[str]:
    """List the partition columns that have one value wherever a condition is true.

    Two floats are equal and two partitions: 0.0 and -0.0.
    """
    names = set()
    for bare in operands(condition, exp.And):
        if isinstance(bare, exp.EQ | exp.NullSafeEQ | exp.Is) and isinstance(bare.this, exp.Column):
            value = bare.expression
            is_value = isinstance(value, exp.Null) or not isinstance(bare, exp.Is)
            if is_value and value.find(exp.Column) is None:
                names.add(bare.this.name)
    return {name for name in names if not _is_float(snapshot, name)}


def _is_float(snapshot: Snapshot, column: str) -> bool:
    return column in snapshot.manifest.schema.names and pa.types.is_floating(
        snapshot.manifest.schema.field(column).type
    )


def _spec_version(object_id: str) -> int | None:
    parsed = ObjectId.parse(object_id)
    return None if parsed is None else parsed.spec_version


def _has_any(
    snapshot: Snapshot,
    spec: PartitionSpec,
    condition: exp.Expression,
    leaves: list[Mapping[str, pa.Scalar]],
) -> bool:
    """Whether one of some leaves of a spec satisfies a condition on partition columns."""
    from datafusion import SessionContext  # noqa: PLC0415 - a quarter of a second

    if not leaves or not spec.fields:
        return bool(leaves)
    columns = {}
    for field in spec.fields:
        data_type = snapshot.partition_type(field.field_id)
        columns[field.column] = pa.array(
            [values[field.field_id].cast(data_type) for values in leaves], data_type
        )
    context = SessionContext()
    context.register_record_batches(_LEAVES, [[pa.record_batch(columns)]])
    query = exp.select("*").from_(_LEAVES).where(condition.copy()).limit(1)
    return bool(context.sql(query.sql(dialect=DataFusion)).to_arrow_table().num_rows)
