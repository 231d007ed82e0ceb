"""The parts of Lance's protobuf ``message Field`` that Pennon changes.

A Lance schema pickles as these messages, and pylance has no other way to join or change fields. The
fields that are named here are those of ``protos/file.proto`` of Lance; all others of a message stay
as they are, for Protocol Buffers keep what they do not know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from pennon.spec.schema import FIELD_ID

if TYPE_CHECKING:
    from lance.schema import LanceSchema

__all__ = ["changed", "messages_of"]

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
