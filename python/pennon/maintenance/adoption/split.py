"""``pennon adopt --split``: rows of existing Lance datasets go to the partitions they belong to.

The rows are copied and the datasets stay as they are, wherever they lie. Everything is written
first and becomes visible in one commit, new partitions and those that were there alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import lance
import pyarrow as pa

from pennon.catalog.configured_catalog import stated_place
from pennon.leaf import LeafSource, StagedPartition, WriteTarget, write_partitions
from pennon.maintenance.adoption.adopt import (
    Adopted,
    adopt,
    checked_columns,
    datasets_below,
    opened,
    refused,
)
from pennon.maintenance.calls.procedure_declaration import Arguments, Procedure, columns_of
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.manifest import Snapshot, StorageOptions
from pennon.manifest.format.rows import PARTITION_PREFIX
from pennon.transaction import Committed, Conflicted, Retryable, Transaction
from pennon.transaction.staging.staged import partition_text

__all__ = ["ADOPT", "Adoption", "adopt_or_split", "split_datasets"]

_ATTEMPTS: Final = 5
# Rows are sorted by partition within so many bytes: more means fewer, larger fragments.
_BYTES_AT_ONCE: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class Adoption:
    """Datasets that are partitions now.

    Args:
        version: The version of the table afterwards.
        leaves: A report per dataset and partition.
    """

    version: int
    leaves: Sequence[Adopted]


def adopt_or_split(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    path: str,
    partition_values: Mapping[str, str] | None = None,
    move: bool = False,
    split: bool = False,
    progress: Progress = no_progress,
) -> Adoption:
    """Adopt datasets where they are, or copy their rows into their partitions.

    Args:
        location: The namespace.
        storage_options: Given to Lance.
        path: A Lance dataset, or a folder with several below it.
        partition_values: Their partition values, by partition field or source column.
        move: Whether to move the datasets into the namespace.
        split: Whether to copy their rows, each into the partition that it belongs to.
        progress: Told after every dataset.

    Raises:
        AdoptionRefused: As `adopt` and `split_datasets`; or what only one of them takes was given
            to the other.
    """
    snapshot = Snapshot.open(location, storage_options=storage_options)
    place, values = stated_place(path), partition_values or {}
    if not split:
        leaves = adopt(snapshot, place, values, move=move, progress=progress)
    elif values or move:
        given = "values" if values else "move"
        why = f"{given} cannot be given with split, which copies each row to its own partition"
        raise refused(snapshot, place, why, f"Leave out {given} or split")
    else:
        leaves = split_datasets(snapshot, place, progress=progress)
    return Adoption(leaves[0].version if leaves else snapshot.version, leaves)


def _said(location: str, done: Adoption, arguments: Arguments) -> Iterator[str]:
    for leaf in done.leaves:
        yield f"{leaf.dataset}: {leaf.values}, {leaf.num_rows} rows, leaf {leaf.object_id}"
    what = "partitions written" if arguments.get("split") else "adopted"
    yield f"{location} is at version {done.version}, {len(done.leaves)} {what}"


ADOPT: Final = Procedure(
    adopt_or_split,
    "Take an existing Lance dataset, or a folder of them, into a table.",
    columns_of(Adopted),
    rows="leaves",
    name="adopt",
    renews_table=True,
    command="adopt",
    options={"table": "--into", "partition_values": "--values"},
    said=_said,
)


def split_datasets(
    snapshot: Snapshot, path: str, *, progress: Progress = no_progress
) -> list[Adopted]:
    """Copy the rows of the datasets at or below a path into their partitions, in one commit.

    Args:
        snapshot: The newest snapshot of the namespace.
        path: A dataset, or a folder with datasets below it.
        progress: Told after every dataset that was written.

    Returns:
        One report per dataset and partition; ``location`` is the partition's.

    Raises:
        AdoptionRefused: There is no dataset, or one whose columns do not fit; nothing is visible.
        PennonError: A value does not fit, or another writer was in the way each time.

    Spec: "Partition Expression", "Commit Behavior".
    """
    paths = datasets_below(path, snapshot.storage_options)
    if not paths:
        raise refused(snapshot, path, "there is no Lance dataset", "Check the path")
    datasets = [opened(snapshot, directory) for directory in paths]
    for source, dataset in zip(paths, datasets, strict=True):
        checked_columns(snapshot, source, dataset)
    target = WriteTarget(
        snapshot.location,
        snapshot.version,
        snapshot.current_spec.spec_version,
        snapshot.storage_options,
    )
    transaction = Transaction(snapshot)
    written: list[tuple[str, StagedPartition]] = []
    with ExitStack() as undo:
        undo.callback(lambda: transaction.abort([part for _, part in written]))
        for at, (source, dataset) in enumerate(zip(paths, datasets, strict=True), 1):
            written += [(source, part) for part in write_partitions(_chunks(dataset), target)]
            progress("datasets written", at, len(paths))
        transaction.append([part for _, part in written])
        version = _committed(snapshot, path, transaction)
        undo.pop_all()
    return [_report(source, part, version) for source, part in written]


def _chunks(dataset: lance.LanceDataset) -> Iterator[pa.RecordBatch]:
    """Read rows in pieces that are large, since each makes a fragment per partition."""
    gathered: list[pa.RecordBatch] = []
    for batch in LeafSource(dataset).stored_batches():
        gathered.append(batch)
        if sum(piece.nbytes for piece in gathered) >= _BYTES_AT_ONCE:
            yield from _joined(gathered)
            gathered = []
    yield from _joined(gathered)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []


def _committed(snapshot: Snapshot, path: str, transaction: Transaction) -> int:
    for _ in range(_ATTEMPTS):
        match transaction.commit():
            case Committed(version):
                return version
            case Conflicted(partition, reason):
                why = f"another writer changed partition {partition} meanwhile: {reason}"
                raise refused(snapshot, path, why, "Run it again")
            case Retryable():
                continue
    raise refused(snapshot, path, "other commits came first each time", "Run it again")


def _report(source: str, part: StagedPartition, version: int) -> Adopted:
    names = (name.removeprefix(PARTITION_PREFIX) for name in part.values.schema.names)
    values = dict(zip(names, (column[0] for column in part.values.columns), strict=True))
    return Adopted(
        source, part.object_id, part.location, partition_text(values), part.num_rows, version
    )
