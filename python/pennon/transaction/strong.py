"""Strong mode: a detached commit per touched leaf, then one commit of the manifest.

The detached commits are invisible: no reader knows their versions before the manifest names
them, and an interrupted write leaves nothing but files that vacuum removes. When another writer
commits first, appends are chained on the leaf's new version and the manifest is tried again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Final, assert_never

import pyarrow as pa

from pennon.errors import (
    CommitGivenUp,
    InternalError,
    LeafMissing,
    SnapshotNotFound,
    StorageFailure,
)
from pennon.manifest import ConcurrentChange, LeafChange, ManifestCommitted, Snapshot, commit_leaves
from pennon.manifest.commits.commit_lookup import find_commit, is_any_there, rewritten_leaves
from pennon.manifest.commits.manifest_commit import wait_for_others
from pennon.manifest.commits.root_change import Turn
from pennon.manifest.dataset.storage import open_manifest
from pennon.manifest.format.properties import writer_grace
from pennon.manifest.table_identity import STRONG, check_same_table, table_id
from pennon.transaction.concurrency.conflicts import check_layouts, check_places, rebase, relocate
from pennon.transaction.concurrency.outcome import Committed, Conflicted, Outcome, Retryable
from pennon.transaction.mode_change import settled
from pennon.transaction.staging.leaf_preparation import prepare_leaves
from pennon.transaction.staging.staged import (
    Append,
    ChangeRows,
    Drop,
    Reindex,
    Rewrite,
    check_writable,
    described,
    leaf_states,
    partition_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.manifest.commits.commit_lookup import Rewrites
    from pennon.manifest.format.rows import CommitIdentity, CommitRecord
    from pennon.transaction.concurrency.read_set import ReadSets
    from pennon.transaction.staging.staged import Change, LeafState

__all__ = ["commit_strong", "commit_together"]

_MAX_ATTEMPTS: Final = 40
# The appends of this process wait for it meanwhile.
_ATTEMPTS_OF_REWRITE: Final = 6


def commit_strong(
    base: Snapshot,
    changes: Mapping[str, Change],
    identity: CommitIdentity,
    operation: str | None = None,
    read: ReadSets | None = None,
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
        TableMadeAnew: Another table stands at the location by now.

    Spec: "Multi-Partition Transaction (Strong)", "Commit Behavior".
    """
    for _ in range(_MAX_ATTEMPTS):
        try:
            return _alone(base, changes, identity, operation, read)
        except (StorageFailure, LeafMissing, OSError, pa.ArrowInvalid):
            # Files of the base are gone, as Lance or Arrow say it: expired, or dropped with the
            # table.
            if _is_there(base):
                raise
        except SnapshotNotFound:  # of the base, or of a version that it was rebased on
            pass
        following = _on_newest(base, changes, identity, read)
        if not isinstance(following, Snapshot):
            return following
        base, identity = following, identity.tried()
    return Retryable(_MAX_ATTEMPTS)


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
    return _tried(base, changes, states, records)


def _is_there(base: Snapshot) -> bool:
    try:
        # Lance remembers a version that it has read, be it there or not.
        open_manifest(base.location, base.version, storage_options=base.storage_options)
        _opened(base, base.version)
    except SnapshotNotFound:
        return False
    return True


def _on_newest(
    base: Snapshot,
    changes: Mapping[str, Change],
    identity: CommitIdentity,
    read: ReadSets | None,
) -> Snapshot | Outcome:
    """Say how to go on where the base has expired: rows to add fit every version, the rest none.

    Rows that are made of what a statement read are of the rest: it is no longer known whether
    others have changed that.

    Returns:
        The version to add the rows to, or how the commit ended.
    """
    newest = _opened(base, None)
    made = _made_before(newest, identity)
    if made is not None:
        return made
    dropped = check_layouts(changes, newest.schema.arrow, newest.specs)
    if dropped is not None:
        return dropped
    if read is not None or not all(isinstance(change, Append) for change in changes.values()):
        states = leaf_states(newest, changes)
        values = next((state.values for state in states.values()), {})
        reason = f"version {base.version}, which the statement read, has expired meanwhile"
        return Conflicted(partition_text(values), reason)
    return newest


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
    read: ReadSets | None = None,
) -> Outcome:
    states = leaf_states(base, changes)
    record = described(base, changes, states, identity, operation)
    outcome = _tried(base, changes, states, [record], read)
    if outcome is None:
        raise InternalError(what="a commit by itself was found to be made with others")
    return outcome


def _tried(
    base: Snapshot,
    changes: Mapping[str, Change],
    states: Mapping[str, LeafState],
    records: Sequence[CommitRecord],
    read: ReadSets | None = None,
) -> Outcome | None:
    check_writable(base.location, changes, states)
    misplaced = check_places(changes, states)
    if misplaced is not None:
        return misplaced
    with Turn(base.location, base.storage_options) as turn:
        return _tried_in_turn(turn, _Attempt(base, changes, states, records), read)


def _tried_in_turn(turn: Turn, attempt: _Attempt, read: ReadSets | None) -> Outcome | None:
    base = attempt.snapshot
    most = _ATTEMPTS_OF_REWRITE if attempt.is_rewrite else _MAX_ATTEMPTS
    for number in range(most):
        newest = turn.after(lambda: _opened(base, None))
        if number or newest.version != base.version:
            # What others have committed is looked at before any leaf is touched, too: a try on an
            # older version would be refused, with all that was done for it.
            if _is_one_there(newest, attempt.records):
                is_alone = len(attempt.records) == 1
                return _made_before(newest, attempt.records[0].identity) if is_alone else None
            moved = attempt.on(newest, read)
            if isinstance(moved, Conflicted):
                return moved
            attempt = moved
        attempt = attempt.with_leaves_prepared()
        made, attempt = attempt.committed(read), attempt.again()
        match made:
            case ManifestCommitted(version=version) if attempt.is_in_time or attempt.is_there():
                return Committed(version, base)
            case ManifestCommitted() | ConcurrentChange():
                if not attempt.is_rewrite:
                    turn.take_where_late(number)
                if not turn.is_mine:
                    wait_for_others(number)
            case unexpected:
                assert_never(unexpected)
    return Retryable(most)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A commit as it would follow one version of the table.

    Args:
        snapshot: The version.
        changes: What is changed, by leaf.
        states: What these leaves are at the version.
        records: The commits that it makes: several where appends are committed together.
        prepared: The leaves whose own commits are made, detached from their branches.
    """

    snapshot: Snapshot
    changes: Mapping[str, Change]
    states: Mapping[str, LeafState]
    records: Sequence[CommitRecord]
    prepared: Mapping[str, LeafChange] = field(default_factory=dict)
    began: float = field(default_factory=time.time)

    @property
    def is_in_time(self) -> bool:
        """Whether all versions behind the snapshot are there for certain, to be compared with."""
        grace = writer_grace(self.snapshot.properties).total_seconds()
        return not grace or time.time() - self.began < grace

    def is_there(self) -> bool:
        """Whether the newest version has the commit: a late one may stand behind newer versions."""
        return _is_one_there(_opened(self.snapshot, None), self.records)

    @property
    def is_rewrite(self) -> bool:
        """Whether it gives leaves other files for the same rows, and nothing else."""
        return all(isinstance(change, Rewrite) for change in self.changes.values())

    def on(self, newest: Snapshot, read: ReadSets | None) -> _Attempt | Conflicted:
        """Rebase it; what is prepared stays where the leaf is as it was."""
        now = leaf_states(newest, self.changes)
        check_writable(newest.location, self.changes, now)
        judged = _judged(newest, self.changes, self.states, now, read)
        if isinstance(judged, Conflicted):
            return judged
        changes, stale = judged
        prepared = {leaf: done for leaf, done in self.prepared.items() if leaf not in stale}
        return _Attempt(newest, changes, now, self.records, prepared)

    def with_leaves_prepared(self) -> _Attempt:
        """Make the commits of the leaves that have none yet."""
        missing = {
            leaf: change for leaf, change in self.changes.items() if leaf not in self.prepared
        }
        made = prepare_leaves(self.snapshot, self.states, missing)
        return replace(self, prepared={**self.prepared, **made})

    def committed(self, read: ReadSets | None) -> ManifestCommitted | ConcurrentChange:
        """Make all of it visible by one merge into the manifest, unless another was first."""
        if not self.is_in_time:
            return ConcurrentChange()
        removed = [leaf for leaf, change in self.changes.items() if self._removes(leaf, change)]
        emptied = frozenset(removed)
        moved = [done for leaf, done in self.prepared.items() if leaf not in emptied]
        rewrites = _rewrites(self.changes, self.states, self.prepared)
        records = [replace(record, rewrites=rewrites) for record in self.records]
        # Lance refuses a commit of the same leaves by itself. Where another one could make this
        # one wrong without touching any of them, none may come between the look and the commit.
        values = {leaf: state.values for leaf, state in self.states.items()}
        values |= {leaf.object_id: leaf.values for leaf in moved}
        is_exclusive = read is not None and read.may_miss(self.snapshot, values)
        return commit_leaves(self.snapshot, moved, removed, records, is_exclusive=is_exclusive)

    def _removes(self, leaf: str, change: Change) -> bool:
        """Whether a leaf goes: it is dropped, or single rows are taken out until none is left."""
        if isinstance(change, ChangeRows):
            return self.prepared[leaf].num_rows == 0
        return isinstance(change, Drop)

    def again(self) -> _Attempt:
        """Say that it may have been made: who tries again looks for it first."""
        records = [replace(record, identity=record.identity.tried()) for record in self.records]
        return replace(self, records=records)


def _is_one_there(snapshot: Snapshot, records: Sequence[CommitRecord]) -> bool:
    asked = [record.identity.id for record in records if not record.identity.is_new]
    return bool(asked) and is_any_there(snapshot.manifest, asked)


def _judged(
    snapshot: Snapshot,
    changes: Mapping[str, Change],
    states: Mapping[str, LeafState],
    now: Mapping[str, LeafState],
    read: ReadSets | None,
) -> tuple[Mapping[str, Change], frozenset[str]] | Conflicted:
    """Give the changes as they are to be made on a newer snapshot, and which have to be redone."""

    @cache
    def rewrites() -> Rewrites:
        return rewritten_leaves(snapshot.location, snapshot.storage_options)

    verdict = check_layouts(changes, snapshot.schema.arrow, snapshot.specs)
    if verdict is None and read is not None:
        verdict = read.changed_in(snapshot, rewrites)
    judged = verdict or rebase(changes, states, now, rewrites)
    if isinstance(judged, Conflicted):
        return judged
    relocated = relocate(snapshot, changes, now, judged.redo, rewrites)
    return relocated if isinstance(relocated, Conflicted) else (relocated, judged.redo)


def _rewrites(
    changes: Mapping[str, Change],
    states: Mapping[str, LeafState],
    prepared: Mapping[str, LeafChange],
) -> dict[str, tuple[int, int]]:
    """Tell which leaves get other files for the same rows, from which version to which."""
    rewrites = {}
    for object_id, change in changes.items():
        if isinstance(change, Rewrite | Reindex):
            before = states[object_id].read_version if object_id in states else None
            after = prepared[object_id].read_version
            # A leaf that nothing was left to do in is as it was.
            if before is not None and after is not None and before != after:
                rewrites[object_id] = (before, after)
    return rewrites


def _opened(base: Snapshot, version: int | None) -> Snapshot:
    newer = Snapshot.open(base.location, version, storage_options=base.storage_options)
    check_same_table(newer, table_id(base))
    return newer if version is not None else settled(newer, STRONG)
