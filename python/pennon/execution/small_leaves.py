"""Leaves of which little is read: taken into memory at once, as one table.

A table of its own costs DataFusion 3 ms per leaf (a SELECT, a plan, a scan), and a filter that it
hands to Lance's provider fetches the columns late, at twice the time. Reading the rows with
``scan_leaf`` costs neither. What is held so is bounded by its real size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.leaf import open_leaf, scan_leaf
from pennon.leaf.promotion import stream_schema

if TYPE_CHECKING:
    from pennon.execution.fragment import LeafRead, Relation

# All that is held of one relation, and what a leaf without a filter may have.
HELD_BYTES: Final = 64 << 20
SMALL_BYTES: Final = 4 << 20
_BYTES_OF_A_TEXT: Final = 32


def take_small_leaves(relation: Relation) -> tuple[list[pa.RecordBatch] | None, Relation]:
    """Read the small leaves of a relation, and those of which a filter leaves little.

    Args:
        relation: What is read; one without columns is left as it is.

    Returns:
        The rows in the wanted schema without its metadata, None where no leaf was taken; and the
        relation of the other leaves.

    Raises:
        LeafMissing: A leaf's files are gone.
        LeafTypeMismatch: A stored type does not promote to the wanted one.
    """
    if not len(relation.schema):
        return None, relation
    batches: list[pa.RecordBatch] = []
    others: list[LeafRead] = []
    left = HELD_BYTES
    is_small_only = False
    for leaf in relation.leaves:
        taken = _rows(relation, leaf, left, is_small_only=is_small_only or leaf.residual is None)
        if taken is None:
            # One filter that keeps much tells of the next: little is read twice.
            is_small_only |= leaf.residual is not None
            others.append(leaf)
        else:
            batches += taken
            left -= sum(batch.nbytes for batch in taken)
    if len(others) == len(relation.leaves):
        return None, relation
    return batches, replace(relation, leaves=tuple(others))


def _rows(
    relation: Relation, leaf: LeafRead, most_bytes: int, *, is_small_only: bool
) -> list[pa.RecordBatch] | None:
    """Read a leaf; None where it has more than the given bytes, or is not even tried."""
    if most_bytes <= 0:
        return None
    dataset = open_leaf(relation.namespace, leaf.location, leaf.version, relation.storage_options)
    if is_small_only:
        most_bytes = min(most_bytes, SMALL_BYTES)
        if dataset.count_rows() * _row_bytes(relation.schema) > most_bytes:
            return None
    scan = scan_leaf(
        dataset,
        relation.schema,
        leaf.residual,
        namespace_schema=relation.namespace_schema,
        fragments=leaf.fragments,
    )
    plain = stream_schema(relation.schema).remove_metadata()
    batches: list[pa.RecordBatch] = []
    for batch in scan:
        most_bytes -= batch.nbytes
        if most_bytes < 0:
            return None
        batches.append(pa.RecordBatch.from_arrays(batch.columns, schema=plain))
    return batches


def _row_bytes(schema: pa.Schema) -> int:
    return sum(_value_bytes(field.type) for field in schema)


def _value_bytes(kind: pa.DataType) -> int:
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _BYTES_OF_A_TEXT
