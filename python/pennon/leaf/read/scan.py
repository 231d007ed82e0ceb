"""Scans one leaf as a stream of Arrow batches of exactly the read schema.

NULL rule: a column that the leaf lacks reads as NULL. Nothing is collected: the reader pulls,
Lance decodes a few batches ahead, within a bound in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.leaf.dataset import leaf_failure
from pennon.leaf.read.keyed_rows import keyed_column, keyed_rows
from pennon.leaf.read.late_columns import late_columns
from pennon.leaf.read.leaf_view import LeafViews, leaf_name
from pennon.leaf.read.metadata_columns import ROW_ID, is_metadata_column, metadata_array
from pennon.leaf.schema.array_conversion import convert_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import lance
    from lance.lance import ScanStatistics

    from pennon.leaf.read.row_keys import RowKeys
    from pennon.leaf.schema.reconciliation import FieldMatch

__all__ = ["DEFAULT_BATCH_SIZE", "scan_leaf", "scan_view"]

DEFAULT_BATCH_SIZE = 32_768
_BATCH_BYTES = 8 << 20
_IO_BUFFER_BYTES = 16 << 20
_LEAST_BYTES = 1 << 20
_BATCH_READAHEAD = 2
_FRAGMENT_READAHEAD = 2
_FEW_ROWS = 1024


def scan_leaf(
    dataset: lance.LanceDataset,
    schema: pa.Schema,
    filter_sql: str | None = None,
    *,
    namespace_schema: pa.Schema | None = None,
    fragments: tuple[int, int] | None = None,
    batch_size: int = DEFAULT_BATCH_SIZE,
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a leaf in the requested schema.

    Args:
        dataset: The leaf at the version to read.
        schema: Columns of the namespace schema, with their ``lance:field_id``; nested fields may
            be left out. Without any column the batches still count the rows.
        filter_sql: A condition in the DataFusion dialect and in the namespace's names.
        namespace_schema: The whole namespace schema; needed where ``schema`` is a part of it and
            the leaf may be another writer's, or the filter names columns that ``schema`` has not.
        fragments: First fragment and the one after the last, by position; None for all.
        batch_size: Most rows of a batch; wide rows come in smaller batches.

    Yields:
        Batches of ``stream_schema(schema)``: no large offsets, views, dictionaries or
        fixed-size lists.

    Raises:
        LeafTypeMismatch: A stored type does not promote to the requested one.
        LeafMissing: The leaf's files are gone.

    Example:
        >>> import lance, tempfile
        >>> leaf = lance.write_dataset(pa.table({"a": [1, 2]}), tempfile.mkdtemp() + "/leaf")
        >>> columns = pa.schema([pa.field("a", pa.int64(), metadata={"lance:field_id": "0"})])
        >>> [batch.num_rows for batch in scan_leaf(leaf, columns, "`a` > 1")]
        [1]

    Spec: "Schema", "Partition Pruning".
    """
    views = LeafViews(schema, namespace_schema)
    return scan_view(dataset, views, filter_sql, fragments=fragments, batch_size=batch_size)


def scan_view(
    dataset: lance.LanceDataset,
    views: LeafViews,
    filter_sql: str | None = None,
    *,
    fragments: tuple[int, int] | None = None,
    batch_size: int = DEFAULT_BATCH_SIZE,
    num_at_once: int = 1,
    location: str | None = None,
    constants: Mapping[str, object] | None = None,
    counted: Callable[[int, int], None] | None = None,
    keys: RowKeys | None = None,
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of one of several leaves that are read in the same schema.

    Args:
        dataset: The leaf at the version to read.
        views: What is requested of it.
        filter_sql: As of :func:`scan_leaf`, and so are all others.
        fragments: First fragment and the one after the last, by position; None for all.
        batch_size: Most rows of a batch.
        num_at_once: How many scans are read side by side: they share the bounds in bytes.
        location: The leaf's location in its table, for the metadata column of it.
        constants: What all its rows have in metadata columns that the manifest knows.
        counted: Told before the end how many rows were looked at, and the bytes read for them.
        keys: What rows are requested, all of which come; None for all.

    Raises:
        LeafTypeMismatch: A stored type does not promote to the requested one.
        LeafMissing: The leaf's files are gone.
    """
    view, leaf = views.of(dataset, filter_sql), leaf_name(dataset)
    if view.is_empty:
        return iter(())
    leaf_rows = _LeafRows(dataset, view.matches, views.schema, leaf, location or leaf, constants)
    names = view.names
    chosen = None if fragments is None else dataset.get_fragments()[slice(*fragments)]
    if view.condition is None and not names:
        return _counted(_num_rows(dataset, chosen), leaf_rows, batch_size)
    is_whole = view.condition is None and chosen is None
    if is_whole and dataset.count_rows() <= _FEW_ROWS and view.is_flat:
        rows = _converted(partial(_all_rows, dataset, names, counted), leaf_rows)
        return rows if keys is None else keys.matching(rows)
    statistics: list[ScanStatistics] = []
    scanner = partial(
        dataset.scanner,
        filter=view.condition,
        fragments=chosen,
        batch_size=batch_size,
        batch_size_bytes=max(_BATCH_BYTES // num_at_once, _LEAST_BYTES),
        batch_readahead=_BATCH_READAHEAD,
        fragment_readahead=_FRAGMENT_READAHEAD,
        io_buffer_size=max(_IO_BUFFER_BYTES // num_at_once, _LEAST_BYTES),
        scan_stats_callback=None if counted is None else statistics.append,
    )

    lookup = None if keys is None else keyed_column(dataset, view, keys)

    def read() -> Iterator[pa.RecordBatch]:
        if keys is not None and lookup is not None:
            matching = keys.matching(scanner(columns=[lookup, ROW_ID.name]).to_batches(), lookup)
            rows = keyed_rows(matching, dataset, names, _num_rows(dataset, chosen))
            if rows is not None:
                return rows
            statistics.clear()
        late = late_columns(dataset, view)
        # Among others * means all columns to Lance, and in an expression the one of that name.
        columns = {name: f"`{name}`" for name in names} if "*" in names else names
        every = iter(scanner(columns=columns, late_materialization=late).to_batches())
        return every if keys is None or lookup is None else keys.matching(every, lookup)

    rows = _converted(read, leaf_rows)
    if keys is not None and lookup is None:
        rows = keys.matching(rows)
    return rows if counted is None else _counting(rows, dataset, chosen, statistics, counted)


def _counting(
    batches: Iterator[pa.RecordBatch],
    dataset: lance.LanceDataset,
    chosen: Sequence[lance.LanceFragment] | None,
    statistics: Sequence[ScanStatistics],
    counted: Callable[[int, int], None],
) -> Iterator[pa.RecordBatch]:
    """Tell at the end what Lance has counted, which counts rows that it fetches late twice."""
    yield from batches
    num_rows = _num_rows(dataset, chosen)
    for scan in statistics:
        counted(min(scan.all_counts.get("rows_scanned", 0), num_rows), scan.bytes_read)


def _num_rows(dataset: lance.LanceDataset, chosen: Sequence[lance.LanceFragment] | None) -> int:
    if chosen is None:
        return dataset.count_rows()
    return sum(fragment.count_rows() for fragment in chosen)


def _all_rows(
    dataset: lance.LanceDataset, names: list[str], counted: Callable[[int, int], None] | None
) -> Iterator[pa.RecordBatch]:
    """Read all of a few rows by their numbers: of a scan, most of the time is its plan."""
    fragments = dataset.get_fragments()
    if len(fragments) == 1 and fragments[0].metadata.deletion_file is None:
        # The dataset would find out of each row which fragment has it, for a third of the time.
        rows = fragments[0].take(range(dataset.count_rows()), names)
    else:
        rows = dataset.take(list(range(dataset.count_rows())), names)
    if counted is not None:
        counted(rows.num_rows, rows.nbytes)
    batches: list[pa.RecordBatch] = rows.to_batches()
    return iter(batches)


@dataclass(frozen=True, slots=True)
class _LeafRows:
    """Makes the requested columns of what Lance reads of a leaf."""

    dataset: lance.LanceDataset
    matches: Sequence[FieldMatch]
    expected: pa.Schema
    leaf: str
    location: str
    constants: Mapping[str, object] | None

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [self._array(match, batch) for match in self.matches]
        return convert_batch(arrays, self.matches, self.expected, batch.num_rows, self.leaf)

    def _array(self, match: FieldMatch, batch: pa.RecordBatch) -> pa.Array | None:
        if is_metadata_column(match.expected):
            return metadata_array(
                match.expected, batch, self.dataset, self.location, self.constants
            )
        return None if match.stored is None else batch.column(match.stored.name)


def _converted(
    read: Callable[[], Iterator[pa.RecordBatch]], leaf_rows: _LeafRows
) -> Iterator[pa.RecordBatch]:
    try:
        for batch in read():
            if batch.num_rows:  # a batch without rows may come without its columns
                yield leaf_rows.convert(batch)
    except (OSError, pa.ArrowInvalid) as error:
        failure = leaf_failure(leaf_rows.dataset, error)
        if failure is None:
            raise
        raise failure from error


def _counted(left: int, leaf_rows: _LeafRows, batch_size: int) -> Iterator[pa.RecordBatch]:
    """Batches of no stored column: the row count stands in the leaf's own metadata."""
    while left > 0:
        num_rows = min(left, batch_size)
        empty = pa.StructArray.from_buffers(pa.struct([]), num_rows, [None])
        yield leaf_rows.convert(pa.RecordBatch.from_struct_array(empty))
        left -= num_rows
