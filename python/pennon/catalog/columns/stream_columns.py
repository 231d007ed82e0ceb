"""The columns of a stream that is written: Spark checks those of statements alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.columns.spark_types import CURRENT_DEFAULT
from pennon.catalog.configured_catalog import quoted
from pennon.errors import StreamColumnLeftOut, StreamColumnUnknown
from pennon.spec.schema import children_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_stream_columns"]


def check_stream_columns(table: str, stream: pa.Schema, columns: pa.Schema) -> None:
    """Refuse a stream with another column than its table, or without one that has a DEFAULT.

    The rows of the latter would be NULL there.

    Args:
        table: The table's name, for the error.
        stream: The columns of the stream.
        columns: Those of the table.

    Raises:
        StreamColumnUnknown: It names the column, or the field of a struct.
        StreamColumnLeftOut: It names the column and its default.

    Example:
        >>> import pyarrow as pa
        >>> columns = pa.schema([("id", pa.int64()), ("n", pa.int32())])
        >>> check_stream_columns("t", pa.schema([("ID", pa.int64())]), columns)
    """
    _check_known(table, list(stream), list(columns), ())
    given = {name.lower() for name in stream.names}
    for column in columns:
        default = (column.metadata or {}).get(CURRENT_DEFAULT.encode())
        if default is not None and column.name.lower() not in given:
            raise StreamColumnLeftOut(column=column.name, table=table, default=default.decode())


def _check_known(
    table: str, given: Sequence[pa.Field], own: Sequence[pa.Field], above: tuple[str, ...]
) -> None:
    by_name = {column.name.lower(): column for column in own}
    for field in given:
        column = by_name.get(field.name.lower())
        if column is None:
            raise StreamColumnUnknown(
                column=_spelled((*above, field.name)),
                table=table,
                columns=", ".join(_spelled((*above, other.name)) for other in own),
            )
        _check_below(table, field.type, column.type, (*above, column.name))


def _check_below(table: str, given: pa.DataType, own: pa.DataType, path: tuple[str, ...]) -> None:
    """Look for unknown fields below a column; types that do not match are refused row by row."""
    if pa.types.is_struct(given) and pa.types.is_struct(own):
        _check_known(table, children_of(given), children_of(own), path)
    elif given.id == own.id:  # keys, items and entries pair by their place
        names = ("key", "value") if pa.types.is_map(given) else ("element",)
        pairs = zip(names, children_of(given), children_of(own), strict=False)
        for name, child, other in pairs:
            _check_below(table, child.type, other.type, (*path, name))


def _spelled(path: tuple[str, ...]) -> str:
    return ".".join(map(quoted, path))
