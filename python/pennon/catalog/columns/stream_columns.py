"""The columns of a stream that is written: Spark checks those of statements alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.catalog.columns.spark_types import CURRENT_DEFAULT
from pennon.errors import StreamColumnLeftOut

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_stream_columns"]


def check_stream_columns(table: str, stream: pa.Schema, columns: pa.Schema) -> None:
    """Refuse a stream without a column that has a DEFAULT: its rows would be NULL there.

    Args:
        table: The table's name, for the error.
        stream: The columns of the stream.
        columns: Those of the table.

    Raises:
        StreamColumnLeftOut: It names the column and its default.

    Example:
        >>> import pyarrow as pa
        >>> columns = pa.schema([("id", pa.int64()), ("n", pa.int32())])
        >>> check_stream_columns("t", pa.schema([("ID", pa.int64())]), columns)
    """
    given = {name.lower() for name in stream.names}
    for column in columns:
        default = (column.metadata or {}).get(CURRENT_DEFAULT.encode())
        if default is not None and column.name.lower() not in given:
            raise StreamColumnLeftOut(column=column.name, table=table, default=default.decode())
