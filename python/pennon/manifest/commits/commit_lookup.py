"""Finds whether a commit was made, and claims its id so that it never will be."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import lance
import pyarrow as pa
from sqlglot import exp

from pennon.caching.lance_sessions import lance_options
from pennon.errors import StorageFailure
from pennon.manifest.commits.manifest_commit import exclusive, wait_for_others
from pennon.manifest.dataset.select import select
from pennon.manifest.dataset.storage import (
    StorageOptions,
    is_conflict,
    open_manifest,
    reading_failure,
    storage_failure,
)
from pennon.manifest.format.rows import (
    COMMIT,
    GIVEN_UP,
    CommitIdentity,
    CommitRecord,
    commit_key,
    records_in,
    table_of_rows,
)
from pennon.predicate.dialect import DataFusion

__all__ = [
    "Rewrites",
    "add_records",
    "copy_with_records",
    "find_commit",
    "give_up",
    "is_any_there",
    "is_rewritten",
    "rewritten_leaves",
]

_ATTEMPTS: Final = 40

Rewrites = Mapping[tuple[str, int], int]
"""A leaf's object id and version → the version whose rows it has, in other files."""


def find_commit(
    location: str, commit_id: str, storage_options: StorageOptions | None = None
) -> CommitRecord | None:
    """Look for the record of a commit in the newest version of a namespace.

    Args:
        location: The namespace.
        commit_id: The commit's id.
        storage_options: Given to Lance.

    Returns:
        What it did, or that it was given up; None where it has not been made yet.
    """
    manifest = open_manifest(location, storage_options=storage_options)
    condition = exp.column("object_id").eq(exp.Literal.string(commit_key(commit_id)))
    rows = select(manifest, ["object_type", "metadata"], COMMIT, condition).table
    return next(iter(records_in(rows)), None)


def is_any_there(manifest: lance.LanceDataset, commit_ids: Sequence[str]) -> bool:
    """Whether one of some commits was made, or given up, until a version.

    Args:
        manifest: The ``__manifest`` at the version.
        commit_ids: Their ids.

    Raises:
        StorageFailure: The storage refused.
    """
    keys = [exp.Literal.string(commit_key(id_)) for id_ in commit_ids]
    condition = exp.column("object_id").isin(*keys).sql(dialect=DataFusion)
    try:
        return bool(manifest.count_rows(condition))
    except OSError as error:
        raise reading_failure(manifest, error) from error


def rewritten_leaves(location: str, storage_options: StorageOptions | None = None) -> Rewrites:
    """Tell which leaf versions are rewrites of others: same rows, other files.

    Args:
        location: The namespace.
        storage_options: Given to Lance.

    Returns:
        Leaf and version → the version that it was made from.
    """
    manifest = open_manifest(location, storage_options=storage_options)
    has_rewrites = exp.func("contains", exp.column("metadata"), exp.Literal.string('"rewrites"'))
    rows = select(manifest, ["object_type", "metadata"], COMMIT, has_rewrites).table
    return {
        (leaf, after): before
        for record in records_in(rows)
        for leaf, (before, after) in record.rewrites.items()
        if before != after
    }


def is_rewritten(object_id: str, old: int | None, new: int | None, rewrites: Rewrites) -> bool:
    """Whether nothing but rewrites of files lie between two versions of a leaf.

    Example:
        >>> is_rewritten("v1$dataset", 3, 5, {("v1$dataset", 5): 4, ("v1$dataset", 4): 3})
        True
    """
    while new is not None and new != old:
        new = rewrites.get((object_id, new))
    return new is not None


def give_up(
    location: str, identity: CommitIdentity, storage_options: StorageOptions | None = None
) -> CommitRecord:
    """See to it that a commit is never made, unless it was.

    Args:
        location: The namespace.
        identity: The commit.
        storage_options: Given to Lance.

    Returns:
        The record that stands: that of the commit if it was made, else that it was given up.

    Raises:
        StorageFailure: The storage refused; the commit may still be made.
    """
    mine = CommitRecord(identity, GIVEN_UP, made_at=int(time.time()))
    for attempt in range(_ATTEMPTS):
        recorded = find_commit(location, identity.id, storage_options)
        if recorded is not None:
            return recorded
        if not _insert_missing(location, [mine], storage_options):
            wait_for_others(attempt)
    raise StorageFailure(
        verb="commit to",
        location=location,
        problem="other writers came first",
        advice="Run the statement again",
    )


def _insert_missing(
    location: str, records: Sequence[CommitRecord], storage_options: StorageOptions | None
) -> bool:
    """Insert records that are not there; whether another writer did not come first.

    Nothing may be committed between: a commit that moves leaves is compared by these, not by its
    record, and would not see that a record of it came first.
    """
    manifest = open_manifest(location, storage_options=storage_options)
    merge = manifest.merge_insert("object_id").when_not_matched_insert_all()
    rows = table_of_rows([record.row() for record in records], manifest.schema)
    try:
        transaction, _ = merge.execute_uncommitted(rows)
        operation = exclusive(manifest, transaction.operation, storage_options or {})
        lance.LanceDataset.commit(manifest, operation, manifest.version, max_retries=0)
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("commit to", location, error) from error
        return False
    return True


def copy_with_records(
    older: lance.LanceDataset,
    newer: lance.LanceDataset,
    storage_options: StorageOptions | None = None,
) -> lance.LanceDataset:
    """Make an older version anew, with the records of a newer one, beside the main branch.

    It has files of its own: those of the older version may go with it at any moment.

    Args:
        older: A version of ``__manifest``.
        newer: A later one.
        storage_options: Given to Lance.

    Returns:
        A detached version with the rows of the older one and the records, which can be restored.

    Raises:
        OSError: The storage refused.
    """
    records = table_of_rows(
        [record.row() for record in _records_of(newer, since=older)], older.schema
    )
    rows = chain(older.to_batches(), records.to_batches())
    reader = pa.RecordBatchReader.from_batches(older.schema, rows)
    options = lance_options(storage_options)
    fragments = lance.fragment.write_fragments(reader, older, storage_options=options)
    replaced = lance.LanceOperation.Update(
        removed_fragment_ids=[fragment.fragment_id for fragment in older.get_fragments()],
        new_fragments=fragments,
    )
    return lance.LanceDataset.commit(
        older, replaced, read_version=older.version, detached=True, storage_options=options
    )


def add_records(location: str, version: int, storage_options: StorageOptions | None = None) -> None:
    """Add the records that a version has to the newest one, which was made without them.

    Args:
        location: The namespace.
        version: The version of ``__manifest``.
        storage_options: Given to Lance.

    Raises:
        StorageFailure: The storage refused.
    """
    older = open_manifest(location, version, storage_options=storage_options)
    for attempt in range(_ATTEMPTS):
        newest = open_manifest(location, storage_options=storage_options)
        records = _records_of(older, since=newest)
        if not records or _insert_missing(location, records, storage_options):
            return
        wait_for_others(attempt)


def _records_of(manifest: lance.LanceDataset, *, since: lance.LanceDataset) -> list[CommitRecord]:
    columns = ["object_type", "metadata"]
    since_ids = {record.object_id for record in records_in(select(since, columns, COMMIT).table)}
    recorded = records_in(select(manifest, columns, COMMIT).table)
    return [record for record in recorded if record.object_id not in since_ids]
