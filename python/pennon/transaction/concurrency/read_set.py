"""The read set of a statement: what must not have changed when it commits.

Under serialisable isolation a change stands where no other commit changed what it was made of: a
leaf that it read though it wrote none of its rows, and a leaf that was made since and may hold
rows of its conditions. So two statements that both find a key missing never both insert it.
Partitions that the conditions rule out do not matter, and neither do rewrites of the same rows, nor
other rows of those partitions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import PennonError
from pennon.leaf.dataset import open_leaf
from pennon.leaf.read.leaf_view import LeafViews
from pennon.leaf.read.metadata_columns import ROW_ADDRESS
from pennon.leaf.read.source import LeafSource
from pennon.manifest.format.properties import index_definitions
from pennon.planning import plan_scan
from pennon.planning.binding.bound_predicate import all_of, can_fail, conjuncts
from pennon.planning.manifest_query import exact_filter, spec_projections
from pennon.planning.projection.possible_partitions import has_no_others
from pennon.planning.scan_plan import bound_condition
from pennon.predicate.parse import readable_predicates
from pennon.spec.column_names import python_value
from pennon.spec.partition_spec import leaf_prefix
from pennon.transaction.concurrency.conflicts import (
    are_only_appends,
    conflict_behind,
    has_same_rows,
)
from pennon.transaction.concurrency.outcome import Conflicted
from pennon.transaction.staging.leaf_preparation import staged_values
from pennon.transaction.staging.staged import leaf_states, partition_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import lance

    from pennon.leaf import StagedPartition
    from pennon.manifest import Snapshot
    from pennon.manifest.commits.commit_lookup import Rewrites
    from pennon.manifest.format.properties import IndexDefinition
    from pennon.spec import PartitionField

__all__ = [
    "CoveredSet",
    "DefinedSet",
    "OverlappedSet",
    "ReadSet",
    "ReadSets",
    "overlapping_leaves",
    "shared_fields",
]


# What a dynamic overwrite replaces that other partition specs have laid out.
#
# It replaces the partitions of its rows. Those of its own spec it writes, so that whoever else
# changes one is met there. The same rows may lie in partitions of other specs, too: such ones it
# takes out, unless they are made while it runs.


@dataclass(frozen=True, slots=True)
class OverlappedSet:
    """The partitions of other specs that may hold rows of those which are replaced.

    Args:
        snapshot: What the overwrite was started on.
        staged: The partitions that it writes.
    """

    snapshot: Snapshot
    staged: tuple[StagedPartition, ...]

    def changed_in(
        self, latest: Snapshot, rewrites: Callable[[], Rewrites] = dict
    ) -> Conflicted | None:
        """Find one that others changed, where the overwrite cannot come before them.

        By another spec it would replace other partitions. So where the spec was changed meanwhile
        it comes before that, and before all that followed.

        Args:
            latest: The table after other commits.
            rewrites: Tells which leaf version has the rows of which other one.

        Spec: "Conflict", "Partition Evolution".
        """
        first = self.staged[0]
        is_of_spec = latest.current_spec.spec_version == first.spec_version
        if not is_of_spec and not are_only_appends(self.snapshot, latest):
            reason = "another partition spec was set meanwhile, and other statements were committed"
            return Conflicted(partition_text(staged_values(first)), reason)
        before, after = (_places(at, self.staged) for at in (self.snapshot, latest))
        return conflict_behind(self.snapshot, latest, before, after, rewrites)

    def may_miss(self, latest: Snapshot, touched: Mapping[str, Mapping[str, pa.Scalar]]) -> bool:
        """Whether others may make one: the first commit of a spec is seen without looking."""
        del touched
        return bool(latest.specs.keys() - {part.spec_version for part in self.staged})


def overlapping_leaves(snapshot: Snapshot, staged: Iterable[StagedPartition]) -> pa.Table:
    """Give the leaves of other specs that may hold rows of partitions which are written.

    Field ids keep their meaning over spec versions, so partitions are compared by the fields that
    both specs have.

    Args:
        snapshot: The namespace.
        staged: What the tasks wrote, by one spec.

    Spec: "Partition Evolution".
    """
    parts = list({part.object_id: part for part in staged}.values())
    leaves = snapshot.leaves().table
    kept = [leaves.slice(0, 0)]
    if parts:
        own = parts[0].spec_version
        for version in snapshot.specs.keys() - {own}:
            of_version = pc.starts_with(leaves["object_id"], leaf_prefix(version))
            shared = shared_fields(snapshot, own, version)
            kept.append(_overlapping(leaves.filter(of_version), shared, parts))
    return pa.concat_tables(kept)


def shared_fields(snapshot: Snapshot, one: int, other: int) -> list[PartitionField]:
    """Give the fields of a spec version that another one has, too.

    Args:
        snapshot: The namespace.
        one: The version whose fields are given.
        other: The other one.
    """
    field_ids = {field.field_id for field in snapshot.specs[other].fields}
    return [field for field in snapshot.specs[one].fields if field.field_id in field_ids]


def _places(snapshot: Snapshot, staged: Iterable[StagedPartition]) -> dict[str, tuple[str, int]]:
    leaves = overlapping_leaves(snapshot, staged)
    columns = (leaves[name].to_pylist() for name in ("object_id", "location", "read_version"))
    return {object_id: (where, version) for object_id, where, version in zip(*columns, strict=True)}


def _overlapping(
    leaves: pa.Table, shared: Sequence[PartitionField], parts: Sequence[StagedPartition]
) -> pa.Table:
    """Keep the leaves whose values of the shared fields are together those of one of the parts."""
    for field in shared:
        # One column decides most leaves without a loop over them, and where it is alone, all.
        column = leaves[field.column]
        values = pa.chunked_array([part.values[field.column] for part in parts], column.type)
        leaves = leaves.filter(pc.is_in(column, value_set=values.combine_chunks()))
    if len(shared) <= 1:
        return leaves
    keys = {_key(shared, part.values, 0) for part in parts}
    rows = leaves.combine_chunks()
    return rows.filter(
        pa.array([_key(shared, rows, at) in keys for at in range(rows.num_rows)], pa.bool_())
    )


def _key(shared: Sequence[PartitionField], tuples: pa.RecordBatch | pa.Table, at: int) -> str:
    return repr([python_value(tuples.column(field.column)[at]) for field in shared])


# Whether others changed rows of a statement's conditions, or only rows beside them.
#
# Partition values say which leaves a statement may have read, and its conditions which of their
# rows. Where others added, changed or deleted rows that satisfy these neither before nor after, it
# would read the same again. So the fragments that differ between two versions of a leaf are asked
# for rows that do.
#
# NULL rule: a row for which a condition is NULL was not read. Only conditions that a leaf evaluates
# just as Spark does are asked; without the others more rows count as read.

# A commit that looks at more rows than so many would take long, and lose to others meanwhile.
_MOST_ROWS: Final = 1_000_000
_LEAST_ROWS: Final = 10_000  # that a scan of a small fragment takes the time of


class MatchingRows:
    """The rows of one scan's conditions, as the statement understands them.

    Args:
        snapshot: What the statement read.
        predicates: Spark SQL texts that all have to hold.
        time_zone: As for ``plan_scan``.

    Raises:
        UnknownColumn: A predicate names a column that is not there.
    """

    def __init__(self, snapshot: Snapshot, predicates: Sequence[str], *, time_zone: str) -> None:
        readable = readable_predicates(predicates)
        bound = bound_condition(snapshot, readable, time_zone=time_zone)
        self._snapshot = snapshot
        self._filter = exact_filter(
            all_of([part for part in conjuncts(bound) if not can_fail(part)])
        )
        self._rows_left = _MOST_ROWS

    def are_untouched(self, old: tuple[str, int] | None, new: tuple[str, int] | None) -> bool:
        """Whether none of them is in a fragment that others changed, made or dropped.

        Args:
            old: A leaf's place and version as the statement read it; None where it was not there.
            new: Those that it has now; None where it is gone.

        Returns:
            False also where that cannot be told, or not within the time of a commit.
        """
        try:
            before, after = self._fragments(old), self._fragments(new)
            is_same_place = old is not None and new is not None and old[0] == new[0]
            same = before.keys() & after.keys() if is_same_place else frozenset()
            changed = [
                (at, [place for description, place in places.items() if description not in same])
                for at, places in ((old, before), (new, after))
            ]
            return not any(self._are_in(at, places) for at, places in changed)
        except (PennonError, OSError, RuntimeError, ValueError):  # expired meanwhile, or damaged
            return False

    def _fragments(self, at: tuple[str, int] | None) -> dict[str, tuple[int, int]]:
        """Describe the fragments of a version by their files, with their places and their rows."""
        if at is None:
            return {}
        return {
            _description(fragment): (position, fragment.metadata.physical_rows)
            for position, fragment in enumerate(self._opened(at).get_fragments())
        }

    def _are_in(self, at: tuple[str, int] | None, chosen: Sequence[tuple[int, int]]) -> bool:
        """Whether fragments have such a row, or too many rows to ask all of them."""
        if at is None or not chosen:
            return False
        if self._filter is None:
            return True
        source = LeafSource(self._opened(at))
        self._rows_left -= sum(max(num_rows, _LEAST_ROWS) for _, num_rows in chosen)
        if self._rows_left < 0:
            return True
        views = LeafViews(pa.schema([ROW_ADDRESS]), self._snapshot.schema.arrow)
        return any(
            batch.num_rows
            for place, _ in chosen
            for batch in source.batches(views, self._filter, limit=1, fragments=(place, place + 1))
        )

    def _opened(self, at: tuple[str, int]) -> lance.LanceDataset:
        location, version = at
        snapshot = self._snapshot
        return open_leaf(snapshot.location, location, version, snapshot.storage_options)


def _description(fragment: lance.LanceFragment) -> str:
    return json.dumps(fragment.metadata.to_json(), sort_keys=True)


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
class DefinedSet:
    """The definition of an index whose segments are shown.

    Args:
        definition: What they were built by.
    """

    definition: IndexDefinition

    def changed_in(
        self, latest: Snapshot, rewrites: Callable[[], Rewrites] = dict
    ) -> Conflicted | None:
        """Say whether the table defines it otherwise now, or no more.

        Args:
            latest: The table after other commits.
            rewrites: Not asked for.
        """
        del rewrites
        own = self.definition
        if index_definitions(latest.metadata).get(own.name) == own:
            return None
        return Conflicted("of any value", f"index {own.name} was dropped or changed meanwhile")

    def may_miss(self, latest: Snapshot, touched: Mapping[str, Mapping[str, pa.Scalar]]) -> bool:
        """Whether others may change it: a definition is no leaf."""
        del latest, touched
        return True


@dataclass(frozen=True, slots=True)
class ReadSets:
    """What a statement has read, and what it takes out beside that.

    Args:
        sets: Each of them.
    """

    sets: tuple[CoveredSet | DefinedSet | OverlappedSet | ReadSet, ...]

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
