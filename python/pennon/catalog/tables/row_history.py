"""The changes that commits made to the rows of a table, for Python and for CALL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.failures_by_name import by_name
from pennon.errors import ChangeRangeReversed, UnknownColumn
from pennon.metadata_tables.changes_table import change_schema, changes_between
from pennon.spec.value_text import python_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.catalog.tables.loaded_table import Table

__all__ = ["key_columns", "read_changes", "told_changes"]

_OF_COMMIT = ("_change_type", "_commit_version", "_commit_timestamp")


def read_changes(end: Table, start: Table, key: Sequence[str]) -> pa.Table:
    """Read what the commits between two versions did to the rows, in the columns of the later one.

    Args:
        end: The table at the later version.
        start: The table at the earlier version.
        key: Columns that identify a row, by which a deletion and an insertion become an update.

    Raises:
        ChangeRangeReversed: The start is behind the end.
        UnknownColumn: A column of the key is not there.
        ChangesNotPaired: Several rows of one commit have the same key.
        ChangesNotKept: A version does not hold its rows.
        UnsupportedTableChange: The table has a column of a name that changes have.
    """
    snapshot = end.snapshot
    first, last = start.snapshot.version, snapshot.version
    if first > last:
        raise ChangeRangeReversed(table=end.name, start=f"version {first}", end=f"version {last}")
    with by_name(end.name):
        schema = change_schema(snapshot)
        names = key_columns(end, key)
        parts = changes_between(snapshot, first, last, names)
        tables = [part.cast(schema) for part in parts]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def key_columns(table: Table, key: Sequence[str]) -> list[str]:
    """Give the names of columns as the table has them.

    Args:
        table: The table at the version whose columns the changes have.
        key: The names as they were stated.

    Raises:
        UnknownColumn: There is no such column.
    """
    names = []
    for name in key:
        column = table.snapshot.schema.field_by_path([name])
        if column is None:
            columns = ", ".join(table.snapshot.schema.arrow.names)
            raise UnknownColumn(column=name, columns=columns)
        names.append(str(column.field.name))
    return names


def told_changes(changes: pa.Table) -> Iterator[tuple[str, int, int, str]]:
    """Give type, version, time (microseconds of UTC) and the row as JSON of each change."""
    names = [name for name in changes.column_names if name not in _OF_COMMIT]
    kinds, versions = (changes[name].to_pylist() for name in _OF_COMMIT[:2])
    moments = changes[_OF_COMMIT[2]].cast(pa.int64()).to_pylist()
    rows = python_rows(changes.select(names))
    for kind, version, moment, row in zip(kinds, versions, moments, rows, strict=True):
        text = json.dumps(row, ensure_ascii=False, default=_text)
        yield kind, version, moment, text


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
