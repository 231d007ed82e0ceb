"""Partition tuples as one struct column over all spec versions, and predicates on it.

A field that a leaf's spec lacks is NULL. The struct's fields are the field ids, in order of first
use; a table without partition fields has no struct.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.leaf.read.metadata_columns import PARTITION, SPEC_VERSION
from pennon.manifest.partition_struct import (
    spec_versions,
    struct_array,
    struct_fields,
)
from pennon.planning.binding.bind import bind_all
from pennon.planning.binding.bound_predicate import conjuncts
from pennon.planning.manifest_query import manifest_query
from pennon.predicate.parse import readable_predicates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.manifest import Snapshot

__all__ = [
    "LEAF_COLUMNS",
    "leaf_columns",
    "tuple_condition",
    "tuple_fields",
]

_PARTITION: Final = "partition"
LEAF_COLUMNS: Final = (pa.field("spec_version", pa.int32()), pa.field("leaf", pa.utf8()))


def tuple_fields(snapshot: Snapshot) -> list[pa.Field]:
    """Give the column ``partition``, or nothing where no spec has a field.

    Spec: "Partition Spec".
    """
    fields = struct_fields(snapshot)
    return [pa.field(_PARTITION, pa.struct(fields), nullable=False)] if fields else []


def leaf_columns(snapshot: Snapshot, leaves: pa.Table) -> dict[str, pa.ChunkedArray | pa.Array]:
    """Give ``partition``, ``spec_version`` and ``leaf`` of rows of ``Snapshot.leaves``."""
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        "spec_version": spec_versions(leaves),
        "leaf": leaves["location"],
    }
    fields = struct_fields(snapshot)
    if fields:
        columns[_PARTITION] = struct_array(leaves, fields)
    return columns


def tuple_condition(
    snapshot: Snapshot, schema: pa.Schema, predicates: Sequence[str]
) -> exp.Expr | None:
    """Write what predicates say of ``partition`` and ``spec_version`` as one on ``__manifest``.

    They are projected as those on a table's ``_partition`` and ``_spec_version`` are. In no known
    time zone: what depends on it leaves a day more, and what is not understood leaves no row out.

    Args:
        snapshot: The namespace.
        schema: The columns of the metadata table.
        predicates: Spark SQL on them.

    Returns:
        The condition; None where nothing can be left out.

    Spec: "Partition Pruning".
    """
    tuple_columns = {
        _PARTITION: PARTITION.with_type(pa.struct(struct_fields(snapshot))),
        SPEC_VERSION.name.removeprefix("_"): SPEC_VERSION,
    }
    columns = pa.schema([tuple_columns.get(column.name, column) for column in schema])
    trees = [
        tree.transform(_as_metadata_column, tuple_columns)
        for tree in readable_predicates(predicates)
    ]
    bound = bind_all(trees, columns, time_zone="")
    return manifest_query(snapshot, conjuncts(bound)).condition


def _as_metadata_column(
    node: exp.Expression, tuple_columns: Mapping[str, pa.Field]
) -> exp.Expression:
    if isinstance(node, exp.Column):
        first = node.parts[0]
        if first.name.lower() in tuple_columns:
            first.set("this", tuple_columns[first.name.lower()].name)
    return node
