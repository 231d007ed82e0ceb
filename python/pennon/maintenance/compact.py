"""Putting the rows of leaves with many small files into few large ones.

A compaction is a transaction that yields: where another commit changes a leaf meanwhile, the leaf
is left as that commit made it. And it is invisible to the others: the record of its commit says
that the new version of a leaf has the rows of the old one, so an overwrite or a delete that was
based on the old one goes on as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pennon.errors import InternalError, PennonError
from pennon.leaf import LeafViews, StagedPartition, WriteTarget, clustered, scan_view
from pennon.leaf.dataset import open_leaf
from pennon.leaf.write.partition_writer import write_partitions
from pennon.maintenance.checks.findings import Progress, no_progress
from pennon.manifest import ObjectId, Snapshot
from pennon.manifest.storage import StorageOptions
from pennon.planning import plan_scan
from pennon.spec.write_order import WriteOrder
from pennon.transaction import Committed, Conflicted, Retryable, Transaction

__all__ = ["Compacted", "compact"]

DEFAULT_TARGET_BYTES: Final = 256 << 20
_LEAVES_AT_ONCE: Final = 20


@dataclass(slots=True)
class Compacted:
    """What was put together.

    Args:
        leaves: How many leaves.
        files_before: Their fragments before.
        files_after: And after.
        num_rows: Their rows.
        version: The version of ``__manifest`` that has the last of them.
        notes: What was left alone, and why.
    """

    leaves: int = 0
    files_before: int = 0
    files_after: int = 0
    num_rows: int = 0
    version: int = 0
    notes: list[str] = field(default_factory=list)


def compact(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    where: str | None = None,
    target_bytes: int = DEFAULT_TARGET_BYTES,
    progress: Progress = no_progress,
) -> Compacted:
    """Rewrite leaves whose fragments are small on average.

    Rows are brought into the table's write order where it has one; where a leaf is too large to be
    sorted at once, no order of it is recorded.

    Args:
        location: The namespace, in strong mode.
        storage_options: Given to Lance.
        where: A Spark SQL condition: only partitions that may have a row that satisfies it.
        target_bytes: Leaves are rewritten whose fragments have less than half of it on average.
        progress: Is told how far it is.

    Raises:
        NotPartitionedNamespace: It is none.
        StorageFailure: The storage refused.

    Example:
        >>> compact("/data/lake/orders", where="day >= DATE '2026-01-01'")  # doctest: +SKIP

    Spec: "Multi-Partition Transaction (Strong)".
    """
    snapshot = Snapshot.open(location, storage_options=storage_options)
    done = Compacted(version=snapshot.version)
    if not snapshot.is_strong:
        done.notes.append("the table is in weak mode: its leaves are for Lance's own compaction")
        return done
    chosen = _chosen(snapshot, where, target_bytes)
    for at in range(0, len(chosen), _LEAVES_AT_ONCE):
        some = chosen[at : at + _LEAVES_AT_ONCE]
        _compact(snapshot, some, done)
        progress("leaves compacted", at + len(some), len(chosen))
    return done


@dataclass(frozen=True, slots=True)
class _Leaf:
    object_id: str
    location: str
    read_version: int
    num_rows: int
    num_fragments: int


def _chosen(snapshot: Snapshot, where: str | None, target_bytes: int) -> list[_Leaf]:
    """Choose the leaves to rewrite."""
    rows = snapshot.leaves().table
    if where is not None:
        wanted = set(plan_scan(snapshot, [where]).table["object_id"].to_pylist())
    chosen = []
    for row in rows.to_pylist():
        sizes = (row["read_version"], row["num_rows"], row["num_bytes"], row["num_fragments"])
        is_elsewhere = row.get("read_branch") is not None or row.get("read_tag") is not None
        if None in sizes or is_elsewhere or (where is not None and row["object_id"] not in wanted):
            continue
        version, num_rows, num_bytes, num_fragments = sizes
        if num_fragments > 1 and num_bytes / num_fragments < target_bytes / 2:
            leaf = _Leaf(row["object_id"], row["location"], version, num_rows, num_fragments)
            chosen.append(leaf)
    return chosen


def _compact(snapshot: Snapshot, leaves: Sequence[_Leaf], done: Compacted) -> None:
    """Rewrite some leaves with one commit."""
    transaction = Transaction(snapshot, operation="compact")
    staged: list[StagedPartition] = []
    try:
        for leaf in leaves:
            staged += _staged(snapshot, leaf)
        transaction.rewrite(staged)
        outcome = transaction.commit()
    except PennonError:
        transaction.abort(staged)
        raise
    match outcome:
        case Committed(version):
            done.version = version
            done.leaves += len(leaves)
            done.files_before += sum(each.num_fragments for each in leaves)
            done.files_after += sum(len(each.fragments) for each in staged)
            done.num_rows += sum(each.num_rows for each in leaves)
        case Conflicted(partition, reason):
            transaction.abort(staged)
            if len(leaves) == 1:
                done.notes.append(f"partition {partition} is left alone: {reason}")
                return
            for leaf in leaves:
                _compact(snapshot, [leaf], done)
        case Retryable():
            transaction.abort(staged)
            done.notes.append("other writers were busy: run it again")


def _staged(snapshot: Snapshot, leaf: _Leaf) -> list[StagedPartition]:
    parsed = ObjectId.parse(leaf.object_id)
    if parsed is None:
        raise InternalError(what=f"{leaf.object_id} is no leaf")
    spec = snapshot.specs[parsed.spec_version]
    order = WriteOrder.of(snapshot.properties, snapshot.schema)
    rows: Iterator[pa.RecordBatch] = _rows(snapshot, leaf)
    if order is not None:
        rows = clustered(rows, snapshot, spec, order)
    target = WriteTarget(
        snapshot.location, snapshot.version, spec.spec_version, snapshot.storage_options
    )
    staged = write_partitions(rows, target)
    num_rows = sum(each.num_rows for each in staged)
    if num_rows != leaf.num_rows or any(each.object_id != leaf.object_id for each in staged):
        Transaction(snapshot).abort(staged)
        what = f"leaf {leaf.location} has rows of other partitions or not {leaf.num_rows} rows"
        raise InternalError(what=f"{what}: check the table")
    return staged


def _rows(snapshot: Snapshot, leaf: _Leaf) -> Iterator[pa.RecordBatch]:
    options = snapshot.storage_options
    dataset = open_leaf(snapshot.location, leaf.location, leaf.read_version, options)
    yield from scan_view(dataset, LeafViews(snapshot.schema.arrow))
