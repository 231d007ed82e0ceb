"""What a dynamic overwrite replaces that other partition specs have laid out.

It replaces the partitions of its rows. Those of its own spec it writes, so that whoever else
changes one is met there. The same rows may lie in partitions of other specs, too: such ones it
takes out, unless they are made while it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pennon.spec.partition_spec import leaf_prefix
from pennon.spec.value_text import python_value
from pennon.transaction.concurrency.commit_order import are_only_appends, conflict_behind
from pennon.transaction.concurrency.outcome import Conflicted
from pennon.transaction.staging.leaf_preparation import staged_values
from pennon.transaction.staging.leaf_state import partition_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pennon.leaf import StagedPartition
    from pennon.manifest import Snapshot
    from pennon.manifest.commits.commit_lookup import Rewrites
    from pennon.spec import PartitionField

__all__ = ["OverlappedSet", "overlapping_leaves", "shared_fields"]


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
