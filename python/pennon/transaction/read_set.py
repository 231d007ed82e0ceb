"""What a statement read of the table that it changes: the ground on which its change stands.

Under serialisable isolation a change stands where no other commit changed what it was made of: a
leaf that it read though it wrote none of its rows, and a leaf that was made since and may hold
rows of its conditions. So two statements that both find a key missing never both insert it.
Partitions that the conditions rule out do not matter, and neither do rewrites of the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.errors import PennonError
from pennon.manifest.commits.commit_lookup import is_rewritten
from pennon.manifest.versions.history import history
from pennon.planning import plan_scan
from pennon.predicate.parse import readable_predicates
from pennon.transaction.leaf_state import leaf_states, partition_text
from pennon.transaction.outcome import Conflicted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pennon.manifest import Snapshot
    from pennon.manifest.commits.commit_lookup import Rewrites

__all__ = ["CoveredSet", "ReadSet"]

# Rows that are added whatever is there: an overwrite that came first took none of them.
_READ_NOTHING: Final = frozenset({"append", "compact", "maintenance", "alter"})


@dataclass(frozen=True, slots=True)
class ReadSet:
    """The scans of a statement.

    Args:
        snapshot: What they read.
        scans: The predicates of each, Spark SQL texts that all have to hold.
    """

    snapshot: Snapshot
    scans: tuple[tuple[str, ...], ...]

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
            for object_id in sorted(before.keys() | after.keys()):
                old, new = before.get(object_id), after.get(object_id)
                if old != new and not _has_same_rows(object_id, old, new, rewrites):
                    return self._conflict(latest, object_id, old, new)
        return None

    def _conflict(self, latest: Snapshot, object_id: str, old: object, new: object) -> Conflicted:
        state = leaf_states(self.snapshot if new is None else latest, [object_id]).get(object_id)
        values = {} if state is None else state.values
        what = "made it" if old is None else "dropped it" if new is None else "changed it"
        return Conflicted(
            partition_text(values), f"this statement read it, and another commit {what} meanwhile"
        )


@dataclass(frozen=True, slots=True)
class CoveredSet:
    """What an overwrite replaces, whoever makes partitions of it meanwhile.

    Args:
        snapshot: What it was started on.
        predicates: Spark SQL texts that all have to hold; none covers every row.
    """

    snapshot: Snapshot
    predicates: tuple[str, ...]

    def changed_in(
        self, latest: Snapshot, rewrites: Callable[[], Rewrites] = dict
    ) -> Conflicted | None:
        """Find a covered partition that a statement made of rows which this one replaces.

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
        base = self.snapshot
        try:
            made = _leaves(latest, self.predicates).keys() - _leaves(base, self.predicates).keys()
        except PennonError:
            return Conflicted("of any value", "the columns of its condition changed meanwhile")
        if not made:
            return None
        since = history(base.location, base.storage_options, limit=latest.version - base.version)
        if all(each.operation in _READ_NOTHING for each in since):
            return None
        state = leaf_states(latest, made).get(min(made))
        reason = "a statement that read what this one replaces made it meanwhile"
        return Conflicted(partition_text({} if state is None else state.values), reason)


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
    # In no known time zone: what depends on it rules no partition out.
    # Nor do statistics: they change beside the rows that they are of.
    readable = readable_predicates(predicates)
    asked = plan_scan(snapshot, readable, time_zone="", by_statistics=False, with_metadata=True)
    table = asked.table
    columns = (table[name].to_pylist() for name in ("object_id", "location", "read_version"))
    return {object_id: (where, version) for object_id, where, version in zip(*columns, strict=True)}
