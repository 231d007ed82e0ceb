"""Stages and commits rows from this process; after an error none of their files is left."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pennon.catalog.columns.left_out_columns import with_defaults
from pennon.catalog.columns.text_lengths import within_lengths
from pennon.catalog.columns.valid_texts import valid_texts
from pennon.maintenance.background.behind_commits import keep_behind, written_leaves
from pennon.manifest.dataset.storage import storage_failure
from pennon.manifest.format.commit_record import CommitIdentity
from pennon.namespace.rows.row_condition import check_condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from pennon.catalog.tables.loaded_table import Table
    from pennon.catalog.write_mode import WriteMode
    from pennon.leaf.changes.deleted_rows import DeletedRows

__all__ = ["write_row_changes", "write_rows"]


def write_rows(
    table: Table, mode: WriteMode, predicates: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> int:
    """Write rows in one commit; after an error no file of them is left.

    Args:
        table: The table at its newest version.
        mode: What happens to the rows that are there.
        predicates: What rows to be overwritten satisfy; none means every row.
        batches: Rows in the table's columns by name; those that are missing have their defaults.

    Returns:
        The new version.

    Raises:
        PennonError: The rows do not fit, a predicate is not understood outside of Spark, another
            commit changed what this one replaces, or the storage refused.
    """
    stored = table.stored
    for predicate in predicates:
        check_condition(stored.snapshot, predicate, stored.name)
    mode = stored.check_write(mode, predicates)

    def commit(staged: Sequence[str], identity: CommitIdentity) -> int:
        return stored.commit(mode, predicates, staged, identity)

    filled = with_defaults(batches, stored.snapshot.schema.arrow, table.name)
    return _staged_and_committed(table, filled, commit)


def write_row_changes(
    table: Table,
    mode: WriteMode,
    batches: Iterable[pa.RecordBatch],
    deleted: Sequence[DeletedRows],
    reads: Sequence[Sequence[str]],
) -> int:
    """Take single rows out and write others, in one commit; as ``write_rows``.

    Args:
        table: The table at its newest version.
        mode: The statement.
        batches: New rows.
        deleted: The rows that go; it is looked at when the last batch has come, so that who makes
            the batches may fill it.
        reads: The predicates of each scan that the change is made of.

    Returns:
        The new version; the same one where no row comes or goes.

    Raises:
        PennonError: The rows do not fit, another commit changed what was read, or the storage
            refused.
    """
    stored = table.stored

    def commit(staged: Sequence[str], identity: CommitIdentity) -> int:
        gone = [deletion.to_json() for deletion in deleted]
        return stored.change_rows(mode, gone, staged, reads, identity)

    return _staged_and_committed(table, batches, commit)


def _staged_and_committed(
    table: Table,
    batches: Iterable[pa.RecordBatch],
    commit: Callable[[Sequence[str], CommitIdentity], int],
) -> int:
    stored = table.stored
    location = stored.snapshot.location
    texts = valid_texts(batches, table.name)
    fitting = within_lengths(texts, stored.snapshot.schema.arrow, table.name)
    try:
        staged = stored.stage_unordered(fitting).texts
    except OSError as error:
        if "LanceError" not in str(error):  # what the rows come from may fail as well
            raise
        raise storage_failure("write to", location, error) from error
    identity = CommitIdentity.fresh()
    with contextlib.ExitStack() as undo:
        undo.callback(stored.abort, location, stored.snapshot.storage_options, staged, identity)
        version = commit(staged, identity)
        undo.pop_all()
    keep_behind(location, written_leaves(staged), stored.snapshot.storage_options)
    return version
