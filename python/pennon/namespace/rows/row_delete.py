"""Deletes rows by a condition: whole partitions in the manifest, others by deletion vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.write_mode import WriteMode
from pennon.errors import NotWholePartitions
from pennon.leaf.changes.deleted_rows import collect_deleted
from pennon.leaf.read.metadata_columns import LEAF, LEAF_VERSION, ROW_ADDRESS
from pennon.manifest.format.commit_record import CommitIdentity
from pennon.namespace.rows.row_condition import check_condition
from pennon.namespace.rows.row_scan import read_plan
from pennon.planning import plan_scan

if TYPE_CHECKING:
    from pennon.catalog.tables.loaded_table import Table

__all__ = ["delete_where"]

_ROW_NAMES = pa.schema([LEAF, LEAF_VERSION, ROW_ADDRESS])


def delete_where(table: Table, where: str) -> int:
    """Delete the rows for which a condition is true; those for which it is NULL stay.

    Args:
        table: The table at its newest version.
        where: Spark SQL.

    Returns:
        The new version; the same one where no row satisfies the condition.

    Raises:
        PredicateNotEvaluable: A part of the condition is not understood outside of Spark.
        WriteConflict: Another commit changed rows that the condition is about.
    """
    stored = table.stored
    check_condition(stored.snapshot, where, table.name)
    try:
        return stored.delete_rows([where])
    except NotWholePartitions:
        plan = replace(plan_scan(stored.snapshot, where), schema=_ROW_NAMES)
        rows = read_plan(plan, table.name)
    deleted = [deletion.to_json() for deletion in collect_deleted(rows.batches)]
    return stored.change_rows(WriteMode.DELETE, deleted, (), [[where]], CommitIdentity.fresh())
