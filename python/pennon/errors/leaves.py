"""Errors of leaf datasets: reading them, and rows that cannot be written."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class LeafMissing(PennonError):
    """The manifest names a leaf whose files are not there."""

    condition = "LEAF_MISSING"
    template = (
        "Cannot open leaf {leaf} of table {table} at {version}: its files are not there. Restore"
        " them, or drop the partition; never run Lance's own cleanup on a leaf."
    )
    sql_state = "58030"


class LeafFolderTaken(PennonError):
    """The folder of a partition that is to be made holds the dataset of another writer."""

    condition = "LEAF_FOLDER_TAKEN"
    template = (
        "Cannot make leaf {leaf} of table {table}: its folder holds a dataset of another writer,"
        " with {num_rows} rows and the columns {columns}, that the table does not name. Move it to"
        " another folder, or delete it if nobody needs it, then write again."
    )
    sql_state = "55000"


class LeafReadAtReference(PennonError):
    """A write to a leaf that the manifest has read at a branch or a tag."""

    condition = "LEAF_READ_AT_REFERENCE"
    template = (
        "Cannot write to leaf {leaf} of table {table}: the manifest has it read at {reference},"
        " where new rows would not be seen. Let the client that set this clear read_branch and"
        " read_tag of the leaf's row, then write again."
    )
    sql_state = "55000"


class LeafTypeMismatch(PennonError):
    """A leaf stores a column in a type that does not promote to the namespace's."""

    condition = "LEAF_TYPE_MISMATCH"
    template = (
        "Cannot read column {column} of leaf {leaf}: it is stored as {actual}, which does not"
        " promote to the table's {expected}. Rewrite the leaf with the table's type."
    )
    sql_state = "42846"


class LeafValueMismatch(PennonError):
    """A value of a leaf cannot be read in the column's type."""

    condition = "LEAF_VALUE_MISMATCH"
    template = (
        "Cannot read column {column} of leaf {leaf}: a {actual} value cannot be read as"
        " {expected} ({why}). Leave the column out, or store it in a type that its readers have."
    )
    sql_state = "22003"


class LeafSchemaMismatch(PennonError):
    """A leaf cannot take the namespace's rows as they are."""

    condition = "LEAF_SCHEMA_MISMATCH"
    template = (
        "Cannot write column {column} to leaf {leaf}: it stores {actual}, the table has {expected}."
        " Rewrite the leaf with the table's schema, then write again."
    )
    sql_state = "42846"


class NotNullViolated(PennonError):
    """A row to write has NULL in a NOT NULL column."""

    condition = "NOT_NULL_VIOLATED"
    template = (
        "Cannot write NULL to column {column} of {table}: it is NOT NULL. Filter these rows out,"
        " or give the column a value."
    )
    sql_state = "23502"


class TextTooLong(PennonError):
    """A row to write has a text that its CHAR or VARCHAR column cannot hold."""

    condition = "TEXT_TOO_LONG"
    template = (
        "Cannot write a text of {length} characters to column {column} of {table}: its type is"
        " {type}. Shorten the text, or make the column longer by ALTER COLUMN {column} TYPE."
    )
    sql_state = "54006"


class TextNotUtf8(PennonError):
    """A row to write has a text that is no text."""

    condition = "TEXT_NOT_UTF8"
    template = (
        "Cannot write to {table}: column {column} has a text that is not UTF-8. Read its file in"
        " the encoding that it has, mend the text with make_valid_utf8({column}), or make the"
        " column BINARY."
    )
    sql_state = "22021"


class PartitionSourceDropped(PennonError):
    """Rows to write cannot be partitioned: the spec needs a column that was dropped."""

    condition = "PARTITION_SOURCE_DROPPED"
    template = (
        "Cannot write to {table}: partition field {field} of spec version {spec_version} is made"
        " of a column that was dropped (field id {source_id}). Run ALTER TABLE … DROP PARTITION"
        " FIELD {field}, or REPLACE it, so that new rows have a spec of their own."
    )
    sql_state = "42703"


class PartitionValueOverflow(PennonError):
    """A partition value does not fit its column of the manifest."""

    condition = "PARTITION_VALUE_OVERFLOW"
    template = (
        "Cannot write to {table}: a value of partition field {field} does not fit the manifest's"
        " {expected}: {why}. Replace the partition field, so that the next spec has the wider type."
    )
    sql_state = "22003"


class WriteColumnUnknown(PennonError):
    """Rows to write have a column that the table has not."""

    condition = "WRITE_COLUMN_UNKNOWN"
    template = (
        "Cannot write column {column} to {table}: it has no such column. Its columns are"
        " {columns}. Leave it out, or add the column first."
    )
    sql_state = "42703"


class WriteColumnTwice(PennonError):
    """What is written has a column of the table twice."""

    condition = "WRITE_COLUMN_TWICE"
    template = (
        "Cannot write column {column} to {table}: what is written has it more than once, in"
        " whatever letters. Leave one of them."
    )
    sql_state = "42701"


class TableWithoutColumns(PennonError):
    """Rows are written to a table that has no columns, and so cannot hold them."""

    condition = "TABLE_WITHOUT_COLUMNS"
    template = (
        "Cannot write {count} rows to {table}: it has no columns, and rows without any cannot be"
        " stored. Add a column first, or select one for the new table."
    )
    sql_state = "42703"


class WriteTypeMismatch(PennonError):
    """A value to write does not fit its column."""

    condition = "WRITE_TYPE_MISMATCH"
    template = (
        "Cannot write {actual} to column {column} of {table}: its type is {expected} and {why}."
        " Cast it to that type before it is written."
    )
    sql_state = "42846"
