"""Commits the new version of a leaf detached: invisible until the manifest names it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, assert_never

from pennon.errors import InternalError, WriteConflict
from pennon.leaf.changes.row_changes import change_rows
from pennon.leaf.dataset import are_there, check_files, open_leaf
from pennon.leaf.write.column_filling import has_initial_defaults
from pennon.leaf.write.leaf_commit import (
    LeafCommit,
    append_fragments,
    replace_fragments,
)
from pennon.leaf.write.new_leaf import create_leaf
from pennon.manifest import LeafChange, Snapshot
from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.manifest.format.statistics import order_at, recorded_order
from pennon.transaction.staging.changed_statistics import changed_statistics
from pennon.transaction.staging.staged import Append, ChangeRows, Drop, Replace, Rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lance
    import pyarrow as pa

    from pennon.leaf import StagedPartition
    from pennon.transaction.staging.leaf_state import LeafState
    from pennon.transaction.staging.staged import Change

__all__ = ["prepare_leaves", "staged_values"]

_MAX_THREADS: Final = 8


def prepare_leaves(
    snapshot: Snapshot, states: Mapping[str, LeafState], changes: Mapping[str, Change]
) -> dict[str, LeafChange]:
    """Commit the leaves that need it, side by side; all are tried before a failure is raised.

    Args:
        snapshot: The snapshot to build on.
        states: The leaves' rows in it, by object id; one to be made has none.
        changes: What to do with each.

    Returns:
        What the manifest has to record of each, but of dropped ones.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    todo = [
        (object_id, change) for object_id, change in changes.items() if not isinstance(change, Drop)
    ]
    if len(todo) <= 1:
        return {
            object_id: _prepare_leaf(snapshot, states.get(object_id), change)
            for object_id, change in todo
        }
    with ThreadPoolExecutor(min(_MAX_THREADS, len(todo))) as pool:
        try:
            futures = {
                object_id: pool.submit(_prepare_leaf, snapshot, states.get(object_id), change)
                for object_id, change in todo
            }
        except RuntimeError:  # the process ends, and Python starts no thread any more
            return {
                object_id: _prepare_leaf(snapshot, states.get(object_id), change)
                for object_id, change in todo
            }
        return {object_id: future.result() for object_id, future in futures.items()}


def _prepare_leaf(snapshot: Snapshot, state: LeafState | None, change: Change) -> LeafChange:
    """Give one leaf its new version, detached; nothing is visible afterwards.

    Args:
        snapshot: The snapshot to build on.
        state: The leaf's row in it; None for a leaf to be made.
        change: What to do, any kind but ``Drop``.

    Returns:
        What the manifest has to record.
    """
    dataset = _leaf(snapshot, state, change)
    _check_staged(snapshot, change, str(dataset.uri))
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
        case ChangeRows(deleted=deleted, staged=staged, copies=copies):
            committed = change_rows(dataset, deleted, staged, schema, copies=copies)
        case Drop():
            raise InternalError(what="a dropped leaf has no new version")
        case _:
            assert_never(change)
    is_own_size = committed.schema.equals(dataset.schema) and not has_initial_defaults(schema)
    if is_own_size and isinstance(change, Append | Replace):
        counted = _counted(state, change, committed)
    else:
        counted = LeafCommit.of(committed)
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
        changed_statistics(state, change, dataset, snapshot.schema),
    )


def _check_staged(snapshot: Snapshot, change: Change, uri: str) -> None:
    """Refuse rows whose files a vacuum took: what is built of them could never be read."""
    staged = change.staged if isinstance(change, Append | Replace | Rewrite | ChangeRows) else ()
    fragments = [json.loads(fragment) for part in staged for fragment in part.fragments]
    paths = [file["path"] for fragment in fragments for file in fragment["files"]]
    if paths and not are_there(uri, paths, snapshot.storage_options):
        why = "files of its new rows are gone, as vacuum takes them when a write lasts longer"
        raise WriteConflict(table=snapshot.location, why=why)


def _order(state: LeafState | None, change: Change, before: lance.LanceDataset) -> str | None:
    """Give the write order in which all fragments are once the change is made, if it is known."""
    if isinstance(change, ChangeRows) and not change.staged:  # the rows that stay keep their order
        return None if state is None else order_at(state.write_order, before.version)
    staged = change.staged if isinstance(change, Append | Replace | Rewrite | ChangeRows) else ()
    orders = {part.order for part in staged}
    order = orders.pop() if len(orders) == 1 else None
    is_alone = state is None or isinstance(change, Replace) or not before.get_fragments()
    if isinstance(change, Rewrite):
        present = {fragment.fragment_id for fragment in before.get_fragments()}
        is_alone = present <= set(change.fragments)
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
        name.removeprefix(PARTITION_PREFIX): column[0]
        for name, column in zip(part.values.schema.names, part.values.columns, strict=True)
    }


def _counted(
    state: LeafState | None, change: Append | Replace, committed: lance.LanceDataset
) -> LeafCommit:
    """Add up where the manifest knew, else count what the version holds."""
    match change:
        case Append(staged=staged) if state is not None:
            if state.num_rows is None or state.num_bytes is None or state.num_fragments is None:
                return LeafCommit.of(committed)
            before = (state.num_rows, state.num_bytes, state.num_fragments)
        case Append(staged=staged) | Replace(staged=staged):
            before = (0, 0, 0)
        case _:
            assert_never(change)
    return LeafCommit(
        committed.version,
        before[0] + sum(part.num_rows for part in staged),
        before[1] + sum(part.num_bytes for part in staged),
        before[2] + sum(len(part.fragments) for part in staged),
    )
