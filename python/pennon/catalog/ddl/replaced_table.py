"""A table that another one replaces whose rows were made of it: REPLACE TABLE t AS SELECT … FROM t.

Rows that were committed since the query read the table are not among the new ones, and would be
lost; a column that was dropped since would be there again. So nothing is written to it any more
while the name moves, and the name does not move where anything was written since. A query that does
not read the table takes whatever comes first.

A weak table keeps no versions of its partitions to compare: it is not replaced by its own rows.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pennon.catalog.tables.loaded_table import load
from pennon.errors import (
    PennonError,
    SnapshotNotFound,
    StorageFailure,
    TableNotFound,
    UnsupportedTableChange,
    WriteConflict,
)
from pennon.manifest import Snapshot
from pennon.manifest.commits.commit_lookup import rewritten_leaves
from pennon.manifest.commits.stated_commit import confirm_schema
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import storage_failure
from pennon.manifest.format.change_notice import REPLACED
from pennon.manifest.table_identity import open_commit_base
from pennon.manifest.transaction_mode import change_under_way
from pennon.transaction.concurrency.read_set import ReadSet
from pennon.transaction.writer_fence import without_writers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Name
    from pennon.catalog.tables.loaded_table import Table
    from pennon.manifest.format.change_notice import NamedAt

__all__ = ["check_sources_stand", "unchanged_since_read"]

_EVERY_ROW = ((),)


@contextlib.contextmanager
def unchanged_since_read(
    table: Table, reads: Sequence[tuple[str, int]], named_at: NamedAt | None = None
) -> Iterator[None]:
    """Keep a table as a query has read it until its name is another one's.

    Args:
        table: The one that is replaced.
        reads: Locations and versions of what the query read.
        named_at: Where the name is kept; None where only its implementation knows.

    Raises:
        UnsupportedTableChange: It is made of a table whose transactions are weak.
        WriteConflict: Another commit changed its rows or columns since.
        TransactionModeChanged: Its transactions are being changed.
    """
    newest = table.snapshot
    versions = sorted({version for location, version in reads if location == newest.location})
    if not versions:
        yield
        return
    if not table.stored.has_manifest:
        if versions != [newest.version]:
            raise _changed(table, "another commit changed it")
        yield
        return
    if not newest.is_strong:
        raise UnsupportedTableChange(
            change="replace the rows",
            table=table.name,
            why="the new ones are made of it, its transactions are weak, and rows that others add"
            " meanwhile would be lost",
            advice=f"CALL lance.system.set_transaction_mode('{table.name}', 'strong') first",
        )
    with without_writers(newest, REPLACED, named_at) as fence:
        for version in versions:
            _check_same(table, version, fence.snapshot)
        _keep_columns(table, fence.snapshot)
        fence.check()
        yield


def check_sources_stand(
    catalog: Catalog, identifier: Name, reads: Sequence[tuple[str, int]]
) -> None:
    """Refuse rows that were made of a table which another one has replaced since.

    It may have had the name that the new table is about to get: whoever replaced it first is not
    among what the rows are made of.

    Args:
        catalog: The catalog.
        identifier: The name.
        reads: Locations and versions of what the query read.

    Raises:
        WriteConflict: A table below the catalog's root was replaced or dropped.
    """
    for location in sorted({location for location, _ in reads}):
        if catalog.is_below_root(location) and _is_replaced(catalog, location):
            why = "the new rows are made of a table that was replaced or dropped meanwhile"
            raise WriteConflict(table=catalog.full_name(identifier), why=why)


def _is_replaced(catalog: Catalog, location: str) -> bool:
    try:
        notice = change_under_way(load(catalog, (location,)).snapshot)
    except TableNotFound:
        return True
    except PennonError:  # it is there, and what is wrong with it is nothing of this statement
        return False
    return notice is not None and notice.target == REPLACED and not notice.is_abandoned()


def _check_same(table: Table, version: int, held: Snapshot) -> None:
    try:
        read = Snapshot.open(held.location, version, storage_options=_options(held))
    except (SnapshotNotFound, StorageFailure) as error:
        raise _changed(table, f"version {version}, which it read, has expired") from error
    if not read.schema.arrow.equals(held.schema.arrow, check_metadata=True):
        raise _changed(table, "another commit changed its columns meanwhile")
    conflict = ReadSet(read, _EVERY_ROW).changed_in(
        held, lambda: rewritten_leaves(held.location, _options(held))
    )
    if conflict is not None:
        raise _changed(table, f"partition {conflict.partition}: {conflict.reason}")


def _keep_columns(table: Table, held: Snapshot) -> None:
    """Refuse every change of columns that was begun before; the fence refuses those of rows."""
    try:
        confirm_schema(open_commit_base(held), held.storage_options)
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("replace", held.location, error) from error
        raise _changed(table, "another commit changed its columns meanwhile") from error


def _options(snapshot: Snapshot) -> dict[str, str]:
    return dict(snapshot.storage_options)


def _changed(table: Table, why: str) -> WriteConflict:
    return WriteConflict(table=table.name, why=f"the new rows are made of it, and {why}")
