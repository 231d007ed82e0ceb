"""What the jar refuses by itself: before it has asked a worker, or because it has none.

The jar has these texts from ``make wire``, and raises them itself. A worker that cannot
start says so by the same class.
"""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class CatalogRootMissing(PennonError):
    """A catalog has no root, or an empty one."""

    condition = "CATALOG_ROOT_MISSING"
    template = (
        "Cannot use catalog {catalog}: it has no root. Set spark.sql.catalog.{catalog}.root to the "
        "path or URL of the directory that holds the namespaces."
    )
    sql_state = "42K0H"


class CatalogRootFixed(PennonError):
    """The session states another root than the one that its catalog began with."""

    condition = "CATALOG_ROOT_FIXED"
    template = (
        "Cannot move catalog {catalog} to {stated}: this session has it at {root}, and a catalog "
        "keeps its root. RESET spark.sql.catalog.{catalog}.root goes on there; stop the session "
        "first to move, or give the other root to a catalog of another name."
    )
    sql_state = "55000"


class CatalogStorageFixed(PennonError):
    """The session states another storage option than its catalog began with."""

    condition = "CATALOG_STORAGE_FIXED"
    template = (
        "Cannot change {option} of catalog {catalog}: this session has begun to use the catalog, "
        "which keeps its storage options. RESET spark.sql.catalog.{catalog}.{option}, or set it in "
        "a new session."
    )
    sql_state = "55000"


class CatalogNotConfigured(PennonError):
    """A source is loaded or saved by its format in a session without a catalog of Pennon."""

    condition = "CATALOG_NOT_CONFIGURED"
    template = (
        'Cannot use format("pennon"): the session has no Pennon catalog. Start it with '
        "pennon.spark(root=…), or set spark.sql.catalog.lance = dev.pennon.spark.PennonCatalog "
        "and spark.sql.catalog.lance.root."
    )
    sql_state = "42K0H"


class SourceNotNamed(PennonError):
    """What is to be loaded or saved is neither one path nor one table."""

    condition = "SOURCE_NOT_NAMED"
    template = (
        "Cannot find what to load or save: {why}. Name one path, or one table, as in "
        'load("lance.shop.orders").'
    )
    sql_state = "42601"


class TableOutsideOfCatalog(PennonError):
    """A table is to be made in Spark's own catalog, in the format of this one."""

    condition = "TABLE_OUTSIDE_OF_CATALOG"
    template = (
        "Cannot create table {table} USING {format}: Spark's own catalog keeps no tables of this "
        "format. Create it in a Pennon catalog, CREATE TABLE lance.shop.orders …, and name it "
        "here by CREATE VIEW {table} AS SELECT * FROM lance.shop.orders."
    )
    sql_state = "0A000"


class AnalyzeTablesNotSupported(PennonError):
    """The tables of a namespace are to be analysed by one statement."""

    condition = "ANALYZE_TABLES_NOT_SUPPORTED"
    template = (
        "Cannot analyze all tables of {namespace} by one statement: writes keep the statistics of "
        "what they write. Run CALL {catalog}.system.analyze(table => …) for a table whose "
        "statistics lack something."
    )
    sql_state = "0A000"


class TableChangesRefused(PennonError):
    """A call of table_changes has ends that are none."""

    condition = "TABLE_CHANGES_REFUSED"
    template = (
        "Cannot read the changes of {table} by table_changes: {why}. Write "
        "table_changes('lance.shop.orders', 3, 9) or table_changes('lance.shop.orders', "
        "'2025-01-02 03:04:05'): a first and a last version, or times as texts; the last may be "
        "left out."
    )
    sql_state = "22023"


class TimeUnknown(PennonError):
    """An application states a time, and not as one."""

    condition = "TIME_UNKNOWN"
    template = (
        "Cannot use {setting} = {value}: it is no time. Write a number with a unit, such as 120s "
        "or 5m, or leave it out."
    )
    sql_state = "22023"


class ReadOptionOfStreams(PennonError):
    """A read that is no stream has an option of streams."""

    condition = "READ_OPTION_OF_STREAMS"
    template = (
        "Cannot read {table} with the option {option}: it is one of streams, and this read would "
        "give all rows of the table. Write spark.readStream, or read one version with "
        'option("versionAsOf", …), and {table}.changes for what happened between versions.'
    )
    sql_state = "0A000"


class StatementNotExplained(PennonError):
    """What is to be explained is no query."""

    condition = "STATEMENT_NOT_EXPLAINED"
    template = (
        "Cannot explain the statement {statement}: it reads no rows. Give {procedure} a query, or "
        "a statement that changes or makes a table by the rows of one."
    )
    sql_state = "42601"


class ConditionNotSupported(PennonError):
    """The rows that go are chosen by what only Spark evaluates."""

    condition = "CONDITION_NOT_SUPPORTED"
    template = (
        "Cannot {action} the rows of {table} where {condition}: it has a part that only Spark "
        "evaluates. Compare columns with literals instead."
    )
    sql_state = "0A000"


class HoursOutOfRange(PennonError):
    """A timestamp is more hours from 1970 than the values of ``hours`` can count."""

    condition = "HOURS_OUT_OF_RANGE"
    template = (
        "Cannot compute hours({value}): these are {hours} hours since 1970, and the values of "
        "hours are integers of 32 bits, from the year -243014 to 246953. Correct the value, or "
        "partition by days."
    )
    sql_state = "22008"


class RowIdHidden(PennonError):
    """A column has a name by which statements tell the rows apart that they change."""

    condition = "ROW_ID_HIDDEN"
    template = (
        "Cannot {action} single rows of {table}: a column of it is called as one that names rows "
        "(_leaf, _leaf_version, _rowaddr) or that Spark adds to them (__row_operation, __row_id, "
        "__row_from_source, __row_from_target, __original_row_id_…). Rename the column."
    )
    sql_state = "42710"


class MetadataColumnSet(PennonError):
    """A statement assigns a value to a metadata column."""

    condition = "METADATA_COLUMN_SET"
    template = (
        "Cannot set {column} of {table}: it is a metadata column, which follows from where a row is"
        " stored. Set columns of the table alone."
    )
    sql_state = "42808"


class OverwriteByMetadata(PennonError):
    """An overwrite chooses what it replaces by a metadata column."""

    condition = "OVERWRITE_BY_METADATA"
    template = (
        "Cannot overwrite the rows of {table} where {condition}: it names a metadata column, and "
        "whole partitions are replaced, by columns of the table. Name such columns; to move rows of"
        " earlier specs to the current one, CALL lance.system.rewrite_partitions."
    )
    sql_state = "0A000"


class TransformArgumentNotSupported(PennonError):
    """A partition transform has an argument that no transform takes."""

    condition = "TRANSFORM_ARGUMENT_NOT_SUPPORTED"
    template = (
        "Cannot use {argument} as an argument of partition transform {transform}: it is neither a "
        "column, an integer nor a string. Write one of these."
    )
    sql_state = "42601"


class PartitionFieldsNotSupported(PennonError):
    """A statement was read as one about a table of Pennon, and reached another catalog."""

    condition = "PARTITION_FIELDS_NOT_SUPPORTED"
    template = (
        "Cannot change partition fields or a write order: the table was read as one of a Pennon "
        "catalog, and is of another one. Write the catalog's name before the table's."
    )
    sql_state = "0A000"


class StatementReadByAnother(PennonError):
    """Another extension's parser has taken a statement that it shares with Pennon's."""

    condition = "STATEMENT_READ_BY_ANOTHER"
    template = (
        "Cannot alter {table} by this statement: the parser of another extension has read it. "
        "Name dev.pennon.spark.PennonExtensions last in spark.sql.extensions; a write order can be "
        "set as the table property 'write.order', too."
    )
    sql_state = "0A000"


class WorkerNotStarted(PennonError):
    """There is no worker, and none could be started."""

    condition = "WORKER_NOT_STARTED"
    template = (
        "Cannot start the Pennon worker with the Python interpreter '{python}': {why}. Set "
        "spark.pyspark.python (or PYSPARK_PYTHON) to a Python 3.11 or later in which the package "
        "pennon of this jar's version is installed, on every machine that runs Spark executors, "
        "and spark.pyspark.driver.python where the driver has another. The log has its output."
    )
    sql_state = "58000"


class WorkerLost(PennonError):
    """The worker, or the connection to it, ended while it was asked."""

    condition = "WORKER_LOST"
    template = (
        "Cannot complete the request: the connection to the Pennon worker ended ({why}). Run it "
        "again, a new worker is started; the log says why the old one ended."
    )
    sql_state = "08006"


class CommitOutcomeUnknown(PennonError):
    """The worker was lost each time that a commit was sent."""

    condition = "COMMIT_OUTCOME_UNKNOWN"
    template = (
        "Cannot determine whether the write to {table} was committed: the worker was lost each "
        "time it was asked ({why}). Look for commit {commit} in the table's history before you run "
        "it again."
    )
    sql_state = "08007"


class WorkerProtocol(PennonError):
    """One of the two sides sent what the other does not understand: never the user's fault."""

    condition = "WORKER_PROTOCOL"
    template = (
        "Cannot understand a message between Spark and the Pennon worker: {why}. This is a bug of "
        "Pennon, or its jar and its Python package are of different versions."
    )
