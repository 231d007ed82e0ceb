"""The root of all errors, and those of what a namespace stores: specs, its manifest, leaves.

An error that code names as a type, in a handler or an annotation, is a class; so is one that is
not called as its condition. All others are rows of a table, made by ``condition``.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import ClassVar, Final

_PACKAGE: Final = Path(__file__).parents[1]


class PennonError(Exception):
    """Root of all errors that Pennon raises for a user.

    Args:
        **parameters: The values that the class's ``template`` names.

    Example:
        >>> print(str(InternalError(what="The reply had no schema"))[:51])
        [INTERNAL_ERROR] The reply had no schema. This is a
    """

    __module__ = "pennon.errors"
    condition: ClassVar[str] = "PENNON_ERROR"
    template: ClassVar[str] = "{message}."
    sql_state: ClassVar[str] = "XX000"

    def __init_subclass__(
        cls, *, condition: str | None = None, sql_state: str | None = None
    ) -> None:
        """Take what the class statement says; the error is one of the package, not of a module."""
        cls.condition = condition or cls.condition
        cls.sql_state = sql_state or cls.sql_state
        if cls.__module__.startswith("pennon.errors."):
            cls.__module__ = "pennon.errors"

    def __init__(self, **parameters: object) -> None:
        self.parameters = {name: str(value) for name, value in parameters.items()}
        self.message = self.template.format(**self.parameters)
        super().__init__(f"[{self.condition}] {self.message}")

    def _render_traceback_(self) -> list[str]:
        """Show in a notebook where the caller is, and what it met: nothing of what lies between."""
        frames = traceback.extract_tb(self.__traceback__)
        own = next((at for at, frame in enumerate(frames) if _is_ours(frame)), len(frames))
        called = [frame for frame in frames[:own] if "/IPython/" not in frame.filename]
        return [*traceback.format_list(called), f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Travel between processes by class and parameters: the message is made of them."""
        return _made_again, (type(self), self.parameters)


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return Path(frame.filename).is_relative_to(_PACKAGE)


def _made_again(kind: type[PennonError], parameters: dict[str, str]) -> PennonError:
    return kind(**parameters)


def condition(name: str, sql_state: str, template: str) -> type[PennonError]:
    """Make the class of an error that no code names as a type.

    Args:
        name: The condition. The class is named as it is, in CamelCase, and has to be bound to
            that name: errors are pickled by it.
        sql_state: The SQLSTATE that Spark's users and JDBC see.
        template: The text.

    Returns:
        The class.
    """
    stated = {"condition": name, "sql_state": sql_state, "template": template, "__doc__": template}
    return type(name.title().replace("_", ""), (PennonError,), stated)


class InternalError(PennonError, condition="INTERNAL_ERROR"):
    """Something that cannot happen did."""

    template = "{what}. This is a bug in Pennon: please report it with the log of the worker."


# Schemas, partition specs and their evolution.


class InvalidArrowJson(PennonError, condition="INVALID_ARROW_JSON", sql_state="22032"):
    """A JSON object does not describe an Arrow field or type."""

    template = "Cannot read {where}: found {actual}, expected {expected}. Correct the JSON text."


class CorruptJson(PennonError, condition="CORRUPT_JSON", sql_state="22032"):
    """A JSON text of the namespace's metadata cannot be parsed."""

    template = (
        "Cannot parse the metadata key {key} of __manifest: {problem} at line {line}, column"
        " {column}. Restore the text, or open an earlier version of the namespace."
    )


class InvalidNamespaceSchema(PennonError, condition="INVALID_NAMESPACE_SCHEMA", sql_state="22032"):
    """The schema of a namespace breaks a rule of the format."""

    template = (
        "Cannot use the namespace schema: {where} has {actual}, expected {expected}. Correct the"
        " schema."
    )


class InvalidPartitionSpec(PennonError, condition="INVALID_PARTITION_SPEC", sql_state="22032"):
    """A partition spec breaks a rule of the format."""

    template = (
        "Cannot use {key}: {where} has {actual}, expected {expected}. Correct the spec, or upgrade"
        " Pennon."
    )


class PartitionFieldExists(PennonError, condition="PARTITION_FIELD_EXISTS", sql_state="42711"):
    """The partition field to add is there already."""

    template = (
        "Cannot add partition field {transform}: field '{field}' of spec v{spec_version} {reason}."
        " Choose another transform or name, or use REPLACE PARTITION FIELD {field}."
    )


class PartitionFieldNotFound(PennonError, condition="PARTITION_FIELD_NOT_FOUND", sql_state="42704"):
    """The partition field to drop or replace is not in the current spec."""

    template = (
        "Cannot find partition field {field}: spec v{spec_version} has {existing}. Name one of"
        " these, or its transform."
    )


PartitionSourceNotFound = condition(
    "PARTITION_SOURCE_NOT_FOUND",
    "42703",
    "Cannot partition by {transform}: there is no column {column}. The columns are {existing}.",
)


class InvalidPartitionFieldName(
    PennonError, condition="INVALID_PARTITION_FIELD_NAME", sql_state="42602"
):
    """The name that the user gave to a partition field cannot be a field id."""

    template = (
        "Cannot name a partition field '{name}': {reason}. Use lower-case letters, digits and"
        " underscores that no other partition field has used, or give no name."
    )


class PartitionFieldIdKept(InvalidPartitionFieldName, condition="PARTITION_FIELD_ID_KEPT"):
    """A field of an earlier spec version comes back, and is to have another name."""

    template = (
        "Cannot name a partition field '{name}': this transform of these columns has the field id"
        " '{field_id}' since an earlier spec version, and the format demands to use it again. Leave"
        " the name out (AS {name} in SQL): the field is '{field_id}' again."
    )


class PartitionFieldSyntax(PennonError, condition="PARTITION_FIELD_SYNTAX", sql_state="42601"):
    """The text after PARTITION FIELD is no field."""

    template = (
        "Cannot parse '{text}' in {statement}: {why}. Write {form}, for example bucket(16, id)."
    )


class WriteOrderSyntax(PennonError, condition="WRITE_ORDER_SYNTAX", sql_state="42601"):
    """The text of a write order is no list of columns."""

    template = (
        "Cannot read the write order '{order}': {reason}. Write top-level columns, each with ASC or"
        " DESC and NULLS FIRST or NULLS LAST if need be, for example id, ts DESC NULLS LAST."
    )


WriteOrderColumnNotFound = condition(
    "WRITE_ORDER_COLUMN_NOT_FOUND",
    "42703",
    "Cannot order writes by '{order}': there is no column {column}. The columns are {columns}.",
)
WriteOrderTypeNotSupported = condition(
    "WRITE_ORDER_TYPE_NOT_SUPPORTED",
    "42804",
    "Cannot order writes by '{order}': column {column} is {actual}. Choose columns that are"
    " numbers, booleans, dates, timestamps in microseconds, texts or binary.",
)

# Partition transforms.

UnknownTransform = condition(
    "UNKNOWN_TRANSFORM",
    "42883",
    "Cannot use partition transform {name}: it is not known. Use one of {known}.",
)


class InvalidTransform(PennonError, condition="INVALID_TRANSFORM", sql_state="22023"):
    """A transform whose parameters are missing, too many or out of range."""

    template = (
        "Cannot use partition transform {transform}: it takes {expected}, not {actual}. Write it as"
        " {form}."
    )


class TransformSyntax(PennonError, condition="TRANSFORM_SYNTAX", sql_state="42601"):
    """A text that is neither a column nor a transform."""

    template = (
        "Cannot read {transform} as a partition transform: {why}. Write a column, or a transform"
        " such as bucket(16, customer_id) or months(ordered_at)."
    )


class TransformOnWrongType(PennonError, condition="TRANSFORM_ON_WRONG_TYPE", sql_state="42804"):
    """A transform on a column of a type that it does not take."""

    template = (
        "Cannot apply {transform} to a column of type {type}: it takes {allowed}. Choose another"
        " transform, or another column."
    )


class PartitionExpressionFailed(
    PennonError, condition="PARTITION_EXPRESSION_FAILED", sql_state="22000"
):
    """DataFusion could not evaluate a partition expression."""

    template = (
        "Cannot evaluate the partition expression {expression} over columns of types {types}:"
        " DataFusion says {reason}. Correct the expression, or cast its columns to the types that"
        " it takes."
    )


class PartitionExpressionRejected(
    PennonError, condition="PARTITION_EXPRESSION_REJECTED", sql_state="42611"
):
    """An expression breaks one of the format's requirements on partition expressions."""

    template = (
        "Cannot partition by the expression {expression} over columns of types {types}: it is not"
        " {requirement}, since {reason}. Change the expression so that every client computes the"
        " same partition value for equal rows, at any time."
    )


# Predicates.


class PredicateSyntaxError(PennonError, condition="PREDICATE_SYNTAX_ERROR", sql_state="42601"):
    """A predicate that is no boolean expression of Spark SQL."""

    template = (
        "Cannot read predicate {predicate}: {reason} at line {line}, column {column}. Write one"
        " boolean expression of Spark SQL."
    )


class PredicateTooDeep(PennonError, condition="PREDICATE_TOO_DEEP", sql_state="54001"):
    """A predicate whose parts are nested too deep to be read."""

    template = (
        "Cannot read predicate {predicate}: its parts are nested more than {most} levels deep."
        " Write chains of AND or OR without parentheses around each pair, or a list with IN."
    )


# Planning.


class UnknownColumn(PennonError, condition="UNKNOWN_COLUMN", sql_state="42703"):
    """A predicate or projection names a column that the table does not have."""

    template = "Cannot find column {column}: the table has {columns}. Name one of its columns."


PredicateNotEvaluable = condition(
    "PREDICATE_NOT_EVALUABLE",
    "0A000",
    "Cannot evaluate the predicate {predicate} on {namespace}: {reason}. Use comparisons and"
    " functions that DataFusion knows, or filter the rows afterwards.",
)

# The ``__manifest`` table.


class NamespaceHasNoManifest(PennonError, condition="NOT_A_NAMESPACE", sql_state="42P01"):
    """The location holds no ``__manifest`` table."""

    template = (
        "Cannot open {location} as a partitioned namespace: it has no __manifest table. Check the"
        " path, or create the namespace; a plain dataset has no partitions to check, analyze or"
        " rewrite."
    )


class TableFilesGone(NamespaceHasNoManifest, condition="TABLE_FILES_GONE", sql_state="58030"):
    """The catalog names a table whose folder is not there, or empty."""

    template = (
        "Cannot open {table}: the catalog names {location}, and no table is there. Restore the"
        " folder from a copy, or drop the table, which then frees its name."
    )


class NotPartitionedNamespace(
    PennonError, condition="NOT_A_PARTITIONED_NAMESPACE", sql_state="42P01"
):
    """The location is a directory namespace without partition specs."""

    template = (
        "Cannot open {location} as a partitioned namespace: the metadata of its __manifest has no"
        " partition_spec_v<N> key. It holds tables: open one of them, or make it the root of a"
        " catalog (pennon.connect, spark.sql.catalog.<name>.root)."
    )


NamespaceSchemaMissing = condition(
    "NAMESPACE_SCHEMA_MISSING",
    "22032",
    "Cannot open {location}: the metadata of its __manifest has {keys} but no schema key. Run"
    " `pennon repair {location}`, which restores it from an earlier version.",
)


class ManifestMetadataLost(PennonError, condition="MANIFEST_METADATA_LOST", sql_state="55000"):
    """A foreign writer removed what makes ``__manifest`` a partitioned namespace's."""

    template = (
        "Cannot read {location}: the metadata of version {version} of its __manifest has no key"
        " {keys}; a writer that does not know it dropped it. Run `pennon repair {location}`, which"
        " restores it from an earlier version."
    )


PropertiesInSchema = condition(
    "PROPERTIES_IN_SCHEMA",
    "55000",
    "Cannot read {location}: its schema and partition specs stand in the metadata of the Arrow"
    " schema of its __manifest, where Daft writes them, and not in the table's metadata, where the"
    " specification has them. Run `pennon repair {location}`, which copies them there.",
)
ManifestColumnsLost = condition(
    "MANIFEST_COLUMNS_LOST",
    "55000",
    "Cannot read {location}: version {version} of its __manifest has no column {columns}, which"
    " its partition specs need; a writer that does not know them dropped them. Run `pennon repair"
    " {location}`, which restores them from an earlier version.",
)
ManifestRowDoubled = condition(
    "MANIFEST_ROW_DOUBLED",
    "55000",
    "Cannot use {location}: version {version} of its __manifest has {count} rows with the"
    " object_id {object_id}. Run `pennon repair {location}`, or open an earlier version.",
)
LeafMisnamed = condition(
    "LEAF_MISNAMED",
    "55000",
    "Cannot read {location}: version {version} of its __manifest has the table row {object_id},"
    " whose name does not match its partition spec (expected {expected}). Correct its object_id,"
    " or delete the row; `pennon check` names every such row.",
)
LeafNotLocated = condition(
    "LEAF_NOT_LOCATED",
    "55000",
    "Cannot read {location}: version {version} of its __manifest has no location in the table row"
    " {object_id}. Write the name of the partition's folder into it, or delete the row; `pennon"
    " check` names every such row.",
)
ManifestColumnMissing = condition(
    "MANIFEST_COLUMN_MISSING",
    "55000",
    "Cannot read {location}: version {version} of its __manifest has no column {column}, which the"
    " specification lists under Manifest Table Schema. Add it as a {expected}; one named metadata"
    " may be NULL in every row.",
)
ManifestColumnType = condition(
    "MANIFEST_COLUMN_TYPE",
    "55000",
    "Cannot read {location}: column {column} of its __manifest is {actual}, but the partition spec"
    " declares {expected}. Correct the spec's result_type.",
)


class SnapshotNotFound(PennonError, condition="SNAPSHOT_NOT_FOUND", sql_state="42704"):
    """No version of the namespace answers the version or the time asked for."""

    template = (
        "Cannot open {location} {asked}: {existing}. Choose a version, or a time, that it has."
    )


class SnapshotExpired(PennonError, condition="SNAPSHOT_EXPIRED", sql_state="55000"):
    """The version that a query reads has expired meanwhile."""

    template = (
        "Cannot read {table}: the version that the query began with expired while it was read. Run"
        " the query again, and keep versions for longer than queries take"
        " (history.expire.max-snapshot-age-ms)."
    )


class NamespaceExists(PennonError, condition="NAMESPACE_LOCATION_EXISTS", sql_state="42P07"):
    """A namespace is to be created where there is one."""

    template = (
        "Cannot create a partitioned namespace at {location}: it has a __manifest table already."
        " Choose another location, or drop what is there."
    )


ReservedProperty = condition(
    "RESERVED_PROPERTY",
    "42939",
    "Cannot set property {name}: Pennon keeps its own records under {prefix}. Choose another name.",
)


class StorageFailure(PennonError, condition="STORAGE_FAILURE", sql_state="58030"):
    """The storage below the manifest refused an operation."""

    template = "Cannot {verb} {location}: {problem}. {advice}."


class StorageFull(StorageFailure, condition="STORAGE_FULL", sql_state="53100"):
    """There is no room left; what was there is as it was."""

    template = (
        "Cannot {verb} {location}: no space is left there. Make room and run it again; vacuum gives"
        " back what failed writes have left of theirs."
    )


# Leaf datasets: reading them, and rows that cannot be written.


class LeafMissing(PennonError, condition="LEAF_MISSING", sql_state="58030"):
    """The manifest names a leaf whose files are not there."""

    template = (
        "Cannot open leaf {leaf} of table {table} at {version}: its files are not there. Restore"
        " them, or drop the partition; never run Lance's own cleanup on a leaf."
    )


class IndexFilesMissing(LeafMissing, condition="INDEX_FILES_MISSING", sql_state="58030"):
    """A leaf's version names an index whose files are not there; its rows are."""

    template = (
        "Cannot search leaf {leaf} of table {table} at {version}: files of an index are not there;"
        " its rows are. CALL refresh_indexes with the name of the index, which `check` tells, or"
        " drop it; never run Lance's own cleanup on a leaf."
    )


LeafFolderTaken = condition(
    "LEAF_FOLDER_TAKEN",
    "55000",
    "Cannot make leaf {leaf} of table {table}: its folder holds a dataset of another writer, with"
    " {num_rows} rows and the columns {columns}, that the table does not name. Move it to another"
    " folder, or delete it if nobody needs it, then write again.",
)
PartitionValueUnknown = condition(
    "PARTITION_VALUE_UNKNOWN",
    "58030",
    "Cannot read leaf {leaf} of table {table}: it lacks a column of which the partition has the"
    " value, and no version of the table that is left names the leaf. Read a version that is left.",
)
LeafReadAtReference = condition(
    "LEAF_READ_AT_REFERENCE",
    "55000",
    "Cannot write to leaf {leaf} of table {table}: the manifest has it read at {reference}, where"
    " new rows would not be seen. Let the client that set this clear read_branch and read_tag of"
    " the leaf's row, then write again.",
)


class LeafTypeMismatch(PennonError, condition="LEAF_TYPE_MISMATCH", sql_state="42846"):
    """A leaf stores a column in a type that does not promote to the namespace's."""

    template = (
        "Cannot read column {column} of leaf {leaf}: it is stored as {actual}, which does not"
        " promote to the table's {expected}. Rewrite the leaf with the table's type."
    )


LeafValueMismatch = condition(
    "LEAF_VALUE_MISMATCH",
    "22003",
    "Cannot read column {column} of leaf {leaf}: a {actual} value cannot be read as {expected}"
    " ({why}). Leave the column out, or store it in a type that its readers have.",
)


class LeafSchemaMismatch(PennonError, condition="LEAF_SCHEMA_MISMATCH", sql_state="42846"):
    """A leaf cannot take the namespace's rows as they are."""

    template = (
        "Cannot write column {column} to leaf {leaf}: it stores {actual}, the table has {expected}."
        " Rewrite the leaf with the table's schema, then write again."
    )


NotNullViolated = condition(
    "NOT_NULL_VIOLATED",
    "23502",
    "Cannot write NULL to column {column} of {table}: it is NOT NULL. Filter these rows out, or"
    " give the column a value.",
)
TextTooLong = condition(
    "TEXT_TOO_LONG",
    "54006",
    "Cannot write a text of {length} characters to column {column} of {table}: its type is {type}."
    " Shorten the text, or make the column longer by ALTER COLUMN {column} TYPE.",
)
TextNotUtf8 = condition(
    "TEXT_NOT_UTF8",
    "22021",
    "Cannot write to {table}: column {column} has a text that is not UTF-8. Read its file in the"
    " encoding that it has, mend the text with make_valid_utf8({column}), or make the column"
    " BINARY.",
)
PartitionSourceDropped = condition(
    "PARTITION_SOURCE_DROPPED",
    "42703",
    "Cannot write to {table}: partition field {field} of spec version {spec_version} is made of a"
    " column that was dropped (field id {source_id}). Run ALTER TABLE … DROP PARTITION FIELD"
    " {field}, or REPLACE it, so that new rows have a spec of their own.",
)
PartitionValueOverflow = condition(
    "PARTITION_VALUE_OVERFLOW",
    "22003",
    "Cannot write to {table}: a value of partition field {field} does not fit the manifest's"
    " {expected}: {why}. Replace the partition field, so that the next spec has the wider type.",
)
WriteColumnUnknown = condition(
    "WRITE_COLUMN_UNKNOWN",
    "42703",
    "Cannot write column {column} to {table}: it has no such column. Its columns are {columns}."
    " Leave it out, or add the column first.",
)
WriteColumnTwice = condition(
    "WRITE_COLUMN_TWICE",
    "42701",
    "Cannot write column {column} to {table}: what is written has it more than once, in whatever"
    " letters. Leave one of them.",
)
TableWithoutColumns = condition(
    "TABLE_WITHOUT_COLUMNS",
    "42703",
    "Cannot write {count} rows to {table}: it has no columns, and rows without any cannot be"
    " stored. Add a column first, or select one for the new table.",
)
WriteTypeMismatch = condition(
    "WRITE_TYPE_MISMATCH",
    "42846",
    "Cannot write {actual} to column {column} of {table}: its type is {expected} and {why}. Cast"
    " it to that type before it is written.",
)
