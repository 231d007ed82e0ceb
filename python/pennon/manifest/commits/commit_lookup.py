"""Whether a commit was made: finding its record, and claiming its id so that it never will be."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from pennon.errors import StorageFailure
from pennon.manifest.commits.manifest_outcome import is_conflict
from pennon.manifest.format.commit_record import (
    COMMIT,
    GIVEN_UP,
    CommitIdentity,
    CommitRecord,
    commit_key,
    records_in,
)
from pennon.manifest.format.rows import table_of_rows
from pennon.manifest.select import select
from pennon.manifest.storage import StorageOptions, open_manifest, storage_failure

__all__ = ["Rewrites", "find_commit", "give_up", "is_rewritten", "rewritten_leaves"]

_ATTEMPTS: Final = 20

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
    wanted = exp.column("object_id").eq(exp.Literal.string(commit_key(commit_id)))
    found = select(manifest, ["object_type", "metadata"], COMMIT, wanted).table
    return next(iter(records_in(found)), None)


def rewritten_leaves(location: str, storage_options: StorageOptions | None = None) -> Rewrites:
    """Tell which leaf versions are rewrites of others: same rows, other files.

    Args:
        location: The namespace.
        storage_options: Given to Lance.

    Returns:
        Leaf and version → the version that it was made from.
    """
    manifest = open_manifest(location, storage_options=storage_options)
    told = exp.func("contains", exp.column("metadata"), exp.Literal.string('"rewrites"'))
    rows = select(manifest, ["object_type", "metadata"], COMMIT, told).table
    return {
        (leaf, after): before
        for record in records_in(rows)
        for leaf, (before, after) in record.rewrites.items()
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
    for _ in range(_ATTEMPTS):
        there = find_commit(location, identity.id, storage_options)
        if there is not None:
            return there
        manifest = open_manifest(location, storage_options=storage_options)
        merge = manifest.merge_insert("object_id").when_not_matched_insert_all()
        try:
            merge.conflict_retries(0).execute(table_of_rows([mine.row()], manifest.schema))
        except (OSError, RuntimeError, ValueError) as error:
            if not is_conflict(error):
                raise storage_failure("commit to", location, error) from error
    raise StorageFailure(verb="commit to", location=location, problem="other writers came first")
