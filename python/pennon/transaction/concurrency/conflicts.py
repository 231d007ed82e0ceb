"""Decides which changes still apply after a concurrent commit.

Append and append commute: the rows are appended again, to the leaf's new version. A change of rows
stands where its rows are untouched; what its statement read beside them is ``read_set``'s matter.
Every other change depends on the leaf's content as it was read, so any change of the leaf is a
conflict.
Leaves that only the other writer touched do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, assert_never

from pennon.errors import LeafMissing, SnapshotNotFound, StorageFailure
from pennon.leaf.changes.row_changes import has_same_fragments, moved
from pennon.leaf.dataset import open_leaf, open_own_leaf
from pennon.leaf.schema.file_layout import field_key, read_layout
from pennon.manifest import Snapshot
from pennon.manifest.commits.commit_lookup import is_rewritten
from pennon.manifest.format.rows import PARTITION_PREFIX
from pennon.manifest.versions.history import history
from pennon.spec.column_defaults import INITIAL_DEFAULT
from pennon.spec.schema import children_of
from pennon.transaction.concurrency.outcome import Conflicted
from pennon.transaction.staging.staged import (
    Append,
    ChangeRows,
    Drop,
    Reindex,
    Replace,
    Rewrite,
    leaf_states,
    partition_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    import lance
    import pyarrow as pa

    from pennon.leaf import StagedPartition
    from pennon.leaf.changes.deleted_rows import DeletedRows
    from pennon.manifest.commits.commit_lookup import Rewrites
    from pennon.spec import PartitionSpec
    from pennon.transaction.staging.staged import Change, LeafState

__all__ = [
    "ROWS_CHANGED",
    "Rebased",
    "are_only_appends",
    "check_layouts",
    "check_places",
    "conflict_behind",
    "has_same_rows",
    "rebase",
    "relocate",
]

ROWS_CHANGED: Final = "another commit changed the rows to be replaced"


@dataclass(frozen=True, slots=True)
class Rebased:
    """The changes stand.

    Args:
        redo: The leaves whose change has to be committed again, on their new version.
    """

    redo: frozenset[str]


def rebase(
    changes: Mapping[str, Change],
    before: Mapping[str, LeafState],
    after: Mapping[str, LeafState],
    rewrites: Callable[[], Rewrites] = dict,
) -> Rebased | Conflicted:
    """Judge changes that were made against ``before`` where the manifest now says ``after``.

    Args:
        changes: My change of each leaf, by object id.
        before: The touched leaves when my changes were made; a new leaf is not in it.
        after: The touched leaves now.
        rewrites: Tells which leaf version has the rows of which other one, by leaf and version.

    Spec: "Conflict", "Multi-Partition Transaction (Strong)".
    """
    redo = set()
    misplaced = check_places(changes, after)
    if misplaced is not None:
        return misplaced
    for object_id, change in changes.items():
        old, new = before.get(object_id), after.get(object_id)
        if _is_unchanged(old, new):
            continue
        match change:
            case Append():
                redo.add(object_id)
            case ChangeRows() | Rewrite() | Reindex() if new is not None and old is not None:
                redo.add(object_id)  # its rows may still be there: ``relocation`` decides
            case Replace() | Drop() if _has_same_rows(old, new, rewrites()):
                redo.add(object_id)
            case ChangeRows() | Rewrite() | Reindex() | Replace() | Drop():
                return _conflict(new or old, ROWS_CHANGED)
            case _:
                assert_never(change)
    return Rebased(frozenset(redo))


def _is_unchanged(old: LeafState | None, new: LeafState | None) -> bool:
    if old is None or new is None:
        return old is new
    return (old.location, old.read_version) == (new.location, new.read_version)


def _has_same_rows(old: LeafState | None, new: LeafState | None, rewrites: Rewrites) -> bool:
    """Whether nothing but rewrites of its files lie between two states of a leaf.

    One without a row may be gone: compactions take it out.
    """
    if old is not None and new is None:
        return old.num_rows == 0
    if old is None or new is None or old.location != new.location:
        return False
    return is_rewritten(new.object_id, old.read_version, new.read_version, rewrites)


def _conflict(state: LeafState | None, reason: str) -> Conflicted:
    values = {} if state is None else state.values
    return Conflicted(partition_text(values), reason)


def check_places(
    changes: Mapping[str, Change], states: Mapping[str, LeafState]
) -> Conflicted | None:
    """Find rows that were written for a new leaf which is there now, in another directory.

    Args:
        changes: My change of each leaf, by object id.
        states: The leaves as they are now.
    """
    for object_id, change in changes.items():
        state = states.get(object_id)
        if isinstance(change, Append) and state and state.location != change.staged[0].location:
            return _conflict(state, "another writer made it in another directory")
    return None


def check_layouts(
    changes: Mapping[str, Change], schema: pa.Schema, specs: Mapping[int, PartitionSpec]
) -> Conflicted | None:
    """Find rows that were written with a column, or by a spec, that the namespace has no more.

    So are rows without a column that has to have a value, and has none for rows without it.

    Args:
        changes: My change of each leaf.
        schema: The namespace schema as it is now.
        specs: Its partition specs as they are now. A rollback takes specs back, and the next one
            has the version of one that it took back.
    """
    identities = {number: spec.identity for number, spec in specs.items()}
    keys = {key for column in schema for key in _keys(column, "")}
    judged: set[str] = set()
    for change in changes.values():
        for part in (
            change.staged if isinstance(change, Append | Replace | Rewrite | ChangeRows) else ()
        ):
            now = identities.get(part.spec_version)
            if now is None or part.spec not in (None, now):
                reason = f"partition spec v{part.spec_version} was rolled back meanwhile"
                return Conflicted(_partition_of(part), reason)
            if part.layout in judged:
                continue
            judged.add(part.layout)
            written = read_layout(part.layout).keys()
            gone = written - keys
            if gone:
                reason = f"the column with id {min(gone)} was dropped meanwhile"
                return Conflicted(_partition_of(part), reason)
            lacking = next(_lacking(schema, written, "", ""), None)
            if lacking is not None:
                reason = f"column {lacking}, which is NOT NULL, was added meanwhile"
                return Conflicted(_partition_of(part), reason)
    return None


def _lacking(
    columns: Iterable[pa.Field], written: Collection[str], above: str, path: str
) -> Iterator[str]:
    """Name the columns that rows have to have a value in, and have not."""
    for column in columns:
        key, name = field_key(column, above), f"{path}{column.name}"
        if key in written:
            yield from _lacking(children_of(column.type), written, key, f"{name}.")
        elif not column.nullable and INITIAL_DEFAULT not in (column.metadata or {}):
            yield name


def _partition_of(part: StagedPartition) -> str:
    names = [name.removeprefix(PARTITION_PREFIX) for name in part.values.schema.names]
    return partition_text(
        {name: column[0] for name, column in zip(names, part.values.columns, strict=True)}
    )


def _keys(column: pa.Field, above: str) -> Iterator[str]:
    key = field_key(column, above)
    yield key
    yield key + ".entries"
    for child in children_of(column.type):
        yield from _keys(child, key)


# Finds rows by address again after compactions moved them into other files.
#
# A row is named by its address at the version that the statement read. From the version that is
# there now the way goes back, by the records of rewrites and by what each version of a leaf was
# built on; then forward again, and each rewrite on it gives the new addresses. A way that another
# change of the same rows crosses is a conflict.

_MOST_STEPS: Final = 1000


def relocate(
    snapshot: Snapshot,
    changes: Mapping[str, Change],
    states: Mapping[str, LeafState],
    leaves: Iterable[str],
    rewrites: Callable[[], Rewrites],
) -> Mapping[str, Change] | Conflicted:
    """Bring changes that name rows or fragments to the versions that the leaves have now.

    Args:
        snapshot: The newest one.
        changes: One per leaf, by object id.
        states: The touched leaves in the snapshot.
        leaves: Those that have another version than before.
        rewrites: Tells which leaf version has the rows of which other one.

    Returns:
        The changes to make instead; a conflict where rows or fragments are not what they were.

    Spec: "Conflict Resolution".
    """
    relocated = dict(changes)
    for object_id in leaves:
        change, state = changes[object_id], states.get(object_id)
        if not isinstance(change, ChangeRows | Rewrite) or state is None:
            continue
        try:
            moved_change = _relocated(snapshot, change, state, rewrites)
        except LeafMissing:  # a version on the way has expired
            moved_change = None
        if moved_change is None:
            return Conflicted(partition_text(state.values), ROWS_CHANGED)
        relocated[object_id] = moved_change
    return relocated


def _relocated(
    snapshot: Snapshot,
    change: ChangeRows | Rewrite,
    state: LeafState,
    rewrites: Callable[[], Rewrites],
) -> Change | None:
    way = _Way(snapshot, state, rewrites())
    newest = way.open(state.read_version)
    if isinstance(change, Rewrite):
        if not has_same_fragments(way.open(change.version), newest, change.fragments):
            return None
        return replace(change, version=newest.version)
    rows = way.follow(change.deleted)
    return None if rows is None else replace(change, deleted=rows)


class _Way:
    """The versions of one leaf between the one that a statement read and the present one."""

    def __init__(self, snapshot: Snapshot, state: LeafState, rewrites: Rewrites) -> None:
        self._snapshot = snapshot
        self._state = state
        self._rewrites = rewrites

    def open(self, version: int | None) -> lance.LanceDataset:
        snapshot = self._snapshot
        options = snapshot.storage_options
        return open_leaf(snapshot.location, self._state.location, version, options)

    def _own(self, version: int) -> lance.LanceDataset:
        snapshot = self._snapshot
        options = snapshot.storage_options
        return open_own_leaf(snapshot.location, self._state.location, version, options)

    def follow(self, rows: DeletedRows) -> DeletedRows | None:
        """Give the rows at the present version; None where one of them was changed."""
        crossed = self._rewrites_since(rows)
        if crossed is None:
            return None
        at = self.open(rows.version)
        for before, after in crossed:
            old, new = self.open(before), self.open(after)
            if not has_same_fragments(at, old, rows.by_fragment()):
                return None
            moved_rows = moved(old, new, rows, self._snapshot.storage_options)
            if moved_rows is None:
                return None
            rows, at = moved_rows, new
        newest = self.open(self._state.read_version)
        if not has_same_fragments(at, newest, rows.by_fragment()):
            return None
        return replace(rows, version=newest.version)

    def _rewrites_since(self, rows: DeletedRows) -> list[tuple[int, int]] | None:
        """List the rewrites after a version, oldest first, as version before and after.

        Returns:
            None where the present version was not built on that one.
        """
        read = self.open(rows.version)
        crossed: list[tuple[int, int]] = []
        version = self._state.read_version
        for _ in range(_MOST_STEPS):
            dataset = self.open(version)
            if has_same_fragments(read, dataset, rows.by_fragment()):
                return crossed[::-1]
            before = self._rewrites.get((self._state.object_id, dataset.version))
            if before is not None:
                crossed.append((before, dataset.version))
                version = before
                continue
            made_by = self._own(dataset.version).read_transaction(dataset.version)
            if made_by is None or dataset.version == rows.version:
                return None
            version = made_by.read_version
        return None


# Whether a statement can come before commits that were made since it began.
#
# Rows that are merely appended come behind whatever has not read them, so a statement may be placed
# before an append that was committed first. It then comes before all that was committed since, too:
# another statement may have read, or have taken out, what was appended, and what this one replaces
# beside it. Where each has to come before the other, no order explains both, and one is refused.

# Rows that are added whatever is there: an overwrite that came first took none of them.
_READ_NOTHING: Final = frozenset({"append", "compact", "index", "maintenance", "alter"})


def are_only_appends(base: Snapshot, latest: Snapshot) -> bool:
    """Whether all that others committed since a version reads nothing.

    Args:
        base: The version.
        latest: The table after other commits.

    Spec: "Conflict Resolution".
    """
    return not any(_has_changed(base, version) for version in _made_by_others(base, latest))


def conflict_behind(
    base: Snapshot,
    latest: Snapshot,
    before: Mapping[str, tuple[str, int]],
    after: Mapping[str, tuple[str, int]],
    rewrites: Callable[[], Rewrites],
) -> Conflicted | None:
    """Find a leaf of rows that a statement neither takes out nor can come before.

    Leaves whose rows it takes out must not be changed by others, which is seen at the leaf. Of
    those that were made since, or had no rows, it takes none: it comes before all that was done to
    them and since then, which may be appends alone.

    Args:
        base: The version that it was started on.
        latest: The table after other commits.
        before: The places and versions in it of the leaves that it is about, by object id.
        after: Those that they have now.
        rewrites: Tells which leaf version has the rows of which other one.

    Spec: "Conflict Resolution".
    """
    changed = {
        object_id: before.get(object_id)
        for object_id, new in after.items()
        if new != before.get(object_id)
        and not has_same_rows(object_id, before.get(object_id), new, rewrites)
    }
    met = _changed_before_others(base, latest, changed) if changed else None
    if met is None:
        return None
    state = leaf_states(latest, [met]).get(met)
    reason = (
        "a statement that read what this one replaces made it meanwhile, or came behind rows that"
        " others appended to it"
    )
    return Conflicted(partition_text({} if state is None else state.values), reason)


def has_same_rows(
    object_id: str,
    old: tuple[str, int] | None,
    new: tuple[str, int] | None,
    rewrites: Callable[[], Rewrites],
) -> bool:
    """Whether a leaf was only put into other files, where it was.

    Args:
        object_id: The leaf.
        old: Its place and version; None where it was not there.
        new: Those that it has now; None where it is gone.
        rewrites: Tells which leaf version has the rows of which other one.
    """
    if old is None or new is None or old[0] != new[0]:
        return False
    return is_rewritten(object_id, old[1], new[1], rewrites())


def _changed_before_others(
    base: Snapshot, latest: Snapshot, leaves: Mapping[str, tuple[str, int] | None]
) -> str | None:
    """Find a leaf that a commit which is no append has changed, or came behind the change of."""
    for version in _made_by_others(base, latest):
        now = _leaves_at(base, version, leaves)
        changed = [name for name in sorted(leaves) if now is None or now.get(name) != leaves[name]]
        if changed and _has_changed(base, version):
            return changed[0]
    return None


def _made_by_others(base: Snapshot, latest: Snapshot) -> Iterator[int]:
    """Name the versions since the base that are no appends: of expired ones none knows."""
    entries = history(base.location, base.storage_options, after=base.version)
    operations = {entry.version: entry.operation for entry in entries}
    for version in range(base.version + 1, latest.version + 1):
        if operations.get(version) not in _READ_NOTHING:
            yield version


def _has_changed(base: Snapshot, version: int) -> bool:
    """Whether a commit changed any leaf; so it is said of one that has expired, too."""
    before, after = (_leaves_at(base, at, None) for at in (version - 1, version))
    return before is None or before != after


def _leaves_at(
    base: Snapshot, version: int, object_ids: Iterable[str] | None
) -> dict[str, tuple[str, int | None]] | None:
    """Tell the places and versions of leaves at a version of the table; None where it expired.

    Of all leaves where none is named.
    """
    try:
        snapshot = Snapshot.open(base.location, version, storage_options=base.storage_options)
        if object_ids is None:
            object_ids = snapshot.leaves().table["object_id"].to_pylist()
        states = leaf_states(snapshot, object_ids)
    except (SnapshotNotFound, StorageFailure):
        return None
    return {name: (state.location, state.read_version) for name, state in states.items()}
