"""Errors of statements: names of SQL, DDL, writes, procedures, tags, streams."""

from __future__ import annotations

from pennon.errors.conditions import PennonError, condition

# Names, tables and what is written to them.

CatalogImplementationFixed = condition(
    "CATALOG_IMPLEMENTATION_FIXED",
    "55000",
    "Cannot change the implementation of catalog {catalog} to {stated}: this session has begun to"
    " use it by {implementation}, and a catalog keeps its implementation. RESET"
    " spark.sql.catalog.{catalog}.implementation, or set it before the catalog is first used, in a"
    " new session.",
)


class NamespaceNotFound(PennonError, condition="NAMESPACE_NOT_FOUND", sql_state="42704"):
    """A namespace of the catalog does not exist."""

    template = "Cannot find namespace {namespace}: {near}. Check the name, or create it first."


NamespaceAlreadyExists = condition(
    "NAMESPACE_ALREADY_EXISTS",
    "42P06",
    "Cannot create namespace {namespace}: there is {kind} of that name. Choose another name, or"
    " add IF NOT EXISTS (exist_ok=True in Python).",
)
NamespaceNotEmpty = condition(
    "NAMESPACE_NOT_EMPTY",
    "2BP01",
    "Cannot drop namespace {namespace}: it contains {contents}. Drop these first, or add CASCADE"
    " (cascade=True in Python).",
)
NamespaceChangeRefused = condition(
    "NAMESPACE_CHANGE_REFUSED",
    "0A000",
    "Cannot change the properties of namespace {namespace}: {why}. {advice}.",
)


class StatementNotSupported(PennonError, condition="STATEMENT_NOT_SUPPORTED", sql_state="0A000"):
    """A statement of Spark or of another table format that means nothing here."""

    template = "Cannot run {statement} on {table}: {why}. Type instead: {advice}."


WriteOptionNotSupported = condition(
    "WRITE_OPTION_NOT_SUPPORTED",
    "0A000",
    "Cannot write {table} with the option {option}: this option is not supported and"
    " would be ignored. {advice}.",
)
ReadOptionNotSupported = condition(
    "READ_OPTION_NOT_SUPPORTED",
    "0A000",
    "Cannot read {table} with the option {option}: this option is not supported and"
    " would be ignored. {advice}.",
)
StreamColumnLeftOut = condition(
    "STREAM_COLUMN_LEFT_OUT",
    "42601",
    "Cannot write a stream without the column {column} to {table}: Spark fills in no DEFAULT"
    " ({default}) of a stream. Select the column, with the value that its rows are to have.",
)
StreamColumnUnknown = condition(
    "STREAM_COLUMN_UNKNOWN",
    "42703",
    "Cannot write a stream with the column {column} to {table}: it has {columns}, and the option"
    " mergeSchema adds none. Run ALTER TABLE {table} ADD COLUMN {column} with its type first, or"
    " leave it out of the stream.",
)
StreamNotRepeatable = condition(
    "STREAM_NOT_REPEATABLE",
    "0A000",
    "Cannot write a stream into {table}: it records no commit ids, so a batch replayed after a"
    " restart would be written twice. Write into a table with strong transactions, or write"
    " the batches by foreachBatch.",
)


class TableNotFound(PennonError, condition="TABLE_NOT_FOUND", sql_state="42P01"):
    """A table of the catalog does not exist."""

    template = "Cannot find table {table}: {near}. Check the name, or create it first."


TableAlreadyExists = condition(
    "TABLE_ALREADY_EXISTS",
    "42P07",
    "Cannot create table {table}: there is {kind} of that name. Choose another name, or drop it"
    " first.",
)
TableMadeAnew = condition(
    "TABLE_MADE_ANEW",
    "55000",
    "Cannot use table {table} as the query saw it: another table was made at {location} since. Run"
    " the query anew; a stream that reads it, with another checkpoint.",
)


class RegistrationRefused(PennonError, condition="REGISTRATION_REFUSED", sql_state="0A000"):
    """A table that is there cannot be given a name."""

    template = "Cannot register {path} as {table}: {why}. {advice}."


PathNotTable = condition(
    "PATH_NOT_TABLE",
    "42P01",
    "Cannot read {path} as a table: {why}. Name the folder of a partitioned namespace or of a"
    " Lance dataset.",
)


class TableVersionNotFound(PennonError, condition="TABLE_VERSION_NOT_FOUND", sql_state="42K0E"):
    """A version or a time to travel to does not exist."""

    template = "Cannot read {table} {asked}: {why}. Choose one of the versions that exist."


class RootNotUsable(PennonError, condition="ROOT_NOT_USABLE", sql_state="58030"):
    """The catalog's root is missing or cannot be read or written."""

    template = (
        "Cannot use the root {root} of catalog {catalog}: {why}. Name a folder or URL that can be"
        " read and written: in spark.sql.catalog.{catalog}.root, after --root on the command line,"
        " or in pennon.connect."
    )


RootNotFound = condition(
    "ROOT_NOT_FOUND",
    "58030",
    "Cannot find a lake at {root}: there is no such folder. Give --root the folder or URL of a"
    " lake; the first CREATE NAMESPACE makes it.",
)
UnknownImplementation = condition(
    "UNKNOWN_IMPLEMENTATION",
    "42704",
    "Cannot start catalog {catalog} with the implementation {implementation}: {why}. Name one"
    " of lance_namespace, with its options as spark.sql.catalog.{catalog}.namespace.* or"
    " namespace_options; without one it is the directory namespace.",
)


class CatalogRefused(PennonError, condition="CATALOG_REFUSED", sql_state="58030"):
    """The lance_namespace implementation refused."""

    template = (
        "Cannot {action} {object}: the namespace implementation refused with {reason}. Check the"
        " root, or the service and its address, and the access rights."
    )


class UnsupportedColumnType(PennonError, condition="UNSUPPORTED_COLUMN_TYPE", sql_state="0A000"):
    """A column has a type that Lance or Spark does not store."""

    template = (
        "Cannot store or read column {column}: type {type} has no counterpart in {target}. Cast it"
        " to a type of both, or leave it out."
    )


HiddenColumnLost = condition(
    "HIDDEN_COLUMN_LOST",
    "0A000",
    "Cannot {action}: Spark does not see the column {column} of type {type}, whose values {why}."
    " Do it in Python, or drop the column.",
)
InvalidColumnName = condition(
    "INVALID_COLUMN_NAME",
    "42602",
    "Cannot name a column '{name}': {why}. Choose another name, for example `{example}`.",
)
InvalidTableName = condition(
    "INVALID_TABLE_NAME",
    "42602",
    "Cannot name a table or a namespace '{name}': {why}. Choose a name without slashes, $, ; and"
    " control characters.",
)
NewTableRefused = condition(
    "NEW_TABLE_REFUSED",
    "0A000",
    "Cannot create table {table}: {why}. {advice}.",
)
TablePropertyRefused = condition(
    "TABLE_PROPERTY_REFUSED",
    "0A000",
    "Cannot set the property {property} = '{value}' of table {table}: {why}. {advice}.",
)


class UnsupportedTableChange(PennonError, condition="UNSUPPORTED_TABLE_CHANGE", sql_state="0A000"):
    """An ALTER TABLE that cannot be done safely."""

    template = "Cannot {change} of table {table}: {why}. {advice}."


UnsupportedTransform = condition(
    "UNSUPPORTED_TRANSFORM",
    "42601",
    "Cannot partition by {transform}: {why}. Correct its arguments.",
)


class WriteConflict(PennonError, condition="WRITE_CONFLICT", sql_state="40001"):
    """Another commit changed what a write depends on."""

    template = (
        "Cannot commit the write to {table}: {why}. Nothing of it is visible. Run the statement"
        " again."
    )


class RowsMoved(WriteConflict, condition="ROWS_MOVED"):
    """A rewrite put rows that a statement is about into other partitions before it committed.

    Nobody changed them: whoever runs the statement again finds them where they are now.
    """

    template = (
        "Cannot commit the write to {table}: {why}, and rewrite_partitions has put rows into other"
        " partitions since. Nothing of it is visible. Run the statement again."
    )


CommitGivenUp = condition(
    "COMMIT_GIVEN_UP",
    "40000",
    "Cannot make commit {commit} of {location}: the write was aborted meanwhile. Nothing of it is"
    " visible. Run the statement again.",
)
UnknownIsolation = condition(
    "UNKNOWN_ISOLATION",
    "22023",
    "Cannot use the table property {property} = '{value}': it is neither 'serializable' nor"
    " 'snapshot'. Set it to one of them, or unset it for 'serializable'.",
)
RowChangeModeRefused = condition(
    "ROW_CHANGE_MODE_REFUSED",
    "22023",
    "Cannot use the table property {property} = '{value}': it is neither 'merge-on-read' nor"
    " 'copy-on-write'. Set it to one of them, or unset it for 'merge-on-read'.",
)


class NotWholePartitions(PennonError, condition="NOT_WHOLE_PARTITIONS", sql_state="0A000"):
    """A condition to delete or overwrite by divides a partition."""

    template = (
        "Cannot {action} the rows of {table} where {predicate}: partition {partition} may hold both"
        " rows that satisfy it and rows that do not, as {undecided} of {total} partitions may."
        " Write a condition that decides whole partitions, by {keys}."
    )


OverlapsOlderPartition = condition(
    "OVERLAPS_OLDER_PARTITION",
    "0A000",
    "Cannot overwrite the partitions of {table} that the rows fall into: partition {partition} of"
    " spec version {spec_version} is coarser and may hold rows of others as well. Overwrite by a"
    " condition, or the whole table.",
)
UnknownProcedure = condition(
    "UNKNOWN_PROCEDURE",
    "42883",
    "Cannot call procedure {procedure}: {why}. Procedures are: {known}.",
)

# Procedures: CALL itself, repairing, adopting and migrating.

ProcedureArgument = condition(
    "PROCEDURE_ARGUMENT",
    "42601",
    "Cannot call procedure {procedure} with parameter {parameter}: {why}. Its parameters are:"
    " {known}.",
)
InvalidRetention = condition(
    "INVALID_RETENTION",
    "22023",
    "Cannot use the table property {property} = '{value}': it is no whole number from {least} to"
    " {most}. Set it to one, or unset it.",
)
RollbackRefused = condition(
    "ROLLBACK_REFUSED",
    "0A000",
    "Cannot roll back {table} to version {version}: {why}. {advice}.",
)


class TransactionModeChanged(PennonError, condition="TRANSACTION_MODE_CHANGED", sql_state="40001"):
    """The transactions of a table become, or became, others while it is written."""

    template = "Cannot write to {table}: {why}. {advice}."


class ManifestNotRepairable(PennonError, condition="MANIFEST_NOT_REPAIRABLE", sql_state="55000"):
    """Lost columns of a manifest cannot be restored."""

    template = "Cannot repair {location}: {why}. {advice}."


class AdoptionRefused(PennonError, condition="ADOPTION_REFUSED", sql_state="22023"):
    """A dataset cannot become a partition as it is."""

    template = "Cannot adopt {dataset} into {table}: {why}. {advice}."


class DraftLayout(PennonError, condition="DRAFT_LAYOUT", sql_state="0A000"):
    """The namespace has the layout of the older draft of the specification."""

    template = (
        "Cannot {verb} {location}: it has the layout of an older draft (lance.partitioning.*),"
        " which is only read. Run `pennon migrate {location}`, which rewrites no data file."
    )


DraftNotReadable = condition(
    "DRAFT_NOT_READABLE",
    "22032",
    "Cannot read {location} as a namespace of the older draft: {why}. {advice}.",
)


class MigrationRefused(PennonError, condition="MIGRATION_REFUSED", sql_state="22023"):
    """A namespace of the older draft cannot become one of the current format."""

    template = "Cannot migrate {location}: {why}. {advice}."


class PlainDatasetRefused(PennonError, condition="PLAIN_DATASET", sql_state="0A000"):
    """A procedure needs a manifest, and the table is a plain dataset."""

    template = (
        "Cannot run {procedure} on {table}: it is a plain Lance dataset, which has no partitions"
        " and no __manifest. Make a partitioned table of it with CREATE TABLE … AS SELECT; compact,"
        " vacuum, expire_snapshots and rollback take it as it is."
    )


# Tags and change feeds.


class TagSyntax(PennonError, condition="TAG_SYNTAX", sql_state="42601"):
    """A statement about tags or branches is not understood."""

    template = "Cannot parse {text}: {why}. Write {form}."


class TagRefused(PennonError, condition="TAG_REFUSED", sql_state="22023"):
    """A tag cannot be made as it is asked for."""

    template = "Cannot make tag {tag} of {table}: {why}. {advice}."


TagAlreadyExists = condition(
    "TAG_ALREADY_EXISTS",
    "42710",
    "Cannot create tag {tag} of {table}: it names version {version} already. Choose another name,"
    " or replace it with CREATE OR REPLACE TAG (--replace on the command line, replace=True in"
    " Python).",
)


class TagNotFound(PennonError, condition="TAG_NOT_FOUND", sql_state="42704"):
    """There is no such tag."""

    template = "Cannot {verb} tag {tag} of {table}: {known}. Check the name."


BranchesNotSupported = condition(
    "BRANCHES_NOT_SUPPORTED",
    "0A000",
    "Cannot run {statement} on {table}: the format has one line of versions and no branches. Name"
    " a version with CREATE TAG, or copy the table with CREATE TABLE … AS SELECT.",
)
ChangesNotKept = condition(
    "CHANGES_NOT_KEPT",
    "0A000",
    "Cannot list the changes of {location} at version {version}: {why}. Read the changes of a"
    " table of strong transactions.",
)
ChangesNotPaired = condition(
    "CHANGES_NOT_PAIRED",
    "21000",
    "Cannot pair the changes of {table} at version {version} by {key}: several rows have the same"
    " values. Name columns whose values identify a row, or read without a key.",
)
ChangeKeyMissing = condition(
    "CHANGE_KEY_MISSING",
    "42601",
    "Cannot tell updates among the changes of {table}: no column is named whose values tell rows"
    " apart. Name them in the option key: WITH (computeUpdates = 'true', key = 'id').",
)
ChangeRangeReversed = condition(
    "CHANGE_RANGE_REVERSED",
    "22023",
    "Cannot list the changes of {table} from {start} to {end}: the first is the later one."
    " Exchange them.",
)

# Tables that are read as streams.


class StreamOptionRefused(PennonError, condition="STREAM_OPTION_REFUSED", sql_state="22023"):
    """An option of a stream's source is not known, or has a value that it cannot have."""

    template = "Cannot read {table} as a stream with {option} = {value!r}: {why}. {advice}."


StreamSourceRefused = condition(
    "STREAM_SOURCE_REFUSED",
    "0A000",
    "Cannot read {table} as a stream: {why}. Read a table with strong transactions, or the whole"
    " table in each batch of another stream by foreachBatch.",
)
StreamSourceChanged = condition(
    "STREAM_SOURCE_CHANGED",
    "55000",
    "Cannot read version {version} of {table} as a stream: its {operation} removed or changed"
    " rows. Set option('skipChangeCommits', 'true') to pass over such commits, with the rows that"
    " they add, or start anew with another checkpoint.",
)


class StreamPositionExpired(PennonError, condition="STREAM_POSITION_EXPIRED", sql_state="55000"):
    """The versions behind a stream's position are not all there any more."""

    template = (
        "Cannot read {table} as a stream from version {version} on: {why}. Start anew with another"
        " checkpoint, and keep versions for longer than the stream pauses"
        " (history.expire.max-snapshot-age-ms)."
    )


StreamColumnsChanged = condition(
    "STREAM_COLUMNS_CHANGED",
    "55000",
    "Cannot read version {version} of {table} into the columns that the stream began with: column"
    " {column} {what}. Start the stream again, with its checkpoint.",
)


# Searches by vectors.


class NotVectorColumn(PennonError, condition="NOT_A_VECTOR_COLUMN", sql_state="42804"):
    """The column that is searched is none of vectors."""

    template = (
        "Cannot search {table} by {column}: {why}, and vectors are lists of one size, of floating"
        " point numbers or bytes. Name one of {columns}, or make a column with the table property"
        " '{name}.arrow.fixed-size-list.size'."
    )


QueryDimensionMismatch = condition(
    "QUERY_DIMENSION_MISMATCH",
    "22000",
    "Cannot search {table} by {column}: the query has {given} elements, and the column's vectors"
    " have {expected}. Give {expected} numbers, of the same model as the column's.",
)
QueryVectorRefused = condition(
    "QUERY_VECTOR_REFUSED",
    "22023",
    "Cannot search {table} by {column}: {why}. Give {dimension} finite numbers, or several lists"
    " of so many.",
)
SearchOptionRefused = condition(
    "SEARCH_OPTION_REFUSED",
    "22023",
    "Cannot search {table} with {option} = {value}: it is {why}. Give {expected}.",
)


class IndexAlreadyExists(PennonError, condition="INDEX_ALREADY_EXISTS", sql_state="42710"):
    """The table has an index of the name already."""

    template = (
        "Cannot create index {name} on {table}: it has one of that name. Choose another name, or"
        " drop that one first."
    )


class IndexNotFound(PennonError, condition="INDEX_NOT_FOUND", sql_state="42704"):
    """The table has no index of the name."""

    template = "Cannot find index {name} of {table}: it has {known}. Name one of these."


class IndexRefused(PennonError, condition="INDEX_REFUSED", sql_state="0A000"):
    """An index cannot be of such a kind, or of such a column."""

    template = "Cannot create index {name} on {table}: {why}. {advice}."


class IndexSyntax(PennonError, condition="INDEX_SYNTAX", sql_state="42601"):
    """A statement about an index is not understood."""

    template = "Cannot parse {text}: {why}. Write {form}."


IndexOptionRefused = condition(
    "INDEX_OPTION_REFUSED",
    "22023",
    "Cannot create index {index} with the option {option} = {value}: {why}. Give {expected}.",
)
