"""A table that another one replaces whose rows were made of it: REPLACE TABLE t AS SELECT … FROM t.

Rows that were committed since the query read the table are not among the new ones, and would be
lost. So nothing is written to it any more while the name moves, and the name does not move where
anything was written since. A query that does not read the table takes whatever comes first.

A weak table is not looked at: it keeps no versions of its partitions to compare.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pennon.errors import SnapshotNotFound, StorageFailure, WriteConflict
from pennon.manifest import Snapshot
from pennon.manifest.commits.commit_lookup import rewritten_leaves
from pennon.manifest.commits.mode_commit import without_writers
from pennon.manifest.transaction_mode import REPLACED
from pennon.transaction.concurrency.read_set import ReadSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.catalog.tables.loaded_table import Table

__all__ = ["unchanged_since_read"]

_EVERY_ROW = ((),)


@contextlib.contextmanager
def unchanged_since_read(table: Table, reads: Sequence[tuple[str, int]]) -> Iterator[None]:
    """Keep a table as a query has read it until its name is another one's.

    Args:
        table: The one that is replaced.
        reads: Locations and versions of what the query read.

    Raises:
        WriteConflict: Another commit changed its rows since.
        TransactionModeChanged: Its transactions are being changed.
    """
    newest = table.snapshot
    versions = sorted({version for location, version in reads if location == newest.location})
    if not versions or (table.stored.has_manifest and not newest.is_strong):
        yield
        return
    if not table.stored.has_manifest:
        if versions != [newest.version]:
            raise _changed(table, "another commit changed it")
        yield
        return
    with without_writers(newest, REPLACED) as held:
        for version in versions:
            _check_same_rows(table, version, held)
        yield


def _check_same_rows(table: Table, version: int, held: Snapshot) -> None:
    try:
        read = Snapshot.open(held.location, version, storage_options=_options(held))
    except (SnapshotNotFound, StorageFailure) as error:
        raise _changed(table, f"version {version}, which it read, has expired") from error
    conflict = ReadSet(read, _EVERY_ROW).changed_in(
        held, lambda: rewritten_leaves(held.location, _options(held))
    )
    if conflict is not None:
        raise _changed(table, f"partition {conflict.partition}: {conflict.reason}")


def _options(snapshot: Snapshot) -> dict[str, str]:
    return dict(snapshot.storage_options)


def _changed(table: Table, why: str) -> WriteConflict:
    return WriteConflict(table=table.name, why=f"the new rows are made of it, and {why}")
