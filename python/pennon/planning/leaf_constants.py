"""The metadata columns of each chosen partition that the manifest determines."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.leaf.read.metadata_columns import SPEC_VERSIONS, constant_texts
from pennon.manifest.format.rows import PARTITION_PREFIX
from pennon.manifest.partition_struct import spec_versions
from pennon.planning.binding.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Compared,
    conjuncts,
    is_exact,
)

if TYPE_CHECKING:
    from pennon.planning.scan_plan import ScanPlan

__all__ = ["CONSTANTS", "Evaluation", "evaluations", "leaf_constants", "with_constants"]


# Decides who evaluates each predicate of a plan: partition values, leaf filters or Spark.
#
# NULL rules: a row for which a predicate is NULL is dropped, as one for which it is FALSE.


class Evaluation(Enum):
    """What is known of the rows that a scan gives, for one of its predicates.

    ``BY_PARTITION_VALUES``: the values of the chosen partitions decide it, for all of their rows.
    ``BY_LEAVES``: it is a part of the filters on leaves, which evaluate it as Spark does.
    ``NONE``: there may be rows that do not satisfy it.
    """

    BY_PARTITION_VALUES = "partition values"
    BY_LEAVES = "leaves"
    NONE = "none"


def evaluations(plan: ScanPlan) -> tuple[Evaluation, ...]:
    """Tell of each predicate of a plan whether the rows of its scan satisfy it.

    A predicate of several conjuncts is evaluated where each of them is. Only comparisons count as
    evaluated in leaves: what is computed is evaluated by Spark again, wherever partition values do
    not decide it.

    Args:
        plan: A plan of ``plan_scan``.

    Returns:
        One for each of the ``given`` ones of the plan, in their order.

    Spec: "Partition Pruning", Appendix D.
    """
    parts = conjuncts(plan.bound)
    return tuple(_evaluation(plan, parts, conjuncts(condition)) for condition in plan.given)


def _evaluation(
    plan: ScanPlan, parts: tuple[BoundPredicate, ...], own: tuple[BoundPredicate, ...]
) -> Evaluation:
    # What was simplified away together with others is in neither list.
    if all(part in plan.decided for part in own):
        return Evaluation.BY_PARTITION_VALUES
    if all(
        part in plan.decided or (part in parts and is_exact(part) and _compares(part))
        for part in own
    ):
        return Evaluation.BY_LEAVES
    return Evaluation.NONE


def _compares(part: BoundPredicate) -> bool:
    match part:
        case AllOf(parts) | AnyOf(parts):
            return all(map(_compares, parts))
        case Compared():
            return True
    return False


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
