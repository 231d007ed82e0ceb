"""Computes the partition tuples of rows, and the runs of rows with equal tuples.

NULL rule: NULL is a partition value of its own. NaN equals NaN and -0.0 equals 0.0, as in the
manifest: floats are brought to one form before they are compared or recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import HoursOutOfRange, PartitionSourceDropped, PartitionValueOverflow
from pennon.transforms.registry import LEVELS, composed_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.manifest import Snapshot
    from pennon.spec.partition_spec import PartitionField, PartitionSpec

__all__ = ["Run", "check_sources", "partition_tuples", "runs", "tuple_codes"]

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
