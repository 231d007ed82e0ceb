"""Rows from this process into a table: stage them, commit them, or leave nothing behind."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pennon.maintenance.background_compaction import compact_behind, written_leaves
from pennon.manifest.format.commit_record import CommitIdentity
from pennon.manifest.storage import storage_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from pennon.catalog.loaded_table import Table
    from pennon.catalog.write_mode import WriteMode

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
    stored = table.stored
    mode = stored.check_write(mode, predicates)
    location = stored.snapshot.location
    try:
        staged = stored.stage_unordered(batches).texts
    except OSError as error:
        if "LanceError" not in str(error):  # what the rows come from may fail as well
            raise
        raise storage_failure("write to", location, error) from error
    identity = CommitIdentity.fresh()
    with contextlib.ExitStack() as undo:
        undo.callback(stored.abort, location, stored.snapshot.storage_options, staged, identity)
        version = stored.commit(mode, predicates, staged, identity)
        undo.pop_all()
    compact_behind(location, written_leaves(staged), stored.snapshot.storage_options)
    return version
