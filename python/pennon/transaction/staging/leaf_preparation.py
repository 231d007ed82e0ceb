"""Commits the new version of a leaf detached: invisible until the manifest names it."""

from __future__ import annotations

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

from pennon.errors import InternalError, LeafMissing, NamespaceHasNoManifest, WriteConflict
from pennon.leaf.changes.row_changes import change_rows
from pennon.leaf.dataset import (
    are_there,
    check_files,
    keep_opened,
    leaf_indexes,
    leaf_uri,
    leaves_at_once,
    open_leaf,
)
from pennon.leaf.write.destination import (
    YOUNG_ON_STORE,
    create_leaf,
    is_unmade,
    unmade_leaf,
)
from pennon.leaf.write.leaf_commit import (
    LeafCommit,
    append_fragments,
    has_initial_defaults,
    reindexed,
    replace_fragments,
)
from pennon.leaf.write.partition_writer import delete_fragment_files
from pennon.manifest import LeafChange, Snapshot
from pennon.manifest.commits.commit_lookup import give_up
from pennon.manifest.format.column_statistics import (
    LeafStatistics,
    order_at,
    read_statistics,
    recorded_order,
)
from pennon.manifest.format.rows import PARTITION_PREFIX
from pennon.transaction.staging.staged import (
    Append,
    ChangeRows,
    Drop,
    Reindex,
    Replace,
    Rewrite,
    by_leaf,
    leaf_states,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import lance
    import pyarrow as pa

    from pennon.leaf import StagedPartition
    from pennon.manifest.format.rows import CommitIdentity
    from pennon.spec.schema import NamespaceSchema
    from pennon.transaction.staging.staged import Change, LeafState

__all__ = ["abandon", "prepare_leaves", "staged_values"]


# Merges the column statistics of a leaf with those of a change.
#
# They are known where those of the version before are, or where none of its rows stays. Rows that
# go leave bounds that hold and are no answers any more.


def changed_statistics(
    state: LeafState | None, change: Change, before: lance.LanceDataset, schema: NamespaceSchema
) -> LeafStatistics | None:
    """Give the statistics of a leaf's columns once a change is made.

    Args:
        state: The leaf's row; None for a leaf to be made.
        change: What is done to it.
        before: The leaf at the version that the change is made on.
        schema: The namespace's schema.

    Returns:
        The statistics, exact where they were and no row goes; None where they are not known.

    Spec: "Manifest Table Schema" (metadata).
    """
    existing = None if state is None else state.columns
    match change:
        case Replace(staged=staged):
            return _of_new(staged, schema)
        case Append(staged=staged):
            if state is None or not before.get_fragments():
                return _of_new(staged, schema)
            return _with_new(existing, staged, schema)
        case Rewrite(staged=staged, fragments=fragments):
            if not {fragment.fragment_id for fragment in before.get_fragments()} <= set(fragments):
                return existing
            new = _of_new(staged, schema)
            is_same = sum(part.num_rows for part in staged) == before.count_rows()
            return new if new is None or is_same else replace(new, is_exact=False)
        case Reindex():
            return existing
        case ChangeRows(staged=staged):
            loose = None if existing is None else replace(existing, is_exact=False)
            return _with_new(loose, staged, schema)
    return None


def _of_new(staged: Sequence[StagedPartition], schema: NamespaceSchema) -> LeafStatistics | None:
    counted = [read_statistics(part.statistics) for part in staged if part.num_rows]
    first, *others = counted or [None]
    return None if first is None else _with(first, others, schema)


def _with_new(
    existing: LeafStatistics | None, staged: Sequence[StagedPartition], schema: NamespaceSchema
) -> LeafStatistics | None:
    counted = [read_statistics(part.statistics) for part in staged if part.num_rows]
    return None if existing is None else _with(existing, counted, schema)


def _with(
    one: LeafStatistics, others: Sequence[LeafStatistics | None], schema: NamespaceSchema
) -> LeafStatistics | None:
    counted = [other for other in others if other is not None]
    if len(counted) < len(others):
        return None
    types = {field.id: field.field.type for field in schema.fields}
    return one.merged(counted, types)


# Aborts a write: deletes its files, unless a commit names them or may still do so.


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


_MAX_THREADS: Final = 8
# Clocks differ, and a commit takes its time.
_SURELY_YOUNG: Final = YOUNG_ON_STORE / 2


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
    most = leaves_at_once(snapshot.location, on_disk=_MAX_THREADS)
    with ThreadPoolExecutor(min(most, len(todo))) as pool:
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
        case Reindex():
            committed = reindexed(dataset, change.built, change.removed, change.files)
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
    if committed is not dataset and "://" in snapshot.location:
        keep_opened(snapshot.location, location, committed, snapshot.storage_options)
    # A commit may take rows, or a column, from an index: Lance says what is left of it.
    has_indexes = isinstance(change, Reindex) or (state is not None and state.indexes != ())
    indexes = leaf_indexes(committed) if has_indexes else ()
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
        indexes,
    )


def _check_staged(snapshot: Snapshot, change: Change, uri: str) -> None:
    """Refuse rows whose files a vacuum took: what is built of them could never be read.

    A store is not asked for files that are too young to be taken.
    """
    staged = change.staged if isinstance(change, Append | Replace | Rewrite | ChangeRows) else ()
    if "://" in uri:
        since = time.time() - _SURELY_YOUNG.total_seconds()
        staged = tuple(part for part in staged if part.staged_at is None or part.staged_at < since)
    fragments = [json.loads(fragment) for part in staged for fragment in part.fragments]
    paths = [file["path"] for fragment in fragments for file in fragment["files"]]
    if paths and not are_there(uri, paths, snapshot.storage_options):
        why = "files of its new rows are gone, as vacuum takes them when a write lasts longer"
        raise WriteConflict(table=snapshot.location, why=why)


def _order(state: LeafState | None, change: Change, before: lance.LanceDataset) -> str | None:
    """Give the write order in which all fragments are once the change is made, if it is known."""
    keeps_order = isinstance(change, ChangeRows) and not change.staged
    if keeps_order or isinstance(change, Reindex):  # the rows that stay keep their order
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
    place, schema = change.staged[0].location, snapshot.schema.arrow
    new = unmade_leaf(root, place, schema, options)
    if new is not None and is_unmade(root, place, options):
        return new
    return create_leaf(root, place, schema, options)


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
