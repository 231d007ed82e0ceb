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

from pennon.manifest import ObjectId
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
    tuples = {part.object_id: part for part in staged}
    leaves = snapshot.leaves().table
    if not tuples:
        return leaves.slice(0, 0)
    own = next(iter(tuples.values())).spec_version
    is_own = pc.starts_with(leaves["object_id"], leaf_prefix(own))
    others = leaves.filter(pc.invert(is_own)).combine_chunks()
    replaced: dict[int, tuple[list[PartitionField], set[str]]] = {}
    overlap = []
    for at, object_id in enumerate(others["object_id"].to_pylist()):
        parsed = ObjectId.parse(object_id)
        version = 1 if parsed is None else parsed.spec_version
        if version not in replaced:
            shared = shared_fields(snapshot, own, version)
            replaced[version] = shared, {_key(shared, part.values, 0) for part in tuples.values()}
        shared, keys = replaced[version]
        overlap.append(_key(shared, others, at) in keys)
    return others.filter(pa.array(overlap, pa.bool_()))


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


def _key(shared: Sequence[PartitionField], tuples: pa.RecordBatch | pa.Table, at: int) -> str:
    return repr([python_value(tuples.column(field.column)[at]) for field in shared])
