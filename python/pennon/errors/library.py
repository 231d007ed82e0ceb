"""Errors of the Python API."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class RowsNotUnderstood(PennonError):
    """What a user wants to write holds no rows that Pennon can read."""

    condition = "ROWS_NOT_UNDERSTOOD"
    template = (
        "Cannot read rows from {type}: it is neither Arrow nor a data frame. "
        "Give a table, record batches or a reader of pyarrow, a data frame of pandas or Polars, "
        "or a list of dicts."
    )
    sql_state = "42804"


class NamespacePinned(PennonError):
    """A table that was opened at a version is only read."""

    condition = "NAMESPACE_PINNED"
    template = (
        "Cannot {verb} {name}: it was opened at version {version}, and so is only read. "
        "Open it without a version."
    )
    sql_state = "55000"


class DefaultNotOfType(PennonError):
    """The default of a column is no value of its type."""

    condition = "DEFAULT_NOT_OF_TYPE"
    template = (
        "Cannot add column {column}: its default {default} is no value of type {type}. "
        "Give a value of that type, or leave the default out."
    )
    sql_state = "42804"
