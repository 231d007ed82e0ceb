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

from pennon.errors import PennonError
from pennon.planning import plan_scan
from pennon.planning.manifest_query import spec_projections
from pennon.planning.projection.possible_partitions import has_no_others
from pennon.planning.scan_plan import bound_condition
from pennon.predicate.parse import readable_predicates
from pennon.transaction.concurrency.commit_order import (
    are_only_appends,
    conflict_behind,
    has_same_rows,
)
from pennon.transaction.concurrency.matching_rows import MatchingRows
from pennon.transaction.concurrency.outcome import Conflicted
from pennon.transaction.staging.leaf_state import leaf_states, partition_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from pennon.manifest import Snapshot
    from pennon.manifest.commits.commit_lookup import Rewrites
    from pennon.transaction.concurrency.overlapped_set import OverlappedSet

__all__ = ["CoveredSet", "ReadSet", "ReadSets"]

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
                if old == new or has_same_rows(object_id, old, new, rewrites):
                    continue
                if not self.is_before_appends:
                    if matching is None:
                        matching = MatchingRows(self.snapshot, predicates, time_zone=_NO_TIME_ZONE)
                    if matching.are_untouched(old, new):
                        continue
                elif are_only_appends(self.snapshot, latest):
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
        """Find a covered partition of rows that this one neither takes out nor can come before.

        Args:
            latest: The table after other commits.
            rewrites: Tells which leaf version has the rows of which other one.

        Returns:
            The partition in conflict; None where all that others did to such ones was to append.

        Spec: "Conflict".
        """
        try:
            before = _leaves(self.snapshot, self.predicates)
            after = _leaves(latest, self.predicates)
        except PennonError:
            return Conflicted("of any value", "the columns of its condition changed meanwhile")
        return conflict_behind(self.snapshot, latest, before, after, rewrites)

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

    sets: tuple[CoveredSet | OverlappedSet | ReadSet, ...]

    def changed_in(
        self, latest: Snapshot, rewrites: Callable[[], Rewrites] = dict
    ) -> Conflicted | None:
        """Find the first conflict of one of them."""
        conflicts = (read.changed_in(latest, rewrites) for read in self.sets)
        return next((conflict for conflict in conflicts if conflict is not None), None)

    def may_miss(self, latest: Snapshot, touched: Mapping[str, Mapping[str, pa.Scalar]]) -> bool:
        """Whether one of them may."""
        return any(read.may_miss(latest, touched) for read in self.sets)


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
