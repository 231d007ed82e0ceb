"""Aborts a write: deletes its files, unless a commit names them or may still do so."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pennon.errors import LeafMissing, NamespaceHasNoManifest
from pennon.leaf.dataset import leaf_uri, open_leaf
from pennon.leaf.write.partition_writer import delete_fragment_files
from pennon.manifest import Snapshot
from pennon.manifest.commits.commit_lookup import give_up
from pennon.transaction.staging.leaf_state import leaf_states
from pennon.transaction.staging.staged import by_leaf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pennon.leaf import StagedPartition
    from pennon.manifest.format.commit_record import CommitIdentity
    from pennon.transaction.staging.leaf_state import LeafState

__all__ = ["abandon"]


def abandon(
    location: str,
    staged: Iterable[StagedPartition],
    storage_options: Mapping[str, str],
    identity: CommitIdentity | None = None,
) -> bool:
    """Remove the files of staged rows that will not be committed.

    Where the commit was sent, its outcome may be unknown and a try of it may still be under way
    in another process. So its id is claimed first: then it is either known to be made, and every
    file stays, or it can be made no more.

    Args:
        location: The namespace; the version that the write was based on is not needed.
        staged: The reports of all tasks.
        storage_options: Given to Lance.
        identity: The commit, if anything was ever asked to make it.

    Returns:
        Whether the write is undone; False where its commit was made after all.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    states: Mapping[str, LeafState] = {}
    parts = by_leaf(staged)
    if identity is not None:
        try:
            latest = Snapshot.open(location, storage_options=storage_options)
            if latest.is_strong and not give_up(location, identity, storage_options).is_given_up:
                return False
            states = leaf_states(latest, parts)
        except NamespaceHasNoManifest:  # the table was dropped: nobody names its files
            states = {}
    for object_id, reports in parts.items():
        place = reports[0].location
        used = _used_files(location, states.get(object_id), storage_options)
        unused = [
            fragment
            for report in reports
            for fragment in report.fragments
            if not used & {file["path"] for file in json.loads(fragment)["files"]}
        ]
        delete_fragment_files(location, place, unused, storage_options)
        _remove_if_empty(leaf_uri(location, place))
    return True


def _used_files(
    location: str, state: LeafState | None, storage_options: Mapping[str, str]
) -> set[str]:
    if state is None:
        return set()
    try:
        leaf = open_leaf(location, state.location, state.read_version, storage_options)
    except LeafMissing:
        return set()
    return {file.path for fragment in leaf.get_fragments() for file in fragment.metadata.files}


def _remove_if_empty(uri: str) -> None:
    """Remove the directories of a leaf that was never committed; object stores have none."""
    if "://" in uri:
        return
    for directory in (Path(uri) / "data", Path(uri)):
        with contextlib.suppress(OSError):
            directory.rmdir()
