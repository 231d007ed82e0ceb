"""Metadata columns: the identity and the place of a row, beside the table's own columns.

A row is named by its leaf, the leaf's version, and its address there (fragment and offset). The
name holds for that version alone: a compaction gives a row another address. A column of the table
that has such a name hides the metadata column.

What the manifest knows of a leaf, its partition tuple and the version of its spec, is no part of
the leaf: it comes with the order to read it.

Iceberg's names of a row's place and of its spec, ``_file``, ``_pos`` and ``_spec_id``, are read as
the columns here that tell the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.caching import PerObject
from pennon.spec.arrow_json import is_blob

if TYPE_CHECKING:
    from collections.abc import Sequence

    import lance

__all__ = [
    "LEAF",
    "LEAF_VERSION",
    "METADATA_COLUMNS",
    "PARTITION",
    "ROW_ADDRESS",
    "ROW_ID_COLUMNS",
    "SPEC_VERSION",
    "SPEC_VERSIONS",
    "constant_columns",
    "constant_of",
    "constant_texts",
    "is_metadata_column",
    "metadata_array",
    "metadata_columns",
    "name_in_lance",
    "named_metadata_column",
    "of_blob",
]

# The constant columns of a leaf, as text within a split.
#
# The manifest knows the partition tuple and the spec version of a leaf; a task knows only what it
# is told. Each value is a text that keeps it exactly: numbers of days, microseconds and bits of
# floats as numbers, bytes in hexadecimal.
#
# NULL rules: NULL is null; what was not written is NULL, and so is a tuple without any field.

_LONG_BITS: Final = 64


def constant_texts(columns: Mapping[str, pa.Array | Mapping[str, pa.Array]]) -> pa.Array:
    """Write what each leaf has in its columns as a JSON object.

    Args:
        columns: Arrays of the same length, and structs of such.

    Example:
        >>> days = pa.array([3, None], pa.date32())
        >>> constant_texts({"_partition": {"day": days}}).to_pylist()
        ['{"_partition": {"day": "3"}}', '{"_partition": {"day": null}}']
    """
    names = list(columns)
    texts = [_column_texts(column) for column in columns.values()]
    rows = (json.dumps(dict(zip(names, row, strict=True))) for row in zip(*texts, strict=True))
    return pa.array(rows, pa.utf8())


def constant_of(column: pa.Field, constants: Mapping[str, object]) -> pa.Scalar:
    """Read a value back.

    Args:
        column: A column, or a struct of some of those that were written.
        constants: What ``constant_texts`` wrote for one leaf.

    Example:
        >>> constant_of(pa.field("_spec_version", pa.int32()), {"_spec_version": "2"}).as_py()
        2
    """
    return _constant_array(column, constants)[0]


def _constant_array(column: pa.Field, constants: Mapping[str, object]) -> pa.Array:
    stored = constants.get(column.name)
    if not pa.types.is_struct(column.type):
        return _value(stored if isinstance(stored, str) else None, column.type)
    if not isinstance(stored, Mapping) or not column.type.num_fields:
        return pa.nulls(1, column.type)
    children = [_constant_array(child, stored) for child in column.type]
    return pa.StructArray.from_arrays(children, fields=list(column.type))


def _column_texts(column: pa.Array | Mapping[str, pa.Array]) -> Sequence[object]:
    if isinstance(column, pa.Array):
        return _texts(column)
    texts = [_texts(child) for child in column.values()]
    return [dict(zip(column, row, strict=True)) for row in zip(*texts, strict=True)]


def _texts(values: pa.Array) -> list[str | None]:
    data_type = values.type
    if pa.types.is_binary(data_type):
        return [None if value is None else value.hex() for value in values.to_pylist()]
    bits = _bits(data_type)
    plain = values if bits is None else values.view(bits)
    return plain.cast(pa.utf8()).to_pylist()


def _value(text: str | None, data_type: pa.DataType) -> pa.Array:
    if text is None:
        return pa.nulls(1, data_type)
    if pa.types.is_binary(data_type):
        return pa.array([bytes.fromhex(text)], data_type)
    bits = _bits(data_type)
    if bits is not None:
        return pa.array([int(text)], bits).view(data_type)
    return pa.array([text], pa.utf8()).cast(data_type)


def _bits(data_type: pa.DataType) -> pa.DataType | None:
    """Give the integers whose bits a type has; None where its own text is exact."""
    if pa.types.is_temporal(data_type) or pa.types.is_floating(data_type):
        return pa.int64() if data_type.bit_width == _LONG_BITS else pa.int32()
    return None


_MARK: Final = b"pennon:metadata_column"


def _column(name: str, data_type: pa.DataType, comment: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(
        name, data_type, nullable=nullable, metadata={_MARK: b"true", b"comment": comment.encode()}
    )


LEAF: Final = _column("_leaf", pa.utf8(), "The location of the leaf that the row is in.")
LEAF_VERSION: Final = _column("_leaf_version", pa.int64(), "The Lance version of the leaf.")
ROW_ADDRESS: Final = _column("_rowaddr", pa.int64(), "The row's fragment and offset in the leaf.")
ROW_ID: Final = _column("_rowid", pa.int64(), "Lance's id of the row; stable where the leaf's are.")
METADATA_COLUMNS: Final = (LEAF, LEAF_VERSION, ROW_ADDRESS, ROW_ID)
SPEC_VERSION: Final = _column(
    "_spec_version",
    pa.int32(),
    "The version of the partition spec that the row's leaf has.",
    nullable=True,
)
PARTITION: Final = _column(
    "_partition", pa.struct([]), "The partition values of the row's leaf.", nullable=True
)
FILE: Final = _column("_file", LEAF.type, "The same as _leaf, by Iceberg's name.")
POSITION: Final = _column("_pos", ROW_ADDRESS.type, "The same as _rowaddr, by Iceberg's name.")
SPEC_ID: Final = _column(
    "_spec_id", SPEC_VERSION.type, "The same as _spec_version, by Iceberg's name.", nullable=True
)
# These together name one row of a table.
ROW_ID_COLUMNS: Final = (LEAF.name, LEAF_VERSION.name, ROW_ADDRESS.name)
_OF_LANCE: Final = (ROW_ADDRESS.name, ROW_ID.name)
SPEC_VERSIONS: Final = (SPEC_VERSION.name, SPEC_ID.name)
_CONSTANT: Final = (PARTITION.name, *SPEC_VERSIONS)
# What a scan of Lance gives of a blob instead of its bytes, by the ends of lance-spark's names.
_OF_BLOBS: Final = {
    "__blob_size": ("size", "The bytes of the blob."),
    "__blob_pos": ("position", "Where the blob begins in its file."),
}
_SAME: Final = {FILE.name: LEAF.name, POSITION.name: ROW_ADDRESS.name}


_LOWERED: Final[PerObject[pa.Schema, frozenset[str]]] = PerObject(
    lambda columns: frozenset(name.lower() for name in columns.names)
)


def metadata_columns(tuple_fields: Sequence[pa.Field], own: pa.Schema) -> list[pa.Field]:
    """List the metadata columns of a table.

    Args:
        tuple_fields: The fields of its partition tuples; none where it has no partitions.
        own: Its own columns, which hide those of the same name.

    Example:
        >>> region = pa.field("region", pa.utf8())
        >>> own = pa.schema({"_leaf": pa.utf8(), "a": pa.utf8()})
        >>> [column.name for column in metadata_columns([region], own)][:4]
        ['_leaf_version', '_rowaddr', '_rowid', '_partition']
    """
    partition = PARTITION.with_type(pa.struct(tuple_fields))
    of_blobs = (
        _column(f"{column.name}{end}", pa.int64(), comment, nullable=True)
        for column in own
        if is_blob(column)
        for end, (_, comment) in _OF_BLOBS.items()
    )
    every = (*METADATA_COLUMNS, partition, SPEC_VERSION, FILE, POSITION, SPEC_ID, *of_blobs)
    hidden = _LOWERED.of(own)
    return [column for column in every if column.name.lower() not in hidden]


def named_metadata_column(column: pa.Field) -> pa.Field | None:
    """Give the metadata column of a column's name; None where there is none.

    Args:
        column: As it is requested: of ``_partition`` some fields can be left out.
    """
    if column.name == PARTITION.name:
        return PARTITION.with_type(column.type)
    by_name = {
        metadata_column.name: metadata_column
        for metadata_column in (*METADATA_COLUMNS, SPEC_VERSION, FILE, POSITION, SPEC_ID)
    }
    if (named := of_blob(column.name)) is not None:
        return _column(column.name, pa.int64(), named[1], nullable=True)
    return by_name.get(column.name)


def of_blob(name: str) -> tuple[str, str] | None:
    """Take the name of a metadata column of a blob apart: the blob's, and what it says of it.

    Example:
        >>> of_blob("image__blob_size"), of_blob("image")
        (('image', 'size'), None)
    """
    for end, (part, _) in _OF_BLOBS.items():
        if name.endswith(end):
            return name.removesuffix(end), part
    return None


def constant_columns(schema: pa.Schema) -> pa.Schema:
    """Give those columns of a requested schema that have one value in all rows of a leaf."""
    return pa.schema(
        [field for field in schema if is_metadata_column(field) and field.name in _CONSTANT]
    )


def is_metadata_column(column: pa.Field) -> bool:
    """Whether a requested column is one of these, and not one of the table's.

    Example:
        >>> is_metadata_column(LEAF), is_metadata_column(pa.field("_leaf", pa.utf8()))
        (True, False)
    """
    return _MARK in (column.metadata or {})


def name_in_lance(column: pa.Field) -> str | None:
    """Give the name by which Lance is asked for a metadata column; None where it has none."""
    name = _SAME.get(column.name, str(column.name))
    return name if name in _OF_LANCE else None


def metadata_array(
    column: pa.Field,
    batch: pa.RecordBatch,
    dataset: lance.LanceDataset,
    location: str,
    constants: Mapping[str, object] | None = None,
) -> pa.Array:
    """Give a metadata column of the rows of a batch.

    Args:
        column: Which one.
        batch: Rows as Lance gives them, with those columns that it gives by name.
        dataset: The leaf.
        location: The leaf's location in its table.
        constants: The leaf's values of metadata columns, as the split states them.
    """
    if column.name in _CONSTANT:
        return pa.repeat(constant_of(column, constants or {}), batch.num_rows)
    if of_blob(column.name) is not None:
        is_there = column.name in batch.schema.names
        return (
            batch.column(column.name).cast(column.type)
            if is_there
            else pa.nulls(batch.num_rows, column.type)
        )
    lance_name = name_in_lance(column)
    if lance_name is not None:
        return batch.column(lance_name).cast(column.type)
    if column.name in (LEAF.name, FILE.name):
        return pa.repeat(pa.scalar(location, column.type), batch.num_rows)
    # Detached versions have the highest bit: the same 64 bits, read with a sign.
    signed = dataset.version - (1 << 64) if dataset.version >= 1 << 63 else dataset.version
    return pa.repeat(pa.scalar(signed, column.type), batch.num_rows)
