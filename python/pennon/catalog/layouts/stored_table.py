"""The protocol of a table, however it is stored: plan, stage, commit and abort.

A write is checked, staged by its tasks, and then committed or aborted. Nothing that is staged is
visible; one commit shows all of it. Both doors come here: Spark's requests
(``worker/requests/write_requests.py``) and the Python API (``namespace/``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pennon.catalog.configured_catalog import WriteMode
from pennon.catalog.table_name import registration_of, relative_location
from pennon.errors import NotWholePartitions, OverlapsOlderPartition, PennonError, WriteConflict
from pennon.leaf import WriteTarget
from pennon.manifest import ObjectId
from pennon.manifest.format.properties import NamedAt
from pennon.manifest.registered_location import (
    move_registration,
    rename_registration,
    take_plain_name,
)
from pennon.manifest.table_identity import table_id
from pennon.planning import plan_scan
from pennon.predicate.dialect import shortened_predicate
from pennon.spec.write_properties import WriteOrder, isolation
from pennon.transaction.concurrency.read_set import overlapping_leaves, shared_fields
from pennon.transaction.staging.staged import leaf_states, partition_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Directory, Name
    from pennon.leaf import StagedPartition
    from pennon.manifest import Snapshot
    from pennon.manifest.format.rows import CommitIdentity
    from pennon.planning import ScanPlan
    from pennon.transaction import Transaction

__all__ = [
    "StagedRows",
    "StoredTable",
    "named_at",
    "overlapped_partitions",
    "point_to_namespace",
    "replace_partitioned",
    "replace_rows",
    "take_name",
    "whole_partitions",
]


# The partitions that an overwrite or a delete replaces as a whole, or the refusal.
#
# A condition decides a partition where its values alone imply that every row satisfies it, or that
# none does. NULL rules: rows for which the condition is NULL are kept, as SQL has it.
#
# Rows that another writer appends meanwhile to a new partition are no conflict: the overwrite came
# first, unless somebody may have read them before it commits. Rows appended to a partition that
# goes are one, and so are rows that come meanwhile to a partition which the overwrite makes: two
# overwrites of one new partition never leave the rows of both.


def whole_partitions(
    snapshot: Snapshot, table: str, predicates: Sequence[str], *, action: str
) -> tuple[str, ...]:
    """Give the partitions whose rows all satisfy a condition.

    Args:
        snapshot: The namespace, or the plain dataset.
        table: Its name, for the error.
        predicates: Spark SQL texts that all have to hold; none means every row.
        action: ``overwrite`` or ``delete``, for the error.

    Raises:
        NotWholePartitions: Another partition may have such rows too.
    """
    plan = plan_scan(snapshot, predicates, by_statistics=False)
    divided = plan.table.filter(
        pc.and_(
            pc.greater_equal(plan.table["row_filter"], 0),
            pc.fill_null(pc.not_equal(plan.table["num_rows"], 0), fill_value=True),
        )
    )
    if divided.num_rows:
        raise NotWholePartitions(
            action=action,
            table=table,
            predicate=shortened_predicate(" AND ".join(predicates)),
            partition=_spelled(snapshot, divided.slice(0, 1)),
            undecided=divided.num_rows,
            total=plan.partitions_total,
            keys=_keys(snapshot),
        )
    return _decided(plan)


def _decided(plan: ScanPlan) -> tuple[str, ...]:
    whole = plan.table.filter(pc.less(plan.table["row_filter"], 0))
    return tuple(whole["object_id"].to_pylist())


def overlapped_partitions(
    snapshot: Snapshot, table: str, staged: Iterable[StagedPartition]
) -> tuple[str, ...]:
    """Give the partitions of older spec versions whose rows all belong to the staged partitions.

    A dynamic overwrite replaces them with those of the current spec.

    Args:
        snapshot: The namespace.
        table: Its name, for the error.
        staged: What the tasks wrote, by the current spec.

    Raises:
        OverlapsOlderPartition: An older partition is coarser and may hold other rows too.
    """
    current = snapshot.current_spec
    older = overlapping_leaves(snapshot, staged)
    replaced: list[str] = []
    for at, (object_id, num_rows) in enumerate(
        zip(older["object_id"].to_pylist(), older["num_rows"].to_pylist(), strict=True)
    ):
        version = _spec_version(object_id)
        if num_rows == 0:
            continue
        if len(shared_fields(snapshot, current.spec_version, version)) < len(current.fields):
            raise OverlapsOlderPartition(
                table=table, partition=_spelled(snapshot, older.slice(at, 1)), spec_version=version
            )
        replaced.append(object_id)
    return tuple(replaced)


def replace_rows(
    transaction: Transaction, staged: Iterable[StagedPartition], object_ids: Iterable[str]
) -> None:
    """Put the staged rows in the place of whole partitions.

    Args:
        transaction: Gets the changes.
        staged: What the tasks wrote; rows of other partitions are appended where these are there,
            and else make them, alone. In weak mode, which has no conflicts to refuse them by, they
            are appended to whatever is there: the condition need not be about them.
        object_ids: The partitions that go.
    """
    removed = set(object_ids)
    parts = list(staged)
    if transaction.snapshot.is_strong:
        others = {part.object_id for part in parts} - removed
        removed |= others - leaf_states(transaction.snapshot, others).keys()
    transaction.replace(part for part in parts if part.object_id in removed)
    transaction.append(part for part in parts if part.object_id not in removed)
    transaction.drop(removed.difference(part.object_id for part in parts))


def _spec_version(object_id: str) -> int:
    parsed = ObjectId.parse(object_id)
    return 1 if parsed is None else parsed.spec_version


def _spelled(snapshot: Snapshot, leaf: pa.Table) -> str:
    """Spell the partition of one row of the manifest."""
    fields = snapshot.specs[_spec_version(leaf["object_id"][0].as_py())].fields
    values = {field.field_id: leaf[field.column][0] for field in fields}
    return partition_text(values) if values else "the only one"


def _keys(snapshot: Snapshot) -> str:
    """Name the columns that partitions are made by."""
    fields = snapshot.current_spec.fields
    named = [snapshot.schema.field_by_id(id_) for field in fields for id_ in field.source_ids]
    columns = dict.fromkeys(str(schema_field) for schema_field in named if schema_field is not None)
    return ", ".join(columns) or "TRUE: the table has one partition"


# Atomic changes of table names: REPLACE TABLE and RENAME TABLE.
#
# In a directory namespace each is one commit of its manifest, so that a table never has two names,
# nor none. Other implementations of the interface can only forget and register: there a crash in
# between leaves a table without a name, which its path still opens, and not one with two, of which
# either DROP would delete the files.


def named_at(catalog: Catalog, identifier: Name, location: str) -> NamedAt | None:
    """Tell where the name of a partitioned namespace is kept, for whoever has no catalog at hand.

    Args:
        catalog: The catalog.
        identifier: The name.
        location: Where it points to.

    Returns:
        None where only the implementation of the catalog knows.
    """
    if catalog.implementation != "dir":
        return None
    place = relative_location(catalog, location)
    return NamedAt(catalog.root, tuple(identifier), place)


def replace_partitioned(directory: Directory, identifier: Name, old: str, new: str) -> None:
    """Point the name of a partitioned namespace to another location.

    Args:
        directory: The catalog's.
        identifier: The name.
        old: Where it points to.
        new: Where it shall point to.

    Raises:
        WriteConflict: It points elsewhere by now.
    """
    catalog = directory.catalog
    if catalog.implementation == "dir":
        old, new = (relative_location(catalog, location) for location in (old, new))
        if not move_registration(catalog.root, identifier, old, new, catalog.storage):
            name = catalog.full_name(identifier)
            raise WriteConflict(table=name, why="another writer replaced or dropped the table")
        return
    _register_again(directory, (identifier, old), (identifier, new))


def point_to_namespace(directory: Directory, identifier: Name, old: str, new: str) -> None:
    """Point the name of a plain table to a partitioned namespace; the table's files stay.

    Args:
        directory: The catalog's.
        identifier: The name.
        old: Where the plain table is.
        new: Where the partitioned namespace is.

    Raises:
        TableAlreadyExists: Another writer replaced the table.
    """
    catalog = directory.catalog
    if catalog.implementation != "dir":
        directory.deregister_plain(identifier)
        directory.register(identifier, new)
        return
    is_taken = take_plain_name(
        catalog.root,
        identifier,
        relative_location(catalog, old),
        registration_of(catalog, new),
        catalog.storage,
    )
    if not is_taken:
        # A folder that merely lies there: a namespace of its name is found before it.
        directory.register(identifier, new)


def take_name(directory: Directory, identifier: Name, to: Name, location: str) -> None:
    """Give a partitioned namespace another name.

    Args:
        directory: The catalog's.
        identifier: The name.
        to: The new one.
        location: Where it is.

    Raises:
        WriteConflict: The table was dropped, or the new name given away, meanwhile.
    """
    catalog = directory.catalog
    if catalog.implementation == "dir":
        if not rename_registration(catalog.root, identifier, to, catalog.storage):
            name = catalog.full_name(identifier)
            why = "another writer dropped the table or took its new name"
            raise WriteConflict(table=name, why=why)
        return
    _register_again(directory, (identifier, location), (to, location))


def _register_again(directory: Directory, old: tuple[Name, str], new: tuple[Name, str]) -> None:
    """Forget a name and its location, and register others; the old ones where that fails."""
    directory.deregister(old[0])
    try:
        directory.register(*new)
    except PennonError:
        directory.register(*old)
        raise


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
