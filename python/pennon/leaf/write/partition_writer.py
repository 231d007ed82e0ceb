"""Arrow batches of a namespace → partition tuples → uncommitted fragments in each leaf.

Rows are pulled: one writer is open at a time, and it asks for the next rows when it has room.
Rows that arrive sorted by partition make one run of fragments per partition; when a partition
comes again, it gets further fragments. Nothing that is written here is visible to a reader.

Where the table has a write order, the rows of each run are compared as they pass: what is reported
as sorted was seen to be.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance.file import LanceFileSession
from lance.fragment import FragmentMetadata, write_fragments

from pennon.errors import InternalError, LeafSchemaMismatch, SnapshotNotFound
from pennon.leaf.dataset import leaf_uri
from pennon.leaf.row_order import SortedCheck
from pennon.leaf.write.column_counting import ColumnCounting, counted_fields
from pennon.leaf.write.destination import Destinations
from pennon.leaf.write.incoming_rows import conform
from pennon.leaf.write.kept_failure import KeptFailure
from pennon.leaf.write.partition_tuples import check_sources, partition_tuples, runs
from pennon.leaf.write.staged_partition import StagedPartition
from pennon.manifest import Snapshot
from pennon.manifest.format.names import canonical_bytes
from pennon.manifest.table_identity import check_same_table
from pennon.spec.write_order import WriteOrder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pennon.leaf.write.destination import Destination
    from pennon.leaf.write.partition_tuples import Run
    from pennon.leaf.write.staged_partition import WriteTarget

__all__ = ["delete_files", "delete_fragment_files", "write_partitions"]

# So many batches of a run are kept until Lance has decided that it takes them.
_RESTARTABLE_BATCHES = 2
# Their leaves are looked up together.
_RUNS_AT_ONCE = 1000


def write_partitions(
    batches: Iterable[pa.RecordBatch], target: WriteTarget
) -> list[StagedPartition]:
    """Write the rows of a task as uncommitted fragments of the partitions that they belong to.

    Args:
        batches: Rows in the namespace's columns by name; pulled one at a time.
        target: The namespace at a version, and the spec to partition by.

    Returns:
        One report per partition, for ``Transaction.append`` or ``Transaction.replace``.

    Raises:
        NotNullViolated: A NOT NULL column has a NULL.
        PartitionSourceDropped: The spec needs a column that was dropped.
        WriteColumnUnknown: The rows have a column that the table has not.
        WriteTypeMismatch: A value does not fit its column.
        PartitionValueOverflow: A partition value does not fit the manifest's column.
        LeafSchemaMismatch: An existing leaf cannot take the rows.
        TableMadeAnew: Another table stands there by now.

    Whatever is raised, the files that this call wrote are removed.

    Spec: "Partition Expression", "Physical Layout and Naming".
    """
    task = _Task(target)
    stream = _RunStream(task.cut(batches))
    with contextlib.ExitStack() as undo:
        undo.callback(task.remove_files)
        while (first := stream.peek()) is not None:
            task.write_run(first, stream)
        undo.pop_all()
    return task.report()


def delete_fragment_files(
    root: str, location: str, fragments: Sequence[str], storage_options: Mapping[str, str]
) -> None:
    """Remove the data files of uncommitted fragments; files that are gone already are no error.

    Args:
        root: Path or URL of the namespace.
        location: The leaf's directory.
        fragments: The fragments as Lance's JSON.
        storage_options: Passed to Lance.
    """
    delete_files(leaf_uri(root, location), fragments, storage_options)


def delete_files(uri: str, fragments: Sequence[str], storage_options: Mapping[str, str]) -> None:
    """Remove the data files of uncommitted fragments of a dataset; as ``delete_fragment_files``.

    Args:
        uri: The dataset.
        fragments: The fragments as Lance's JSON.
        storage_options: Passed to Lance.
    """
    session = LanceFileSession(f"{uri}/data", storage_options=dict(storage_options) or None)
    for fragment in fragments:
        for file in FragmentMetadata.from_json(fragment).files:
            with contextlib.suppress(OSError, RuntimeError):  # Lance's of a storage that is gone
                session.delete_file(file.path)


def _tuple_key(values: pa.RecordBatch) -> bytes:
    return b"".join(canonical_bytes(column[0]) for column in values.columns)


class _RunStream:
    """Runs with one of look-ahead, so that a writer stops where the next partition begins."""

    def __init__(self, source: Iterator[Run]) -> None:
        self._source = source
        self._next: Run | None = None
        self._is_read = False

    def peek(self) -> Run | None:
        if not self._is_read:
            self._next = next(self._source, None)
            self._is_read = True
        return self._next

    def take_while(self, key: bytes) -> Iterator[pa.RecordBatch]:
        while (run := self.peek()) is not None and _tuple_key(run.values) == key:
            self._is_read, self._next = False, None
            yield run.rows


@dataclass(slots=True)
class _Partition:
    """What the task has written for one partition so far."""

    destination: Destination
    counting: ColumnCounting
    fragments: list[FragmentMetadata] = field(default_factory=list)
    is_sorted: bool = True


def _base(target: WriteTarget) -> Snapshot:
    """Open the version that the write is based on; where it has expired, the newest.

    The commit finds out whether the rows still fit.
    """
    options = target.storage_options
    try:
        base = Snapshot.open(target.location, target.version, storage_options=options)
    except SnapshotNotFound:
        base = Snapshot.open(target.location, storage_options=options)
        check_same_table(base, target.table_id)
        if target.spec_version not in base.specs:
            raise
    check_same_table(base, target.table_id)
    return base


class _Task:
    """The state of one call: the namespace, and what was written where."""

    def __init__(self, target: WriteTarget) -> None:
        self._target = target
        self._snapshot = _base(target)
        self._spec = self._snapshot.specs[target.spec_version]
        check_sources(self._spec, self._snapshot)
        self._order = WriteOrder.of(self._snapshot.properties, self._snapshot.schema)
        self._destinations = Destinations(self._snapshot, self._spec)
        self._counted = counted_fields(self._snapshot.properties, self._snapshot.schema)
        self._partitions: dict[bytes, _Partition] = {}

    def cut(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Run]:
        for batch in batches:
            rows = conform(batch, self._snapshot.schema, self._target.location)
            rows_by_tuple = runs(rows, partition_tuples(rows, self._spec, self._snapshot))
            while some := list(islice(rows_by_tuple, _RUNS_AT_ONCE)):
                new = {_tuple_key(run.values): run.values for run in some}
                unknown = [new[key] for key in new if key not in self._partitions]
                self._destinations.expect(unknown)
                yield from some

    def write_run(self, first: Run, stream: _RunStream) -> None:
        key = _tuple_key(first.values)
        partition = self._partitions.get(key)
        if partition is None:
            destination = self._destinations.find(first.values)
            partition = _Partition(destination, ColumnCounting(self._counted))
            self._partitions[key] = partition
        destination = partition.destination
        rows = _Rows(stream.take_while(key), destination, self._order, partition.counting)
        uri = leaf_uri(self._target.location, destination.location)
        with rows.failure.raised():
            written = _write(uri, rows, destination, self._target)
        partition.fragments.extend(written)
        partition.is_sorted &= rows.is_sorted

    def remove_files(self) -> None:
        for partition in self._partitions.values():
            delete_fragment_files(
                self._target.location,
                partition.destination.location,
                [_text(fragment) for fragment in partition.fragments],
                self._target.storage_options,
            )

    def report(self) -> list[StagedPartition]:
        which = self._spec.spec_version, self._spec.identity
        return [_staged(which, partition, self._order) for partition in self._partitions.values()]


class _Rows:
    """The rows of one run in the leaf's schema."""

    def __init__(
        self,
        rows: Iterator[pa.RecordBatch],
        destination: Destination,
        order: WriteOrder | None,
        counting: ColumnCounting,
    ) -> None:
        self._rows = rows
        self._counting = counting
        self._destination = destination
        self._order = () if order is None else order.columns
        self._check = SortedCheck(self._order)
        self._pulled: list[pa.RecordBatch] = []
        self.is_restartable = True
        self.failure = KeptFailure()

    @property
    def is_sorted(self) -> bool:
        return self._check.is_sorted

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._destination.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._pulled
        with self.failure:
            for rows in self._rows:
                stored = _stored(rows, self._destination)
                if self._order:
                    names = rows.schema.names
                    self._check.observe(
                        [stored.column(names.index(column.name)) for column in self._order]
                    )
                self._counting.observe(rows)
                self.is_restartable = len(self._pulled) < _RESTARTABLE_BATCHES
                self._pulled = [*self._pulled, stored] if self.is_restartable else []
                yield stored


def _stored(rows: pa.RecordBatch, destination: Destination) -> pa.RecordBatch:
    """Rows as the leaf stores them: a narrower type takes what fits it."""
    if rows.schema.equals(destination.schema):
        return rows
    columns = []
    for column, expected in zip(rows.columns, destination.schema, strict=True):
        try:
            stored = column if column.type.equals(expected.type) else column.cast(expected.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise _mismatch(destination, expected, column.type) from error
        if stored.null_count and not expected.nullable:
            raise _mismatch(destination, expected, "NULL values")
        columns.append(stored)
    return pa.RecordBatch.from_arrays(columns, schema=destination.schema)


def _mismatch(destination: Destination, column: pa.Field, given: object) -> LeafSchemaMismatch:
    stored = column.type if column.nullable else f"{column.type} NOT NULL"
    return LeafSchemaMismatch(
        column=column.name, leaf=destination.location, actual=stored, expected=given
    )


def _write(
    uri: str, rows: _Rows, destination: Destination, target: WriteTarget
) -> list[FragmentMetadata]:
    """Write one run; the files are numbered by ``destination.schema`` whether a leaf exists or not.

    ``overwrite`` takes both, but warns where there is no dataset, so ``create`` is tried first for
    a new leaf; Lance refuses that, after its first batch, where another writer made the leaf
    meanwhile. Neither commits anything here.
    """
    limits: dict[str, Any] = (
        {} if target.file_bytes is None else {"max_bytes_per_file": target.file_bytes}
    )
    modes = ("create", "overwrite") if destination.storage_version is None else ("overwrite",)
    for mode in modes:
        try:
            written = write_fragments(
                rows.reader(),
                uri,
                schema=destination.schema,
                mode=mode,
                data_storage_version=destination.storage_version,
                storage_options=dict(target.storage_options) or None,
                **limits,
            )
        except OSError as error:
            if not rows.is_restartable or "already exists" not in str(error):
                raise
        else:
            return list(written)
    raise InternalError(what=f"Lance refused to write fragments into {uri}")


def _text(fragment: FragmentMetadata) -> str:
    return json.dumps(fragment.to_json())


def _staged(
    which: tuple[int, str], partition: _Partition, order: WriteOrder | None
) -> StagedPartition:
    spec_version, spec = which
    destination, fragments = partition.destination, partition.fragments
    return StagedPartition(
        spec_version,
        destination.object_id,
        destination.location,
        destination.values,
        tuple(_text(fragment) for fragment in fragments),
        destination.layout,
        sum(fragment.num_rows for fragment in fragments),
        sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files),
        None if order is None or not partition.is_sorted else order.identity,
        partition.counting.statistics.to_json(),
        spec,
    )
