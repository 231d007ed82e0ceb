"""A table over a partitioned namespace: a leaf per partition, one commit over all of them."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from pennon.caching.cache import LOOK
from pennon.catalog.columns.projected_columns import with_length_limits
from pennon.catalog.configured_catalog import WriteMode, is_local
from pennon.catalog.layouts.stored_table import (
    StagedRows,
    StoredTable,
    overlapped_partitions,
    replace_partitioned,
    replace_rows,
    whole_partitions,
)
from pennon.catalog.table_name import by_name
from pennon.errors import (
    NamespaceHasNoManifest,
    PennonError,
    RowsMoved,
    SnapshotNotFound,
    StorageFailure,
    TableMadeAnew,
    TableNotFound,
    WriteConflict,
)
from pennon.leaf import StagedPartition, clustered, drop_dataset, leaf_uri, write_partitions
from pennon.leaf.changes.deleted_rows import DeletedRows
from pennon.leaf.write.incoming_rows import check_sources
from pennon.manifest import Snapshot
from pennon.manifest.commits.commit_lookup import find_commit
from pennon.manifest.dataset.storage import manifest_uri
from pennon.manifest.format.names import is_leaf_directory
from pennon.manifest.table_identity import check_same_table
from pennon.manifest.versions.history import history, leaf_locations
from pennon.transaction import Committed, Conflicted, Retryable, Transaction
from pennon.transaction.staging.leaf_preparation import abandon

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from pennon.catalog.directory import Directory, Name
    from pennon.leaf import WriteTarget
    from pennon.manifest.format.rows import CommitIdentity

__all__ = ["PartitionedTable"]

_COMMIT_ATTEMPTS = 5
_MOVES_ROWS = "rewrite_partitions"
# Told from an append, which has read nothing: others may not come before this one in thought.
_APPENDS_OWN_ROWS = "insert"


@dataclass(frozen=True, slots=True)
class PartitionedTable(StoredTable):
    """A partitioned namespace at one version of its manifest."""

    @classmethod
    def open_base(
        cls,
        name: str,
        target: WriteTarget,
        identity: str,
        mode: WriteMode,
        commit: CommitIdentity,
        *,
        is_blind: bool = True,
    ) -> PartitionedTable:
        """Open the version; the newest where it has expired and the rows are only added.

        The newest one serves as well where the commit was made already: it is found there.
        """
        location, version, storage = target.location, target.version, target.storage_options
        try:
            base = Snapshot.open(location, version, None, storage)
        except SnapshotNotFound:
            newest = Snapshot.open(location, None, None, storage)
            with by_name(name):
                check_same_table(newest, target.table_id)
            is_append = mode is WriteMode.APPEND and is_blind
            if is_append or find_commit(location, commit.id, storage) is not None:
                return cls(name, newest)
            raise _expired(name, version) from None
        with by_name(name):
            check_same_table(base, target.table_id)
        if identity and identity.partition(LOOK)[0] != base.identity:
            raise TableMadeAnew(table=name, location=location)
        return cls(name, base)

    @property
    def knows_commits(self) -> bool:
        """Those of strong transactions stand in the manifest."""
        return self.snapshot.is_strong

    def check_writable(self, verb: str) -> None:
        """Allow it."""

    def check_alterable(self) -> None:
        """Allow it: the manifest holds the definition."""
        self.check_writable("change the definition of")

    def check_sources(self) -> None:
        """Check that each column is there that the current spec's transforms need."""
        check_sources(self.snapshot.current_spec, self.snapshot)

    def staged_schema(self, columns: pa.Schema) -> pa.Schema:
        """Give the query's columns, with the lengths of their texts."""
        return with_length_limits(columns, self.snapshot.schema.arrow)

    @staticmethod
    def stage(
        batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: WriteTarget
    ) -> StagedRows:
        """Write rows as uncommitted fragments of the partitions that they belong to."""
        del schema
        staged = write_partitions(batches, target)
        return StagedRows(
            tuple(part.to_json() for part in staged),
            sum(part.num_rows for part in staged),
            sum(part.num_bytes for part in staged),
        )

    def stage_unordered(self, batches: Iterable[pa.RecordBatch]) -> StagedRows:
        """Sort rows by their partitions, and write them."""
        snapshot = self.snapshot
        rows = clustered(batches, snapshot, snapshot.current_spec, self.write_order)
        with by_name(self.name):
            return self.stage(rows, snapshot.schema.arrow, self.target)

    def commit(
        self,
        mode: WriteMode,
        predicates: Sequence[str],
        staged: Sequence[str],
        identity: CommitIdentity | None = None,
        reads: Sequence[Sequence[str]] = (),
    ) -> int:
        """Make one commit of the manifest; a weak namespace commits leaf by leaf."""
        self.check_writable("write to")
        parts = [StagedPartition.from_json(text) for text in staged]
        is_own = mode is WriteMode.APPEND and bool(reads)
        transaction = Transaction(self.snapshot, identity, _APPENDS_OWN_ROWS if is_own else None)
        transaction.read(reads)
        if mode is WriteMode.APPEND:
            transaction.append(parts)
        else:
            try:
                replaced = self._replaced(mode, predicates, parts)
            except SnapshotNotFound as error:
                raise _expired(self.name, self.snapshot.version) from error
            replace_rows(transaction, parts, replaced)
            if mode is WriteMode.OVERWRITE:
                transaction.cover(predicates)
            else:
                transaction.cover_partitions(parts)
        return self._committed(transaction)

    def change_rows(
        self,
        mode: WriteMode,
        deleted: Sequence[str],
        staged: Sequence[str],
        reads: Sequence[Sequence[str]],
        identity: CommitIdentity | None = None,
    ) -> int:
        """Mark rows as deleted in their leaves and add others, with one commit of the manifest."""
        self.check_writable("write to")
        rows = [DeletedRows.from_json(text) for text in deleted]
        transaction = Transaction(self.snapshot, identity, str(mode))
        try:
            if identity is not None and not self._has(rows) and self._is_made(identity):
                return self.snapshot.version  # an earlier try, whose base has expired since
            transaction.change_rows(rows, map(StagedPartition.from_json, staged), reads)
        except SnapshotNotFound as error:
            if identity is not None and self._is_made(identity):
                return self.snapshot.version
            raise _expired(self.name, self.snapshot.version) from error
        return self._committed(transaction)

    def drop_partitions(
        self,
        object_ids: Sequence[str],
        predicates: Sequence[str],
        identity: CommitIdentity | None = None,
    ) -> int:
        """Take leaves out of the manifest; older versions keep them."""
        self.check_writable("delete from")
        transaction = Transaction(self.snapshot, identity)
        transaction.drop(object_ids)
        transaction.cover(predicates, "delete")
        return self._committed(transaction)

    @staticmethod
    def abort(
        location: str,
        storage: Mapping[str, str],
        staged: Sequence[str],
        identity: CommitIdentity | None = None,
    ) -> None:
        """Remove the files, but those that a commit made visible after all."""
        parts = [StagedPartition.from_json(text) for text in staged]
        abandon(location, parts, storage, identity)

    def pass_name_on(self, directory: Directory, identifier: Name, location: str) -> None:
        """Move the name's registration."""
        replace_partitioned(directory, identifier, self.snapshot.location, location)

    def register(self, directory: Directory, identifier: Name, location: str) -> None:
        """Record the name as that of a namespace, with its place."""
        directory.register(identifier, location)

    def deregister(self, directory: Directory, identifier: Name) -> None:
        """Take the record out."""
        directory.deregister(identifier)

    def delete_datasets(self) -> None:
        """Delete all leaves that any version knows, and the manifest at last."""
        location, storage = self.snapshot.location, self.snapshot.storage_options
        # older versions know partitions that were deleted since
        for leaf in sorted(leaf_locations(location, storage)):
            with contextlib.suppress(OSError, ValueError):  # gone already, as vacuum does it
                drop_dataset(leaf_uri(location, leaf), storage)
        if is_local(location):
            _delete_strays(location)
        drop_dataset(manifest_uri(location), storage)

    def _replaced(
        self, mode: WriteMode, predicates: Sequence[str], staged: Sequence[StagedPartition]
    ) -> Sequence[str]:
        """Give the partitions whose rows go."""
        if mode is WriteMode.OVERWRITE_PARTITIONS:
            older = overlapped_partitions(self.snapshot, self.name, staged)
            return [*(part.object_id for part in staged), *older]
        return whole_partitions(self.snapshot, self.name, predicates, action="overwrite")

    def _has(self, rows: Sequence[DeletedRows]) -> bool:
        """Whether rows are named at the versions that leaves have here."""
        leaves = self.snapshot.leaves().table
        columns = (leaves[name].to_pylist() for name in ("location", "read_version"))
        return {(row.location, row.version) for row in rows} <= set(zip(*columns, strict=True))

    def _is_made(self, identity: CommitIdentity) -> bool:
        snapshot = self.snapshot
        record = find_commit(snapshot.location, identity.id, snapshot.storage_options)
        return record is not None and not record.is_given_up

    def _committed(self, transaction: Transaction) -> int:
        for _ in range(_COMMIT_ATTEMPTS):
            try:
                with by_name(self.name):
                    outcome = transaction.commit()
            except WriteConflict as error:  # of a leaf, which does not know the table's name
                raise self._conflict(error.parameters["why"]) from error
            except (NamespaceHasNoManifest, StorageFailure) as error:
                self._check_there(error)
                raise
            match outcome:
                case Committed(version):
                    return version
                case Conflicted(partition, reason):
                    why = f"partition {partition}: {reason}"
                    raise self._conflict(why)
                case Retryable():
                    continue
                case unexpected:
                    assert_never(unexpected)
        why = "other commits came first each time"
        raise self._conflict(why)

    def _check_there(self, error: PennonError) -> None:
        """Say that the table was dropped, where that is what went wrong."""
        try:
            Snapshot.open(self.snapshot.location, storage_options=self.snapshot.storage_options)
        except NamespaceHasNoManifest:
            raise TableNotFound(table=self.name, near="it was dropped meanwhile") from error

    def _conflict(self, why: str) -> WriteConflict:
        """Tell of a conflict, and whether rows were moved: then the statement can be run again."""
        kind = RowsMoved if _were_rows_moved(self.snapshot) else WriteConflict
        return kind(table=self.name, why=why)


def _were_rows_moved(snapshot: Snapshot) -> bool:
    """Whether the history since a version says so; one that cannot be read does not."""
    with contextlib.suppress(PennonError):
        made = history(snapshot.location, snapshot.storage_options, after=snapshot.version)
        return any(entry.operation == _MOVES_ROWS for entry in made)
    return False


def _delete_strays(location: str) -> None:
    """Delete the folders of leaves that a killed writer made and no version ever knew."""
    for folder in Path(location).iterdir():
        if folder.is_dir() and is_leaf_directory(folder.name):
            shutil.rmtree(folder)


def _expired(table: str, version: int) -> WriteConflict:
    why = f"version {version}, which the statement read, has expired meanwhile"
    return WriteConflict(table=table, why=why)
