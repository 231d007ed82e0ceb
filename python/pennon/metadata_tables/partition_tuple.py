"""Partition tuples as one struct column over all spec versions, and predicates on it.

A field that a leaf's spec lacks is NULL. The struct's fields are the field ids, in order of first
use; a table without partition fields has no struct.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.manifest.partition_struct import (
    spec_versions,
    struct_array,
    struct_fields,
)
from pennon.predicate.literal_list import LiteralList
from pennon.predicate.parse import readable_predicates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.manifest import Snapshot

__all__ = [
    "LEAF_COLUMNS",
    "leaf_columns",
    "partition_names",
    "tuple_condition",
    "tuple_fields",
]

_PARTITION: Final = "partition"
LEAF_COLUMNS: Final = (pa.field("spec_version", pa.int32()), pa.field("leaf", pa.utf8()))
# On values of these types DataFusion compares as Spark does.
_ALIKE: Final = (pa.types.is_integer, pa.types.is_date, pa.types.is_string, pa.types.is_boolean)
_UNDERSTOOD: Final = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.In, exp.Is, exp.Null, exp.Literal, exp.Neg, exp.Column, exp.Dot, exp.Identifier),
    *(exp.Cast, exp.DataType, exp.Boolean, LiteralList),
)


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


def partition_names(snapshot: Snapshot, leaves: pa.Table) -> pa.Array:
    """Spell partitions as SHOW PARTITIONS does: ``region=eu/shard=3``; NULL without any field.

    Args:
        snapshot: The namespace.
        leaves: Rows of ``Snapshot.leaves``.
    """
    texts = {name: _texts(leaves[name]) for name in snapshot.partition_columns}
    names: list[str | None] = []
    for row, object_id in enumerate(leaves["object_id"].to_pylist()):
        spec = snapshot.specs[int(object_id.partition("$")[0].removeprefix("v"))]
        parts = [f"{each.field_id}={texts[each.column][row]}" for each in spec.fields]
        names.append("/".join(parts) or None)
    return pa.array(names, pa.utf8())


def _texts(values: pa.ChunkedArray) -> list[str]:
    if pa.types.is_binary(values.type):
        return ["null" if each is None else each.hex() for each in values.to_pylist()]
    return pc.fill_null(values.cast(pa.utf8()), "null").to_pylist()  # type: ignore[no-any-return]


def tuple_condition(snapshot: Snapshot, predicates: Sequence[str]) -> exp.Expr | None:
    """Write what predicates say of ``partition`` as a condition on ``__manifest``.

    A conjunct that is not understood, or compares values that DataFusion may order otherwise than
    Spark, is left out: more rows are read then.

    Args:
        snapshot: The namespace.
        predicates: Spark SQL on the columns of the metadata table.

    Returns:
        The condition; None where nothing can be left out.

    Spec: "Partition Pruning".
    """
    parts = [
        part.copy()
        for whole in readable_predicates(predicates)
        for part in (whole.flatten() if isinstance(whole, exp.And) else [whole])
    ]
    written = [each for part in parts if (each := _on_manifest(snapshot, part)) is not None]
    return exp.and_(*written) if written else None


def _on_manifest(snapshot: Snapshot, part: exp.Expr) -> exp.Expr | None:
    if not all(isinstance(node, _UNDERSTOOD) for node in part.walk()):
        return None
    columns = list(part.find_all(exp.Column))
    for column in columns:
        path = [each.name for each in column.parts]
        name = PARTITION_PREFIX + path[-1]
        if path[:-1] != [_PARTITION] or name not in snapshot.partition_columns:
            return None
        if not any(is_alike(snapshot.partition_type(path[-1])) for is_alike in _ALIKE):
            return None
    for column in columns:
        column.replace(exp.column(PARTITION_PREFIX + column.name, quoted=True))
    return part if columns else None
