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

# --- transforms ---------------------------------------------------------------------------

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

# --- transactions -------------------------------------------------------------------------------

# --- catalog ------------------------------------------------------------------------------------

# --- the worker and the installation ------------------------------------------------------------


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

