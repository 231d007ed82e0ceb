"""Errors of the Python API."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class ArgumentRefused(PennonError):
    """A function of the Python API got an argument that has no meaning there."""

    condition = "ARGUMENT_REFUSED"
    template = "Cannot call {function} with this {parameter}: {why}. Give {expected}."
    sql_state = "22023"


class ProcessForked(PennonError):
    """Lance ran in the process that this one is a fork of, and its threads are not here."""

    condition = "PROCESS_FORKED"
    template = (
        "Cannot call {function} in process {process}: it was forked from process {parent}, where"
        " Lance's threads are. Start it by multiprocessing.get_context('spawn')."
    )
    sql_state = "0A000"


class RowsNotUnderstood(PennonError):
    """What a user wants to write holds no rows that Pennon can read."""

    condition = "ROWS_NOT_UNDERSTOOD"
    template = (
        "Cannot read rows from {type}: it is neither Arrow nor a data frame. "
        "Give a table, record batches or a reader of pyarrow, a data frame of pandas or Polars, "
        "or a list of dicts."
    )
    sql_state = "42804"


class ValuesNotUnderstood(PennonError):
    """Values of a list of dicts have no type of Arrow in common."""

    condition = "VALUES_NOT_UNDERSTOOD"
    template = (
        "Cannot read the values of {column}: {why}. "
        "Give values of one type, or rows of pyarrow with the column's type."
    )
    sql_state = "42804"


class SchemaNotUnderstood(PennonError):
    """What a user wants to create a table with is no schema."""

    condition = "SCHEMA_NOT_UNDERSTOOD"
    template = (
        "Cannot read columns from {type}: it is no schema of pyarrow. "
        "Write pyarrow.schema([('id', pyarrow.int64()), …])."
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


class DefaultNotComputed(PennonError):
    """Rows lack a column whose default is computed by Spark alone."""

    condition = "DEFAULT_NOT_COMPUTED"
    template = (
        "Cannot write rows without the column {column} to {table}: its DEFAULT ({default}) is"
        " computed by Spark alone. Give the column, with the value that its rows are to have."
    )
    sql_state = "0A000"


class MergeCardinality(PennonError):
    """Several rows are to update one row of the table."""

    condition = "MERGE_CARDINALITY_VIOLATION"
    template = (
        "Cannot merge into {table}: several rows of the source have the same values of {on} as one"
        " row of the table. Leave one of them, or merge by more columns."
    )
    sql_state = "23K01"


class MergeKeyRefused(PennonError):
    """A column cannot identify the rows of a merge."""

    condition = "MERGE_KEY_REFUSED"
    template = "Cannot merge into {table} on column {column}: {why}. Name other columns in on."
    sql_state = "42K0E"
