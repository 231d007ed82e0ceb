"""Fills in columns that the rows of a write leave out, where they have a DEFAULT.

A default is the text of Spark SQL that stands in the column's metadata. It is computed once per
write, as Spark does for a statement; times are those of a session in UTC. NULL is the default of a
column without one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlglot
from sqlglot import exp

from pennon.catalog.columns.spark_types import CURRENT_DEFAULT
from pennon.errors import DefaultNotComputed, PennonError
from pennon.execution.computed_columns import ComputedColumns
from pennon.predicate.values.arrow_kinds import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["with_defaults"]

_ONE_ROW = pa.record_batch({"row": pa.array([0], pa.int64())})
_NOW = (exp.CurrentTimestamp, exp.CurrentDate)


def with_defaults(
    batches: Iterable[pa.RecordBatch], columns: pa.Schema, table: str
) -> Iterator[pa.RecordBatch]:
    """Add the columns that have a DEFAULT to rows without them.

    Args:
        batches: The rows; names match in any case.
        columns: The table's.
        table: For errors.

    Raises:
        DefaultNotComputed: Only Spark computes the default of a column that is left out.

    Example:
        >>> columns = pa.schema([("a", pa.int32()), ("n", pa.int32())])
        >>> columns = columns.set(1, columns.field(1).with_metadata({CURRENT_DEFAULT: "2 + 3"}))
        >>> next(with_defaults(pa.table({"a": [1, 2]}).to_batches(), columns, "t"))["n"].to_pylist()
        [5, 5]
    """
    texts = {
        column.name: stated.decode()
        for column in columns
        if (stated := (column.metadata or {}).get(CURRENT_DEFAULT.encode())) is not None
    }
    values: dict[str, pa.Scalar] = {}
    for batch in batches:
        given = {name.lower() for name in batch.schema.names}
        for name, text in texts.items():
            if name.lower() in given:
                continue
            if name not in values:
                values[name] = _value(columns.field(name), text, table)
            batch = batch.append_column(  # noqa: PLW2901
                pa.field(name, columns.field(name).type), pa.repeat(values[name], batch.num_rows)
            )
        yield batch


def _value(column: pa.Field, text: str, table: str) -> pa.Scalar:
    try:
        value = _computed(text, table)
        if _is_assignable(value.type, column.type):
            return value.cast(column.type)
    except (PennonError, sqlglot.ParseError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DefaultNotComputed(column=column.name, table=table, default=text) from error
    raise DefaultNotComputed(column=column.name, table=table, default=text)


def _computed(text: str, table: str) -> pa.Scalar:
    tree = sqlglot.parse_one(text, dialect="spark")
    if isinstance(tree, _NOW):
        now = pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC"))
        return now if isinstance(tree, exp.CurrentTimestamp) else now.cast(pa.date32())
    return ComputedColumns([text], _ONE_ROW.schema, table).of(_ONE_ROW)[0][0]


def _is_assignable(given: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow's cast of a value is Spark's store assignment."""
    if given == target or pa.types.is_null(given) or (is_text(given) and is_text(target)):
        return True
    return _is_number(given) and _is_number(target)


def _is_number(data_type: pa.DataType) -> bool:
    is_of = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(data_type) for test in is_of)
