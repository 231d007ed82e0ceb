"""Writes of rows into a table: what they replace, and the one commit that shows them.

Both doors come here: Spark's requests (``worker/requests/write_requests.py``) and the Python API.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from pennon.catalog.plain_dataset import (
    PlainSnapshot,
    append_plain,
    change_plain_rows,
    replace_plain,
)
from pennon.catalog.replacement import overlapped_partitions, replace_rows, whole_partitions
from pennon.draft import open_snapshot
from pennon.errors import SnapshotNotFound, WriteConflict
from pennon.leaf import StagedPartition
from pennon.leaf.write.deleted_rows import DeletedRows
from pennon.leaf.write.partition_tuples import check_sources
from pennon.manifest.commits.commit_lookup import find_commit
from pennon.transaction import Committed, Conflicted, Retryable, Transaction
from pennon.transaction.abandonment import abandon
from pennon.transaction.isolation import isolation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.manifest import Snapshot
    from pennon.manifest.format.commit_record import CommitIdentity

__all__ = [
    "WriteMode",
    "abort_write",
    "check_write",
    "commit_row_changes",
    "commit_write",
    "delete_rows",
    "deleted_partitions",
    "write_base",
]

_COMMIT_ATTEMPTS = 5


class WriteMode(StrEnum):
    """What a write does with the rows that are there."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    """Rows that satisfy the write's condition go; without one, all."""
    OVERWRITE_PARTITIONS = "overwrite_partitions"
    """The partitions go into which the write has rows."""
    DELETE = "delete"
    """Single rows go."""
    UPDATE = "update"
    """Single rows go, and others come for them."""
    MERGE = "merge"
    """Single rows go, and others come."""

    @property
    def is_row_level(self) -> bool:
        """Whether single rows go, named by their ids."""
        return self in (WriteMode.DELETE, WriteMode.UPDATE, WriteMode.MERGE)


def check_write(
    snapshot: Snapshot, table: str, mode: WriteMode, predicates: Sequence[str]
) -> WriteMode:
    """Refuse a write before any of its rows is computed; the commit decides it again.

    Args:
        snapshot: The table that is written to.
        table: Its name, for errors.
        mode: What the statement asks for.
        predicates: Spark SQL texts that all rows to be overwritten satisfy; none means every row.

    Returns:
        The mode to commit with: the only partition of a table without any is the whole table.

    Raises:
        PennonError: The table is only read, a condition divides a partition, or a column that
            the partition spec needs was dropped.
        UnknownIsolation: The table's property has no value that it can have.
    """
    snapshot.check_writable("write to")
    if mode.is_row_level:
        isolation(snapshot.properties)
    if mode is WriteMode.DELETE:
        return mode
    if mode is WriteMode.OVERWRITE_PARTITIONS and not snapshot.current_spec.fields:
        mode = WriteMode.OVERWRITE
    if mode is WriteMode.OVERWRITE:
        whole_partitions(snapshot, table, predicates, action="overwrite")
    if not isinstance(snapshot, PlainSnapshot):
        check_sources(snapshot.current_spec, snapshot)
    return mode


def commit_write(
    snapshot: Snapshot,
    table: str,
    mode: WriteMode,
    predicates: Sequence[str],
    staged: Sequence[str],
    *,
    identity: CommitIdentity | None = None,
) -> int:
    """Show the staged rows of all tasks with one commit.

    Args:
        snapshot: What the write was based on.
        table: The table's name, for errors.
        mode: As ``check_write`` returned it.
        predicates: As given to ``check_write``.
        staged: What the tasks reported.
        identity: Which commit it is; one that was made already is not made again.

    Returns:
        The table's new version.

    Raises:
        WriteConflict: Another commit changed what this one replaces.
    """
    if isinstance(snapshot, PlainSnapshot):
        commit = append_plain if mode is WriteMode.APPEND else replace_plain
        if predicates and not _replaced(snapshot, table, mode, predicates, []):
            commit = append_plain
        return commit(snapshot, staged, None if identity is None else identity.id)
    parts = [StagedPartition.from_json(text) for text in staged]
    transaction = Transaction(snapshot, identity)
    if mode is WriteMode.APPEND:
        transaction.append(parts)
    else:
        replaced = _replaced(snapshot, table, mode, predicates, parts)
        replace_rows(transaction, parts, replaced)
    return _committed(transaction, table)


def commit_row_changes(
    snapshot: Snapshot,
    table: str,
    mode: WriteMode,
    changed: tuple[Sequence[str], Sequence[str]],
    reads: Sequence[Sequence[str]],
    *,
    identity: CommitIdentity | None = None,
) -> int:
    """Take single rows out and show staged ones, with one commit.

    Args:
        snapshot: What the statement read.
        table: The table's name, for errors.
        mode: The statement.
        changed: What the tasks reported of the rows that go, and of new rows.
        reads: The predicates of each scan of the table that the statement made.
        identity: Which commit it is; one that was made already is not made again.

    Returns:
        The table's new version.

    Raises:
        WriteConflict: Another commit changed what the statement read or replaces.
    """
    deleted, staged = changed
    gone = [DeletedRows.from_json(text) for text in deleted]
    if isinstance(snapshot, PlainSnapshot):
        return change_plain_rows(snapshot, staged, gone, None if identity is None else identity.id)
    transaction = Transaction(snapshot, identity, str(mode))
    transaction.change_rows(gone, map(StagedPartition.from_json, staged), reads)
    return _committed(transaction, table)


def write_base(
    location: str,
    version: int,
    storage: Mapping[str, str],
    *,
    table: str,
    mode: WriteMode,
    identity: CommitIdentity,
) -> Snapshot:
    """Open the version that a write into a partitioned namespace is based on.

    Args:
        location: The namespace.
        version: The version.
        storage: Given to Lance.
        table: The table's name, for errors.
        mode: As ``check_write`` returned it.
        identity: Which commit it is.

    Returns:
        The version; the newest where it has expired and the rows are only added, or where the
        commit was made already.

    Raises:
        WriteConflict: The version has expired, and the rows to replace are those it had.
    """
    try:
        return open_snapshot(location, version, None, storage)
    except SnapshotNotFound:
        if mode is WriteMode.APPEND or find_commit(location, identity.id, storage) is not None:
            return open_snapshot(location, None, None, storage)
        why = f"version {version}, which the statement read, has expired meanwhile"
        raise WriteConflict(table=table, why=why) from None


def abort_write(
    location: str,
    storage: Mapping[str, str],
    staged: Sequence[str],
    identity: CommitIdentity | None = None,
) -> None:
    """Remove the files of staged rows that will not be committed.

    Args:
        location: The partitioned namespace.
        storage: Given to Lance.
        staged: What the tasks reported.
        identity: The commit, if anything was ever asked to make it: then it may have been made.
    """
    parts = [StagedPartition.from_json(text) for text in staged]
    abandon(location, parts, storage, identity)


def delete_rows(
    snapshot: Snapshot,
    table: str,
    predicates: Sequence[str],
    identity: CommitIdentity | None = None,
) -> int:
    """Delete whole partitions.

    Args:
        snapshot: The table.
        table: Its name, for errors.
        predicates: Spark SQL texts that all have to hold; none means every row.
        identity: Which commit it is; one that was made already is not made again.

    Returns:
        The table's new version; the same one where no row was there to delete.

    Raises:
        NotWholePartitions: A partition has rows that stay beside rows that go.
        WriteConflict: Another commit changed what this one deletes.
    """
    whole = deleted_partitions(snapshot, table, predicates)
    if not whole:
        return snapshot.version
    if isinstance(snapshot, PlainSnapshot):
        return replace_plain(snapshot, (), None if identity is None else identity.id)
    transaction = Transaction(snapshot, identity)
    transaction.drop(whole)
    return _committed(transaction, table)


def deleted_partitions(
    snapshot: Snapshot, table: str, predicates: Sequence[str]
) -> tuple[str, ...]:
    """Give the partitions that a DELETE drops; as ``delete_rows``."""
    snapshot.check_writable("delete from")
    return whole_partitions(snapshot, table, predicates, action="delete")


def _replaced(
    snapshot: Snapshot,
    table: str,
    mode: WriteMode,
    predicates: Sequence[str],
    staged: Sequence[StagedPartition],
) -> Sequence[str]:
    """Give the partitions whose rows go."""
    if mode is WriteMode.OVERWRITE_PARTITIONS:
        older = overlapped_partitions(snapshot, table, staged)
        return [*(part.object_id for part in staged), *older]
    return whole_partitions(snapshot, table, predicates, action="overwrite")


def _committed(transaction: Transaction, table: str) -> int:
    for _ in range(_COMMIT_ATTEMPTS):
        match transaction.commit():
            case Committed(version):
                return version
            case Conflicted(partition, reason):
                raise WriteConflict(table=table, why=f"partition {partition}: {reason}")
            case Retryable():
                continue
            case unexpected:
                assert_never(unexpected)
    raise WriteConflict(table=table, why="other commits came first each time")
