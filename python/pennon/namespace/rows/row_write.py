"""Stages and commits rows from this process; after an error none of their files is left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pennon.catalog.columns.projected_columns import valid_texts, with_defaults, within_lengths
from pennon.errors import RowsNotUnderstood, ValuesNotUnderstood
from pennon.maintenance.background import keep_behind, written_leaves
from pennon.manifest.dataset.storage import storage_failure
from pennon.manifest.format.rows import CommitIdentity
from pennon.namespace.rows.row_scan import Scan
from pennon.notebook import rows_shown
from pennon.planning.binding.bound_predicate import check_evaluable
from pennon.planning.scan_plan import bound_condition
from pennon.predicate.parse import parse_predicate
from pennon.spec.schema import NamespaceSchema, children_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from pennon.catalog.configured_catalog import WriteMode
    from pennon.catalog.tables.loaded_table import Table
    from pennon.leaf.changes.deleted_rows import DeletedRows
    from pennon.manifest import Snapshot

__all__ = ["batches_of", "check_condition", "table_of", "write_row_changes", "write_rows"]


# Refuses a condition on rows before anything is done by it.


def check_condition(snapshot: Snapshot, where: str, table: str) -> None:
    """Refuse a condition that Python does not compute, whether there are rows or not.

    Args:
        snapshot: The table.
        where: Spark SQL.
        table: What errors call it.

    Raises:
        PredicateNotEvaluable: As of ``check_evaluable``.
        PredicateSyntaxError: It is no expression.
        UnknownColumn: It names a column that the table does not have.
    """
    bound = bound_condition(snapshot, [parse_predicate(where)], time_zone="UTC")
    check_evaluable(bound, table)


# Makes columns of dicts of Python.
#
# Arrow infers the type of values, which tells of what does not fit a column; but it takes each dict
# for a struct. Where the column is a map, or has one below it, keys and values are inferred apart.


def table_of(rows: Sequence[Mapping[Any, object]], columns: NamespaceSchema | None) -> pa.Table:
    """Make columns of all keys; ``Table.from_pylist`` takes those of the first row alone.

    Args:
        rows: One dict for each row.
        columns: Those of the table that the rows are for; None where it is not known.

    Raises:
        ValuesNotUnderstood: The values of a key are of no one type.

    Example:
        >>> tags = pa.schema({"tags": pa.map_(pa.string(), pa.int64())})
        >>> rows = [{"tags": {"a": 1}}, {"tags": None}]
        >>> table_of(rows, NamespaceSchema.with_fresh_ids(tags))["tags"].to_pylist()
        [[('a', 1)], None]
    """
    arrays: dict[str, pa.Array] = {}
    for name in dict.fromkeys(chain.from_iterable(rows)):
        column = None if columns is None else columns.field_by_path([str(name)])
        values = [row.get(name) for row in rows]
        try:
            arrays[str(name)] = array_of(values, None if column is None else column.field.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise ValuesNotUnderstood(column=name, why=error) from error
    if not arrays:  # rows all the same: each column of theirs has its default, or is NULL
        nothing = pa.array([{}] * len(rows), pa.struct([]))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(nothing)])
    return pa.table(arrays)


def array_of(values: Sequence[Any], meant: pa.DataType | None) -> pa.Array:
    """Make an array of values of Python for a column of a type; None where it is not known.

    Raises:
        pa.ArrowException: The values are of no one type.
        TypeError: Likewise.
        ValueError: Likewise.
        OverflowError: A value fits no type.
    """
    if meant is None or not has_map(meant):
        return pa.array(values)
    if pa.types.is_struct(meant):
        return _structs(values, meant)
    if not pa.types.is_map(meant):
        below = list(chain.from_iterable(value for value in values if value is not None))
        return pa.ListArray.from_arrays(_offsets(values), array_of(below, meant.value_type))
    pairs = [
        (key, item)
        for value in values
        if value is not None
        for key, item in (value.items() if isinstance(value, Mapping) else value)
    ]
    keys = array_of([key for key, _ in pairs], meant.key_type)
    return pa.MapArray.from_arrays(
        _offsets(values), keys, array_of([item for _, item in pairs], meant.item_type)
    )


def _structs(values: Sequence[Any], meant: pa.DataType) -> pa.Array:
    present = [value for value in values if value is not None]
    if not all(isinstance(value, Mapping) for value in present):
        return pa.array(values)
    types = {child.name: child.type for child in meant}
    arrays = {
        name: array_of(
            [None if value is None else value.get(name) for value in values], types.get(name)
        )
        for name in dict.fromkeys(chain(*present))
    }
    if not arrays:
        return pa.array(values)
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(list(arrays.values()), list(arrays), mask=mask)


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Where each list or map begins; NULL for one that is NULL."""
    counts = (0 if value is None else len(value) for value in values)
    starts = list(accumulate(counts, initial=0))
    shown = [None if value is None else at for value, at in zip(values, starts, strict=False)]
    return pa.array([*shown, starts[-1]], pa.int32())


def has_map(data_type: pa.DataType) -> bool:
    """Tell whether values of a type have maps in them, which Arrow takes for structs or lists."""
    below = children_of(data_type)
    return pa.types.is_map(data_type) or any(has_map(child.type) for child in below)


# Makes columns of a data frame of pandas, whose maps are objects of Python.
#
# Arrow infers the type of objects as it does of dicts: a map that was read is a list of pairs,
# whose key and value have no type in common.


def table_of_frame(frame: pd.DataFrame, columns: NamespaceSchema | None) -> pa.Table:
    """Give the rows of a data frame without its index.

    Args:
        frame: The rows.
        columns: Those of the table that the rows are for; None where it is not known.

    Raises:
        ValuesNotUnderstood: The values of a column are of no one type.

    Example:
        >>> import pandas as pd
        >>> from pennon.spec.schema import NamespaceSchema
        >>> frame = pd.DataFrame({"id": [1, 2], "tags": [[("a", 1)], None]})
        >>> tags = pa.schema({"id": pa.int64(), "tags": pa.map_(pa.string(), pa.int64())})
        >>> table_of_frame(frame, NamespaceSchema.with_fresh_ids(tags))["tags"].to_pylist()
        [[('a', 1)], None]
    """
    maps = _maps(frame, columns)
    if not maps:
        return _inferred(frame)
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name, series in frame.items():
        meant = maps.get(str(name))
        if meant is None:
            arrays[str(name)] = _inferred(series.to_frame())[0]
            continue
        try:
            missing = series.isna()
            values = [None if gap else value for value, gap in zip(series, missing, strict=True)]
            arrays[str(name)] = array_of(values, meant)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise ValuesNotUnderstood(column=name, why=error) from error
    return pa.table(arrays)


def _maps(frame: pd.DataFrame, columns: NamespaceSchema | None) -> dict[str, pa.DataType]:
    """Give the types of the columns of objects in which the table has maps."""
    if columns is None or not frame.columns.is_unique:
        return {}
    meant = {}
    for name, kind in frame.dtypes.items():
        column = columns.field_by_path([str(name)]) if str(kind) == "object" else None
        if column is not None and has_map(column.field.type):
            meant[str(name)] = column.field.type
    return meant


def _inferred(frame: pd.DataFrame) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        if not frame.columns.is_unique:
            raise
        name = next((name for name in frame.columns if not _is_of_one_type(frame[[name]])), "rows")
        raise ValuesNotUnderstood(column=name, why=error) from error


def _is_of_one_type(frame: pd.DataFrame) -> bool:
    try:
        pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return True


# Converts what a caller passes as rows into batches: a table, a reader, batches, a data frame.
#
# Lance takes decimals at addresses that are multiples of 16 alone, and ends in a panic at others.
# Arrow streams, as ``DataFrame.toArrow()`` of Spark reads one, place them at multiples of 8.

_ALIGNMENT: Final = 16


def batches_of(rows: object, columns: NamespaceSchema | None = None) -> Iterator[pa.RecordBatch]:
    """Give rows as record batches, one at a time.

    Args:
        rows: A ``pyarrow`` table, record batch, reader or dataset; a data frame of pandas or
            Polars, a relation of DuckDB, or whatever else speaks Arrow's C stream interface; a
            list of dicts; or an iterable of tables and record batches.
        columns: Those of the table that the rows are for: where they are known, a dict within
            a row can be a map; it is a struct else.

    Raises:
        RowsNotUnderstood: It is none of these.
        ValuesNotUnderstood: Values of a key of the dicts, or of a column of pandas, are of no one
            type.

    Example:
        >>> [batch.num_rows for batch in batches_of([{"id": 1}, {"id": 2}])]
        [2]
    """
    return map(_aligned, _given(rows, columns))


def _given(rows: object, columns: NamespaceSchema | None) -> Iterator[pa.RecordBatch]:
    if isinstance(rows, pa.RecordBatch):
        return iter([rows])
    if isinstance(rows, pa.Table):
        return iter(rows.to_batches())
    if isinstance(rows, pa.RecordBatchReader):
        return iter(rows)
    if _is_pandas(rows):
        return iter(table_of_frame(rows, columns).to_batches())
    if isinstance(rows, Scan):  # whose failures come through a stream of Arrow as texts alone
        return rows.to_batches()
    if hasattr(rows, "__arrow_c_stream__"):
        return iter(pa.RecordBatchReader.from_stream(rows))
    if hasattr(rows, "to_batches"):  # a dataset or a scanner of pyarrow, a dataset of Lance
        return iter(rows.to_batches())
    if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise _refused(rows)
    if isinstance(rows, Sequence) and rows and all(isinstance(row, Mapping) for row in rows):
        return iter(table_of(rows, columns).to_batches())
    return _several(rows, columns)


def _several(parts: Iterable[object], columns: NamespaceSchema | None) -> Iterator[pa.RecordBatch]:
    for part in parts:
        if not isinstance(part, pa.RecordBatch | pa.Table):
            raise _refused(part)
        yield from _given(part, columns)


def _aligned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Copy a batch whose decimals are not at addresses that Lance takes."""
    if not any(map(_is_unaligned, batch.columns)):
        return batch
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    options = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
    return pa.ipc.open_stream(sink.getvalue(), options=options).read_next_batch()


def _is_unaligned(column: pa.Array) -> bool:
    return _has_decimals(column.type) and any(
        buffer is not None and buffer.address % _ALIGNMENT for buffer in column.buffers()
    )


def _has_decimals(data_type: pa.DataType) -> bool:
    return pa.types.is_decimal(data_type) or any(
        _has_decimals(data_type.field(at).type) for at in range(data_type.num_fields)
    )


def _is_pandas(rows: Any) -> bool:
    kind = type(rows)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _refused(rows: object) -> RowsNotUnderstood:
    kind = type(rows)
    return RowsNotUnderstood(type=f"{kind.__module__}.{kind.__qualname__}")


def write_rows(
    table: Table, mode: WriteMode, predicates: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> int:
    """Write rows in one commit; after an error no file of them is left.

    Args:
        table: The table at its newest version.
        mode: What happens to the rows that are there.
        predicates: What rows to be overwritten satisfy; none means every row.
        batches: Rows in the table's columns by name; those that are missing have their defaults.

    Returns:
        The new version.

    Raises:
        PennonError: The rows do not fit, a predicate is not understood outside of Spark, another
            commit changed what this one replaces, or the storage refused.
    """
    stored = table.stored
    for predicate in predicates:
        check_condition(stored.snapshot, predicate, stored.name)
    mode = stored.check_write(mode, predicates)

    def commit(staged: Sequence[str], identity: CommitIdentity) -> int:
        return stored.commit(mode, predicates, staged, identity)

    filled = with_defaults(batches, stored.snapshot.schema.arrow, table.name)
    return _staged_and_committed(table, filled, commit)


def write_row_changes(
    table: Table,
    mode: WriteMode,
    batches: Iterable[pa.RecordBatch],
    deleted: Sequence[DeletedRows],
    reads: Sequence[Sequence[str]],
) -> int:
    """Take single rows out and write others, in one commit; as ``write_rows``.

    Args:
        table: The table at its newest version.
        mode: The statement.
        batches: New rows.
        deleted: The rows that go; it is looked at when the last batch has come, so that who makes
            the batches may fill it.
        reads: The predicates of each scan that the change is made of.

    Returns:
        The new version; the same one where no row comes or goes.

    Raises:
        PennonError: The rows do not fit, another commit changed what was read, or the storage
            refused.
    """
    stored = table.stored

    def commit(staged: Sequence[str], identity: CommitIdentity) -> int:
        gone = [deletion.to_json() for deletion in deleted]
        return stored.change_rows(mode, gone, staged, reads, identity)

    return _staged_and_committed(table, batches, commit)


def _staged_and_committed(
    table: Table,
    batches: Iterable[pa.RecordBatch],
    commit: Callable[[Sequence[str], CommitIdentity], int],
) -> int:
    stored = table.stored
    location = stored.snapshot.location
    texts = valid_texts(batches, table.name)
    fitting = within_lengths(texts, stored.snapshot.schema.arrow, table.name)
    try:
        shown = rows_shown(fitting, f"write {table.name.rpartition('/')[2]}")
        staged = stored.stage_unordered(shown).texts
    except OSError as error:
        if "LanceError" not in str(error):  # what the rows come from may fail as well
            raise
        raise storage_failure("write to", location, error) from error
    identity = CommitIdentity.fresh()
    with contextlib.ExitStack() as undo:
        undo.callback(stored.abort, location, stored.snapshot.storage_options, staged, identity)
        version = commit(staged, identity)
        undo.pop_all()
    keep_behind(location, written_leaves(staged), stored.snapshot.storage_options)
    return version
