"""A table over a plain Lance dataset: one leaf, and commits to its main branch."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from pennon.caching import version_identity
from pennon.caching.lance_sessions import lance_options, opening
from pennon.catalog.configured_catalog import WriteMode
from pennon.catalog.layouts.plain_snapshot import PlainSnapshot, open_plain
from pennon.catalog.layouts.stored_table import (
    StagedRows,
    StoredTable,
    point_to_namespace,
    whole_partitions,
)
from pennon.catalog.table_name import by_name
from pennon.errors import TableMadeAnew, TableNotFound, UnsupportedTableChange, WriteConflict
from pennon.leaf import drop_dataset
from pennon.leaf.changes.deleted_rows import DeletedRows
from pennon.leaf.changes.row_changes import deletions
from pennon.leaf.schema.file_layout import file_batch, file_schema
from pennon.leaf.write.incoming_rows import conform
from pennon.leaf.write.partition_writer import KeptFailure, delete_files
from pennon.manifest.commits.manifest_commit import exclusive, wait_for_others
from pennon.spec.arrow_json import is_blob

if TYPE_CHECKING:
    from pennon.catalog.directory import Directory, Name
    from pennon.leaf import WriteTarget
    from pennon.manifest.format.rows import CommitIdentity

__all__ = ["PlainTable", "append_plain", "stage_plain"]

# Commits to the main branch of a plain Lance dataset, each made exactly once.

_COMMIT: Final = "pennon.commit"
_COMMITTING: Final = threading.Lock()
# The commits that were refused and whose files nobody has removed yet, the latest ones.
_REFUSED: Final[dict[str, bool]] = {}
_MOST_REFUSED: Final = 1000
_ATTEMPTS: Final = 40
# Commits that read no row, or leave all rows as they are: rows that are made of an earlier version
# may come before theirs.
_COMES_BEHIND: Final = (
    lance.LanceOperation.Append,
    lance.LanceOperation.Rewrite,
    lance.LanceOperation.CreateIndex,
)
# What Lance says where a commit that is there by now conflicts with this one, as it will with every
# try on the same base. That other writers were too fast is not of the kind.
_FINAL: Final = ("preempted by concurrent transaction", "incompatible with concurrent transaction")


def stage_plain(
    location: str,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    storage_options: Mapping[str, str],
) -> StagedRows:
    """Write rows as uncommitted fragments of a plain dataset.

    Returns:
        The fragments as Lance's JSON.
    """
    rows, failure = 0, KeptFailure()
    if any(map(is_blob, schema)):
        dataset = lance.dataset(**opening(location, storage_options))
        schema = file_schema(schema, dataset.data_storage_version)

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        with failure:
            for batch in batches:
                rows += batch.num_rows
                yield file_batch(batch, schema)

    with failure.raised():
        fragments = write_fragments(
            pa.RecordBatchReader.from_batches(schema, counted()),
            location,
            schema=schema,
            mode="append",
            storage_options=lance_options(storage_options),
        )
    texts = (json.dumps(fragment.to_json()) for fragment in fragments if fragment.physical_rows)
    size = sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)
    return StagedRows(tuple(texts), rows, size)


def abandon_plain(
    location: str,
    fragments: Sequence[str],
    storage_options: Mapping[str, str],
    commit_id: str | None = None,
) -> None:
    """Remove the files of staged rows that no commit can name any more.

    A plain dataset has no place where a commit could be given up. So where one was sent the files
    go only if this process has seen it refused, which no later try of it can escape; else they are
    left to Lance's own clean-up, which knows those that no version names.

    Args:
        location: The dataset.
        fragments: What was staged.
        storage_options: Given to Lance.
        commit_id: The commit's id, if anything was ever asked to make it.
    """
    if commit_id is None or _REFUSED.pop(commit_id, False):
        delete_files(location, fragments, storage_options)


def append_plain(
    snapshot: PlainSnapshot,
    fragments: Sequence[str],
    commit_id: str | None = None,
    *,
    is_blind: bool = True,
) -> int:
    """Commit staged fragments to the main branch; gives the new version.

    Args:
        snapshot: The version that the write is based on.
        fragments: What was staged.
        commit_id: The commit's id; one that was made already is not made again.
        is_blind: Whether the rows are added whatever is there. Rows that are made of the version
            stand where others have merely appended since, whose rows come behind them.

    Raises:
        WriteConflict: Another commit changed the schema, or what the rows are made of.
    """
    if not fragments:
        return snapshot.version
    parsed = [lance.FragmentMetadata.from_json(text) for text in fragments]
    if not is_blind:
        return _appended_alone(snapshot, parsed, commit_id)
    operation, base = lance.LanceOperation.Append(parsed), snapshot.version
    for attempt in range(_ATTEMPTS):
        try:
            return _committed(snapshot, operation, commit_id, base, is_final=False)
        except WriteConflict:
            # Lance appends behind no change of rows that states every fragment; here it may be.
            newest = _newest(snapshot)
            if not _takes_rows_of(newest, snapshot):
                raise
            base = int(newest.version)
            wait_for_others(attempt)
    raise _conflict(snapshot)


def replace_plain(
    snapshot: PlainSnapshot, fragments: Sequence[str], commit_id: str | None = None
) -> int:
    """Make the content of the main branch exactly the staged fragments; gives the new version.

    Args:
        snapshot: The version whose rows go.
        fragments: What was staged; none empties the dataset.
        commit_id: As for ``append_plain``.

    Raises:
        WriteConflict: Another commit changed rows that go.
    """
    removed = [fragment.fragment_id for fragment in snapshot.manifest.get_fragments()]
    if not removed:  # of two that replace nothing, one would keep the rows of the other
        return append_plain(snapshot, fragments, commit_id, is_blind=False)
    if snapshot.manifest.has_stable_row_ids:
        _check_only_appended(snapshot, _newest(snapshot), commit_id)
    if not fragments:
        operation = lance.LanceOperation.Delete(
            updated_fragments=[], deleted_fragment_ids=removed, predicate="true"
        )
        return _committed(snapshot, operation, commit_id)
    new = [lance.FragmentMetadata.from_json(text) for text in fragments]
    update = lance.LanceOperation.Update(
        removed_fragment_ids=removed, updated_fragments=[], new_fragments=new
    )
    return _committed(snapshot, update, commit_id)


def _appended_alone(
    snapshot: PlainSnapshot, fragments: list[lance.FragmentMetadata], commit_id: str | None
) -> int:
    """Append rows that depend on what is there, behind none but blind appends.

    The commit states every fragment, so that who replaces or has read some meanwhile is refused.
    With stable row ids, which Lance gives by another operation alone, it is looked before.
    """
    for attempt in range(_ATTEMPTS):
        newest = _newest(snapshot)
        made = _check_only_appended(snapshot, newest, commit_id)
        if made is not None:
            return made
        operation: lance.LanceOperation.BaseOperation = lance.LanceOperation.Update(
            removed_fragment_ids=[], updated_fragments=[], new_fragments=fragments
        )
        if not newest.has_stable_row_ids:
            operation = exclusive(newest, operation, snapshot.storage_options)
        try:
            base = int(newest.version)
            return _committed(snapshot, operation, commit_id, base, is_final=False)
        except WriteConflict:
            wait_for_others(attempt)
    raise _conflict(snapshot)


def _newest(snapshot: PlainSnapshot) -> lance.LanceDataset:
    try:
        return lance.dataset(**opening(snapshot.location, snapshot.storage_options))
    except ValueError as error:
        if "not found" not in str(error).lower():
            raise
        raise _dropped(snapshot) from error


def _takes_rows_of(newest: lance.LanceDataset, snapshot: PlainSnapshot) -> bool:
    """Whether fragments that were written for a version fit the newest one of the same dataset."""
    try:
        is_same = version_identity(newest.checkout_version(snapshot.version)) == snapshot.identity
    except (OSError, ValueError):  # that version was cleaned up
        return False
    # Files name columns by the ids that the schema gives them, which are a part of it.
    return is_same and newest.lance_schema == snapshot.manifest.lance_schema


def _check_only_appended(
    snapshot: PlainSnapshot, newest: lance.LanceDataset, commit_id: str | None
) -> int | None:
    """See that others have only appended since, or moved rows.

    Returns:
        The version that an earlier try of the commit has made; None where there is none.

    Raises:
        WriteConflict: They have done more, or it is not known what.
    """
    made = None if commit_id is None else _made_before(snapshot, commit_id)
    if made is not None:
        return made
    for version in range(snapshot.version + 1, int(newest.version) + 1):
        try:
            made_by = newest.read_transaction(version)
        except (OSError, ValueError):  # that version was cleaned up
            made_by = None
        if made_by is None or not isinstance(made_by.operation, _COMES_BEHIND):
            raise _conflict(snapshot)
    return None


def change_plain_rows(
    snapshot: PlainSnapshot,
    fragments: Sequence[str],
    deleted: Sequence[DeletedRows],
    commit_id: str | None = None,
) -> int:
    """Take single rows out of the main branch and add staged ones; gives the new version.

    The change is made of all rows of the version, so it stands only on that version.

    Args:
        snapshot: The version that the statement read.
        fragments: What was staged.
        deleted: What tasks report of the rows that go.
        commit_id: As for ``append_plain``.

    Raises:
        WriteConflict: Another commit came first.
    """
    dataset, options = snapshot.manifest, snapshot.storage_options
    rows = deleted[0].merged(deleted[1:]) if deleted else None
    updated, removed = deletions(dataset, rows)
    new = [lance.FragmentMetadata.from_json(text) for text in fragments]
    if not updated and not removed and not new:
        return snapshot.version
    update = lance.LanceOperation.Update(
        removed_fragment_ids=removed, updated_fragments=updated, new_fragments=new
    )
    if not dataset.has_stable_row_ids:
        return _committed(snapshot, exclusive(dataset, update, options), commit_id)
    # New rows get their stable ids from Lance, which gives them to this kind of operation alone.
    made = None if commit_id is None else _made_before(snapshot, commit_id)
    latest = _newest(snapshot)
    if made is None and latest.version != snapshot.version:
        # Another try may have made it between the two looks. One that looked before may make it
        # still, so that this refusal is not final and the files stay.
        made = None if commit_id is None else _made_before(snapshot, commit_id)
        if made is not None:
            return made
        why = f"it is at version {latest.version}, and the statement read {snapshot.version}"
        raise WriteConflict(table=snapshot.location, why=why)
    return _committed(snapshot, update, commit_id)


def _committed(
    snapshot: PlainSnapshot,
    operation: lance.LanceOperation.BaseOperation,
    commit_id: str | None,
    base: int | None = None,
    *,
    is_final: bool = True,
) -> int:
    """Commit, unless an earlier try has done so.

    Args:
        snapshot: The version that the write is based on.
        operation: What is done.
        commit_id: The commit's id.
        base: The version that the operation is for; None for that of the snapshot.
        is_final: Whether no other try can come through where this one is refused.

    Raises:
        TableMadeAnew: Another dataset stands there by now.
        TableNotFound: It was dropped meanwhile.
        WriteConflict: Another commit came first that it does not commute with.
    """
    with _COMMITTING:
        _check_same(snapshot)
        made = None if commit_id is None else _made_before(snapshot, commit_id)
        if made is not None:
            return made
        version = snapshot.version if base is None else base
        return _commit(snapshot, operation, commit_id, version, is_final=is_final)


def _check_same(snapshot: PlainSnapshot) -> None:
    """See that the dataset is there: Lance commits to another one at its place as well."""
    newest = _newest(snapshot)
    is_same = newest.version >= snapshot.version
    with contextlib.suppress(OSError, ValueError):  # the version that was read was cleaned up
        if is_same:
            reopened = newest.checkout_version(snapshot.version)
            is_same = version_identity(reopened) == snapshot.identity
    if not is_same:
        raise TableMadeAnew(table=snapshot.location, location=snapshot.location)


def _dropped(snapshot: PlainSnapshot) -> TableNotFound:
    return TableNotFound(table=snapshot.location, near="it was dropped meanwhile")


def _made_before(snapshot: PlainSnapshot, commit_id: str) -> int | None:
    """Find the version that an earlier try of the commit has made."""
    newest = _newest(snapshot)
    for version in range(newest.version, snapshot.version, -1):
        try:
            transaction = newest.read_transaction(version)
        except (OSError, ValueError):  # that version was cleaned up
            continue
        if transaction and (transaction.transaction_properties or {}).get(_COMMIT) == commit_id:
            return version
    return None


def _has_whole_history(snapshot: PlainSnapshot) -> bool:
    """Whether every version since says what made it, so that a commit would have been found."""
    newest = _newest(snapshot)
    try:
        made_by = [
            newest.read_transaction(version)
            for version in range(snapshot.version + 1, newest.version + 1)
        ]
    except (OSError, ValueError):
        return False
    return None not in made_by


def _commit(
    snapshot: PlainSnapshot,
    operation: lance.LanceOperation.BaseOperation,
    commit_id: str | None,
    base: int,
    *,
    is_final: bool,
) -> int:
    named = {} if commit_id is None else {_COMMIT: commit_id}
    try:
        committed = lance.LanceDataset.commit(
            snapshot.location,
            lance.Transaction(base, operation, transaction_properties=named),
            storage_options=lance_options(snapshot.storage_options),
        )
    except OSError as error:
        if "must already exist" in str(error):
            raise _dropped(snapshot) from error
        if "conflict" not in str(error).lower():
            raise
        made = None if commit_id is None else _made_before(snapshot, commit_id)
        if made is not None:  # by another try of it, which came between
            return made
        is_lasting = is_final and any(words in str(error).lower() for words in _FINAL)
        if is_lasting and _has_whole_history(snapshot):
            _refuse(commit_id)
        raise _conflict(snapshot) from error
    return int(committed.version)


def _conflict(snapshot: PlainSnapshot) -> WriteConflict:
    why = "another commit changed the dataset in a way that does not commute"
    return WriteConflict(table=snapshot.location, why=why)


def _refuse(commit_id: str | None) -> None:
    """Remember that a commit was not made, and that nothing tries it any more."""
    if commit_id is not None:
        _REFUSED[commit_id] = True
        while len(_REFUSED) > _MOST_REFUSED:
            _REFUSED.pop(next(iter(_REFUSED)), None)


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
