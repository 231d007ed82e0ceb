"""Reads the rows of one leaf as a stream of Arrow batches of exactly the read schema.

NULL rule: a column that the leaf lacks reads as NULL. Nothing is collected: the reader pulls,
Lance decodes a few batches ahead, within a bound in bytes.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import Cache, storage_identity
from pennon.leaf.dataset import forget_opened, leaf_failure, leaf_key
from pennon.leaf.read.leaf_view import LeafViews, leaf_name
from pennon.leaf.read.metadata_columns import (
    ROW_ADDRESS,
    ROW_ID,
    is_metadata_column,
    metadata_array,
)
from pennon.leaf.schema.array_conversion import convert_batch
from pennon.manifest.dataset.select import rows_by_id
from pennon.predicate.dialect import DataFusion, read_condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lance.lance import ScanStatistics
    from numpy.typing import NDArray

    from pennon.caching import TableKey
    from pennon.leaf.read.leaf_view import LeafView
    from pennon.leaf.read.row_keys import RowKeys
    from pennon.leaf.schema.reconciliation import FieldMatch

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "LEAF_BYTES",
    "KeptRows",
    "LeafSource",
    "forget_leaves",
    "late_columns",
]

# Which columns of a leaf are read late: for the rows that satisfy a filter, and not for all.
#
# On a local disk Lance fetches everything wider than eight bytes late. Of decimals that takes twice
# the time even where one row of 200 satisfies the filter, and four times where most do; of texts it
# is the faster way up to one row of eight.

_EARLY_BYTES: Final = 64


def late_columns(dataset: lance.LanceDataset, view: LeafView) -> list[str] | bool | None:
    """Choose the columns that are read late.

    Args:
        dataset: The leaf.
        view: What is requested of it.

    Returns:
        Their names; False for none; None where Lance's own choice is as good: on remote storage,
        and of rows that are wide.
    """
    # pylance 14 cannot fetch late a nested column whose inner fields have metadata
    if view.states_nested_ids:
        return False
    if "://" in str(dataset.uri):
        return None
    stored = [match.stored for match in view.matches if match.stored is not None]
    widths = {field.name: _width(field.arrow.type) for field in stored}
    if sum(width or 0 for width in widths.values()) > _EARLY_BYTES:
        return None
    return [name for name, width in widths.items() if width is None] or False


def _width(stored: pa.DataType) -> int | None:
    """Bytes of a value; None where they differ."""
    try:
        return -(-int(stored.bit_width) // 8)
    except ValueError:
        return None


# The rows of the smallest leaves, kept in memory from query to query.
#
# Lance takes a quarter of a millisecond for a leaf, however few rows it has: of a query over
# hundreds of such leaves that is most of the worker's time. A leaf at a version never changes. What
# was read of it is kept, column by column, in a small part of the memory that queries may take.

_MOST_BYTES: Final = 64 << 20
LEAF_BYTES: Final = 256 << 10
"""The most bytes that a leaf has of which rows are kept."""
# What a leaf and each of its columns take beside the buffers.
_LEAF_OVERHEAD: Final = 1 << 10
_COLUMN_OVERHEAD: Final = 1 << 8


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a leaf, each by what is requested of it."""

    num_rows: int
    arrays: Mapping[bytes, pa.Array]


def _weight(columns: _Columns) -> int:
    """Give the bytes that columns keep alive: of a slice, all that it was cut from."""
    return _LEAF_OVERHEAD + sum(
        _COLUMN_OVERHEAD + array.get_total_buffer_size() for array in columns.arrays.values()
    )


# Rows come by the thousand leaves: they leave room for what queries are planned with.
_kept: Final[Cache[_Columns]] = Cache(
    "rows of small leaves", max_bytes=_MOST_BYTES, weigh=_weight, share=0.25
)


class KeptRows:
    """The kept rows of leaves that are read in one way. Threads may share it.

    Args:
        root: Path or URL of the partitioned namespace.
        views: What is requested of the leaves: columns of the table's own, no metadata columns.
        namespace_schema: All columns of the namespace.
        storage_options: As the leaves are opened with.
        table: The table's identity, as the leaves are opened with.
    """

    def __init__(
        self,
        root: str,
        views: LeafViews,
        namespace_schema: pa.Schema,
        storage_options: Mapping[str, str] | None = None,
        table: str = "",
    ) -> None:
        self._root = root
        self._storage = storage_identity(storage_options)
        self._table = table
        self._schema = views.schema.remove_metadata()
        self._columns = [pa.schema([column]).serialize().to_pybytes() for column in views.schema]
        # Beside all columns of the namespace it is certain which of a leaf's are requested.
        known = namespace_schema.serialize().to_pybytes()
        self._namespace_schema = hashlib.blake2b(known, digest_size=16).hexdigest()

    def find(
        self, location: str, version: int | None, fragments: tuple[int, int] | None = None
    ) -> pa.RecordBatch | None:
        """Give the rows of a leaf, of which none is left out by a filter; None where not kept.

        Args:
            location: The leaf's ``location`` in the manifest.
            version: The version that is read; of an unstated one nothing is kept.
            fragments: First fragment and the one after the last, by position; None for all.
        """
        key = self._key(location, version, fragments)
        kept = None if key is None else _kept.peek(key)
        if kept is None or not all(column in kept.arrays for column in self._columns):
            return None
        arrays = [kept.arrays[column] for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def keep(
        self,
        location: str,
        version: int | None,
        fragments: tuple[int, int] | None,
        batches: Sequence[pa.RecordBatch],
    ) -> None:
        """Keep the rows of a small leaf that were read, for as long as there is room for them.

        Args:
            location: The leaf's ``location`` in the manifest.
            version: The version that was read.
            fragments: First fragment and the one after the last, by position; None for all.
            batches: All rows of these, in the order of the leaf.
        """
        key = self._key(location, version, fragments)
        if key is None or not batches or sum(batch.nbytes for batch in batches) > LEAF_BYTES:
            return
        rows = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        others = _kept.peek(key)
        arrays = dict(zip(self._columns, rows.columns, strict=True))
        if others is not None and others.num_rows == rows.num_rows:
            arrays = {**others.arrays, **arrays}
        _kept.keep(key, _Columns(rows.num_rows, arrays))

    def _key(
        self, location: str, version: int | None, fragments: tuple[int, int] | None
    ) -> TableKey | None:
        return leaf_key(
            self._root,
            location,
            version,
            storage=self._storage,
            table=self._table,
            detail=f"{self._namespace_schema} {fragments}",
        )


def forget_leaves() -> None:
    """Drop what is kept of leaves, for example of a dropped table: it only holds memory."""
    _kept.forget(lambda _: True)
    forget_opened()


# Fetches the rows of a large leaf that have a key: the key's column first, the others of few rows.
#
# Of a leaf where more than a few rows have one, the rest is not fetched row by row, but all is
# read.

_LEAST_ROWS: Final = 1 << 15
_ROWS_OF_ONE: Final = 16
_FETCHED_ROWS: Final = 1 << 14


def keyed_column(dataset: lance.LanceDataset, view: LeafView, keys: RowKeys) -> str | None:
    """Name the leaf's own column that keys are looked up in before the others are read.

    Args:
        dataset: The leaf.
        view: What is requested of it.
        keys: The keys.

    Returns:
        None where the leaf is small, has the column in another type, or has columns that are not
        fetched row by row.
    """
    if dataset.count_rows() < _LEAST_ROWS or not view.is_of_plain_columns:
        return None
    for match in view.matches:
        stored = match.stored
        if match.expected.name == keys.column and stored is not None:
            return stored.name if stored.arrow.type == match.expected.type else None
    return None


def keyed_rows(
    matching: Iterator[pa.RecordBatch],
    dataset: lance.LanceDataset,
    names: Sequence[str],
    num_rows: int,
) -> Iterator[pa.RecordBatch] | None:
    """Fetch the rows that were found to have a key.

    Args:
        matching: Their ids, of a scan that is let go of when they are too many.
        dataset: The leaf at the version to read.
        names: The columns to fetch, Lance's own among them.
        num_rows: Of how many rows they were found.

    Returns:
        None where they are more than a few.
    """
    held: list[pa.Array] = []
    num_matching = 0
    for batch in matching:
        held.append(batch.column(ROW_ID.name))
        num_matching += batch.num_rows
        if num_matching * _ROWS_OF_ONE > num_rows:
            return None
    ids = list(chain.from_iterable(array.to_pylist() for array in held))
    return _fetched(dataset, list(names), ids)


def _fetched(
    dataset: lance.LanceDataset, names: list[str], ids: list[int]
) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(ids), _FETCHED_ROWS):
        rows = rows_by_id(dataset, ids[first : first + _FETCHED_ROWS], names)
        yield from rows.combine_chunks().to_batches()


DEFAULT_BATCH_SIZE = 32_768
_BATCH_BYTES = 8 << 20
_IO_BUFFER_BYTES = 16 << 20
_LEAST_BYTES = 1 << 20
_BATCH_READAHEAD = 2
_FRAGMENT_READAHEAD = 2
_FEW_ROWS = 1024
_EVERY_ROW = (None, None, None, None)


@dataclass(frozen=True, slots=True)
class LeafSource:
    """A leaf at a version: what reads rows of it, and the only thing that does.

    Args:
        dataset: The leaf at the version to read.
        location: Its location in its table, for the metadata column of it; None for its name.
        constants: What all its rows have in metadata columns that the manifest knows.

    Example:
        >>> import lance, tempfile
        >>> leaf = lance.write_dataset(pa.table({"a": [1, 2]}), tempfile.mkdtemp() + "/leaf")
        >>> columns = pa.schema([pa.field("a", pa.int64(), metadata={"lance:field_id": "0"})])
        >>> [batch.num_rows for batch in LeafSource(leaf).batches(columns, "`a` > 1")]
        [1]
    """

    dataset: lance.LanceDataset
    location: str | None = None
    constants: Mapping[str, object] | None = None

    def batches(
        self,
        columns: LeafViews | pa.Schema,
        filter_sql: str | None = None,
        *,
        keys: RowKeys | None = None,
        limit: int | None = None,
        fragments: tuple[int, int] | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        num_at_once: int = 1,
        counted: Callable[[int, int], None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream rows in the columns of the table.

        Args:
            columns: What is requested of this leaf and of others: a part of the columns, and a
                filter that names other ones, as the views beside all of them. Without any column
                the batches still count the rows.
            filter_sql: A condition in the DataFusion dialect and in the table's names.
            keys: What rows are requested, all of which come; None for all.
            limit: Most rows that come, where no keys are requested; None for all.
            fragments: First fragment and the one after the last, by position; None for all.
            batch_size: Most rows of a batch; wide rows come in smaller batches.
            num_at_once: How many scans are read side by side: they share the bounds in bytes.
            counted: Told before the end how many rows were looked at, and the bytes read for them.

        Yields:
            Batches of ``stream_schema``: no large offsets, views, dictionaries or fixed-size lists.

        Raises:
            LeafTypeMismatch: A stored type does not promote to the requested one.
            LeafMissing: The leaf's files are gone.
        """
        dataset = self.dataset
        views = columns if isinstance(columns, LeafViews) else LeafViews(columns)
        view = views.of(dataset, filter_sql)
        if view.is_empty:
            return iter(())
        filtered, schema = filter_sql if view.is_filtered_here else None, views.schema
        if filtered is not None:
            views = views.with_filtered(filtered)
            view = views.of(dataset)
        leaf_rows, names = _LeafRows(self, view.matches, views.schema), view.names
        if view.condition is None and not names and not view.places:
            num_rows = self.num_rows(fragments)
            num_rows = num_rows if limit is None else min(num_rows, limit)
            return _counted(num_rows, leaf_rows, batch_size)
        is_whole = (view.condition, fragments, limit, filtered) == _EVERY_ROW
        if is_whole and dataset.count_rows() <= _FEW_ROWS and view.is_flat:
            rows = _converted(partial(_all_rows, dataset, names, counted), leaf_rows)
            return rows if keys is None else keys.matching(rows)
        statistics: list[ScanStatistics] = []
        scanner = partial(
            self._scanner,
            num_at_once,
            filter=view.condition,
            limit=None if filtered is not None else limit,
            fragments=None if fragments is None else dataset.get_fragments()[slice(*fragments)],
            batch_size=batch_size,
            scan_stats_callback=None if counted is None else statistics.append,
        )
        lookup = None if keys is None or view.places else keyed_column(dataset, view, keys)

        def read() -> Iterator[pa.RecordBatch]:
            if keys is not None and lookup is not None:
                matching = keys.matching(
                    scanner(columns=[lookup, ROW_ID.name]).to_batches(), lookup
                )
                rows = keyed_rows(matching, dataset, names, self.num_rows(fragments))
                if rows is not None:
                    return rows
                statistics.clear()
            every = _every_row(scanner, dataset, view)
            return every if keys is None or lookup is None else keys.matching(every, lookup)

        rows = _converted(read, leaf_rows)
        if keys is not None and lookup is None:
            rows = keys.matching(rows)
        if counted is not None:
            rows = _counting(rows, partial(self.num_rows, fragments), statistics, counted)
        return rows if filtered is None else _filtered(rows, filtered, schema, limit)

    def _scanner(self, num_at_once: int, **options: Any) -> lance.LanceScanner:
        return self.dataset.scanner(
            batch_size_bytes=max(_BATCH_BYTES // num_at_once, _LEAST_BYTES),
            batch_readahead=_BATCH_READAHEAD,
            fragment_readahead=_FRAGMENT_READAHEAD,
            io_buffer_size=max(_IO_BUFFER_BYTES // num_at_once, _LEAST_BYTES),
            **options,
        )

    def nearest(
        self, view: LeafView, nearest: Mapping[str, object], columns: Sequence[str]
    ) -> pa.Table:
        """Have Lance find the rows nearest to vectors among those that pass the view's filter.

        Args:
            view: The leaf's own form of the filter.
            nearest: What Lance's scanner takes under this name.
            columns: Beside the ids of the rows: ``_distance``, columns of the leaf.
        """
        return self.dataset.scanner(
            columns=list(columns),
            nearest=dict(nearest),
            filter=view.condition,
            prefilter=True,
            with_row_id=True,
            disable_scoring_autoprojection=True,
        ).to_table()

    def take_rows(self, views: LeafViews, ids: Sequence[int]) -> pa.Table:
        """Read single rows in the columns of the table.

        Args:
            views: What is requested of this leaf and of others.
            ids: Lance's ids of the rows, in ascending order.

        Returns:
            The rows in the order of their ids.

        Raises:
            LeafMissing: The leaf's files are gone.
        """
        view = views.of(self.dataset)

        def read() -> Iterator[pa.RecordBatch]:
            if not view.names:
                empty = pa.StructArray.from_buffers(pa.struct([]), len(ids), [None])
                return iter([pa.RecordBatch.from_struct_array(empty)])
            if not (view.states_nested_ids or view.has_blobs or view.places):
                rows = rows_by_id(self.dataset, ids, view.names)
                return iter(rows.combine_chunks().to_batches())
            # As of late columns: what is nested is read, and not fetched row by row.
            chosen = exp.column(ROW_ID.name).isin(*ids).sql(dialect=DataFusion)
            return _every_row(partial(self.dataset.scanner, filter=chosen), self.dataset, view)

        rows = _converted(read, _LeafRows(self, view.matches, views.schema))
        return pa.Table.from_batches(rows, views.schema)

    def stored_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        fragments: Sequence[lance.LanceFragment] | None = None,
        limit: int | None = None,
        has_addresses: bool = False,
        has_deleted: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Stream rows as they are stored, in their order, for what copies or checks files.

        Args:
            columns: The leaf's own, by its own names; None for all.
            fragments: Of this leaf; None for all.
            limit: Most rows that come; None for all.
            has_addresses: Whether their addresses come, too, as the last column.
            has_deleted: Whether deleted rows come, too, and with all rows their ids.
        """
        scanner = self.dataset.scanner(
            columns=None if columns is None else list(columns),
            fragments=fragments,
            limit=limit,
            batch_size=DEFAULT_BATCH_SIZE if has_deleted else None,
            with_row_address=has_addresses,
            with_row_id=has_deleted,
            include_deleted_rows=has_deleted,
            blob_handling="all_binary",
        )
        yield from scanner.to_batches()

    def addresses(self, fragments: Sequence[lance.LanceFragment]) -> NDArray[np.int64]:
        """Give the addresses of the rows of fragments that are there, in order."""
        read = self.stored_batches([], fragments=fragments, has_addresses=True)
        parts = [batch.column(ROW_ADDRESS.name).to_numpy().astype(np.int64) for batch in read]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def num_rows(self, fragments: tuple[int, int] | None = None) -> int:
        """Give how many rows there are before any filter, of fragments by their positions."""
        if fragments is None:
            return self.dataset.count_rows()
        chosen = self.dataset.get_fragments()[slice(*fragments)]
        return sum(fragment.count_rows() for fragment in chosen)

    def count(self, condition: str | None, fragments: Sequence[int] | None = None) -> int:
        """Count the rows that satisfy a condition in the leaf's own names, of some fragments."""
        if fragments is None:
            return self.dataset.count_rows(condition)
        chosen = filter(None, map(self.dataset.get_fragment, fragments))
        return sum(fragment.count_rows(condition) for fragment in chosen)

    def table_provider(self) -> lance.FFILanceTableProvider:
        """Give the leaf as a table of DataFusion, with its own columns."""
        return lance.FFILanceTableProvider(self.dataset)


def _every_row(
    scanner: Callable[..., lance.LanceScanner], dataset: lance.LanceDataset, view: LeafView
) -> Iterator[pa.RecordBatch]:
    """Read the columns of a view, with the places of blobs where these are requested."""
    names = view.names or [ROW_ID.name]
    # Among others * means all columns to Lance, and in an expression the one of that name.
    columns = {name: f"`{name}`" for name in names} if "*" in names else names
    rows = scanner(
        columns=columns,
        late_materialization=late_columns(dataset, view),
        blob_handling="all_binary" if view.has_blobs else None,
    ).to_batches()
    if not view.places:
        return iter(rows)
    blobs = list(dict.fromkeys(blob for blob, _ in view.places.values()))
    # Of one scan blobs are either bytes or places.
    places = scanner(columns=blobs, scan_stats_callback=None).to_batches()
    return _beside(iter(rows), iter(places), view.places)


def _beside(
    batches: Iterator[pa.RecordBatch],
    others: Iterator[pa.RecordBatch],
    places: Mapping[str, tuple[str, str]],
) -> Iterator[pa.RecordBatch]:
    """Give the rows of a scan with the places of their blobs, as another scan tells them."""
    left = pa.Table.from_batches([], pa.schema([]))
    for batch in batches:
        while left.num_rows < batch.num_rows:
            more = pa.Table.from_batches([next(others)])
            left = pa.concat_tables([left, more]) if left.num_rows else more
        if not batch.num_rows:
            continue
        own, left = left.slice(0, batch.num_rows).combine_chunks(), left.slice(batch.num_rows)
        columns = [
            pc.struct_field(own[blob].combine_chunks(), part) for blob, part in places.values()
        ]
        names = [*batch.schema.names, *places]
        yield pa.RecordBatch.from_arrays([*batch.columns, *columns], names=names)


def _filtered(
    batches: Iterator[pa.RecordBatch], filter_sql: str, schema: pa.Schema, limit: int | None
) -> Iterator[pa.RecordBatch]:
    """Filter rows that have the filter's columns, and give the requested columns of them."""
    from datafusion import SessionContext  # noqa: PLC0415 - a quarter of a second

    condition = read_condition(filter_sql)
    query = exp.select(exp.alias_(condition, "is_kept")).from_("rows").sql(dialect=DataFusion)
    left = sys.maxsize if limit is None else limit
    for batch in batches:
        context = SessionContext()
        plain = batch.schema.remove_metadata()
        rows = pa.RecordBatch.from_arrays(batch.columns, schema=plain)
        context.register_record_batches("rows", [[rows]])
        kept = context.sql(query).to_arrow_table().column(0).combine_chunks()
        filtered = batch.filter(kept).slice(0, left)
        left -= filtered.num_rows
        if filtered.num_rows:
            yield filtered.select(range(len(schema)))
        if not left:
            return


def _counting(
    batches: Iterator[pa.RecordBatch],
    num_rows: Callable[[], int],
    statistics: Sequence[ScanStatistics],
    counted: Callable[[int, int], None],
) -> Iterator[pa.RecordBatch]:
    """Tell at the end what Lance has counted, which counts rows that it fetches late twice."""
    yield from batches
    for scan in statistics:
        counted(min(scan.all_counts.get("rows_scanned", 0), num_rows()), scan.bytes_read)


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

    source: LeafSource
    matches: Sequence[FieldMatch]
    expected: pa.Schema

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [self._array(match, batch) for match in self.matches]
        leaf = leaf_name(self.source.dataset)
        return convert_batch(arrays, self.matches, self.expected, batch.num_rows, leaf)

    def _array(self, match: FieldMatch, batch: pa.RecordBatch) -> pa.Array | None:
        if is_metadata_column(match.expected):
            source = self.source
            location = source.location or leaf_name(source.dataset)
            return metadata_array(match.expected, batch, source.dataset, location, source.constants)
        return None if match.stored is None else batch.column(match.stored.name)


def _converted(
    read: Callable[[], Iterator[pa.RecordBatch]], leaf_rows: _LeafRows
) -> Iterator[pa.RecordBatch]:
    try:
        for batch in read():
            if batch.num_rows:  # a batch without rows may come without its columns
                yield leaf_rows.convert(batch)
    except (OSError, pa.ArrowInvalid) as error:
        failure = leaf_failure(leaf_rows.source.dataset, error)
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
