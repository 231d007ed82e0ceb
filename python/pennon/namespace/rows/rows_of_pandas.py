"""Makes columns of a data frame of pandas, whose maps are objects of Python.

Arrow infers the type of objects as it does of dicts: a map that was read is a list of pairs, whose
key and value have no type in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import ValuesNotUnderstood
from pennon.namespace.rows.rows_of_dicts import array_of, has_map

if TYPE_CHECKING:
    import pandas as pd

    from pennon.spec.schema import NamespaceSchema

__all__ = ["table_of_frame"]


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
