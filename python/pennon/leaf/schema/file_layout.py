"""The namespace field of each column of a data file, renumbered for another leaf.

A data file numbers its columns by the schema that it was written with; a fragment lists those
numbers. The numbers are known to Lance alone, so a fragment can be moved to a leaf that numbers
its fields differently (one of another client, or one that was made meanwhile) by its list alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import lance
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from lance.blob import BlobType, blob_field
from lance.schema import LanceSchema

from pennon.leaf.schema.reconciliation import FieldMatch, LeafField, leaf_fields, match_fields
from pennon.spec.arrow_json import BLOB, is_blob
from pennon.spec.schema import FIELD_ID, children_of, field_id_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance.lance.schema import LanceField

__all__ = [
    "NamedColumns",
    "changed",
    "columns_by_name",
    "file_batch",
    "file_schema",
    "leaf_numbers",
    "messages_of",
    "read_layout",
    "renumbered",
    "state_field_ids",
    "state_ids",
    "without_views",
    "write_layout",
]


# States the namespace's field ids in the schema of an existing leaf.


def state_field_ids(
    dataset: lance.LanceDataset, ids: Mapping[int, int], *, detached: bool
) -> lance.LanceDataset:
    """Write the namespace's field ids to a leaf's fields.

    Args:
        dataset: The leaf.
        ids: Lance's number of a field → the namespace's id.
        detached: Whether to commit beside the main branch.
    """
    updates = {
        number: lance.LanceOperation.UpdateMap({FIELD_ID.decode(): str(field_id)})
        for number, field_id in ids.items()
    }
    return lance.LanceDataset.commit(
        dataset,
        lance.LanceOperation.UpdateConfig(field_metadata_updates=updates),
        read_version=dataset.version,
        detached=detached,
    )


# The parts of Lance's protobuf ``message Field`` that Pennon changes.
#
# A Lance schema pickles as these messages, and pylance has no other way to join or change fields.
# The fields that are named here are those of ``protos/file.proto`` of Lance; all others of a
# message stay as they are, for Protocol Buffers keep what they do not know.

_NO_PARENT: Final = -1


def _message_class() -> Any:
    """Declare the message: names and numbers are Lance's."""
    kinds = FieldDescriptorProto
    metadata = DescriptorProto(name="MetadataEntry", options={"map_entry": True})
    _declare(metadata, "key", 1, kinds.TYPE_STRING)
    _declare(metadata, "value", 2, kinds.TYPE_BYTES)
    field = DescriptorProto(name="Field", nested_type=[metadata])
    _declare(field, "name", 2, kinds.TYPE_STRING)
    _declare(field, "id", 3, kinds.TYPE_INT32)
    _declare(field, "parent_id", 4, kinds.TYPE_INT32)
    _declare(field, "nullable", 6, kinds.TYPE_BOOL)
    entries = field.field.add(name="metadata", number=10, type=kinds.TYPE_MESSAGE)
    entries.label, entries.type_name = kinds.LABEL_REPEATED, ".pennon.Field.MetadataEntry"
    file = FileDescriptorProto(name="pennon/field.proto", package="pennon", syntax="proto3")
    file.message_type.append(field)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("pennon.Field"))


def _declare(message: DescriptorProto, name: str, number: int, kind: Any) -> None:
    message.field.add(
        name=name, number=number, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL
    )


_FIELD: Final = _message_class()


def messages_of(schema: LanceSchema) -> tuple[list[bytes], Callable[..., LanceSchema]]:
    """Take a schema apart, into a message for each field, parents before their children.

    Returns:
        The messages, and what makes a schema of such messages, with this schema's metadata.

    Example:
        >>> import pyarrow as pa
        >>> from lance.schema import LanceSchema
        >>> messages, make = messages_of(LanceSchema.from_pyarrow(pa.schema({"a": pa.int8()})))
        >>> make(*messages, changed(messages[0], name="b", place=(1, None))).to_pyarrow().names
        ['a', 'b']
    """
    pickled = cast("tuple[Callable[..., LanceSchema], tuple[Any, ...]]", schema.__reduce__())
    make, (metadata, *messages) = pickled
    return messages, partial(make, metadata)


def changed(
    message: bytes,
    *,
    name: str | None = None,
    place: tuple[int, int | None] | None = None,
    is_nullable: bool = False,
    field_id: int | None = None,
) -> bytes:
    """Change what a message says of its field.

    Args:
        message: The message.
        name: Another name.
        place: Its number, and that of the field it is below; None for a column.
        is_nullable: Whether it may be NULL from now on.
        field_id: The namespace's id, which the field is to state.

    Returns:
        The message, with all else that it says.

    Example:
        >>> _FIELD.FromString(changed(b"", name="a", place=(4, None))).parent_id
        -1
    """
    field = _FIELD.FromString(message)
    if name is not None:
        field.name = name
    if place is not None:
        field.id = place[0]
        field.parent_id = _NO_PARENT if place[1] is None else place[1]
    if is_nullable:
        field.nullable = True
    if field_id is not None:
        field.metadata[FIELD_ID.decode()] = str(field_id).encode()
    return bytes(field.SerializeToString())


# The blobs of a leaf as its files take them: since format 2.2 of an extension type of Lance's.

_FIRST_OF_TYPE: Final = (2, 2)


def file_schema(columns: pa.Schema, storage_version: str | None = None) -> pa.Schema:
    """Give the schema with which Lance writes a leaf's columns.

    Args:
        columns: As the leaf stores them (``plain_field``).
        storage_version: Lance's file format of the leaf; None for a new one.

    Example:
        >>> image = pa.field("image", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        >>> file_schema(pa.schema([image])).types
        [BlobType(StructType(struct<data: large_binary, uri: string, position: uint64, size: ...>))]
    """
    version = (storage_version or "2.2").split(".")
    if tuple(map(int, version)) < _FIRST_OF_TYPE or not any(map(is_blob, columns)):
        return columns
    return pa.schema([_file_field(column) for column in columns], metadata=columns.metadata)


def _file_field(column: pa.Field) -> pa.Field:
    if not is_blob(column):
        return column
    others = {key: text for key, text in (column.metadata or {}).items() if key != BLOB}
    blobs = blob_field(column.name, nullable=column.nullable)
    return blobs.with_metadata(others or None)


def file_batch(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give rows in the schema with which they are written.

    Args:
        rows: The rows, with bytes where the schema has blobs.
        schema: As ``file_schema`` gives it.
    """
    if rows.schema is schema or rows.schema.equals(schema):
        return rows
    columns = [
        _blobs(values, column.type) if isinstance(column.type, BlobType) else values
        for values, column in zip(rows.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _blobs(values: pa.Array, kind: pa.BaseExtensionType) -> pa.Array:
    nothing = (pa.nulls(len(values), part.type) for part in list(kind.storage_type)[1:])
    parts = pa.StructArray.from_arrays(
        [values, *nothing],
        fields=list(kind.storage_type),
        mask=values.is_null() if values.null_count else None,
    )
    return pa.ExtensionArray.from_storage(kind, parts)


# Lists in the place of list views, which neither Arrow's casts nor Lance take at any depth.
#
# Arrow's cast of a view leaves the last offset of the list out, and Lance ends in a panic.


def without_views(array: pa.Array) -> pa.Array:
    """Give the same values with large lists where views were; without one they are not copied.

    Example:
        >>> view = pa.array([[1, 2], None, []], pa.list_view(pa.int8()))
        >>> without_views(view).type, without_views(view).to_pylist()
        (LargeListType(large_list<item: int8>), [[1, 2], None, []])
    """
    data_type = array.type
    if not _has_view(data_type):
        return array
    if _is_view(data_type):
        lengths = pc.list_value_length(array).fill_null(0).cast(pa.int64())
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
        items = without_views(array.flatten())  # in the order of the rows, and those of NULLs not
        list_type = pa.large_list(data_type.value_field.with_type(items.type))
        mask = array.is_null() if array.null_count else None
        return pa.LargeListArray.from_arrays(offsets, items, list_type, mask=mask)
    if pa.types.is_struct(data_type):
        children = [without_views(array.field(at)) for at in range(data_type.num_fields)]
        fields = [
            field.with_type(child.type) for field, child in zip(data_type, children, strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pa.types.is_map(data_type):
        return _with_entries(array, without_views(array.keys), without_views(array.items))
    items = without_views(array.values)
    field = data_type.value_field.with_type(items.type)
    num_buffers = 2
    if pa.types.is_fixed_size_list(data_type):
        list_type, num_buffers = pa.list_(field, data_type.list_size), 1
    elif pa.types.is_large_list(data_type):
        list_type = pa.large_list(field)
    else:
        list_type = pa.list_(field)
    return _with_below(array, list_type, num_buffers, items)


def _with_entries(array: pa.Array, keys: pa.Array, items: pa.Array) -> pa.Array:
    given = array.type
    map_type = pa.map_(
        given.key_field.with_type(keys.type),
        given.item_field.with_type(items.type),
        keys_sorted=given.keys_sorted,
    )
    entries = pa.StructArray.from_arrays(
        [keys, items], fields=[map_type.key_field, map_type.item_field]
    )
    return _with_below(array, map_type, 2, entries)


def _with_below(
    array: pa.Array, data_type: pa.DataType, num_buffers: int, below: pa.Array
) -> pa.Array:
    buffers = array.buffers()[:num_buffers]
    return pa.Array.from_buffers(
        data_type, len(array), buffers, array.null_count, array.offset, [below]
    )


def _has_view(data_type: pa.DataType) -> bool:
    if _is_view(data_type):
        return True
    fields = (data_type.field(at) for at in range(data_type.num_fields))
    return any(_has_view(field.type) for field in fields)


def _is_view(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(data_type) or pa.types.is_large_list_view(data_type))


# Maps the columns of an existing dataset to the namespace's by name, for adoption.
#
# Once its fields state the namespace's ids, renaming a column of the table no longer matters to it.
# The ids it stated before, of another namespace, mean nothing here and are overwritten.

# Unknown columns of a migrated leaf state ids from here on: no schema ever gets so far.
_FOREIGN_IDS = 1 << 30


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """How a dataset's fields and the namespace's meet by name.

    Args:
        ids: Lance's number of a field → the namespace's id that it does not state yet.
        missing: Columns of the namespace that the dataset lacks.
        unknown: Fields that the namespace lacks and that do not say so, by Lance's number.
    """

    ids: dict[int, int]
    missing: Sequence[pa.Field]
    unknown: dict[int, str]


def columns_by_name(dataset: lance.LanceDataset, schema: pa.Schema, name: str) -> NamedColumns:
    """Match a dataset's fields to the namespace's by name.

    Args:
        dataset: The dataset.
        schema: The namespace schema, with its ids.
        name: The dataset's name for errors.

    Raises:
        LeafTypeMismatch: A stored type does not promote to the namespace's.

    Spec: "Schema".
    """
    fields = leaf_fields(dataset)
    silent = tuple(_silent(field) for field in fields)
    originals = {
        id(bare): named
        for top, own in zip(silent, fields, strict=True)
        for bare, named in zip(top.walk(), own.walk(), strict=True)
    }
    matches = match_fields(list(schema), silent, name)
    ids: dict[int, int] = {}
    used: set[int] = set()
    for match in _walk(matches):
        field_id = field_id_of(match.expected)
        if match.stored is None or id(match.stored) not in originals:
            continue
        original = originals[id(match.stored)]
        used.add(id(original))
        # Nested fields state an id only where Lance's own number does not tell it already.
        known_id = original.stated_id
        if known_id is None and not any(match is top for top in matches):
            known_id = original.number
        if field_id is not None and known_id != field_id and original.number >= 0:
            ids[original.number] = field_id
    unknown = {
        node.number: node.name
        for top in fields
        for node in top.walk()
        if id(node) not in used and (node.stated_id or 0) < _FOREIGN_IDS
    }
    missing = [match.expected for match in matches if match.stored is None]
    return NamedColumns(ids, missing, unknown)


def state_ids(dataset: lance.LanceDataset, columns: NamedColumns) -> lance.LanceDataset:
    """Make a dataset's fields state the namespace's ids, on its main branch.

    Unknown columns state ids that the namespace will never give, so that no later column of the
    namespace is taken for them.

    Returns:
        The dataset at the version that states them.
    """
    foreign = {number: _FOREIGN_IDS + number for number in columns.unknown if number >= 0}
    ids = {**columns.ids, **foreign}
    return state_field_ids(dataset, ids, detached=False) if ids else dataset


def _silent(leaf_field: LeafField) -> LeafField:
    """Take ids and numbers away, so that only the name is left to match by."""
    children = tuple(_silent(child) for child in leaf_field.children)
    return replace(leaf_field, number=-1, stated_id=None, children=children)


def _walk(matches: Sequence[FieldMatch]) -> Iterator[FieldMatch]:
    for match in matches:
        yield match
        yield from _walk(match.children)


def write_layout(
    columns: Sequence[pa.Field], written: pa.Schema, storage_version: str | None = None
) -> str:
    """Describe the columns that files written with a schema have.

    Args:
        columns: The namespace's columns, with their ids.
        written: The same columns, as the leaf stores them.
        storage_version: Lance's file format of the leaf; None for a new one.

    Returns:
        Text: for each field its key (the id), its number in the files, and its stored type.
    """
    numbered = LanceSchema.from_pyarrow(file_schema(written, storage_version)).fields()
    entries: list[tuple[str, int, str]] = []
    for column, stored, number in zip(columns, written, numbered, strict=True):
        entries.extend(_entries(column, stored, number, ""))
    return json.dumps(entries)


def read_layout(text: str) -> dict[str, tuple[int, str]]:
    """Read what ``write_layout`` wrote: key → number in the files and stored type."""
    return {key: (number, stored) for key, number, stored in json.loads(text)}


def _entries(
    column: pa.Field, stored: pa.Field, field: LanceField, above: str
) -> Iterator[tuple[str, int, str]]:
    key = field_key(column, above)
    below = children_of(column.type)
    yield key, field.id(), "" if below else str(stored.type)
    numbered = field.children() if below else []  # those of a blob are no fields of its column
    if pa.types.is_map(column.type) and numbered:
        yield key + ".entries", numbered[0].id(), ""
        numbered = numbered[0].children()
    for child, inner, number in zip(below, children_of(stored.type), numbered, strict=True):
        yield from _entries(child, inner, number, key)


def field_key(column: pa.Field, above: str) -> str:
    """Name a field by its id, or by its place where the namespace gives it none."""
    field_id = field_id_of(column)
    return f"{above}.{column.name}" if field_id is None else str(field_id)


def leaf_numbers(
    matches: Sequence[FieldMatch], above: str = ""
) -> Iterator[tuple[str, int | None, str]]:
    """List how a leaf numbers and stores the namespace's fields; None for those it lacks."""
    for match in matches:
        key = field_key(match.expected, above)
        below = children_of(match.expected.type)
        if match.stored is None:
            yield key, None, ""
            continue
        yield key, match.stored.number, "" if below else str(match.stored.arrow.type)
        if pa.types.is_map(match.expected.type) and match.stored.children:
            # Lance numbers depth-first: the entries stand between the map and its key
            yield key + ".entries", match.stored.children[0].number - 1, ""
        yield from leaf_numbers(match.children, key)


def renumbered(fragment: str, numbers: Mapping[int, int]) -> str:
    """Give a fragment's columns the numbers that a leaf has for them.

    Args:
        fragment: The fragment as Lance's JSON.
        numbers: Number in the file → number in the leaf.
    """
    described = json.loads(fragment)
    for file in described["files"]:
        file["fields"] = [numbers[number] for number in file["fields"]]
    return json.dumps(described)
