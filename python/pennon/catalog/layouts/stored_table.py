"""The protocol of a table, however it is stored: plan, stage, commit and abort.

A write is checked, staged by its tasks, and then committed or aborted. Nothing that is staged is
visible; one commit shows all of it. Both doors come here: Spark's requests
(``worker/requests/write_requests.py``) and the Python API (``namespace/``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennon.catalog.replacement import whole_partitions
from pennon.catalog.write_mode import WriteMode
from pennon.leaf import WriteTarget
from pennon.manifest.table_identity import table_id
from pennon.spec.write_order import WriteOrder
from pennon.transaction.concurrency.isolation import isolation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from pennon.catalog.directory import Directory, Name
    from pennon.manifest import Snapshot
    from pennon.manifest.format.commit_record import CommitIdentity

__all__ = ["StagedRows", "StoredTable"]


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows in files that no reader sees yet.

    Args:
        texts: What the commit needs to know of them.
        num_rows: How many there are.
        num_bytes: Bytes of their files.
    """

    texts: tuple[str, ...]
    num_rows: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class StoredTable(ABC):
    """A table at one version, and all that can be done to it.

    Reading needs no more than its ``snapshot``: all tables are planned and scanned as one kind.

    Args:
        name: Its name, for errors.
        snapshot: The version.
    """

    name: str
    snapshot: Snapshot

    @property
    def has_manifest(self) -> bool:
        """Whether it has a ``__manifest``, and so a metadata of its own."""
        return self.snapshot.layout.has_manifest

    @property
    def target(self) -> WriteTarget:
        """What a task that stages rows has to know."""
        snapshot = self.snapshot
        return WriteTarget(
            snapshot.location,
            snapshot.version,
            snapshot.current_spec.spec_version,
            snapshot.storage_options,
            table_id=table_id(snapshot) if self.has_manifest else "",
        )

    @property
    def knows_commits(self) -> bool:
        """Whether a commit that was made is found by its id at any later version."""
        return False

    @property
    def write_order(self) -> WriteOrder | None:
        """The order that rows within a partition are written in."""
        return WriteOrder.of(self.snapshot.properties, self.snapshot.schema)

    @classmethod
    @abstractmethod
    def open_base(
        cls,
        name: str,
        target: WriteTarget,
        identity: str,
        mode: WriteMode,
        commit: CommitIdentity,
        *,
        is_blind: bool = True,
    ) -> StoredTable:
        """Open the version that a write was based on, to commit it.

        Args:
            name: The table's name, for errors.
            target: The destination that its tasks were given.
            identity: The identity of the table that was checked.
            mode: As ``check_write`` returned it.
            commit: Which commit it is.
            is_blind: Whether it has read no rows of the table.

        Raises:
            WriteConflict: The version has expired, and the rows to replace are those it had.
            TableMadeAnew: Another table stands there by now.
        """

    @abstractmethod
    def check_writable(self, verb: str) -> None:
        """Check that the table takes changes of its rows; one that is only read refuses.

        Args:
            verb: What is about to happen, for the error: ``write to``.
        """

    @abstractmethod
    def check_alterable(self) -> None:
        """Check that the table's definition can be changed.

        Raises:
            UnsupportedTableChange: It has none of its own.
        """

    def check_write(self, mode: WriteMode, predicates: Sequence[str]) -> WriteMode:
        """Refuse a write before any of its rows is computed; the commit decides it again.

        Args:
            mode: What the statement asks for.
            predicates: Spark SQL texts that all rows to be overwritten satisfy; none means every
                row.

        Returns:
            The mode to commit with: the only partition of a table without any is the whole table.

        Raises:
            PennonError: The table is only read, a condition divides a partition, or a column that
                the partition spec needs was dropped.
            UnknownIsolation: The table's property has no value that it can have.
        """
        self.check_writable("write to")
        if mode.is_row_level:
            isolation(self.snapshot.properties, str(mode))
        if mode is WriteMode.DELETE:
            return mode
        if mode is WriteMode.OVERWRITE_PARTITIONS and not self.snapshot.current_spec.fields:
            mode = WriteMode.OVERWRITE
        if mode is WriteMode.OVERWRITE:
            whole_partitions(self.snapshot, self.name, predicates, action="overwrite")
        self.check_sources()
        return mode

    @abstractmethod
    def check_sources(self) -> None:
        """Check that new rows have what their partition is computed of.

        Raises:
            PartitionSourceDropped: The spec needs a column that was dropped.
        """

    @abstractmethod
    def staged_schema(self, columns: pa.Schema) -> pa.Schema:
        """Give the schema that Spark's rows are handed to ``stage`` in.

        Args:
            columns: The columns that the query has, in the table's ids.
        """

    @staticmethod
    @abstractmethod
    def stage(
        batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: WriteTarget
    ) -> StagedRows:
        """Write the rows of one task to files that nobody sees yet.

        Args:
            batches: Rows by ``schema``, those of one partition together; pulled one at a time.
            schema: As ``staged_schema`` gave it.
            target: Of the table.

        Raises:
            PennonError: The rows do not fit; the files that this call wrote are removed.
        """

    @abstractmethod
    def stage_unordered(self, batches: Iterable[pa.RecordBatch]) -> StagedRows:
        """Stage rows in the table's columns by name, in whatever order; as ``stage``."""

    @abstractmethod
    def commit(
        self,
        mode: WriteMode,
        predicates: Sequence[str],
        staged: Sequence[str],
        identity: CommitIdentity | None = None,
        reads: Sequence[Sequence[str]] = (),
    ) -> int:
        """Show the staged rows of all tasks with one commit.

        Args:
            mode: As ``check_write`` returned it.
            predicates: As given to ``check_write``.
            staged: The texts that the tasks reported.
            identity: Which commit it is; one that was made already is not made again.
            reads: The predicates of each scan of the table that the rows are made of.

        Returns:
            The table's new version.

        Raises:
            WriteConflict: Another commit changed what this one replaces, or what it is made of.
        """

    @abstractmethod
    def change_rows(
        self,
        mode: WriteMode,
        deleted: Sequence[str],
        staged: Sequence[str],
        reads: Sequence[Sequence[str]],
        identity: CommitIdentity | None = None,
    ) -> int:
        """Take single rows out and show staged ones, with one commit.

        Args:
            mode: The statement.
            deleted: What the tasks reported of the rows that go.
            staged: What the tasks reported of new rows.
            reads: The predicates of each scan of the table that the statement made.
            identity: Which commit it is; one that was made already is not made again.

        Returns:
            The table's new version.

        Raises:
            WriteConflict: Another commit changed what the statement read or replaces.
        """

    def deleted_partitions(self, predicates: Sequence[str]) -> tuple[str, ...]:
        """Give the partitions that a DELETE drops; as ``delete_rows``."""
        self.check_writable("delete from")
        return whole_partitions(self.snapshot, self.name, predicates, action="delete")

    def delete_rows(self, predicates: Sequence[str], identity: CommitIdentity | None = None) -> int:
        """Delete whole partitions.

        Args:
            predicates: Spark SQL texts that all have to hold; none means every row.
            identity: Which commit it is; one that was made already is not made again.

        Returns:
            The table's new version; the same one where no row was there to delete.

        Raises:
            NotWholePartitions: A partition has rows that stay beside rows that go.
            WriteConflict: Another commit changed what this one deletes.
        """
        whole = self.deleted_partitions(predicates)
        if not whole:
            return self.snapshot.version
        return self.drop_partitions(whole, predicates, identity)

    @abstractmethod
    def drop_partitions(
        self,
        object_ids: Sequence[str],
        predicates: Sequence[str],
        identity: CommitIdentity | None = None,
    ) -> int:
        """Take partitions of the version with all their rows out; as ``delete_rows``.

        Args:
            object_ids: The leaves' ids, at least one.
            predicates: The condition that chose them.
            identity: As for ``delete_rows``.
        """

    @staticmethod
    @abstractmethod
    def abort(
        location: str,
        storage: Mapping[str, str],
        staged: Sequence[str],
        identity: CommitIdentity | None = None,
    ) -> None:
        """Remove the files of staged rows that will not be committed.

        Args:
            location: The table, which may be gone by now.
            storage: Given to Lance.
            staged: The texts that the tasks reported.
            identity: The commit, if anything was ever asked to make it: then it may have been
                made.
        """

    @abstractmethod
    def pass_name_on(self, directory: Directory, identifier: Name, location: str) -> None:
        """Point the table's name to the partitioned namespace that replaces it.

        Args:
            directory: The catalog's.
            identifier: The name.
            location: Where the other table is.

        Raises:
            WriteConflict: Another writer replaced or dropped the table.
        """

    @abstractmethod
    def register(self, directory: Directory, identifier: Name, location: str) -> None:
        """Make the table known under a name.

        Args:
            directory: The catalog's.
            identifier: The name, which nothing has.
            location: Where the table is, in the spelling that is recorded.
        """

    @abstractmethod
    def deregister(self, directory: Directory, identifier: Name) -> None:
        """Forget the name; the files stay."""

    @abstractmethod
    def delete_datasets(self) -> None:
        """Delete the datasets of the table, whatever else lies in its folder.

        Raises:
            OSError: The storage refused.
        """
