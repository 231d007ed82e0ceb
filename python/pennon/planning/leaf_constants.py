"""The metadata columns of each chosen partition that the manifest determines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.leaf.read.metadata_columns import SPEC_VERSIONS
from pennon.leaf.read.partition_constants import constant_texts
from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.manifest.partition_struct import spec_versions
from pennon.manifest.table_layout import TableLayout

if TYPE_CHECKING:
    from pennon.planning.scan_plan import ScanPlan

__all__ = ["CONSTANTS", "with_constants"]

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
    if not len(asked) or plan.snapshot.layout is TableLayout.PLAIN:
        return plan
    columns: dict[str, pa.Array | dict[str, pa.Array]] = {}
    for column in asked:
        if column.name in SPEC_VERSIONS:
            columns[column.name] = _array(spec_versions(plan.table), column.type)
        elif column.type.num_fields:
            columns[column.name] = {
                field.name: _array(plan.table[PARTITION_PREFIX + field.name], field.type)
                for field in column.type
            }
    if not columns:
        return plan
    return replace(plan, table=plan.table.append_column(CONSTANTS, constant_texts(columns)))


def _array(values: pa.ChunkedArray, data_type: pa.DataType) -> pa.Array:
    # Spark's timestamps have microseconds.
    return values.cast(data_type, safe=not pa.types.is_timestamp(data_type)).combine_chunks()
