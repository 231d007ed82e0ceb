"""Errors of the catalog: what SQL names mean, and DDL."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class CatalogImplementationFixed(PennonError):
    """The session states another implementation than its catalog began with."""

    condition = "CATALOG_IMPLEMENTATION_FIXED"
    template = (
        "Cannot change the implementation of catalog {catalog} to {stated}: this session has begun "
        "to use it by {implementation}, and a catalog keeps its implementation. RESET "
        "spark.sql.catalog.{catalog}.implementation, or set it before the catalog is first used, "
        "in a new session."
    )
    sql_state = "55000"


class NamespaceNotFound(PennonError):
    """A namespace of the catalog does not exist."""

    condition = "NAMESPACE_NOT_FOUND"
    template = "Cannot find namespace {namespace}: {near}. Check the name, or create it first."
    sql_state = "42704"


class NamespaceAlreadyExists(PennonError):
    """A namespace to create is there already."""

    condition = "NAMESPACE_ALREADY_EXISTS"
    template = (
        "Cannot create namespace {namespace}: there is {kind} of that name."
        " Choose another name, or add IF NOT EXISTS (exist_ok=True in Python)."
    )
    sql_state = "42P06"


class NamespaceNotEmpty(PennonError):
    """A namespace to drop still has tables or namespaces."""

    condition = "NAMESPACE_NOT_EMPTY"
    template = (
        "Cannot drop namespace {namespace}: it contains {contents}."
        " Drop these first, or add CASCADE (cascade=True in Python)."
    )
    sql_state = "2BP01"


class NamespaceChangeRefused(PennonError):
    """A namespace cannot have such properties, or have them changed."""

    condition = "NAMESPACE_CHANGE_REFUSED"
    template = "Cannot change the properties of namespace {namespace}: {why}. {advice}."
    sql_state = "0A000"


class StatementNotSupported(PennonError):
    """A statement of Spark or of another table format that means nothing here."""

    condition = "STATEMENT_NOT_SUPPORTED"
    template = "Cannot run {statement} on {table}: {why}. Type instead: {advice}."
    sql_state = "0A000"


class WriteOptionNotSupported(PennonError):
    """An option by which another format chooses what a write does."""

    condition = "WRITE_OPTION_NOT_SUPPORTED"
    template = (
        "Cannot write {table} with the option {option}: this option is not"
        " supported and would be ignored. {advice}."
    )
    sql_state = "0A000"


class ReadOptionNotSupported(PennonError):
    """An option by which another format chooses the rows of a read."""

    condition = "READ_OPTION_NOT_SUPPORTED"
    template = (
        "Cannot read {table} with the option {option}: this option is not"
        " supported and would be ignored. {advice}."
    )
    sql_state = "0A000"


class StreamColumnLeftOut(PennonError):
    """A stream to be written lacks a column whose rows have a default."""

    condition = "STREAM_COLUMN_LEFT_OUT"
    template = (
        "Cannot write a stream without the column {column} to {table}: Spark fills in no DEFAULT"
        " ({default}) of a stream. Select the column, with the value that its rows are to have."
    )
    sql_state = "42601"


class StreamColumnUnknown(PennonError):
    """A stream to be written has a column, or a nested field, that its table has not."""

    condition = "STREAM_COLUMN_UNKNOWN"
    template = (
        "Cannot write a stream with the column {column} to {table}: it has {columns}, and the"
        " option mergeSchema adds none. Run ALTER TABLE {table} ADD COLUMN {column} with its type"
        " first, or leave it out of the stream."
    )
    sql_state = "42703"


class StreamNotRepeatable(PennonError):
    """A stream is to be written where a repeated batch could not be recognised."""

    condition = "STREAM_NOT_REPEATABLE"
    template = (
        "Cannot write a stream into {table}: it records no commit ids, so a batch replayed"
        " after a restart would be written twice. Write into a table with strong"
        " transactions, or write the batches by foreachBatch."
    )
    sql_state = "0A000"


class TableNotFound(PennonError):
    """A table of the catalog does not exist."""

    condition = "TABLE_NOT_FOUND"
    template = "Cannot find table {table}: {near}. Check the name, or create it first."
    sql_state = "42P01"


class TableAlreadyExists(PennonError):
    """A table to create is there already."""

    condition = "TABLE_ALREADY_EXISTS"
    template = (
        "Cannot create table {table}: there is {kind} of that name."
        " Choose another name, or drop it first."
    )
    sql_state = "42P07"


class TableMadeAnew(PennonError):
    """Another table stands where a query, planned earlier, saw its own."""

    condition = "TABLE_MADE_ANEW"
    template = (
        "Cannot use table {table} as the query saw it: another table was made at {location} since."
        " Run the query anew; a stream that reads it, with another checkpoint."
    )
    sql_state = "55000"


class RegistrationRefused(PennonError):
    """A table that is there cannot be given a name."""

    condition = "REGISTRATION_REFUSED"
    template = "Cannot register {path} as {table}: {why}. {advice}."
    sql_state = "0A000"


class PathNotTable(PennonError):
    """A path holds neither a partitioned namespace nor a Lance dataset."""

    condition = "PATH_NOT_TABLE"
    template = (
        "Cannot read {path} as a table: {why}."
        " Name the folder of a partitioned namespace or of a Lance dataset."
    )
    sql_state = "42P01"


class TableVersionNotFound(PennonError):
    """A version or a time to travel to does not exist."""

    condition = "TABLE_VERSION_NOT_FOUND"
    template = "Cannot read {table} {asked}: {why}. Choose one of the versions that exist."
    sql_state = "42K0E"


class RootNotUsable(PennonError):
    """The catalog's root is missing or cannot be read or written."""

    condition = "ROOT_NOT_USABLE"
    template = (
        "Cannot use the root {root} of catalog {catalog}: {why}."
        " Name a folder or URL that can be read and written: in spark.sql.catalog.{catalog}.root,"
        " after --root on the command line, or in pennon.connect."
    )
    sql_state = "58030"


class RootNotFound(PennonError):
    """A command is about a lake that is not there."""

    condition = "ROOT_NOT_FOUND"
    template = (
        "Cannot find a lake at {root}: there is no such folder. Give --root the folder or URL of a"
        " lake; the first CREATE NAMESPACE makes it."
    )
    sql_state = "58030"


class UnknownImplementation(PennonError):
    """The catalog's lance_namespace implementation is not there."""

    condition = "UNKNOWN_IMPLEMENTATION"
    template = (
        "Cannot start catalog {catalog}: {implementation} is no lance_namespace implementation that"
        " can be loaded ({why}). Leave the option implementation out for the directory namespace."
    )
    sql_state = "42704"


class CatalogRefused(PennonError):
    """The lance_namespace implementation refused."""

    condition = "CATALOG_REFUSED"
    template = (
        "Cannot {action} {object}: the namespace implementation refused with {reason}."
        " Check the root and its access rights."
    )
    sql_state = "58030"


class UnsupportedColumnType(PennonError):
    """A column has a type that Lance or Spark does not store."""

    condition = "UNSUPPORTED_COLUMN_TYPE"
    template = (
        "Cannot store or read column {column}: type {type} has no counterpart in {target}."
        " Cast it to a type of both, or leave it out."
    )
    sql_state = "0A000"


class HiddenColumnLost(PennonError):
    """Rows come from Spark without a column that Spark has no type for."""

    condition = "HIDDEN_COLUMN_LOST"
    template = (
        "Cannot {action}: Spark does not see the column {column} of type {type}, whose values"
        " {why}. Do it in Python, or drop the column."
    )
    sql_state = "0A000"


class InvalidColumnName(PennonError):
    """A column has a name that Lance does not take."""

    condition = "INVALID_COLUMN_NAME"
    template = "Cannot name a column '{name}': {why}. Choose another name, for example `{example}`."
    sql_state = "42602"


class InvalidTableName(PennonError):
    """A table or a namespace has a name that cannot be stored or typed."""

    condition = "INVALID_TABLE_NAME"
    template = (
        "Cannot name a table or a namespace '{name}': {why}. Choose a name without slashes, $, ;"
        " and control characters."
    )
    sql_state = "42602"


class NewTableRefused(PennonError):
    """A table is asked to be what it cannot be."""

    condition = "NEW_TABLE_REFUSED"
    template = "Cannot create table {table}: {why}. {advice}."
    sql_state = "0A000"


class TablePropertyRefused(PennonError):
    """A table property that another format acts upon, or a value that one cannot have."""

    condition = "TABLE_PROPERTY_REFUSED"
    template = "Cannot set the property {property} = '{value}' of table {table}: {why}. {advice}."
    sql_state = "0A000"


class UnsupportedTableChange(PennonError):
    """An ALTER TABLE that cannot be done safely."""

    condition = "UNSUPPORTED_TABLE_CHANGE"
    template = "Cannot {change} of table {table}: {why}. {advice}."
    sql_state = "0A000"


class UnsupportedTransform(PennonError):
    """A partition transform with arguments that do not fit."""

    condition = "UNSUPPORTED_TRANSFORM"
    template = "Cannot partition by {transform}: {why}. Correct its arguments."
    sql_state = "42601"


class WriteConflict(PennonError):
    """Another commit changed what a write depends on."""

    condition = "WRITE_CONFLICT"
    template = (
        "Cannot commit the write to {table}: {why}."
        " Nothing of it is visible. Run the statement again."
    )
    sql_state = "40001"


class RowsMoved(WriteConflict):
    """A rewrite put rows that a statement is about into other partitions before it committed.

    Nobody changed them: whoever runs the statement again finds them where they are now.
    """

    condition = "ROWS_MOVED"
    template = (
        "Cannot commit the write to {table}: {why}, and rewrite_partitions has put rows into other"
        " partitions since. Nothing of it is visible. Run the statement again."
    )


class CommitGivenUp(PennonError):
    """A commit was aborted before it was made, and its files may be gone."""

    condition = "COMMIT_GIVEN_UP"
    template = (
        "Cannot make commit {commit} of {location}: the write was aborted meanwhile."
        " Nothing of it is visible. Run the statement again."
    )
    sql_state = "40000"


class UnknownIsolation(PennonError):
    """A table property about isolation has no value that it can have."""

    condition = "UNKNOWN_ISOLATION"
    template = (
        "Cannot use the table property {property} = '{value}': it is neither 'serializable'"
        " nor 'snapshot'. Set it to one of them, or unset it for 'serializable'."
    )
    sql_state = "22023"


class RowChangeModeRefused(PennonError):
    """A table property asks for rows to be changed in a way that there is not."""

    condition = "ROW_CHANGE_MODE_REFUSED"
    template = (
        "Cannot use the table property {property} = '{value}': it is neither 'merge-on-read' nor"
        " 'copy-on-write'. Set it to one of them, or unset it for 'merge-on-read'."
    )
    sql_state = "22023"


class NotWholePartitions(PennonError):
    """A condition to delete or overwrite by divides a partition."""

    condition = "NOT_WHOLE_PARTITIONS"
    template = (
        "Cannot {action} the rows of {table} where {predicate}: partition {partition} may hold both"
        " rows that satisfy it and rows that do not, as {undecided} of {total} partitions may."
        " Write a condition that decides whole partitions, by {keys}."
    )
    sql_state = "0A000"


class OverlapsOlderPartition(PennonError):
    """A dynamic overwrite replaces a part of a partition of an older spec version."""

    condition = "OVERLAPS_OLDER_PARTITION"
    template = (
        "Cannot overwrite the partitions of {table} that the rows fall into: partition {partition}"
        " of spec version {spec_version} is coarser and may hold rows of others as well."
        " Overwrite by a condition, or the whole table."
    )
    sql_state = "0A000"


class UnknownProcedure(PennonError):
    """A procedure that is called does not exist."""

    condition = "UNKNOWN_PROCEDURE"
    template = "Cannot call procedure {procedure}: {why}. Procedures are: {known}."
    sql_state = "42883"
