"""The metadata columns of each chosen partition that the manifest determines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.leaf.read.metadata_columns import SPEC_VERSIONS
from pennon.leaf.read.partition_constants import constant_texts
from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.manifest.partition_struct import spec_versions

if TYPE_CHECKING:
    from pennon.planning.scan_plan import ScanPlan

__all__ = ["CONSTANTS", "leaf_constants", "with_constants"]

CONSTANTS: Final = "constants"
"""The column of a plan's table that has them."""


def with_constants(plan: ScanPlan, asked: pa.Schema) -> ScanPlan:
    """Add to a plan the constants that its splits carry for metadata columns.

    Args:
        plan: The chosen partitions.
        asked: Columns of ``constant_columns``, in the types that they are read in; of
            ``_partition`` some fields can be left out.

    Returns:
        The plan, unchanged where nothing is wanted; a plain table has NULLs.
    """
    if not plan.snapshot.layout.has_manifest:
        return plan
    texts = leaf_constants(plan.table, asked)
    if texts is None:
        return plan
    return replace(plan, table=plan.table.append_column(CONSTANTS, texts))


def leaf_constants(leaves: pa.Table, asked: pa.Schema) -> pa.Array | None:
    """Write the constants of leaves; None where nothing is wanted of what the manifest knows.

    Args:
        leaves: Rows of ``Snapshot.leaves`` of a partitioned table.
        asked: As ``with_constants``; a field of ``_partition`` that came later is NULL.
    """
    columns: dict[str, pa.Array | dict[str, pa.Array]] = {}
    for column in asked:
        if column.name in SPEC_VERSIONS:
            columns[column.name] = _array(spec_versions(leaves), column.type)
        elif column.type.num_fields:
            columns[column.name] = {field.name: _of_field(leaves, field) for field in column.type}
    return constant_texts(columns) if columns else None


def _of_field(leaves: pa.Table, field: pa.Field) -> pa.Array:
    name = PARTITION_PREFIX + field.name
    if name not in leaves.column_names:
        return pa.nulls(leaves.num_rows, field.type)
    return _array(leaves[name], field.type)


def _array(values: pa.ChunkedArray, data_type: pa.DataType) -> pa.Array:
    # Spark's timestamps have microseconds.
    return values.cast(data_type, safe=not pa.types.is_timestamp(data_type)).combine_chunks()
