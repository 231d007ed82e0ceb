"""The one partition tuple of a dataset's rows, or the two rows that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pennon.maintenance.leaves.partition_values import RowValues, differs
from pennon.spec.value_text import python_rows
from pennon.transaction.staging.leaf_state import partition_text

__all__ = ["MixedTuples", "NoRows", "OneTuple", "RowTuple", "tuple_of_rows"]


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
