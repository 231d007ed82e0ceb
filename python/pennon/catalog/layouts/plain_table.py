"""A table over a plain Lance dataset: one leaf, and commits to its main branch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.failures_by_name import by_name
from pennon.catalog.layouts.plain_commits import (
    abandon_plain,
    append_plain,
    change_plain_rows,
    replace_plain,
    stage_plain,
)
from pennon.catalog.layouts.plain_snapshot import PlainSnapshot, open_plain
from pennon.catalog.layouts.stored_table import StagedRows, StoredTable
from pennon.catalog.name_changes import point_to_namespace
from pennon.catalog.replacement import whole_partitions
from pennon.catalog.write_mode import WriteMode
from pennon.errors import TableMadeAnew, TableNotFound, UnsupportedTableChange
from pennon.leaf import drop_dataset
from pennon.leaf.changes.deleted_rows import DeletedRows
from pennon.leaf.write.incoming_rows import conform

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pennon.catalog.directory import Directory, Name
    from pennon.leaf import WriteTarget
    from pennon.manifest.format.commit_record import CommitIdentity

__all__ = ["PlainTable"]


@dataclass(frozen=True, slots=True)
class PlainTable(StoredTable):
    """A plain dataset at one version."""

    snapshot: PlainSnapshot

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
    ) -> PlainTable:
        """Open the version; a dataset that was written anew at the place is another table."""
        del mode, commit, is_blind
        snapshot = open_plain(target.location, target.version, None, target.storage_options)
        if snapshot is None:
            raise TableNotFound(table=name, near="it was dropped meanwhile")
        if snapshot.identity != identity:
            raise TableMadeAnew(table=name, location=target.location)
        return cls(name, snapshot)

    def check_writable(self, verb: str) -> None:
        """Allow it."""

    def check_alterable(self) -> None:
        """Refuse: the dataset's own schema is all the definition that there is."""
        raise UnsupportedTableChange(
            change="change the definition",
            table=self.name,
            why="it is a plain Lance dataset",
            advice="Create a table from it with CREATE TABLE … AS SELECT",
        )

    def check_sources(self) -> None:
        """There is no partition to compute."""

    def staged_schema(self, columns: pa.Schema) -> pa.Schema:
        """Give the types that Lance stores; a column that the query has not is NULL."""
        stored = self.snapshot.stored_schema
        if len(columns) == len(stored):
            return stored
        return pa.schema([column for column in stored if column.name in columns.names])

    @staticmethod
    def stage(
        batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: WriteTarget
    ) -> StagedRows:
        """Write rows as uncommitted fragments of the dataset."""
        return stage_plain(target.location, batches, schema, target.storage_options)

    def stage_unordered(self, batches: Iterable[pa.RecordBatch]) -> StagedRows:
        """Write rows as they come: all are in one place."""
        stored = self.snapshot.stored_schema
        rows = (
            _stored(conform(batch, self.snapshot.schema, self.name), stored)
            for batch in batches
            if batch.num_rows
        )
        return self.stage(rows, stored, self.target)

    def commit(
        self,
        mode: WriteMode,
        predicates: Sequence[str],
        staged: Sequence[str],
        identity: CommitIdentity | None = None,
        reads: Sequence[Sequence[str]] = (),
    ) -> int:
        """Append the staged rows, or put them in the place of all that are there."""
        is_append = mode is WriteMode.APPEND or (
            predicates
            and not whole_partitions(self.snapshot, self.name, predicates, action="overwrite")
        )
        with by_name(self.name):
            if is_append:  # rows that an overwrite would take out may come meanwhile
                is_blind = mode is WriteMode.APPEND and not reads
                return append_plain(self.snapshot, staged, _id(identity), is_blind=is_blind)
            return replace_plain(self.snapshot, staged, _id(identity))

    def change_rows(
        self,
        mode: WriteMode,
        deleted: Sequence[str],
        staged: Sequence[str],
        reads: Sequence[Sequence[str]],
        identity: CommitIdentity | None = None,
    ) -> int:
        """Mark rows as deleted and append others; any other commit since is a conflict."""
        del mode, reads
        rows = [DeletedRows.from_json(text) for text in deleted]
        with by_name(self.name):
            return change_plain_rows(self.snapshot, staged, rows, _id(identity))

    def drop_partitions(
        self,
        object_ids: Sequence[str],
        predicates: Sequence[str],
        identity: CommitIdentity | None = None,
    ) -> int:
        """Empty the dataset, which is its only partition."""
        del object_ids, predicates
        with by_name(self.name):
            return replace_plain(self.snapshot, (), _id(identity))

    @staticmethod
    def abort(
        location: str,
        storage: Mapping[str, str],
        staged: Sequence[str],
        identity: CommitIdentity | None = None,
    ) -> None:
        """Remove the files, unless a commit that was sent may still come to name them."""
        abandon_plain(location, staged, storage, _id(identity))

    def pass_name_on(self, directory: Directory, identifier: Name, location: str) -> None:
        """Take the name; the dataset stays where it is."""
        point_to_namespace(directory, identifier, self.snapshot.location, location)

    def register(self, directory: Directory, identifier: Name, location: str) -> None:
        """Record the name as ``lance_namespace`` does that of any dataset."""
        directory.register_plain(identifier, location)

    def deregister(self, directory: Directory, identifier: Name) -> None:
        """Take the record out."""
        directory.deregister_plain(identifier)

    def delete_datasets(self) -> None:
        """Delete the dataset."""
        drop_dataset(self.snapshot.location, self.snapshot.storage_options)


def _id(identity: CommitIdentity | None) -> str | None:
    return None if identity is None else identity.id


def _stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
