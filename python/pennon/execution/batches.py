"""Concurrent work on several leaves, by a small pool of threads shared by all tasks of the process.

Opening and reading a small leaf is waiting: for a disk, for an object store, for Lance's threads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pennon.leaf.row_order import KeyColumn, key_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from datafusion.plan import ExecutionPlan

    from pennon.spec.write_properties import OrderColumn

__all__ = ["AT_ONCE", "merged", "row_bytes"]

# Metrics of a query: rows and bytes scanned, time of its operators, bytes spilled.

# What Lance's own table providers put into a plan.
_OF_LANCE: Final = "FFI_ExecutionPlan"


@dataclass(slots=True)
class StreamWork:
    """Counts of one query; they are whole once its stream has ended.

    Args:
        rows_scanned: Rows of the leaves that were looked at, before any filter.
        bytes_scanned: What was read of them: bytes of files, or of the rows of small leaves.
        compute_nanos: How long DataFusion's own operators took, in nanoseconds, the threads added
            up, waits for a processor among it.
        spilled_bytes: What was written to temporary files for want of memory.
    """

    rows_scanned: int = 0
    bytes_scanned: int = 0
    compute_nanos: int = 0
    spilled_bytes: int = 0

    def add_scan(self, num_rows: int, num_bytes: int) -> None:
        """Add what one leaf's scan has counted."""
        self.rows_scanned += num_rows
        self.bytes_scanned += num_bytes

    def add_plan(self, plan: ExecutionPlan) -> None:
        """Add what the operators of a plan that has run have counted."""
        self.rows_scanned += self._added(plan)

    def _added(self, plan: ExecutionPlan) -> int:
        """Add the bytes of a plan; give the rows that it scanned."""
        scanned = 0
        metrics = plan.metrics()
        if metrics is not None:
            scanned = metrics.sum_by_name("rows_scanned") or 0
            self.bytes_scanned += metrics.sum_by_name("bytes_read") or 0
            self.spilled_bytes += metrics.spilled_bytes or 0
            if not plan.display().startswith(_OF_LANCE):
                self.compute_nanos += metrics.elapsed_compute or 0
        # A read over another one fetches more columns of the rows that the first one has left.
        return sum(map(self._added, plan.children())) or scanned


# A fragment's result: a schema and a stream of batches.


@dataclass(frozen=True, slots=True)
class BatchStream:
    """The schema of a stream and its batches; closing the batches stops the scan.

    Args:
        schema: Names and types of the columns.
        batches: The rows.
        work: What was read for them, whole once they have all been taken.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    work: StreamWork = field(default_factory=StreamWork)

    def to_arrow(self) -> pa.Table:
        """Read all batches into a table."""
        return pa.Table.from_batches(self.batches, self.schema)


# What a row takes in memory, estimated from the types of its columns alone.

_BYTES_OF_A_TEXT: Final = 24
_BYTES_OF_A_NESTED_VALUE: Final = 100


def row_bytes(types: Iterable[pa.DataType | None]) -> int:
    """Estimate the bytes of a row in memory; a type that is not known counts as a nested one.

    Example:
        >>> row_bytes([pa.int64(), pa.int32(), pa.utf8()])
        36
    """
    return max(1, sum(map(_value_bytes, types)))


def _value_bytes(data_type: pa.DataType | None) -> int:
    if data_type is None or pa.types.is_nested(data_type):
        return _BYTES_OF_A_NESTED_VALUE
    try:
        return max(1, int(data_type.bit_width) // 8)
    except ValueError:
        return _BYTES_OF_A_TEXT


# Merges sorted streams into one sorted stream, holding one batch of each.
#
# What no later row of any stream can precede is given at once: of the streams' present batches the
# one that ends first sets the bound, and every row up to it is taken, sorted and given. Streams
# that lie one after the other are handed on as they are, without a comparison of their rows.
#
# DataFusion has such a merge, and its Python interface no way to say that a stream is sorted; and
# it would order NaN and -0.0 otherwise than Spark.


def merged(
    streams: Sequence[Iterator[pa.RecordBatch]], order: Sequence[OrderColumn]
) -> Iterator[pa.RecordBatch]:
    """Merge sorted streams.

    Args:
        streams: Batches of one schema, the rows of each stream in the order.
        order: Columns of the schema.

    Yields:
        All rows in the order; among equal rows any order.

    Example:
        >>> from pennon.spec.write_properties import OrderColumn
        >>> streams = [iter([pa.record_batch({"a": values})]) for values in ([1, 4], [2, 3], [9])]
        >>> [batch["a"].to_pylist() for batch in merged(streams, [OrderColumn("a")])]
        [[1, 2, 3], [4], [9]]
    """
    if len(streams) == 1:
        yield from streams[0]
        return
    heads = [head for stream in streams if (head := _Head(stream, order)).advance()]
    while len(heads) > 1:
        bound = min(head.last for head in heads)
        ready = [part for head in heads if (part := head.take_up_to(bound)) is not None]
        yield _sorted(ready)
        heads = [head for head in heads if head.is_there]
    for head in heads:
        yield from head.rest()


class _Head:
    """The present batch of a stream, from its first row that was not given."""

    def __init__(self, stream: Iterator[pa.RecordBatch], order: Sequence[OrderColumn]) -> None:
        self._stream = stream
        self._order = order
        self._batch: pa.RecordBatch | None = None
        self._keys: tuple[KeyColumn, ...] = ()
        self._first = 0
        self.last = _Row((), ())

    @property
    def is_there(self) -> bool:
        return self._batch is not None

    def advance(self) -> bool:
        """Go to the next batch; False at the end."""
        self._batch = next((batch for batch in self._stream if batch.num_rows), None)
        self._first = 0
        if self._batch is not None:
            columns = [self._batch.column(column.name) for column in self._order]
            self._keys = key_columns(columns, self._order)
            self.last = _Row.at(self._keys, self._batch.num_rows - 1)
        return self._batch is not None

    def take_up_to(self, bound: _Row) -> _Part | None:
        """Take the rows that do not come after the bound, and go on where the batch ends."""
        if self._batch is None:
            return None
        first, num_rows = self._first, self._batch.num_rows
        end = bound.end(self._keys, first, num_rows) if bound < self.last else num_rows
        if first == end:
            return None
        keys = tuple(key.rows(first, end) for key in self._keys)
        part = _Part(self._batch.slice(first, end - first), keys)
        self._first = end
        if end == num_rows:
            self.advance()
        return part

    def rest(self) -> Iterator[pa.RecordBatch]:
        if self._batch is not None:
            yield self._batch.slice(self._first)
        yield from self._stream


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Rows of one stream that can be given."""

    rows: pa.RecordBatch
    keys: tuple[KeyColumn, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """The keys of one row, compared one after the other."""

    keys: tuple[Any, ...]
    descending: tuple[bool, ...]

    @classmethod
    def at(cls, keys: Sequence[KeyColumn], row: int) -> _Row:
        return cls(
            tuple(key.values[row].as_py() for key in keys), tuple(key.is_descending for key in keys)
        )

    def __lt__(self, other: _Row) -> bool:
        for mine, theirs, is_descending in zip(self.keys, other.keys, self.descending, strict=True):
            if mine != theirs:
                return bool(theirs < mine if is_descending else mine < theirs)
        return False

    def end(self, keys: Sequence[KeyColumn], first: int, end: int) -> int:
        """Find the first of some sorted rows that comes after this one, or their end."""
        for mine, key in zip(self.keys, keys, strict=True):
            if first == end:
                break
            first, end = _equal_range(key, mine, first, end)
        return end


def _equal_range(key: KeyColumn, value: Any, first: int, end: int) -> tuple[int, int]:
    """Find the rows that have a value, among rows that are sorted by the key."""
    numbers = key.numbers
    if numbers is not None:
        among = numbers[first:end]
        left, right = among.searchsorted(value, "left"), among.searchsorted(value, "right")
        return first + int(left), first + int(right)

    def is_behind(row: int, *, or_there: bool) -> bool:
        key_value = key.values[row].as_py()
        if key_value == value:
            return or_there
        return bool(key_value < value if key.is_descending else value < key_value)

    rows = range(first, end)
    left = bisect_left(rows, 1, key=lambda row: is_behind(row, or_there=True))
    right = bisect_left(rows, 1, key=lambda row: is_behind(row, or_there=False))
    return first + left, first + right


def _sorted(parts: Sequence[_Part]) -> pa.RecordBatch:
    """Put rows that are sorted part by part in order."""
    if len(parts) == 1:
        return parts[0].rows
    columns: list[KeyColumn] = []
    for at, first in enumerate(parts[0].keys):
        joined = pa.concat_arrays([part.keys[at].values for part in parts])
        if pa.types.is_int8(joined.type) and not pc.any(joined.cast(pa.bool_())).as_py():
            continue  # no NULL: nothing to compare
        columns.append(KeyColumn(joined, first.is_descending))
    return pa.concat_batches([part.rows for part in parts]).take(_sort_indices(columns))


def _sort_indices(keys: Sequence[KeyColumn]) -> pa.Array:
    numbers = [key.numbers for key in keys]
    if len(numbers) == 1 and numbers[0] is not None:
        # Timsort finds the parts, which are sorted, and merges them.
        return pa.array(numbers[0].argsort(kind="stable"))
    names = [str(at) for at in range(len(keys))]
    directions = ["descending" if key.is_descending else "ascending" for key in keys]
    table = pa.table([key.values for key in keys], names=names)
    return pc.sort_indices(table, sort_keys=list(zip(names, directions, strict=True)))


AT_ONCE: Final = 8
"""So many leaves of a disk are read at a time."""
_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


def at_once(
    work: Callable[[_Item], _Done], items: Sequence[_Item], most: int = AT_ONCE
) -> Generator[_Done]:
    """Do some work for each item, several at a time: some to begin with, and more as they go.

    Args:
        work: Called by other threads; it must not call this function.
        items: What it is called with. Those that are far ahead of what was yielded wait.
        most: How many at a time.

    Yields:
        What the work returned, in the order of the items.

    Raises:
        Exception: What the work raised, at the item's turn; the items after it are given up.

    Example:
        >>> list(at_once(abs, [-2, 1, -3]))
        [2, 1, 3]
    """
    if len(items) < 2:  # noqa: PLR2004 - one item needs no thread
        yield from map(work, items)
        return
    left, threads = iter(items), _threads(most)
    pending: deque[Future[_Done]] = deque()
    try:
        pending.extend(threads.submit(work, item) for item in islice(left, max(AT_ONCE, most // 2)))
        while pending:
            done = pending.popleft().result()
            following = 1 + (len(pending) + 1 < most)
            pending.extend(threads.submit(work, item) for item in islice(left, following))
            yield done
    finally:
        for future in pending:
            future.cancel()


@cache
def _threads(most: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(most, thread_name_prefix="leaf")
