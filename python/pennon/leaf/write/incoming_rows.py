"""Casts the rows of a query to exactly the namespace's schema, or raises an error."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching import PerObject
from pennon.errors import (
    HoursOutOfRange,
    NotNullViolated,
    PartitionSourceDropped,
    PartitionValueOverflow,
    TableWithoutColumns,
    WriteColumnTwice,
    WriteColumnUnknown,
    WriteTypeMismatch,
)
from pennon.leaf.schema.array_conversion import (
    check_stored,
    relabelled,
    storage_values,
    stored_as,
)
from pennon.leaf.schema.file_layout import without_views
from pennon.leaf.schema.reconciliation import plain_schema
from pennon.manifest.format.column_statistics import (
    ColumnStatistics,
    LeafStatistics,
    bounds_of,
    is_counted_type,
)
from pennon.spec.column_names import CountedColumns
from pennon.spec.schema import children_of, with_children
from pennon.transforms.registry import LEVELS, composed_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.manifest import Snapshot
    from pennon.spec.partition_spec import PartitionField, PartitionSpec
    from pennon.spec.schema import NamespaceSchema

__all__ = [
    "ColumnCounting",
    "Run",
    "check_sources",
    "column_at",
    "conform",
    "counted_fields",
    "partition_tuples",
    "runs",
    "tuple_codes",
]

# Computes the partition tuples of rows, and the runs of rows with equal tuples.
#
# NULL rule: NULL is a partition value of its own. NaN equals NaN and -0.0 equals 0.0, as in the
# manifest: floats are brought to one form before they are compared or recorded.

_MOST_CODES = 1 << 62
# All of their hours since 1970 are integers of 32 bits.
_COUNTED_YEARS = range(-243_013, 246_953)


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring rows of one partition, and its tuple as one row."""

    values: pa.RecordBatch
    rows: pa.RecordBatch


def check_sources(spec: PartitionSpec, snapshot: Snapshot) -> None:
    """Check that every column is there from which a spec makes its partition values.

    Raises:
        PartitionSourceDropped: A column was dropped. All new rows would fall into its NULL
            partition; a spec without the field says what is meant.

    Spec: "Column removal resistant".
    """
    for field in spec.fields:
        for source_id in field.source_ids:
            if snapshot.schema.field_by_id(source_id) is None:
                raise PartitionSourceDropped(
                    table=snapshot.location,
                    field=field.field_id,
                    spec_version=spec.spec_version,
                    source_id=source_id,
                )


def partition_tuples(
    batch: pa.RecordBatch, spec: PartitionSpec, snapshot: Snapshot
) -> pa.RecordBatch:
    """Compute the partition values of rows, by the code that plans with them.

    Args:
        batch: Rows in the full namespace schema.
        spec: The spec to partition by.
        snapshot: The namespace; its manifest's column types are those of the values.

    Returns:
        One column ``partition_field_<id>`` per partition field, one row per row of ``batch``.

    Raises:
        HoursOutOfRange: Of a time no reader can count the hours since 1970.
        PartitionValueOverflow: A value does not fit the manifest's column.

    Spec: "Partition Expression", "Manifest Table Schema".
    """
    columns = [_values(batch, field, snapshot) for field in spec.fields]
    _check_hours(spec, columns, snapshot)
    names = [field.column for field in spec.fields]
    if not columns:
        empty = pa.StructArray.from_buffers(pa.struct([]), batch.num_rows, [None])
        return pa.RecordBatch.from_struct_array(empty)
    return pa.RecordBatch.from_arrays(columns, names=names)


def _check_hours(spec: PartitionSpec, columns: Sequence[pa.Array], snapshot: Snapshot) -> None:
    """Refuse what reads as more hours since 1970 than an int32 counts, as Spark's writes do."""
    of_source: dict[int, dict[str, pa.Array]] = {}
    for field, values in zip(spec.fields, columns, strict=True):
        if field.transform is not None and len(field.source_ids) == 1:
            of_source.setdefault(field.source_ids[0], {})[field.transform.type] = values
    for source_id, levels in of_source.items():
        composed = composed_of(levels)
        if composed is None or len(composed.levels) < len(LEVELS):
            continue
        ends = pc.min_max(levels["year"])
        if not ends["min"].is_valid or (
            ends["min"].as_py() in _COUNTED_YEARS and ends["max"].as_py() in _COUNTED_YEARS
        ):
            continue
        try:
            composed.from_fields([levels[level] for level in LEVELS], ())
        except HoursOutOfRange as error:
            column = snapshot.schema.field_by_id(source_id)
            name = "" if column is None else f"{'.'.join(column.path)} = "
            value, hours = error.parameters["value"], error.parameters["hours"]
            raise HoursOutOfRange(value=f"{name}{value}", hours=hours) from error


def _values(batch: pa.RecordBatch, field: PartitionField, snapshot: Snapshot) -> pa.Array:
    result_type = snapshot.partition_type(field.field_id)
    sources: list[pa.Array | None] = []
    for source_id in field.source_ids:
        column = snapshot.schema.field_by_id(source_id)
        sources.append(None if column is None else _column(batch, column.path))
    present = [array for array in sources if array is not None]
    if not present and field.transform is not None:
        return pa.nulls(batch.num_rows, result_type)
    arrays = [pa.nulls(batch.num_rows) if array is None else array for array in sources]
    values = field.derivation.apply(arrays)
    if not values.type.equals(result_type):
        try:
            values = values.cast(result_type)
        except pa.ArrowInvalid as error:
            raise PartitionValueOverflow(
                field=field.field_id, table=snapshot.location, expected=result_type, why=error
            ) from error
    return _one_form(values)


def _column(batch: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    top = batch.column(path[0])
    return top if len(path) == 1 else pc.struct_field(top, list(path[1:]))


def _one_form(values: pa.Array) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return values
    zero, nan = pa.scalar(0.0, values.type), pa.scalar(float("nan"), values.type)
    plain = pc.if_else(pc.equal(values, zero), zero, values)
    return pc.if_else(pc.is_nan(plain), nan, plain)


def runs(batch: pa.RecordBatch, tuples: pa.RecordBatch) -> Iterator[Run]:
    """Cut rows into runs of equal tuples; unsorted rows are brought together within the batch.

    Args:
        batch: The rows.
        tuples: Their partition tuples.

    Yields:
        Runs in the order in which their tuples first appear.
    """
    if batch.num_rows == 0:
        return
    codes = tuple_codes(tuples)
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
    if len(starts) > len(np.unique(codes[starts])):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first[inverse], kind="stable")
        batch, tuples, codes = (
            batch.take(pa.array(order)),
            tuples.take(pa.array(order)),
            codes[order],
        )
        starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
    for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
        yield Run(tuples.slice(int(start), 1), _cut(batch, int(start), int(end)))


def _cut(batch: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    """Cut rows out; nested columns are copied, since Lance 14 panics on slices of some of them."""
    columns = []
    for column in batch.columns:
        is_whole = end - start == batch.num_rows and column.offset == 0
        if is_whole or not pa.types.is_nested(column.type):
            columns.append(column.slice(start, end - start))
        else:
            columns.append(column.take(pa.array(np.arange(start, end))))
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def tuple_codes(tuples: pa.RecordBatch) -> np.ndarray:
    """One number per row, equal exactly where the tuples are."""
    codes = np.zeros(tuples.num_rows, np.int64)
    count = 1
    for column in tuples.columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        size = len(encoded.dictionary)
        if count * size >= _MOST_CODES:
            _, codes = np.unique(codes, return_inverse=True)
            count = int(codes.max()) + 1
        codes = codes * size + encoded.indices.to_numpy(zero_copy_only=False)
        count *= size
    return codes


# Collects column statistics of the rows that are written to a leaf.
#
# A column is counted by its field id, a field of a struct by its own; it is NULL where the struct
# is. The elements of lists and maps have no statistics. Distinct values are not counted: that would
# cost 7 to 9 % of a write, and the next append to the leaf would have to forget their number.


def counted_fields(
    properties: Mapping[str, str], schema: NamespaceSchema
) -> dict[tuple[str, ...], tuple[int, pa.DataType]]:
    """Name the fields of a table that are counted, with their ids and types.

    Args:
        properties: The table's properties; ``write.statistics.columns`` says which or how many.
        schema: The table's schema.

    Example:
        >>> from pennon.spec import NamespaceSchema
        >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.int64(), "b": pa.utf8()}))
        >>> counted_fields({"write.statistics.columns": "1"}, schema)
        {('a',): (0, DataType(int64))}
    """
    choice = CountedColumns.of(properties)
    counted: dict[tuple[str, ...], tuple[int, pa.DataType]] = {}
    for path, data_type in _plain_fields(list(schema.arrow)):
        column = schema.field_by_path(path)
        if column is not None and choice.has(path, len(counted)):
            counted[path] = column.id, data_type
    return counted


def column_at(rows: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    """Take a column, or a field of a struct, which is NULL where the struct is.

    Args:
        rows: The rows.
        path: Names from the top.

    Example:
        >>> rows = pa.RecordBatch.from_pylist([{"a": {"b": 1}}, {"a": None}])
        >>> column_at(rows, ("a", "b")).to_pylist()
        [1, None]
    """
    column = rows.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def _plain_fields(
    fields: list[pa.Field], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    for column in fields:
        path = (*above, column.name)
        if pa.types.is_struct(column.type):
            yield from _plain_fields(list(column.type), path)
        elif is_counted_type(column.type):
            yield path, column.type


@dataclass(slots=True)
class _Extremes:
    """The extreme values of one column so far; ``is_lost`` where they are not known any more."""

    data_type: pa.DataType
    lower: pa.Scalar = dataclasses.field(init=False)
    upper: pa.Scalar = dataclasses.field(init=False)
    null_count: int = 0
    is_lost: bool = False

    def __post_init__(self) -> None:
        self.lower = self.upper = pa.scalar(None, self.data_type)

    def observe(self, column: pa.Array) -> None:
        if self.is_lost:
            return
        if column.type != self.data_type:
            self.is_lost = True
            return
        self.null_count += column.null_count
        least, greatest = _extremes(column)
        if not least.is_valid:
            return
        if not self.lower.is_valid:
            self.lower, self.upper = least, greatest
            return
        both = pa.array([self.lower, self.upper, least, greatest], self.data_type)
        self.lower, self.upper = _extremes(both)


def _extremes(column: pa.Array) -> tuple[pa.Scalar, pa.Scalar]:
    """Give the least and the greatest value, NaN above all others; NULL where there is none."""
    extremes = pc.min_max(column)
    least, greatest = extremes["min"], extremes["max"]
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return least, pa.scalar(float("nan"), column.type)
    return least, greatest


class ColumnCounting:
    """The statistics of the rows that were seen.

    Args:
        fields: The fields to count by their path, with their ids and types (``counted_fields``).

    Example:
        >>> counting = ColumnCounting({("a",): (7, pa.int64())})
        >>> counting.observe(pa.record_batch({"a": pa.array([3, None, 1])}))
        >>> counting.statistics.columns[7]
        ColumnStatistics(lower='1', upper='3', null_count=1, is_truncated=False, ...)
    """

    def __init__(self, fields: Mapping[tuple[str, ...], tuple[int, pa.DataType]]) -> None:
        self._seen = {path: (number, _Extremes(kind)) for path, (number, kind) in fields.items()}

    def observe(self, rows: pa.RecordBatch) -> None:
        """Count rows.

        Args:
            rows: With the namespace's columns, each in its type.
        """
        for path, (_, extremes) in self._seen.items():
            extremes.observe(column_at(rows, path))

    @property
    def statistics(self) -> LeafStatistics:
        """What was counted so far; columns with values that no bound can express are left out."""
        columns: dict[int, ColumnStatistics] = {}
        for number, extremes in self._seen.values():
            bounds = None if extremes.is_lost else bounds_of(extremes.lower, extremes.upper)
            if bounds is not None:
                lower, upper, is_truncated = bounds
                columns[number] = ColumnStatistics(lower, upper, extremes.null_count, is_truncated)
        return LeafStatistics(columns)


def conform(batch: pa.RecordBatch, schema: NamespaceSchema, table: str) -> pa.RecordBatch:
    """Bring rows into the namespace's columns, order and types.

    A column that is missing is NULL in every row. Columns match by name, exactly or as the only
    one but for case; which types they take says ``leaf.schema.array_conversion``.

    Args:
        batch: The rows to write.
        schema: The namespace schema.
        table: The table's name for errors.

    Raises:
        WriteColumnTwice: Two columns of the rows are one of the namespace.
        WriteColumnUnknown: The rows have a column, or a nested field, that the namespace has not.
        WriteTypeMismatch: A value is of another kind than its column, or does not fit its type.
        TableWithoutColumns: There are rows, and no column.
        NotNullViolated: A NOT NULL column, nested ones too, has a NULL.

    Spec: "Schema".
    """
    given: dict[str, pa.Array] = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        expected = schema.field_by_path([name])
        if expected is None:
            raise WriteColumnUnknown(
                column=name, table=table, columns=", ".join(schema.arrow.names)
            )
        if expected.field.name in given:
            raise WriteColumnTwice(column=name, table=table)
        plain = storage_values(array, expected.field, table)
        given[expected.field.name] = without_views(plain)
    columns = []
    stored, required = _STORED.of(schema.arrow)
    for at, field in enumerate(stored):
        values = given.get(field.name)
        if values is not None and not values.type.equals(field.type):
            _check_fields(values.type, field.type, str(field.name), table)
        column = (
            pa.nulls(batch.num_rows, field.type) if values is None else _cast(values, field, table)
        )
        null_path = _null_path(column, field) if at in required else None
        if null_path is not None:
            raise NotNullViolated(column=null_path, table=table)
        columns.append(relabelled(column, field))
    if not columns:
        if batch.num_rows:
            raise TableWithoutColumns(table=table, count=batch.num_rows)
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=stored)


def _stored_columns(columns: pa.Schema) -> tuple[pa.Schema, frozenset[int]]:
    """Give columns as leaves store them, and where those are that have a NOT NULL."""
    stored = plain_schema(columns)
    required = (
        at for at, field in enumerate(stored) if not field.nullable or _has_required(field.type)
    )
    return stored, frozenset(required)


_STORED: Final[PerObject[pa.Schema, tuple[pa.Schema, frozenset[int]]]] = PerObject(_stored_columns)


def _check_fields(given: pa.DataType, expected: pa.DataType, path: str, table: str) -> None:
    """Refuse fields that the column has not, which Arrow's cast would leave out in silence."""
    if pa.types.is_struct(given) and pa.types.is_struct(expected):
        expected_names = dict.fromkeys(child.name for child in expected)
        for child in given:
            if child.name not in expected_names:
                raise WriteColumnUnknown(
                    column=f"{path}.{child.name}",
                    table=table,
                    columns=", ".join(f"{path}.{name}" for name in expected_names),
                )
            _check_fields(
                child.type, expected.field(child.name).type, f"{path}.{child.name}", table
            )
        return
    for child, own in zip(children_of(given), children_of(expected), strict=False):
        _check_fields(child.type, own.type, f"{path}.{own.name}", table)


def _cast(array: pa.Array, field: pa.Field, table: str) -> pa.Array:
    if array.type.equals(field.type):
        return array
    check_stored(array.type, field, table)
    try:
        return stored_as(array, _relaxed(field.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise WriteTypeMismatch(
            actual=array.type, column=field.name, table=table, expected=field.type, why=error
        ) from error


def _relaxed(data_type: pa.DataType) -> pa.DataType:
    """The type without its inner NOT NULLs, which Arrow would refuse without a name."""
    below = children_of(data_type)
    if pa.types.is_map(data_type):
        key, item = below
        return pa.map_(key, item.with_nullable(True), keys_sorted=data_type.keys_sorted)
    children = [child.with_type(_relaxed(child.type)).with_nullable(True) for child in below]
    return with_children(data_type, children)


def _null_path(array: pa.Array, field: pa.Field) -> str | None:
    """Name the NOT NULL field that has a NULL; None where all is well."""
    if not field.nullable and array.null_count:
        return str(field.name)
    if not _has_required(field.type):
        return None
    if pa.types.is_struct(field.type):
        valid = array.drop_null() if array.null_count else array
        below = [(pc.struct_field(valid, [child.name]), child) for child in field.type]
    elif pa.types.is_map(field.type):
        entries = array.drop_null()
        below = [(entries.keys, field.type.key_field), (entries.items, field.type.item_field)]
    else:
        below = [(pc.list_flatten(array), field.type.value_field)]
    for child_array, child in below:
        path = _null_path(child_array, child)
        if path is not None:
            return f"{field.name}.{path}"
    return None


def _has_required(data_type: pa.DataType) -> bool:
    below = children_of(data_type)
    if pa.types.is_map(data_type):  # Arrow itself keeps keys from being NULL
        below = below[1:]
    return any(not child.nullable or _has_required(child.type) for child in below)
