"""Errors of schemas, partition specs and their evolution."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class InvalidArrowJson(PennonError):
    """A JSON object does not describe an Arrow field or type."""

    condition = "INVALID_ARROW_JSON"
    template = "Cannot read {where}: found {actual}, expected {expected}. Correct the JSON text."
    sql_state = "22032"


class CorruptJson(PennonError):
    """A JSON text of the namespace's metadata cannot be parsed."""

    condition = "CORRUPT_JSON"
    template = (
        "Cannot parse the metadata key {key} of __manifest: {problem} at line {line}, column "
        "{column}. "
        "Restore the text, or open an earlier version of the namespace."
    )
    sql_state = "22032"


class InvalidNamespaceSchema(PennonError):
    """The schema of a namespace breaks a rule of the format."""

    condition = "INVALID_NAMESPACE_SCHEMA"
    template = (
        "Cannot use the namespace schema: {where} has {actual}, expected {expected}. Correct the"
        " schema."
    )
    sql_state = "22032"


class InvalidPartitionSpec(PennonError):
    """A partition spec breaks a rule of the format."""

    condition = "INVALID_PARTITION_SPEC"
    template = (
        "Cannot use {key}: {where} has {actual}, expected {expected}. Correct the spec, or "
        "upgrade Pennon."
    )
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
    template = (
        "Cannot partition by {transform}: there is no column {column}. The columns are {existing}."
    )
    sql_state = "42703"


class InvalidPartitionFieldName(PennonError):
    """The name that the user gave to a partition field cannot be a field id."""

    condition = "INVALID_PARTITION_FIELD_NAME"
    template = (
        "Cannot name a partition field '{name}': {reason}. "
        "Use lower-case letters, digits and underscores that no other partition field has used, "
        "or give no name."
    )
    sql_state = "42602"


class PartitionFieldIdKept(InvalidPartitionFieldName):
    """A field of an earlier spec version comes back, and is to have another name."""

    condition = "PARTITION_FIELD_ID_KEPT"
    template = (
        "Cannot name a partition field '{name}': this transform of these columns has the field id"
        " '{field_id}' since an earlier spec version, and the format demands to use it again."
        " Leave the name out (AS {name} in SQL): the field is '{field_id}' again."
    )


class PartitionFieldSyntax(PennonError):
    """The text after PARTITION FIELD is no field."""

    condition = "PARTITION_FIELD_SYNTAX"
    template = (
        "Cannot parse '{text}' in {statement}: {why}. Write {form}, for example bucket(16, id)."
    )
    sql_state = "42601"


class WriteOrderSyntax(PennonError):
    """The text of a write order is no list of columns."""

    condition = "WRITE_ORDER_SYNTAX"
    template = (
        "Cannot read the write order '{order}': {reason}. Write top-level columns, each with ASC or"
        " DESC and NULLS FIRST or NULLS LAST if need be, for example id, ts DESC NULLS LAST."
    )
    sql_state = "42601"


class WriteOrderColumnNotFound(PennonError):
    """A write order names a column that the table does not have."""

    condition = "WRITE_ORDER_COLUMN_NOT_FOUND"
    template = (
        "Cannot order writes by '{order}': there is no column {column}. The columns are {columns}."
    )
    sql_state = "42703"


class WriteOrderTypeNotSupported(PennonError):
    """A write order names a column whose type has no order that Spark shares."""

    condition = "WRITE_ORDER_TYPE_NOT_SUPPORTED"
    template = (
        "Cannot order writes by '{order}': column {column} is {actual}. Choose columns that are"
        " numbers, booleans, dates, timestamps in microseconds, texts or binary."
    )
    sql_state = "42804"
