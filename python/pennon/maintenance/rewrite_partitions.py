"""Rewrites the data of older partition specs under the present one.

An evolved table keeps the rows that are there in the partitions that they were written to. This
puts them into those of the present spec: the older partitions go and the rows come with one commit,
so that no reader sees a row twice or not at all. A partition that another commit changes meanwhile
is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

import lance
import pyarrow as pa

from pennon.errors import InternalError
from pennon.leaf import LeafSource, LeafViews, StagedPartition, WriteTarget, clustered
from pennon.leaf.dataset import check_is_main
from pennon.leaf.write.partition_writer import write_partitions
from pennon.maintenance.calls.procedure_declaration import (
    Column,
    Procedure,
    columns_of,
    count,
    planned,
)
from pennon.maintenance.compact import reindexed
from pennon.maintenance.leaves.chosen_leaves import chosen_leaves
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.manifest import ObjectId, Snapshot
from pennon.manifest.dataset.storage import StorageOptions, storage_failure
from pennon.manifest.format.names import spec_version_of
from pennon.spec.partition_spec import leaf_prefix
from pennon.spec.write_properties import WriteOrder
from pennon.transaction import Committed, Transaction
from pennon.transaction.staging.staged import LeafState, leaf_states, partition_text

__all__ = ["REWRITE_PARTITIONS", "RewrittenPartitions", "rewrite_partitions"]

_LEAVES_AT_ONCE: Final = 20
_MEETINGS: Final = 3


@dataclass(slots=True)
class RewrittenPartitions:
    """What was brought to the present spec, or would be.

    Args:
        partitions: The older partitions, as their spec and values.
        num_rows: Their rows.
        spec_version: The present spec.
        version: The version of ``__manifest`` that has the last of them.
        notes: What was left alone, and why.
    """

    partitions: Annotated[list[str], count("rewritten_partitions"), planned("partitions")] = field(
        default_factory=list
    )
    num_rows: Annotated[int, Column("rows")] = 0
    spec_version: int = 0
    version: int = 0
    notes: list[str] = field(default_factory=list)


def rewrite_partitions(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    where: str | None = None,
    time_zone: str = "UTC",
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> RewrittenPartitions:
    """Write the rows of partitions of older specs into partitions of the present one.

    Args:
        location: The namespace, in strong mode.
        storage_options: Given to Lance.
        where: A Spark SQL condition: only partitions that may have a row that satisfies it, each
            as a whole.
        time_zone: Of times in it without a zone, as Spark's session has one.
        dry_run: Whether to list only.
        progress: Called with how far it is.

    Raises:
        NotPartitionedNamespace: It is none.
        LeafReadAtReference: Another writer has one read at a branch or a tag meanwhile.
        PartitionSourceDropped: The present spec needs a column that was dropped.
        StorageFailure: The storage refused.

    Example:
        >>> rewrite_partitions("/data/lake/orders", dry_run=True).partitions  # doctest: +SKIP
        ['v1: day=2025-01-01']

    Spec: "Partition Evolution", "Multi-Partition Transaction (Strong)".
    """
    snapshot = Snapshot.open(location, storage_options=storage_options)
    done = RewrittenPartitions(
        spec_version=snapshot.current_spec.spec_version, version=snapshot.version
    )
    if not snapshot.is_strong:
        done.notes.append("the table is in weak mode: no commit shows several partitions at once")
        return done
    chosen = _older(snapshot, chosen_leaves(snapshot, where, time_zone), done)
    for at in range(0, len(chosen), _LEAVES_AT_ONCE):
        some = chosen[at : at + _LEAVES_AT_ONCE]
        if dry_run:
            _count(snapshot, list(leaf_states(snapshot, some).values()), done)
        elif not _is_done(location, storage_options, some, done):
            for object_id in some:
                _alone(location, storage_options, object_id, done)
        progress("partitions rewritten", at + len(some), len(chosen))
    if done.partitions and not dry_run:
        done.version = reindexed(location, storage_options, None) or done.version
    return done


REWRITE_PARTITIONS: Final = Procedure(
    rewrite_partitions,
    "Put the rows of partitions of older specs into partitions of the present one.",
    columns_of(RewrittenPartitions),
    renews_table=True,
    command="rewrite-partitions",
    said="{location} is at version {version}: {rewritten_partitions} partitions"
    " with {rows} rows rewritten into spec {spec_version}",
    planned="{location} is at version {version}: {rewritten_partitions} partitions"
    " with {rows} rows to rewrite into spec {spec_version}",
)


def _older(snapshot: Snapshot, object_ids: Sequence[str], done: RewrittenPartitions) -> list[str]:
    """List the leaves of older specs that are read on their main branch."""
    present = snapshot.current_spec.spec_version
    ids = {object_id: ObjectId.parse(object_id) for object_id in object_ids}
    older = [key for key, parsed in ids.items() if parsed and parsed.spec_version != present]
    chosen = []
    for state in leaf_states(snapshot, older).values():
        if not state.is_elsewhere:
            chosen.append(state.object_id)
            continue
        text = partition_text(state.values)
        done.notes.append(f"partition {text} is left alone: it is read at a branch or a tag")
    return chosen


def _alone(
    location: str, options: StorageOptions | None, object_id: str, done: RewrittenPartitions
) -> None:
    for _ in range(_MEETINGS):
        if _is_done(location, options, [object_id], done):
            return
    done.notes.append(f"partition {object_id} is left alone: other commits change it")


def _is_done(
    location: str,
    options: StorageOptions | None,
    leaves: Sequence[str],
    done: RewrittenPartitions,
) -> bool:
    """Move the rows of some leaves with one commit; False where another one came between."""
    snapshot = Snapshot.open(location, storage_options=options)
    # A rollback may have made the older spec the present one again.
    states = [
        state
        for state in leaf_states(snapshot, leaves).values()
        if not state.object_id.startswith(leaf_prefix(snapshot.current_spec.spec_version))
    ]
    if not states:
        return True
    transaction = Transaction(snapshot, operation="rewrite_partitions")
    staged: list[StagedPartition] = []
    with transaction.removing_on_failure(staged):
        try:
            staged += _staged(snapshot, states)
        except OSError as error:
            raise storage_failure("rewrite", location, error) from error
        transaction.drop(state.object_id for state in states)
        transaction.append(staged)
        outcome = transaction.commit()
    if not isinstance(outcome, Committed):
        transaction.abort(staged)
        return False
    done.version = outcome.version
    _count(snapshot, states, done, sum(partition.num_rows for partition in staged))
    return True


def _count(
    snapshot: Snapshot,
    states: Sequence[LeafState],
    done: RewrittenPartitions,
    num_rows: int | None = None,
) -> None:
    for state in states:
        spec_version = spec_version_of(state.object_id)
        done.partitions.append(f"v{spec_version}: {partition_text(state.values)}")
    if num_rows is None:
        num_rows = sum(_leaf(snapshot, state).count_rows() for state in states)
    done.num_rows += num_rows


def _staged(snapshot: Snapshot, states: Sequence[LeafState]) -> list[StagedPartition]:
    spec = snapshot.current_spec
    options = snapshot.storage_options
    target = WriteTarget(snapshot.location, snapshot.version, spec.spec_version, options)
    order = WriteOrder.of(snapshot.properties, snapshot.schema)
    staged = write_partitions(clustered(_rows(snapshot, states), snapshot, spec, order), target)
    expected_rows = sum(_leaf(snapshot, state).count_rows() for state in states)
    if sum(partition.num_rows for partition in staged) != expected_rows:
        Transaction(snapshot).abort(staged)
        raise InternalError(what=f"of {expected_rows} rows of older partitions others were read")
    return staged


def _rows(snapshot: Snapshot, states: Sequence[LeafState]) -> Iterator[pa.RecordBatch]:
    views = LeafViews(snapshot.schema.arrow)
    for state in states:
        yield from LeafSource(_leaf(snapshot, state)).batches(views)


def _leaf(snapshot: Snapshot, state: LeafState) -> lance.LanceDataset:
    check_is_main(snapshot.location, state.location, state.read_branch, state.read_tag)
    return state.opened(snapshot)
