"""Strong mode: a detached commit per touched leaf, then one commit of the manifest.

The detached commits are invisible: no reader knows their versions before the manifest names
them, and an interrupted write leaves nothing but files that vacuum removes. When another writer
commits first, appends are chained on the leaf's new version and the manifest is tried again.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, assert_never

from pennon.errors import (
    CommitGivenUp,
    InternalError,
    LeafMissing,
    SnapshotNotFound,
    StorageFailure,
)
from pennon.leaf.dataset import check_files, open_leaf
from pennon.leaf.write.column_filling import has_initial_defaults
from pennon.leaf.write.leaf_commit import (
    LeafCommit,
    append_fragments,
    remove_fragments,
    replace_fragments,
)
from pennon.leaf.write.new_leaf import create_leaf
from pennon.leaf.write.row_changes import change_rows
from pennon.manifest import ConcurrentChange, LeafChange, ManifestCommitted, Snapshot, commit_leaves
from pennon.manifest.commits.commit_lookup import find_commit, is_any_there, rewritten_leaves
from pennon.manifest.format.statistics import order_at, recorded_order
from pennon.transaction.commit_description import described
from pennon.transaction.conflicts import check_layouts, check_places, rebase
from pennon.transaction.leaf_state import check_writable, leaf_states, partition_text
from pennon.transaction.outcome import Committed, Conflicted, Outcome, Retryable
from pennon.transaction.relocation import relocate
from pennon.transaction.staged import Append, ChangeRows, Drop, Replace, Rewrite, Truncate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import lance
    import pyarrow as pa

    from pennon.leaf import StagedPartition
    from pennon.manifest.commits.commit_lookup import Rewrites
    from pennon.manifest.format.commit_record import CommitIdentity, CommitRecord
    from pennon.transaction.leaf_state import LeafState
    from pennon.transaction.read_set import ReadSet
    from pennon.transaction.staged import Change

__all__ = ["commit_strong", "commit_together", "prepare_leaf", "staged_values", "wait_for_others"]

_MAX_ATTEMPTS: Final = 40
_FIRST_WAIT_SECONDS: Final = 0.01
_LONGEST_WAIT_SECONDS: Final = 0.5
_MAX_THREADS: Final = 8


def commit_strong(
    base: Snapshot,
    changes: Mapping[str, Change],
    identity: CommitIdentity,
    operation: str | None = None,
    read: ReadSet | None = None,
) -> Outcome:
    """Make the changes of all leaves visible with one commit of the manifest.

    A commit that was made already, by an earlier try of the same identity, is not made again.

    Args:
        base: The snapshot that the changes were made against.
        changes: One change per leaf, by object id.
        identity: Which commit it is, the same at every try.
        operation: What the user calls it; None to name it after the changes.
        read: What the changes were made of, where that must not have changed; None where the
            changed leaves alone matter.

    Raises:
        CommitGivenUp: The write was aborted; its files may be gone.

    Spec: "Multi-Partition Transaction (Strong)", "Commit Behavior".
    """
    try:
        return _alone(base, changes, identity, operation, read)
    except (SnapshotNotFound, StorageFailure, LeafMissing):
        if _is_there(base):
            raise
    return _tried_on_newest(base, changes, identity, operation, read)


def commit_together(
    base: Snapshot,
    changes: Mapping[str, Change],
    members: Sequence[tuple[Mapping[str, Change], CommitIdentity]],
) -> Outcome | None:
    """Make the appends of several writes visible with one commit of the manifest.

    Args:
        base: A snapshot that all of them fit.
        changes: The appends of all, one per leaf.
        members: Each write's own changes, and which commit it is; none twice.

    Returns:
        How the commit ended; None where one of them was made before, or given up: then none is.

    Spec: "Multi-Partition Transaction (Strong)", "Commit Behavior".
    """
    states = leaf_states(base, changes)
    records = [described(base, own, states, identity) for own, identity in members]
    return _tried(base, changes, records)


def _is_there(base: Snapshot) -> bool:
    try:
        _opened(base, base.version)
    except SnapshotNotFound:
        return False
    return True


def _tried_on_newest(
    base: Snapshot,
    changes: Mapping[str, Change],
    identity: CommitIdentity,
    operation: str | None,
    read: ReadSet | None,
) -> Outcome:
    """Commit where the base has expired: rows to add fit every version, the rest fits none.

    Rows that are made of what a statement read are of the rest: nobody can tell any more whether
    others have changed that.
    """
    newest = _opened(base, None)
    made = _made_before(newest, identity)
    if made is not None:
        return made
    dropped = check_layouts(changes, newest.schema.arrow)
    if dropped is not None:
        return dropped
    if read is not None or not all(isinstance(change, Append) for change in changes.values()):
        states = leaf_states(newest, changes)
        values = next((each.values for each in states.values()), {})
        reason = f"version {base.version}, which the statement read, has expired meanwhile"
        return Conflicted(partition_text(values), reason)
    return _alone(newest, changes, identity, operation)


def _made_before(snapshot: Snapshot, identity: CommitIdentity) -> Committed | None:
    """Find the commit among those that were made until a snapshot.

    Raises:
        CommitGivenUp: It was given up.
    """
    record = find_commit(snapshot.location, identity.id, snapshot.storage_options)
    if record is None:
        return None
    if record.is_given_up:
        raise CommitGivenUp(location=snapshot.location, commit=identity.id)
    return Committed(snapshot.version, snapshot)


def _alone(
    base: Snapshot,
    changes: Mapping[str, Change],
    identity: CommitIdentity,
    operation: str | None,
    read: ReadSet | None = None,
) -> Outcome:
    states = leaf_states(base, changes)
    record = described(base, changes, states, identity, operation)
    outcome = _tried(base, changes, [record], read)
    if outcome is None:
        raise InternalError(what="a commit by itself was found to be made with others")
    return outcome


def _tried(
    base: Snapshot,
    changes: Mapping[str, Change],
    records: Sequence[CommitRecord],
    read: ReadSet | None = None,
) -> Outcome | None:
    snapshot = base
    states = leaf_states(base, changes)
    check_writable(base.location, changes, states)
    misplaced = check_places(changes, states)
    if misplaced is not None:
        return misplaced
    prepared: dict[str, LeafChange] = {}
    for attempt in range(_MAX_ATTEMPTS):
        redo = [object_id for object_id in changes if object_id not in prepared]
        prepared.update(_prepare(snapshot, states, {each: changes[each] for each in redo}))
        removed = [each for each, change in changes.items() if isinstance(change, Drop)]
        moved = [prepared[each] for each in changes if each in prepared]
        rewrites = _rewrites(changes, states, prepared)
        told = [replace(each, rewrites=rewrites) for each in records]
        match commit_leaves(snapshot, moved, removed, told, is_exclusive=read is not None):
            case ManifestCommitted(version=version):
                return Committed(version, base)
            case ConcurrentChange():
                wait_for_others(attempt)
            case unexpected:
                assert_never(unexpected)
        snapshot = _opened(base, None)
        if len(records) > 1:
            ids = [each.identity.id for each in records]
            if is_any_there(base.location, ids, base.storage_options):
                return None
        else:
            made = _made_before(snapshot, records[0].identity)
            if made is not None:
                return made
        now = leaf_states(snapshot, changes)
        check_writable(base.location, changes, now)
        judged = _judged(snapshot, changes, states, now, read)
        if isinstance(judged, Conflicted):
            return judged
        changes, stale = judged
        prepared = {each: done for each, done in prepared.items() if each not in stale}
        states = now
    return Retryable(_MAX_ATTEMPTS)


def _judged(
    snapshot: Snapshot,
    changes: Mapping[str, Change],
    states: Mapping[str, LeafState],
    now: Mapping[str, LeafState],
    read: ReadSet | None,
) -> tuple[Mapping[str, Change], frozenset[str]] | Conflicted:
    """Give the changes as they are to be made on a newer snapshot, and which have to be redone."""

    @cache
    def rewrites() -> Rewrites:
        return rewritten_leaves(snapshot.location, snapshot.storage_options)

    verdict = check_layouts(changes, snapshot.schema.arrow)
    if verdict is None and read is not None:
        verdict = read.changed_in(snapshot, rewrites)
    judged = verdict or rebase(changes, states, now, rewrites)
    if isinstance(judged, Conflicted):
        return judged
    found = relocate(snapshot, changes, now, judged.redo, rewrites)
    return found if isinstance(found, Conflicted) else (found, judged.redo)


def _rewrites(
    changes: Mapping[str, Change],
    states: Mapping[str, LeafState],
    prepared: Mapping[str, LeafChange],
) -> dict[str, tuple[int, int]]:
    """Tell which leaves get other files for the same rows, from which version to which."""
    found = {}
    for object_id, change in changes.items():
        if isinstance(change, Rewrite):
            before = states[object_id].read_version if object_id in states else None
            after = prepared[object_id].read_version
            if before is not None and after is not None:
                found[object_id] = (before, after)
    return found


def _opened(base: Snapshot, version: int | None) -> Snapshot:
    return Snapshot.open(base.location, version, storage_options=base.storage_options)


def wait_for_others(attempt: int) -> None:
    """Wait a random while, longer after each failed attempt."""
    longest = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
    time.sleep(random.uniform(0, longest))  # noqa: S311 - spreads writers, protects nothing


def _prepare(
    snapshot: Snapshot, states: Mapping[str, LeafState], changes: Mapping[str, Change]
) -> dict[str, LeafChange]:
    """Commit the leaves that need it, side by side; all are tried before a failure is raised."""
    todo = [(each, change) for each, change in changes.items() if not isinstance(change, Drop)]
    if len(todo) <= 1:
        return {each: prepare_leaf(snapshot, states.get(each), change) for each, change in todo}
    with ThreadPoolExecutor(min(_MAX_THREADS, len(todo))) as pool:
        try:
            futures = {
                each: pool.submit(prepare_leaf, snapshot, states.get(each), change)
                for each, change in todo
            }
        except RuntimeError:  # the process ends, and Python starts no thread any more
            return {each: prepare_leaf(snapshot, states.get(each), change) for each, change in todo}
        return {each: future.result() for each, future in futures.items()}


def prepare_leaf(snapshot: Snapshot, state: LeafState | None, change: Change) -> LeafChange:
    """Give one leaf its new version, detached; nothing is visible afterwards.

    Args:
        snapshot: The snapshot to build on.
        state: The leaf's row in it; None for a leaf to be made.
        change: What to do, any kind but ``Drop``.

    Returns:
        What the manifest has to record.
    """
    dataset = _leaf(snapshot, state, change)
    if state is not None and isinstance(change, Append | ChangeRows):
        check_files(dataset, snapshot.storage_options)
    schema = snapshot.schema.arrow
    match change:
        case Append(staged=staged):
            if state is None and dataset.get_fragments():
                # rows of a write that the manifest never recorded, or of a dropped partition
                committed = replace_fragments(dataset, staged, schema)
            else:
                committed = append_fragments(dataset, staged, schema)
        case Replace(staged=staged):
            committed = replace_fragments(dataset, staged, schema)
        case Rewrite(staged=staged, fragments=fragments, version=version):
            if dataset.version != version:  # rows that went since would come back
                raise InternalError(what=f"a rewrite of version {version} is made on another one")
            committed = replace_fragments(dataset, staged, schema, fragments)
        case ChangeRows(deleted=deleted, staged=staged):
            committed = change_rows(dataset, deleted, staged, schema)
        case Truncate():
            committed = remove_fragments(dataset)
        case Drop():
            raise InternalError(what="a dropped leaf has no new version")
        case _:
            assert_never(change)
    is_own_size = committed.schema.equals(dataset.schema) and not has_initial_defaults(schema)
    is_own_size = is_own_size and not isinstance(change, ChangeRows | Rewrite)
    counted = _counted(state, change, committed) if is_own_size else LeafCommit.of(committed)
    first = change.staged[0] if isinstance(change, Append | Replace) else None
    if state is not None:
        object_id, location, values = state.object_id, state.location, state.values
    elif first is not None:
        object_id, location, values = first.object_id, first.location, staged_values(first)
    else:
        raise InternalError(what="a leaf that is not in the manifest cannot be emptied")
    return LeafChange(
        object_id,
        location,
        values,
        committed.version,
        counted.num_rows,
        counted.num_bytes,
        counted.num_fragments,
        _order(state, change, dataset),
    )


def _order(state: LeafState | None, change: Change, before: lance.LanceDataset) -> str | None:
    """Give the write order in which all fragments are once the change is made, if it is known."""
    if isinstance(change, ChangeRows) and not change.staged:  # the rows that stay keep their order
        return None if state is None else order_at(state.write_order, before.version)
    staged = change.staged if isinstance(change, Append | Replace | Rewrite | ChangeRows) else ()
    orders = {part.order for part in staged}
    order = orders.pop() if len(orders) == 1 else None
    is_alone = state is None or isinstance(change, Replace) or not before.get_fragments()
    if isinstance(change, Rewrite):
        is_alone = len(change.fragments) == len(before.get_fragments())
    if order is None or is_alone:
        return order
    recorded = None if state is None else state.write_order
    return order if recorded == recorded_order(before.version, order) else None


def _leaf(snapshot: Snapshot, state: LeafState | None, change: Change) -> lance.LanceDataset:
    root, options = snapshot.location, snapshot.storage_options
    if state is not None:
        return open_leaf(root, state.location, state.read_version, options)
    if not isinstance(change, Append | Replace):
        raise InternalError(what="a leaf that is not in the manifest cannot be emptied")
    return create_leaf(root, change.staged[0].location, snapshot.schema.arrow, options)


def staged_values(part: StagedPartition) -> dict[str, pa.Scalar]:
    """Give a staged partition's values by field id."""
    return {
        name.removeprefix("partition_field_"): column[0]
        for name, column in zip(part.values.schema.names, part.values.columns, strict=True)
    }


def _counted(state: LeafState | None, change: Change, committed: lance.LanceDataset) -> LeafCommit:
    """Add up where the manifest knew, else count what the version holds."""
    match change:
        case Append(staged=staged) if state is not None:
            if state.num_rows is None or state.num_bytes is None or state.num_fragments is None:
                return LeafCommit.of(committed)
            before = (state.num_rows, state.num_bytes, state.num_fragments)
        case Append(staged=staged) | Replace(staged=staged):
            before = (0, 0, 0)
        case _:
            return LeafCommit(committed.version, 0, 0, 0)
    return LeafCommit(
        committed.version,
        before[0] + sum(part.num_rows for part in staged),
        before[1] + sum(part.num_bytes for part in staged),
        before[2] + sum(len(part.fragments) for part in staged),
    )
