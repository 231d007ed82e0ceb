"""Changes a leaf's Lance schema: adds and renames fields, allows NULL, leaves columns out.

pylance makes a Lance schema from Arrow (numbered from zero) or from the messages of Lance's file
format, and joins no two. A schema pickles as those messages; ``leaf/schema/file_layout.py`` changes
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance.blob import BlobType
from lance.schema import LanceSchema

from pennon.errors import LeafSchemaMismatch
from pennon.leaf.schema.array_conversion import convert_batch
from pennon.leaf.schema.file_layout import changed, field_key, file_schema, messages_of
from pennon.leaf.schema.reconciliation import LeafField, match_fields, plain_field, stream_schema
from pennon.spec.arrow_json import TYPE_MARKS, is_blob
from pennon.spec.column_defaults import INITIAL_DEFAULT, initial_default, with_initial_default
from pennon.spec.schema import NamespaceSchema, children_of, field_id_of, with_children

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from lance.fragment import FragmentMetadata
    from lance.lance.schema import LanceField

    from pennon.leaf.schema.reconciliation import FieldMatch

__all__ = [
    "PROMOTED_FROM",
    "Addition",
    "carried_default",
    "edited",
    "highest_number",
    "num_fields",
    "numbers_below",
    "stating_ids",
    "stored_field",
    "upgrade_of",
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
    plain = LanceSchema.from_pyarrow(
        file_schema(pa.schema([plain_field(column) for column in columns]))
    )
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
    if is_blob(column):
        yield from (None for _ in range(BlobType().storage_type.num_fields))
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
    plain = LanceSchema.from_pyarrow(
        file_schema(pa.schema([plain_field(column).with_name("field")]))
    )
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


# The schema changes of a leaf before it can take rows of the namespace's present schema.
#
# A column or a nested field that the leaf lacks is added: NULL in older rows, by metadata alone, or
# the column's initial default, which is written out, so that a leaf that has a column states its
# values itself. NOT NULL is taken off where the namespace has taken it off, or dropped the field.
#
# A column that ALTER TABLE has promoted is stored again in the wider type, and one with maps whose
# entries have other fields now. A leaf that is narrower for any other reason keeps its type: then
# values are converted to it, or refused.

PROMOTED_FROM: Final = b"pennon:promoted_from"
"""Metadata key of a column: the types that it had before, separated by ``;``."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The changes of a leaf's schema.

    Args:
        added: The fields that it lacks.
        filled: The columns among them whose older rows have a value.
        replaced: The columns that are stored again in a wider type.
        nullable: Lance's numbers of the fields that may be NULL from now on.
    """

    added: tuple[Addition, ...]
    filled: tuple[FieldMatch, ...]
    replaced: tuple[FieldMatch, ...]
    nullable: frozenset[int]

    def __bool__(self) -> bool:
        return bool(self.added or self.replaced or self.nullable)


def upgrade_of(
    schema: pa.Schema,
    matches: Sequence[FieldMatch],
    fields: Sequence[LeafField],
    staged: Mapping[str, str],
    leaf: str,
) -> Upgrade:
    """Find out what a leaf needs for rows that are written already.

    Args:
        schema: The namespace schema.
        matches: Its columns in the leaf.
        fields: The leaf's columns.
        staged: The rows' stored types by the fields' keys.
        leaf: The leaf's name for errors.

    Raises:
        LeafSchemaMismatch: A column of the leaf alone is NOT NULL, and was never the namespace's.
    """
    replaced = tuple(
        match
        for match in matches
        if match.stored is not None
        and (_is_staged_wider(match, staged) or _has_other_entries(match))
    )
    again = {id(match) for match in replaced}
    kept = [match for match in matches if id(match) not in again]
    added = [addition for match in kept for addition in _missing(match, None, is_numbered=False)]
    filled = tuple(
        match
        for match in kept
        if match.stored is None and INITIAL_DEFAULT in (match.expected.metadata or {})
    )
    nullable = frozenset(number for match in kept for number in _loosened(match))
    abandoned = frozenset(_abandoned(schema, matches, fields, leaf))
    return Upgrade(tuple(added), filled, replaced, nullable | abandoned)


def stored_field(match: FieldMatch) -> pa.Field:
    """Give a column as the leaf stores it once it takes the namespace's rows.

    It has the namespace's names and all its children, the leaf's types where they stay.
    """
    is_replaced = _is_promoted(match) or _has_other_entries(match)
    return plain_field(match.expected) if is_replaced else _stored(match)


def _stored(match: FieldMatch) -> pa.Field:
    if match.stored is None:
        return plain_field(match.expected)
    stored = match.stored.arrow
    below = [_stored(child) for child in match.children]
    container = match.expected.type if len(children_of(stored.type)) != len(below) else stored.type
    data_type = with_children(container, below) if below else stored.type
    nullable = stored.nullable or match.expected.nullable
    own = {key: text for key, text in (stored.metadata or {}).items() if key in TYPE_MARKS}
    others = (match.expected.metadata or {}).items()
    metadata = {key: text for key, text in others if key not in TYPE_MARKS} | own
    column = match.expected.with_type(data_type).with_nullable(nullable)
    return plain_field(column.with_metadata(metadata))


def _is_promoted(match: FieldMatch) -> bool:
    """Whether the leaf has a field of the column in a type that ALTER TABLE has promoted."""
    if match.stored is None:
        return False
    earlier = (match.expected.metadata or {}).get(PROMOTED_FROM, b"").decode().split(";")
    is_narrow = not match.stored.arrow.type.equals(match.expected.type)
    is_own = not children_of(match.expected.type) and is_narrow
    return (is_own and str(match.stored.arrow.type) in earlier) or any(
        _is_promoted(child) for child in match.children
    )


def _has_other_entries(match: FieldMatch, *, in_map: bool = False) -> bool:
    """Whether a map's entries have other fields in the leaf than in the namespace.

    Data files may have different fields of a struct, also in a list; pylance 14 cannot read a map
    of which a file lacks a field.
    """
    if match.stored is None:
        return in_map
    if in_map and len(match.children) != len(match.stored.children):
        return True
    in_map = in_map or pa.types.is_map(match.expected.type)
    return any(_has_other_entries(child, in_map=in_map) for child in match.children)


def _is_staged_wider(match: FieldMatch, staged: Mapping[str, str], above: str = "") -> bool:
    """Whether rows to append store a field in the namespace's type where the leaf does not."""
    key = field_key(match.expected, above)
    expected = match.expected.type
    if match.stored is None or key not in staged:
        return False
    if not children_of(expected):
        return staged[key] == str(expected) != str(match.stored.arrow.type)
    return any(_is_staged_wider(child, staged, key) for child in match.children)


def _missing(
    match: FieldMatch, parent: LeafField | None, *, is_numbered: bool
) -> Iterator[Addition]:
    if match.stored is None:
        yield Addition(
            match.expected, None if parent is None else parent.number, is_silent=is_numbered
        )
        return
    is_numbered = is_numbered or match.stored.stated_id == match.stored.number
    for child in match.children:
        yield from _missing(child, match.stored, is_numbered=is_numbered)


def _loosened(match: FieldMatch) -> Iterator[int]:
    """Fields that are NOT NULL in the leaf and not in the namespace, or dropped from a struct."""
    if match.stored is None:
        return
    if match.expected.nullable and not match.stored.arrow.nullable:
        yield match.stored.number
    if pa.types.is_struct(match.expected.type):
        used = {id(child.stored) for child in match.children}
        for field in match.stored.children:
            if id(field) not in used and not field.arrow.nullable:
                yield field.number
    for child in match.children:
        yield from _loosened(child)


def _abandoned(
    schema: pa.Schema, matches: Sequence[FieldMatch], fields: Sequence[LeafField], leaf: str
) -> Iterator[int]:
    """Columns that are NOT NULL in the leaf and were dropped from the namespace."""
    used = {id(match.stored) for match in matches}
    own = [field for field in fields if id(field) not in used and not field.arrow.nullable]
    highest = NamespaceSchema(schema).highest_id if own else -1
    for field in own:
        if field.stated_id is None or field.stated_id > highest:
            raise LeafSchemaMismatch(
                column=field.name, leaf=leaf, actual="it NOT NULL", expected="no such column"
            )
        yield field.number


# A column's initial default after its type was promoted.
#
# Fields of a struct are found by their ids, as in a leaf: the default is what a leaf would give
# that had been written with it.


def carried_default(before: pa.Schema, after: pa.Schema) -> pa.Schema:
    """Write the initial defaults of changed columns in the columns' new types.

    Args:
        before: The columns as they were, with their ids.
        after: The same with changed types; new columns have no ids yet.

    Raises:
        LeafTypeMismatch: A default does not survive the promotion.

    Example:
        >>> ids = {"lance:field_id": "0", "pennon:initial_default": "5"}
        >>> old = pa.schema([pa.field("n", pa.int32(), metadata=ids)])
        >>> new = pa.schema([old.field("n").with_type(pa.float64())])
        >>> carried_default(old, new).field("n").metadata[b"pennon:initial_default"]
        b'5.0'
    """
    by_id = {field_id_of(column): column for column in before}
    columns = [_carried(by_id.get(field_id_of(column)), column) for column in after]
    return pa.schema(columns, metadata=after.metadata)


def _carried(before: pa.Field | None, after: pa.Field) -> pa.Field:
    if before is None or before.type.equals(after.type, check_metadata=True):
        return after
    value = initial_default(before)
    if value is None:
        return after
    plain = stream_schema(pa.schema([after]))
    matches = match_fields(list(plain), [_as_stored(before)], "the initial default")
    batch = convert_batch([pa.repeat(value, 1)], matches, plain, 1, "the initial default")
    return with_initial_default(after, batch.column(0)[0])


def _as_stored(column: pa.Field) -> LeafField:
    children = tuple(_as_stored(child) for child in children_of(column.type))
    return LeafField(column, -1, field_id_of(column), children)
