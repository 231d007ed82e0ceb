"""The one partition tuple of a dataset's rows, or the two rows that contradict each other.

It is read from the ends of the source columns where these decide it, else row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import lance
import pyarrow as pa
import pyarrow.compute as pc

from pennon.maintenance.leaves.chosen_leaves import RowValues, differs
from pennon.spec import PartitionField
from pennon.spec.column_names import python_rows
from pennon.transaction.staging.staged import partition_text

__all__ = ["MixedTuples", "NoRows", "OneTuple", "recovered_tuple", "tuple_of_rows"]


@dataclass(frozen=True, slots=True)
class RowTuple:
    """A row and its partition values.

    Args:
        number: Its position, from 0.
        sources: The source columns of the row, as text.
        values: Its partition values by field id.
    """

    number: int
    sources: str
    values: Mapping[str, pa.Scalar]

    def __str__(self) -> str:
        return f"row {self.number} ({self.sources}) has {partition_text(self.values)}"


@dataclass(frozen=True, slots=True)
class OneTuple:
    """All rows have the same partition values."""

    values: Mapping[str, pa.Scalar]
    num_rows: int


@dataclass(frozen=True, slots=True)
class MixedTuples:
    """Two rows have different partition values."""

    first: RowTuple
    other: RowTuple


@dataclass(frozen=True, slots=True)
class NoRows:
    """There is no row to compute a partition value from."""


def tuple_of_rows(
    rows: RowValues, batches: Iterable[pa.RecordBatch]
) -> OneTuple | MixedTuples | NoRows:
    """Find the partition tuple that all rows have; reading stops at the first contradiction.

    Args:
        rows: Computes the values.
        batches: The source columns.
    """
    first: RowTuple | None = None
    num_rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        values = rows.of(batch)
        if first is None:
            first = _row(batch, values, 0, 0)
        mask = pa.repeat(pa.scalar(value=False), batch.num_rows)
        for name, column in values.items():
            mask = pc.or_(mask, differs(column, pa.repeat(first.values[name], batch.num_rows)))
        other = pc.index(mask, value=True).as_py()
        if other >= 0:
            return MixedTuples(first, _row(batch, values, other, num_rows))
        num_rows += batch.num_rows
    return NoRows() if first is None else OneTuple(first.values, num_rows)


def _row(batch: pa.RecordBatch, values: Mapping[str, pa.Array], at: int, before: int) -> RowTuple:
    sources = python_rows(batch.slice(at, 1))[0]
    text = ", ".join(f"{name} {'NULL' if v is None else v}" for name, v in sources.items())
    return RowTuple(before + at, text, {name: column[at] for name, column in values.items()})


# A transform that never decreases has one value where it has the same for the smallest and the
# greatest source value. A month, day or hour does not increase for ever, but between two times of
# one month (day, hour) it is the same. Everything else, and columns with NULLs, is scanned.


def recovered_tuple(
    dataset: lance.LanceDataset, rows: RowValues
) -> OneTuple | MixedTuples | NoRows:
    """Find the partition tuple of a dataset.

    Args:
        dataset: The dataset.
        rows: Computes the values of its rows.

    Returns:
        The tuple, or two rows that contradict each other.
    """
    return _from_ends(dataset, rows) or tuple_of_rows(rows, rows.scan(dataset))


def _from_ends(dataset: lance.LanceDataset, rows: RowValues) -> OneTuple | None:
    if not rows.fields or not all(_is_ordered(field, rows) for field in rows.fields):
        return None
    ends: dict[str, pa.Array] = {}
    num_rows = 0
    try:
        for batch in rows.scan(dataset):
            num_rows += batch.num_rows
            for name, array in zip(batch.schema.names, batch.columns, strict=True):
                if array.null_count:
                    return None
                both = pc.min_max(array)
                here = pa.array([both["min"], both["max"]], array.type)
                ends_so_far = ends.get(name)
                if ends_so_far is not None:
                    wider = pc.min_max(pa.concat_arrays([ends_so_far, here]))
                    here = pa.array([wider["min"], wider["max"]], array.type)
                ends[name] = here
    except pa.ArrowNotImplementedError:
        return None
    if not ends:
        return None
    table = pa.table(ends)
    values = rows.of(table)
    if any(least != greatest for least, greatest in values.values()):
        return None
    for field in rows.fields:
        ends_of_field = rows.source(table, field.source_ids[0])
        first, last = field.derivation.monotone_values(ends_of_field)
        if first != last:
            return None
    return OneTuple({name: least for name, (least, _) in values.items()}, num_rows)


def _is_ordered(partition_field: PartitionField, rows: RowValues) -> bool:
    if not partition_field.derivation.has_monotone_values:
        return False
    source = rows.schema.field_by_id(partition_field.source_ids[0])
    # NaN is no end of a column of floats.
    return (
        source is not None and len(source.path) == 1 and not pa.types.is_floating(source.field.type)
    )
