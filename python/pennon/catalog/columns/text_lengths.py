"""Keeps texts to the lengths of CHAR and VARCHAR columns, as Spark's own writes do.

Spark does so in statements. Streams it leaves to the table, and others than Spark know no lengths.
Spaces at the end that are too many are cut off, any other character is an error; what CHAR lacks is
filled up with spaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import TextTooLong
from pennon.spec.length_limit import LENGTH_LIMIT, LengthLimit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["with_length_limits", "within_lengths"]


def with_length_limits(columns: pa.Schema, table_columns: pa.Schema) -> pa.Schema:
    """Give columns of a query the limits that the table's columns of these names have.

    Args:
        columns: Names in any case.
        table_columns: All columns of the table.
    """
    limits = {
        str(field.name).lower(): (field.metadata or {})[LENGTH_LIMIT.encode()]
        for field in table_columns
        if LengthLimit.of(field) is not None
    }
    return pa.schema(
        [
            field.with_metadata({**(field.metadata or {}), LENGTH_LIMIT.encode(): limits[name]})
            if (name := str(field.name).lower()) in limits
            else field
            for field in columns
        ]
    )


def within_lengths(
    batches: Iterable[pa.RecordBatch], columns: pa.Schema, table: str
) -> Iterator[pa.RecordBatch]:
    """Keep the texts of rows to the lengths of their columns.

    Args:
        batches: The rows.
        columns: With the limits of those that have one, by name in any case.
        table: For errors.

    Raises:
        TextTooLong: A text is longer than its column allows.

    Example:
        >>> columns = pa.schema([pa.field("a", pa.utf8(), metadata={LENGTH_LIMIT: "char(3)"})])
        >>> batches = pa.table({"a": ["x", "yz  ", None]}).to_batches()
        >>> next(within_lengths(batches, columns, "t"))["a"].to_pylist()
        ['x  ', 'yz ', None]
    """
    stated = {str(field.name).lower(): LengthLimit.of(field) for field in columns}
    limits = {name: limit for name, limit in stated.items() if limit is not None}
    for batch in batches:
        limited = {
            at: _within(batch.column(at), limits[name.lower()], name, table)
            for at, name in enumerate(batch.schema.names if limits else ())
            if name.lower() in limits and pa.types.is_string(batch.column(at).type)
        }
        yield _with_columns(batch, limited) if limited else batch


def _with_columns(batch: pa.RecordBatch, replaced: Mapping[int, pa.Array]) -> pa.RecordBatch:
    columns = [replaced.get(at, column) for at, column in enumerate(batch.columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _within(texts: pa.Array, limit: LengthLimit, column: str, table: str) -> pa.Array:
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    if longest > limit.length:
        needed = pc.max(pc.utf8_length(pc.utf8_rtrim(texts, " "))).as_py()
        if needed > limit.length:
            raise TextTooLong(length=needed, column=column, table=table, type=limit)
        texts = pc.utf8_slice_codeunits(texts, 0, limit.length)
    return pc.utf8_rpad(texts, limit.length, " ") if limit.is_fixed else texts
