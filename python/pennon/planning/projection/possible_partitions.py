"""The partitions that can satisfy a predicate: existing ones and future ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.manifest.format.names import ObjectId
from pennon.predicate.connectives import is_false, operands
from pennon.predicate.dialect import DataFusion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.manifest import Snapshot
    from pennon.planning.binding.bound_predicate import BoundPredicate
    from pennon.planning.projection.inclusive_projection import SpecProjection
    from pennon.spec import PartitionSpec

__all__ = ["has_no_others"]

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
