"""Changes a leaf's Lance schema: adds and renames fields, allows NULL, leaves columns out.

pylance makes a Lance schema from Arrow (numbered from zero) or from the messages of Lance's file
format, and joins no two. A schema pickles as those messages; ``field_message.py`` changes one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from lance.schema import LanceSchema

from pennon.leaf.schema.field_message import changed, messages_of
from pennon.leaf.schema.plain_field import plain_field
from pennon.spec.schema import children_of, field_id_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from lance.fragment import FragmentMetadata
    from lance.lance.schema import LanceField

__all__ = [
    "Addition",
    "edited",
    "highest_number",
    "num_fields",
    "numbers_below",
    "stating_ids",
    "vacated_names",
    "widened",
    "with_replaced",
]


@dataclass(frozen=True, slots=True)
class Addition:
    """A field of the namespace that a leaf lacks.

    Args:
        field: The field, with its ids.
        parent: Lance's number of the leaf's field that it goes below; None for a column.
        is_silent: Whether it states its id only where that is not its number, as Pennon's leaves
            have it below a column.
    """

    field: pa.Field
    parent: int | None
    is_silent: bool


def stating_ids(columns: Sequence[pa.Field]) -> LanceSchema:
    """Give the schema of a new leaf, which Lance numbers in order: the fields state their ids.

    Args:
        columns: Columns of the namespace, with their ids.

    Example:
        >>> new = pa.field("b", pa.int8(), metadata={"lance:field_id": "7"})
        >>> stating_ids([new]).to_pyarrow().field("b").metadata
        {b'lance:field_id': b'7'}
    """
    plain = LanceSchema.from_pyarrow(pa.schema([plain_field(column) for column in columns]))
    messages, make = messages_of(plain)
    ids = [field_id for column in columns for field_id in _ids(column)]
    stated = [
        changed(message, field_id=ids[at] if parent is None or ids[at] != at else None)
        for at, (message, (_, parent)) in enumerate(zip(messages, _walk(plain), strict=True))
    ]
    return make(*stated)


def widened(
    schema: LanceSchema, additions: Sequence[Addition], highest: int
) -> tuple[LanceSchema, list[int]]:
    """Add fields to a leaf's schema, with the namespace's ids where the leaf never used them.

    Args:
        schema: The leaf's schema.
        additions: The fields; columns come after those that are there.
        highest: The highest number that the leaf or one of its files uses.

    Returns:
        The schema, and the number of every new field, parents before their children.

    Example:
        >>> leaf = LanceSchema.from_pyarrow(pa.schema({"a": pa.int8()}))
        >>> new = pa.field("b", pa.int8(), metadata={"lance:field_id": "7"})
        >>> wide, numbers = widened(leaf, [Addition(new, None, False)], 0)
        >>> [field.id() for field in wide.fields()], numbers
        ([0, 7], [7])
    """
    messages, make = messages_of(schema)
    every = [field_id for addition in additions for field_id in _ids(addition.field)]
    are_free = all(field_id is not None and field_id > highest for field_id in every)
    given: list[int] = []
    for addition in additions:
        ids = list(_ids(addition.field))
        numbers = [
            field_id if are_free and field_id is not None else highest + 1 + len(given) + at
            for at, field_id in enumerate(ids)
        ]
        messages += _messages(
            addition.field, numbers, addition.parent, is_silent=addition.is_silent
        )
        given += numbers
    return make(*messages), given


def edited(
    schema: LanceSchema, *, names: Mapping[int, str], nullable: Collection[int] = ()
) -> LanceSchema:
    """Change fields of a leaf's schema.

    Args:
        schema: The leaf's schema.
        names: Lance's number of a field → its new name.
        nullable: Fields that may be NULL from now on.

    Example:
        >>> leaf = LanceSchema.from_pyarrow(pa.schema({"a": pa.int8(), "b": pa.int8()}))
        >>> [field.name() for field in edited(leaf, names={1: "c"}).fields()]
        ['a', 'c']
    """
    messages, make = messages_of(schema)
    kept = []
    for message, (field, _) in zip(messages, _walk(schema), strict=True):
        kept.append(
            changed(message, name=names.get(field.id()), is_nullable=field.id() in nullable)
        )
    return make(*kept)


def with_replaced(
    schema: LanceSchema, columns: Mapping[int, tuple[pa.Field, Sequence[int]]]
) -> LanceSchema:
    """Give columns of a leaf's schema other types; their names stay.

    Args:
        schema: The leaf's schema.
        columns: Lance's number of a column → what it becomes, and the numbers of it and of the
            fields below it, parents first.

    Example:
        >>> leaf = LanceSchema.from_pyarrow(pa.schema({"a": pa.int8(), "b": pa.int8()}))
        >>> with_replaced(leaf, {1: (pa.field("b", pa.int64()), [1])}).to_pyarrow().types
        [DataType(int8), DataType(int64)]
    """
    messages, make = messages_of(schema)
    kept: list[bytes] = []
    gone: set[int] = set()
    for message, (field, parent) in zip(messages, _walk(schema), strict=True):
        if parent in gone or field.id() in columns:
            gone.add(field.id())
        else:
            kept.append(message)
        if field.id() in columns:
            column, numbers = columns[field.id()]
            kept += _messages(column.with_name(field.name()), numbers, None, is_silent=False)
    return make(*kept)


def numbers_below(schema: LanceSchema, columns: Collection[int]) -> set[int]:
    """List the numbers of columns and of all fields below them."""
    numbers: set[int] = set()
    for field, parent in _walk(schema):
        if field.id() in columns or parent in numbers:
            numbers.add(field.id())
    return numbers


def vacated_names(schema: LanceSchema, additions: Sequence[Addition]) -> dict[int, str]:
    """Find other names for the fields whose names further ones take.

    A field that was dropped from the namespace, or renamed there, may still have the name of an
    added one in the leaf. It stays: ids decide, not names.

    Args:
        schema: The leaf's schema.
        additions: The further fields.

    Returns:
        Lance's number of a field → its new name.

    Example:
        >>> leaf = LanceSchema.from_pyarrow(pa.schema({"a": pa.int8(), "b": pa.int8()}))
        >>> vacated_names(leaf, [Addition(pa.field("b", pa.int8()), None, False)])
        {1: 'b_1'}
    """
    new_names = {(addition.parent, addition.field.name) for addition in additions}
    existing = list(_walk(schema))
    taken = new_names | {(parent, field.name()) for field, parent in existing}
    names = {}
    for field, parent in existing:
        if (parent, field.name()) not in new_names:
            continue
        name = f"{field.name()}_{field.id()}"
        while (parent, name) in taken:
            name += "_"
        taken.add((parent, name))
        names[field.id()] = name
    return names


def highest_number(schema: LanceSchema, fragments: Sequence[FragmentMetadata]) -> int:
    """Give the highest number that a leaf ever gave a field, -1 where none: read from its files."""
    numbers = [field.id() for field, _ in _walk(schema)]
    numbers += [
        number for fragment in fragments for file in fragment.files for number in file.fields
    ]
    return max(numbers, default=-1)


def num_fields(column: pa.Field) -> int:
    """Count the numbers that Lance gives a column: its own and those of the fields below."""
    return len(list(_ids(column)))


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
    below: list[tuple[LanceField, int | None]] = [
        (schema_field, None) for schema_field in schema.fields()
    ]
    while below:
        field, parent = below.pop(0)
        yield field, parent
        below[:0] = [(child, field.id()) for child in field.children()]


def _messages(
    column: pa.Field, numbers: Sequence[int], above: int | None, *, is_silent: bool
) -> list[bytes]:
    """The messages of a column or field and those below it, with their numbers and ids."""
    # Lance takes no column with a dot in its name, which a field of a struct may have.
    plain = LanceSchema.from_pyarrow(pa.schema([plain_field(column).with_name("field")]))
    messages, _ = messages_of(plain)
    messages[0] = changed(messages[0], name=column.name)
    ids = list(_ids(column))
    numbered = []
    for at, (message, (_, parent)) in enumerate(zip(messages, _walk(plain), strict=True)):
        may_be_silent = is_silent or (parent is not None and ids[0] == numbers[0])
        states = ids[at] is not None and not (may_be_silent and ids[at] == numbers[at])
        own = above if parent is None else numbers[parent]
        place = numbers[at], own
        numbered.append(changed(message, place=place, field_id=ids[at] if states else None))
    return numbered
