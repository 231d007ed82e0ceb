"""A leaf's schema with further columns, numbered so that no number is used twice.

pylance makes a Lance schema from Arrow (numbered from zero) or from the messages of Lance's file
format, and joins no two. A schema pickles as those messages; they are Protocol Buffers, in which
the last of two values of a field counts, so a number is changed by appending another.

Spec of the messages: ``message Field`` of Lance's file format, name = 2, id = 3, parent_id = 4,
metadata = 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from lance.schema import LanceSchema

from pennon.leaf.incoming import plain_field
from pennon.spec.schema import FIELD_ID, children_of, field_id_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from lance.schema import LanceField

__all__ = ["vacated", "widened"]

_NAME = b"\x12"
_ID = b"\x18"
_PARENT_ID = b"\x20"
_METADATA = b"\x52"
_KEY = b"\x0a"
_VALUE = b"\x12"
_NO_PARENT = (1 << 64) - 1


def widened(schema: LanceSchema, columns: Sequence[pa.Field], highest: int) -> LanceSchema:
    """Add columns to a leaf's schema, with the namespace's ids where the leaf never used them.

    Args:
        schema: The leaf's schema.
        columns: Columns of the namespace, with their ids.
        highest: The highest number that the leaf uses.

    Example:
        >>> leaf = LanceSchema.from_pyarrow(pa.schema({"a": pa.int8()}))
        >>> new = pa.field("b", pa.int8(), metadata={"lance:field_id": "7"})
        >>> [field.id() for field in widened(leaf, [new], 0).fields()]
        [0, 7]
    """
    make, (metadata, *kept) = schema.__reduce__()
    plain = LanceSchema.from_pyarrow(pa.schema([plain_field(column) for column in columns]))
    _, (_, *messages) = plain.__reduce__()
    ids = [field_id for column in columns for field_id in _ids(column)]
    are_free = all(field_id is not None and field_id > highest for field_id in ids)
    numbers = [
        field_id if are_free and field_id is not None else highest + 1 + at
        for at, field_id in enumerate(ids)
    ]
    parents = [parent for _, parent in _walk(plain)]
    added = [
        message + _numbered(number, None if parent is None else numbers[parent], field_id)
        for message, number, parent, field_id in zip(messages, numbers, parents, ids, strict=True)
    ]
    widest: LanceSchema = make(metadata, *kept, *added)
    return widest


def vacated(schema: LanceSchema, names: Collection[str]) -> LanceSchema | None:
    """Give the columns that have one of the names another one, with their number.

    A column that was dropped from the namespace, or renamed there, may still have the name of an
    added one in the leaf. It stays: ids decide, not names.

    Args:
        schema: The leaf's schema.
        names: The names that further columns will take.

    Returns:
        The schema; None where the names are free.

    Example:
        >>> leaf = LanceSchema.from_pyarrow(pa.schema({"a": pa.int8(), "b": pa.int8()}))
        >>> [field.name() for field in vacated(leaf, {"b"}).fields()]
        ['a', 'b_1']
    """
    taken = {*names, *(field.name() for field in schema.fields())}
    if len(taken) == len(names) + len(schema.fields()):
        return None
    make, (metadata, *messages) = schema.__reduce__()
    renamed = []
    for message, (field, parent) in zip(messages, _walk(schema), strict=True):
        if parent is not None or field.name() not in names:
            renamed.append(message)
            continue
        name = f"{field.name()}_{field.id()}"
        while name in taken:
            name += "_"
        taken.add(name)
        renamed.append(message + _name(name))
    free: LanceSchema = make(metadata, *renamed)
    return free


def _ids(column: pa.Field) -> Iterator[int | None]:
    """The ids of a column and the fields below it, in the order of Lance's messages."""
    field_id = field_id_of(column)
    yield field_id
    if pa.types.is_map(column.type):
        yield None if field_id is None else field_id + 1
    for child in children_of(column.type):
        yield from _ids(child)


def _walk(schema: LanceSchema) -> Iterator[tuple[LanceField, int | None]]:
    """Yield every field and its parent's number, in the order of Lance's messages."""
    below: list[tuple[LanceField, int | None]] = [(each, None) for each in schema.fields()]
    while below:
        field, parent = below.pop(0)
        yield field, parent
        below[:0] = [(child, field.id()) for child in field.children()]


def _name(name: str) -> bytes:
    return _NAME + _varint(len(name.encode())) + name.encode()


def _numbered(number: int, parent: int | None, field_id: int | None) -> bytes:
    above = _NO_PARENT if parent is None else parent
    message = _ID + _varint(number) + _PARENT_ID + _varint(above)
    is_stated = field_id is not None and (parent is None or field_id != number)
    if not is_stated:
        return message
    value = str(field_id).encode()
    entry = _KEY + _varint(len(FIELD_ID)) + FIELD_ID + _VALUE + _varint(len(value)) + value
    return message + _METADATA + _varint(len(entry)) + entry


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >= 0x80:  # noqa: PLR2004 - seven bits to a byte, the eighth says that more follow
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])
