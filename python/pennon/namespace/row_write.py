"""Rows from this process into a table: stage them, commit them, or leave nothing behind."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.plain_dataset import PlainSnapshot, stage_plain
from pennon.catalog.table_write import WriteMode, abort_write, check_write, commit_write
from pennon.leaf import WriteTarget, clustered, write_partitions
from pennon.leaf.write.incoming_rows import conform
from pennon.manifest.format.commit_record import CommitIdentity
from pennon.manifest.storage import storage_failure
from pennon.spec.write_order import WriteOrder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pennon.catalog.loaded_table import Table

__all__ = ["write_rows"]


def write_rows(
    table: Table, mode: WriteMode, predicates: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> int:
    """Write rows in one commit; after an error no file of them is left.

    Args:
        table: The table at its newest version.
        mode: What happens to the rows that are there.
        predicates: What rows to be overwritten satisfy; none means every row.
        batches: Rows in the table's columns by name.

    Returns:
        The new version.

    Raises:
        PennonError: The rows do not fit, another commit changed what this one replaces, or the
            storage refused.
    """
    snapshot = table.snapshot
    mode = check_write(snapshot, table.name, mode, predicates)
    try:
        staged = _stage(table, batches)
    except OSError as error:
        if "LanceError" not in str(error):  # what the rows come from may fail as well
            raise
        raise storage_failure("write to", snapshot.location, error) from error
    identity = CommitIdentity.fresh()
    with contextlib.ExitStack() as undo:
        if not isinstance(snapshot, PlainSnapshot):
            options = snapshot.storage_options
            undo.callback(abort_write, snapshot.location, options, staged, identity)
        version = commit_write(snapshot, table.name, mode, predicates, staged, identity=identity)
        undo.pop_all()
    return version


def _stage(table: Table, batches: Iterable[pa.RecordBatch]) -> list[str]:
    snapshot = table.snapshot
    if isinstance(snapshot, PlainSnapshot):
        rows = (
            _stored(conform(batch, snapshot.schema, table.name), snapshot.stored_schema)
            for batch in batches
            if batch.num_rows
        )
        staged, _, _ = stage_plain(
            snapshot.location, rows, snapshot.stored_schema, snapshot.storage_options
        )
        return staged
    spec = snapshot.current_spec
    order = WriteOrder.of(snapshot.properties, snapshot.schema)
    target = WriteTarget(
        snapshot.location, snapshot.version, spec.spec_version, snapshot.storage_options
    )
    parts = write_partitions(clustered(batches, snapshot, spec, order), target)
    return [part.to_json() for part in parts]


def _stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
