"""The read set of a statement: what must not have changed when it commits.

Under serialisable isolation a change stands where no other commit changed what it was made of: a
leaf that it read though it wrote none of its rows, and a leaf that was made since and may hold
rows of its conditions. So two statements that both find a key missing never both insert it.
Partitions that the conditions rule out do not matter, and neither do rewrites of the same rows, nor
other rows of those partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.errors import PennonError, SnapshotNotFound, StorageFailure
from pennon.manifest import Snapshot
from pennon.manifest.commits.commit_lookup import is_rewritten
from pennon.manifest.versions.history import history
from pennon.planning import plan_scan
from pennon.planning.manifest_query import spec_projections
from pennon.planning.projection.possible_partitions import has_no_others
from pennon.planning.scan_plan import bound_condition
from pennon.predicate.parse import readable_predicates
from pennon.transaction.concurrency.matching_rows import MatchingRows
from pennon.transaction.concurrency.outcome import Conflicted
from pennon.transaction.staging.leaf_state import leaf_states, partition_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    import pyarrow as pa

    from pennon.manifest.commits.commit_lookup import Rewrites

__all__ = ["CoveredSet", "ReadSet", "ReadSets"]

# Rows that are added whatever is there: an overwrite that came first took none of them.
_READ_NOTHING: Final = frozenset({"append", "compact", "maintenance", "alter"})
# What depends on the session's rules no partition out.
_NO_TIME_ZONE: Final = ""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """The scans of a statement.

    Args:
        snapshot: What they read.
        scans: The predicates of each, Spark SQL texts that all have to hold.
        is_before_appends: Whether rows that others merely appended may come behind this statement,
            as they may behind an INSERT: who appended them has read nothing of it.
    """

    snapshot: Snapshot
    scans: tuple[tuple[str, ...], ...]
    is_before_appends: bool = False

    def changed_in(
        self, latest: Snapshot, rewrites: Callable[[], Rewrites] = dict
    ) -> Conflicted | None:
        """Find a leaf that the statement would read otherwise now.

        Args:
            latest: The table after other commits.
            rewrites: Tells which leaf version has the rows of which other one.

        Returns:
            The partition in conflict; None where the statement would read the same.

        Spec: "Conflict".
        """
        for predicates in self.scans:
            before = _leaves(self.snapshot, predicates)
            try:
                after = _leaves(latest, predicates)
            except PennonError:
                return Conflicted("of any value", "the columns of its condition changed meanwhile")
            matching: MatchingRows | None = None
            for object_id in sorted(before.keys() | after.keys()):
                old, new = before.get(object_id), after.get(object_id)
                if old == new or _has_same_rows(object_id, old, new, rewrites):
                    continue
                if not self.is_before_appends:
                    if matching is None:
                        matching = MatchingRows(self.snapshot, predicates, time_zone=_NO_TIME_ZONE)
                    if matching.are_untouched(old, new):
                        continue
                elif _is_only_appended(self.snapshot, latest):
                    return None
                return self._conflict(latest, object_id, old, new)
        return None

    @staticmethod
    def may_miss(latest: Snapshot, touched: Mapping[str, Mapping[str, pa.Scalar]]) -> bool:
        """Always: it read leaves that it does not touch, or that are still to be made."""
        del latest, touched
        return True

    def _conflict(self, latest: Snapshot, object_id: str, old: object, new: object) -> Conflicted:
        state = leaf_states(self.snapshot if new is None else latest, [object_id]).get(object_id)
        values = {} if state is None else state.values
        what = "made it" if old is None else "dropped it" if new is None else "changed it"
        return Conflicted(
            partition_text(values), f"this statement read it, and another commit {what} meanwhile"
        )


@dataclass(frozen=True, slots=True)
class CoveredSet:
    """What an overwrite or a DELETE of whole partitions takes out, whoever makes more of it.

    Args:
        snapshot: What it was started on.
        predicates: Spark SQL texts that all have to hold; none covers every row.
    """

    snapshot: Snapshot
    predicates: tuple[str, ...]

    def changed_in(
        self, latest: Snapshot, rewrites: Callable[[], Rewrites] = dict
    ) -> Conflicted | None:
        """Find a covered partition that a statement made of rows which this one takes out.

        Neither can have come first then: this one does not take its rows, and that one has read
        others that this one takes. Rows that are merely appended come behind this one.

        Args:
            latest: The table after other commits.
            rewrites: Not asked: partitions that go are looked at one by one.

        Returns:
            The partition in conflict; None where all that others made was appended.

        Spec: "Conflict".
        """
        del rewrites
        try:
            made = (
                _leaves(latest, self.predicates).keys()
                - _leaves(self.snapshot, self.predicates).keys()
            )
        except PennonError:
            return Conflicted("of any value", "the columns of its condition changed meanwhile")
        changed = _changed_by_readers(self.snapshot, latest, made) if made else None
        if changed is None:
            return None
        state = leaf_states(latest, [changed]).get(changed)
        reason = "a statement that read what this one replaces made it meanwhile"
        return Conflicted(partition_text({} if state is None else state.values), reason)

    def may_miss(self, latest: Snapshot, touched: Mapping[str, Mapping[str, pa.Scalar]]) -> bool:
        """Whether others may make a covered partition that this commit does not touch."""
        readable = readable_predicates(self.predicates)
        bound = bound_condition(latest, readable, time_zone=_NO_TIME_ZONE)
        return not has_no_others(latest, spec_projections(latest), bound, touched)


@dataclass(frozen=True, slots=True)
class ReadSets:
    """What a statement has read, and what it takes out beside that.

    Args:
        sets: Each of them.
    """

    sets: tuple[CoveredSet | ReadSet, ...]

    def changed_in(
        self, latest: Snapshot, rewrites: Callable[[], Rewrites] = dict
    ) -> Conflicted | None:
        """Find the first conflict of one of them."""
        conflicts = (read.changed_in(latest, rewrites) for read in self.sets)
        return next((conflict for conflict in conflicts if conflict is not None), None)

    def may_miss(self, latest: Snapshot, touched: Mapping[str, Mapping[str, pa.Scalar]]) -> bool:
        """Whether one of them may."""
        return any(read.may_miss(latest, touched) for read in self.sets)


def _made_by_readers(base: Snapshot, latest: Snapshot) -> Iterator[int]:
    """Name the versions since the base whose commits may have read: of expired ones none knows."""
    entries = history(base.location, base.storage_options, after=base.version)
    operations = {entry.version: entry.operation for entry in entries}
    for version in range(base.version + 1, latest.version + 1):
        if operations.get(version) not in _READ_NOTHING:
            yield version


def _is_only_appended(base: Snapshot, latest: Snapshot) -> bool:
    """Whether all that others committed since reads nothing: then it may come behind.

    One that has read may have read rows which were appended before it, and not those of the
    statement that is to come before these.
    """
    for version in _made_by_readers(base, latest):
        before, after = (_versions_at(base, at, None) for at in (version - 1, version))
        if before is None or before != after:
            return False
    return True


def _changed_by_readers(base: Snapshot, latest: Snapshot, made: Collection[str]) -> str | None:
    """Find one of the leaves that were made since the base by more than appends."""
    for version in _made_by_readers(base, latest):
        before, after = (_versions_at(base, at, made) for at in (version - 1, version))
        for object_id in sorted(made):
            if before is None or after is None or before.get(object_id) != after.get(object_id):
                return object_id
    return None


def _versions_at(
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


def _has_same_rows(
    object_id: str,
    old: tuple[str, int] | None,
    new: tuple[str, int] | None,
    rewrites: Callable[[], Rewrites],
) -> bool:
    """Whether a leaf was only put into other files, where it was."""
    if old is None or new is None or old[0] != new[0]:
        return False
    return is_rewritten(object_id, old[1], new[1], rewrites())


def _leaves(snapshot: Snapshot, predicates: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    # Statistics rule no partition out: they change beside the rows that they are of.
    asked = plan_scan(
        snapshot,
        readable_predicates(predicates),
        time_zone=_NO_TIME_ZONE,
        by_statistics=False,
        with_metadata=True,
    )
    table = asked.table
    columns = (table[name].to_pylist() for name in ("object_id", "location", "read_version"))
    return {object_id: (where, version) for object_id, where, version in zip(*columns, strict=True)}
