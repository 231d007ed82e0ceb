"""Weak mode: every leaf is committed on its own, on its main branch.

The order makes an interrupted commit one that can be made again with the same staged rows:
new leaves are made empty, then the manifest gets their rows, then each leaf gets its fragments,
and fragments whose files a leaf has already are left out. So a row is never there twice, and
data is never in a leaf that the manifest does not know.

Statistics are not recorded: anyone may write to the main branch.

Each leaf is opened before the last look at the manifest, and committed to as it was opened. Who
makes the table's transactions strong says so in the manifest and then makes a commit of each leaf
that Lance lets nothing be rebased over: one of the two is seen by the other.
"""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pennon.errors import SnapshotNotFound
from pennon.leaf.changes.row_changes import change_rows, has_same_fragments
from pennon.leaf.dataset import leaves_at_once, open_leaf
from pennon.leaf.write.destination import create_leaf
from pennon.leaf.write.leaf_commit import append_fragments, remove_fragments, replace_fragments
from pennon.manifest import LeafChange, ManifestCommitted, Snapshot, commit_leaves
from pennon.manifest.commits.manifest_commit import wait_for_others
from pennon.manifest.dataset.storage import is_conflict
from pennon.manifest.table_identity import WEAK, check_mode, check_same_table, table_id
from pennon.transaction.concurrency.conflicts import ROWS_CHANGED, check_layouts
from pennon.transaction.concurrency.outcome import Committed, Conflicted, Outcome, Retryable
from pennon.transaction.mode_change import settled
from pennon.transaction.staging.leaf_preparation import staged_values
from pennon.transaction.staging.staged import (
    Append,
    ChangeRows,
    Drop,
    Replace,
    check_writable,
    leaf_states,
    partition_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lance
    import pyarrow as pa

    from pennon.leaf import StagedPartition
    from pennon.transaction.staging.staged import Change

__all__ = ["commit_weak"]

_MAX_ATTEMPTS: Final = 40
_MAX_THREADS: Final = 8


def commit_weak(base: Snapshot, changes: Mapping[str, Change]) -> Outcome:
    """Commit each leaf on its main branch; readers may see some leaves before others.

    Args:
        base: The snapshot that the changes were made against.
        changes: One change per leaf, by object id.

    Spec: "Single-Partition Transaction (Weak)".
    """
    newest = _newest(base)
    dropped = check_layouts(changes, newest.schema.arrow, newest.specs)
    if dropped is not None:
        return dropped
    # A leaf that was dropped since the rows were written for it is made again, empty.
    snapshot = _registered(newest, changes)
    if snapshot is None:
        return Retryable(_MAX_ATTEMPTS)
    states = leaf_states(snapshot, changes)
    for object_id, change in changes.items():
        if isinstance(change, ChangeRows) and object_id not in states:
            gone = leaf_states(base, [object_id])
            values = gone[object_id].values if object_id in gone else {}
            return Conflicted(partition_text(values), ROWS_CHANGED)
    check_writable(base.location, changes, states)

    most = leaves_at_once(base.location, on_disk=_MAX_THREADS)
    with ThreadPoolExecutor(max(1, min(most, len(changes)))) as pool:
        written = [
            object_id
            for object_id in sorted(changes)
            if object_id in states and not isinstance(changes[object_id], Drop)
        ]
        opened = {
            object_id: pool.submit(_opened, snapshot, states[object_id].location)
            for object_id in written
        }
        leaves = {object_id: leaf.result() for object_id, leaf in opened.items()}
        changed = _changed_layout(base, changes)
        if changed is not None:
            return changed
        applied = {
            object_id: pool.submit(_apply, snapshot, leaf, changes[object_id])
            for object_id, leaf in leaves.items()
        }
        for object_id, future in applied.items():
            try:
                future.result()
            except _RowsMoved:
                return Conflicted(partition_text(states[object_id].values), ROWS_CHANGED)
            except OSError as error:
                changed = _changed_layout(base, changes) if is_conflict(error) else None
                if changed is None:
                    raise
                return changed
    return Committed(snapshot.version, snapshot)


def _newest(base: Snapshot, version: int | None = None) -> Snapshot:
    """Open the table as it is, which others may have replaced, or made one of strong mode."""
    newest = Snapshot.open(base.location, version, storage_options=base.storage_options)
    check_same_table(newest, table_id(base))
    if version is None:
        return settled(newest, WEAK)
    check_mode(newest, WEAK)
    return newest


def _changed_layout(base: Snapshot, changes: Mapping[str, Change]) -> Conflicted | None:
    """Look whether rows still fit the table; who changes it makes commits of the leaves."""
    newest = _newest(base)
    return check_layouts(changes, newest.schema.arrow, newest.specs)


def _opened(snapshot: Snapshot, location: str) -> lance.LanceDataset:
    return open_leaf(snapshot.location, location, None, snapshot.storage_options)


def _registered(base: Snapshot, changes: Mapping[str, Change]) -> Snapshot | None:
    """Make new leaves and their rows in the manifest; take dropped ones out."""
    snapshot = base
    made: set[str] = set()
    for attempt in range(_MAX_ATTEMPTS):
        states = leaf_states(snapshot, changes)
        new = [
            change.staged[0]
            for object_id, change in changes.items()
            if isinstance(change, Append | Replace) and object_id not in states
        ]
        removed = [state for state in states if isinstance(changes[state], Drop)]
        if not new and not removed:
            return snapshot
        for part in new:
            if part.object_id not in made:
                _make_empty(snapshot, part)
                made.add(part.object_id)
        rows = [
            LeafChange(part.object_id, part.location, staged_values(part), None) for part in new
        ]
        outcome = commit_leaves(snapshot, rows, removed)
        if isinstance(outcome, ManifestCommitted):
            with contextlib.suppress(SnapshotNotFound):  # of a version that has expired since
                return _newest(base, outcome.version)
        else:
            wait_for_others(attempt)
        snapshot = _newest(base)
    return None


def _make_empty(snapshot: Snapshot, part: StagedPartition) -> None:
    """Make the leaf, and empty what a dropped partition left under the same name.

    Another writer that makes the same leaf records it before it adds rows. So when the manifest
    still does not know the leaf after its rows were seen, the rows are nobody's.
    """
    options = snapshot.storage_options
    dataset = create_leaf(snapshot.location, part.location, snapshot.schema.arrow, options)
    if not dataset.get_fragments():
        return
    latest = Snapshot.open(snapshot.location, storage_options=options)
    if part.object_id not in leaf_states(latest, [part.object_id]):
        remove_fragments(dataset, detached=False)


def _apply(snapshot: Snapshot, dataset: lance.LanceDataset, change: Change) -> None:
    schema = snapshot.schema.arrow
    if isinstance(change, Append):
        missing = _not_there(dataset, change.staged)
        if missing:
            append_fragments(dataset, missing, schema, detached=False)
    elif isinstance(change, ChangeRows):
        _change_rows(dataset, change, schema)
    elif isinstance(change, Replace):
        if _not_there(dataset, change.staged) or not change.staged:
            replace_fragments(dataset, change.staged, schema, detached=False)
    else:
        remove_fragments(dataset, detached=False)


def _change_rows(dataset: lance.LanceDataset, change: ChangeRows, schema: pa.Schema) -> None:
    """Change rows on the main branch; rows that are gone from their places are a conflict.

    Which rows go is known for the version that the statement read. New rows of an earlier try of
    this commit mean that it went through.
    """
    if change.staged and not _not_there(dataset, change.staged):
        return
    read = dataset.checkout_version(change.deleted.version)
    if not has_same_fragments(read, dataset, change.deleted.by_fragment()):
        raise _RowsMoved
    try:
        change_rows(
            dataset,
            change.deleted,
            change.staged,
            schema,
            detached=False,
            copies=change.copies,
        )
    except OSError as error:
        if not is_conflict(error):
            raise
        raise _RowsMoved from error


class _RowsMoved(Exception):
    """Another commit of the leaf came first."""


def _not_there(
    dataset: lance.LanceDataset, staged: tuple[StagedPartition, ...]
) -> list[StagedPartition]:
    """Leave out the fragments that an earlier try of this commit has added."""
    paths = {file.path for fragment in dataset.get_fragments() for file in fragment.metadata.files}
    rest = [
        replace(
            part,
            fragments=tuple(
                fragment for fragment in part.fragments if not paths & _files(fragment)
            ),
        )
        for part in staged
    ]
    return [part for part in rest if part.fragments]


def _files(fragment: str) -> set[str]:
    return {file["path"] for file in json.loads(fragment)["files"]}
