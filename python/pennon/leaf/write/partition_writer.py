"""Arrow batches of a namespace → partition tuples → uncommitted fragments in each leaf.

Rows are pulled: on a disk one writer is open at a time, and it asks for the next rows when it has
room. An object store answers late, so runs that fit into a bound are written side by side there.
Rows that arrive sorted by partition make one run of fragments per partition; when a partition
comes again, it gets further fragments. Nothing that is written here is visible to a reader.

Where the table has a write order, the rows of each run are compared as they pass: what is reported
as sorted was seen to be.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
from lance.file import LanceFileSession
from lance.fragment import FragmentMetadata, write_fragments

from pennon.caching.lance_sessions import lance_options
from pennon.errors import InternalError, LeafMissing, LeafSchemaMismatch, SnapshotNotFound
from pennon.leaf.dataset import FIRST_DETACHED, leaf_uri, leaves_at_once, open_leaf
from pennon.leaf.row_order import SortedCheck, key_columns
from pennon.leaf.schema.file_layout import file_batch, file_schema
from pennon.leaf.write.destination import Destinations, StagedPartition, unmade_leaf
from pennon.leaf.write.incoming_rows import (
    ColumnCounting,
    check_sources,
    conform,
    counted_fields,
    partition_tuples,
    runs,
    tuple_codes,
)
from pennon.manifest import Snapshot
from pennon.manifest.format.names import canonical_bytes
from pennon.manifest.table_identity import check_same_table, table_id
from pennon.spec.write_properties import WriteOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import lance
    import numpy as np
    from numpy.typing import NDArray

    from pennon.leaf.write.destination import Destination, WriteTarget
    from pennon.leaf.write.incoming_rows import Run
    from pennon.spec.partition_spec import PartitionSpec

__all__ = [
    "KeptFailure",
    "clustered",
    "count_files",
    "delete_files",
    "delete_fragment_files",
    "write_partitions",
]

# Clusters rows by partition, in whatever order they come.
#
# Spark sorts before it writes; whoever writes without Spark hands rows over as they come. They are
# gathered up to a bound in bytes and sorted there, so that memory is bounded and a partition gets
# one run of files per gathered piece.

GATHERED_BYTES: Final = 128 << 20
_BATCH_ROWS: Final = 65_536


def clustered(
    batches: Iterable[pa.RecordBatch],
    snapshot: Snapshot,
    spec: PartitionSpec,
    order: WriteOrder | None,
    *,
    gathered_bytes: int = GATHERED_BYTES,
    observe: Callable[[pa.Array], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Sort rows by partition, and within each by the write order.

    Args:
        batches: Rows in the namespace's columns by name.
        snapshot: The namespace.
        spec: The spec to partition by.
        order: The table's write order, if it has one.
        gathered_bytes: So much is held and sorted at a time.
        observe: Is told of each row that is given which one of the rows that came it is.

    Yields:
        The rows in exactly the namespace's schema.

    Raises:
        WriteColumnUnknown: The rows have a column that the table has not.
        WriteTypeMismatch: A value does not fit its column.
        NotNullViolated: A NOT NULL column has a NULL.
        PartitionValueOverflow: A partition value does not fit the manifest's column.

    Spec: "Partition Expression".
    """
    gathered: list[pa.RecordBatch] = []
    num_bytes = num_seen = 0

    def ordered() -> Iterator[pa.RecordBatch]:
        for rows, places in _sorted(gathered, snapshot, spec, order):
            if observe is not None:
                observe(pc.add(places, num_seen))
            yield from _sliced(rows)

    for batch in _cut(batches, gathered_bytes):
        rows = conform(batch, snapshot.schema, snapshot.location)
        gathered.append(rows)
        num_bytes += rows.nbytes
        if num_bytes >= gathered_bytes:
            yield from ordered()
            num_seen += sum(piece.num_rows for piece in gathered)
            gathered, num_bytes = [], 0
    if gathered:
        yield from ordered()


def _cut(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut what is larger than the bound; leave out what has no row."""
    for batch in batches:
        num_parts = max(1, -(-batch.nbytes // most_bytes))
        step = max(1, -(-batch.num_rows // num_parts))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _sorted(
    gathered: list[pa.RecordBatch],
    snapshot: Snapshot,
    spec: PartitionSpec,
    order: WriteOrder | None,
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Sort rows; the second array has the position where each of them was."""
    for rows in pa.Table.from_batches(gathered).combine_chunks().to_batches():
        keys: list[tuple[pa.Array | NDArray[np.generic], str]] = []
        if spec.fields:
            keys.append((tuple_codes(partition_tuples(rows, spec, snapshot)), "ascending"))
        if order is not None:
            columns = [rows.column(column.name) for column in order.columns]
            keys += [
                (key.values, "descending" if key.is_descending else "ascending")
                for key in key_columns(columns, order.columns)
            ]
        places = _indices(keys) if keys else pa.array(range(rows.num_rows), pa.uint64())
        yield (rows.take(places) if keys else rows), places


def _sliced(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, _BATCH_ROWS):
        yield rows.slice(start, _BATCH_ROWS)


def _indices(keys: list[tuple[pa.Array | NDArray[np.generic], str]]) -> pa.Array:
    names = [f"key_{place}" for place in range(len(keys))]
    table = pa.table([values for values, _ in keys], names=names)
    directions = [direction for _, direction in keys]
    return pc.sort_indices(table, sort_keys=list(zip(names, directions, strict=True)))


# Totals of a write: partitions, files and bytes.


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What the tasks of a write staged, together.

    Args:
        partitions: Partitions with new rows, each once; 0 for a table without partitioning.
        files: Their new files of rows.
        num_bytes: Bytes of these files.
    """

    partitions: int
    files: int
    num_bytes: int


def count_files(staged: Iterable[str]) -> WrittenFiles:
    """Count the files in the reports of a write's tasks.

    Args:
        staged: The reports as text: those of partitions, or fragments of a plain dataset.

    Example:
        >>> fragment = '{"files": [{"path": "a.lance", "file_size_bytes": 700}]}'
        >>> count_files([fragment, fragment])
        WrittenFiles(partitions=0, files=2, num_bytes=1400)
    """
    reports = [json.loads(text) for text in staged]
    of_partitions = [report for report in reports if "object_id" in report]
    fragments = [report for report in reports if "object_id" not in report]
    fragments += [json.loads(text) for report in of_partitions for text in report["fragments"]]
    files = [file for fragment in fragments for file in fragment["files"]]
    return WrittenFiles(
        len({report["object_id"] for report in of_partitions}),
        len(files),
        sum(file["file_size_bytes"] or 0 for file in files),
    )


# Errors of the code that gives rows, of which Lance makes the text of an error of its own.


class KeptFailure:
    """Keeps what fails while rows are made, and raises it in the place of Lance's error.

    Example:
        >>> rows = KeptFailure()
        >>> with rows.raised():
        ...     try:
        ...         with rows:
        ...             raise KeyError("region")
        ...     except KeyError:
        ...         raise OSError("C Data interface error: Key error: 'region'")
        Traceback (most recent call last):
        KeyError: 'region'
    """

    def __init__(self) -> None:
        self._error: BaseException | None = None

    def __enter__(self) -> None:
        self._error = None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not isinstance(error, GeneratorExit):
            self._error = error

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Run what hands the rows to Lance."""
        try:
            yield
        except (OSError, RuntimeError, ValueError):
            if self._error is not None:
                raise self._error from None
            raise


# So many batches of a run are kept until Lance has decided that it takes them.
_RESTARTABLE_BATCHES = 2
# Their leaves are looked up together.
_RUNS_AT_ONCE = 1000
# Rows that are held to be written side by side: of one run, and of all together.
_HELD_BYTES: Final = 16 << 20
_ALL_HELD_BYTES: Final = 64 << 20


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
        with _Writers(leaves_at_once(target.location, on_disk=1)) as writers:
            while (first := stream.peek()) is not None:
                task.write_run(first, stream, writers)
        report = task.report()
        undo.pop_all()
    return report


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
    session = LanceFileSession(f"{uri}/data", storage_options=lance_options(storage_options))
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
    written: list[_Written] = field(default_factory=list)
    is_sorted: bool = True

    def fragments(self) -> list[FragmentMetadata]:
        """The fragments in the order of the rows; raises what the first failure was."""
        return [fragment for written in self.written for fragment in written.result()]


_Written = Future[list[FragmentMetadata]]


class _Writers:
    """Writes runs side by side, so many at once; none of the pool is left running behind it.

    Args:
        most: How many; with one, each is written by the caller.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pool = ThreadPoolExecutor(most) if most > 1 else None
        self._under_way: dict[_Written, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def is_one(self) -> bool:
        """Whether one run is written at a time."""
        return self._pool is None

    def write(self, write: Callable[[], list[FragmentMetadata]], num_bytes: int | None) -> _Written:
        """Write a run, as soon as there is room for it.

        Args:
            write: Does it.
            num_bytes: What is held of it; None where that is not all, and the caller writes it.

        Raises:
            PennonError: A run before it failed.
            OSError: Likewise.
        """
        if self._pool is not None and num_bytes is not None:
            while len(self._under_way) >= self._most or (
                self._under_way and sum(self._under_way.values()) + num_bytes > _ALL_HELD_BYTES
            ):
                for written in wait(self._under_way, return_when=FIRST_COMPLETED).done:
                    del self._under_way[written]
                    written.result()
            with contextlib.suppress(RuntimeError):  # the process ends: no thread starts any more
                future = self._pool.submit(write)
                self._under_way[future] = num_bytes
                return future
        written = _Written()
        written.set_result(write())
        return written


def _base(target: WriteTarget) -> Snapshot:
    """Open the version that the write is based on; where it has expired, the newest.

    The commit finds out whether the rows still fit. A store is not asked for what the process has
    opened for the statement.
    """
    options = target.storage_options
    if "://" in target.location and target.table_id:
        seen = Snapshot.seen(target.location, target.version, options)
        if seen is not None and table_id(seen) == target.table_id:
            return seen
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
        self._began = time.time()

    def cut(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Run]:
        for batch in batches:
            rows = conform(batch, self._snapshot.schema, self._target.location)
            rows_by_tuple = runs(rows, partition_tuples(rows, self._spec, self._snapshot))
            while some := list(islice(rows_by_tuple, _RUNS_AT_ONCE)):
                new = {_tuple_key(run.values): run.values for run in some}
                unknown = [new[key] for key in new if key not in self._partitions]
                self._destinations.expect(unknown)
                yield from some

    def write_run(self, first: Run, stream: _RunStream, writers: _Writers) -> None:
        key = _tuple_key(first.values)
        partition = self._partitions.get(key)
        if partition is None:
            destination = self._destinations.find(first.values)
            partition = _Partition(destination, ColumnCounting(self._counted))
            self._partitions[key] = partition
        destination = partition.destination
        rows = _Rows(stream.take_while(key), destination, self._order, partition.counting)
        held = None if writers.is_one else rows.hold(_HELD_BYTES)
        partition.written.append(
            writers.write(lambda: _write(rows, destination, self._target), held)
        )
        partition.is_sorted &= rows.is_sorted

    def remove_files(self) -> None:
        for partition in self._partitions.values():
            delete_fragment_files(
                self._target.location,
                partition.destination.location,
                [
                    _text(fragment)
                    for written in partition.written
                    if not written.cancelled() and written.exception() is None
                    for fragment in written.result()
                ],
                self._target.storage_options,
            )

    def report(self) -> list[StagedPartition]:
        which = self._spec.spec_version, self._spec.identity
        staged = [_staged(which, partition, self._order) for partition in self._partitions.values()]
        return [replace(part, staged_at=self._began) for part in staged]


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
        schema = file_schema(self._destination.schema, self._destination.storage_version)
        batches = (file_batch(rows, schema) for rows in self._batches())
        return pa.RecordBatchReader.from_batches(schema, batches)

    def hold(self, most_bytes: int) -> int | None:
        """Pull rows before they are written.

        Args:
            most_bytes: What is held at most, and one batch.

        Returns:
            Their bytes; None where there may be more rows.
        """
        num_bytes = 0
        for stored in self._converted():
            self._pulled.append(stored)
            num_bytes += stored.nbytes
            if num_bytes > most_bytes:
                return None
        return num_bytes

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._pulled
        with self.failure:
            for stored in self._converted():
                self.is_restartable = len(self._pulled) < _RESTARTABLE_BATCHES
                self._pulled = [*self._pulled, stored] if self.is_restartable else []
                yield stored

    def _converted(self) -> Iterator[pa.RecordBatch]:
        for rows in self._rows:
            stored = _stored(rows, self._destination)
            if self._order:
                names = rows.schema.names
                self._check.observe(
                    [stored.column(names.index(column.name)) for column in self._order]
                )
            self._counting.observe(rows)
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


def _into(destination: Destination, target: WriteTarget) -> str | lance.LanceDataset:
    """The leaf as it was opened before: of an address Lance looks up the newest version again."""
    version, options = destination.read_version, target.storage_options
    if destination.storage_version is None:
        new = unmade_leaf(target.location, destination.location, destination.schema, options)
        if new is not None:
            return new
    if version is not None and version >= FIRST_DETACHED:
        with contextlib.suppress(LeafMissing):  # the commit finds out
            return open_leaf(target.location, destination.location, version, options)
    return leaf_uri(target.location, destination.location)


def _write(rows: _Rows, destination: Destination, target: WriteTarget) -> list[FragmentMetadata]:
    """Write one run; the files are numbered by ``destination.schema`` whether a leaf exists or not.

    ``overwrite`` takes both, but warns where there is no dataset, so ``create`` is tried first for
    a new leaf; Lance refuses that, after its first batch, where another writer made the leaf
    meanwhile. Neither commits anything here.
    """
    limits: dict[str, Any] = (
        {} if target.file_bytes is None else {"max_bytes_per_file": target.file_bytes}
    )
    into = _into(destination, target)
    is_address = isinstance(into, str) and destination.storage_version is None
    modes = ("create", "overwrite") if is_address else ("overwrite",)
    for mode in modes:
        try:
            with rows.failure.raised():
                reader = rows.reader()
                written = write_fragments(
                    reader,
                    into,
                    schema=reader.schema,
                    mode=mode,
                    data_storage_version=destination.storage_version,
                    storage_options=lance_options(target.storage_options),
                    **limits,
                )
        except OSError as error:
            if not rows.is_restartable or "already exists" not in str(error):
                raise
        else:
            return list(written)
    raise InternalError(what=f"Lance refused to write fragments into {destination.location}")


def _text(fragment: FragmentMetadata) -> str:
    return json.dumps(fragment.to_json())


def _staged(
    which: tuple[int, str], partition: _Partition, order: WriteOrder | None
) -> StagedPartition:
    spec_version, spec = which
    destination, fragments = partition.destination, partition.fragments()
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
