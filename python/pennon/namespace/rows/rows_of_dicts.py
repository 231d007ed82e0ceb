"""Makes columns of dicts of Python.

Arrow infers the type of values, which tells of what does not fit a column; but it takes each dict
for a struct. Where the column is a map, or has one below it, keys and values are inferred apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

from pennon.errors import ValuesNotUnderstood
from pennon.spec.schema import NamespaceSchema, children_of

__all__ = ["array_of", "has_map", "table_of"]


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
