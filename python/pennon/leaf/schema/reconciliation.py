"""Maps the columns of a leaf to those of its namespace: by field id, not by name.

A field of the leaf is a field of the namespace by the ``lance:field_id`` that it states. A leaf
written by pylance alone states none; then Lance's own number of the field counts where the leaf
numbers its fields as the namespace does, else the name. It does where more columns have number and
name in common with the namespace than have one's name and another's number: a writer without ids
who orders the columns otherwise, or lacks one in the middle, hits a number by chance. A field that
the leaf lacks is NULL, a narrower type is promoted, unknown fields are ignored.

Below a column whose stated id is Lance's number of it, as in the leaves that Pennon makes, a field
states its id only where it is not the number. So the number of a silent field there is its id,
unless another field states that number, and the name of a dropped field finds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

import pyarrow as pa

from pennon.caching import PerObject
from pennon.errors import LeafTypeMismatch
from pennon.predicate.values.time_units import is_list
from pennon.spec.arrow_json import TYPE_MARKS, storage_field
from pennon.spec.schema import BY_NAME, FIELD_ID, children_of, field_id_of, with_children

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import lance
    from lance.lance.schema import LanceField

__all__ = [
    "FieldMatch",
    "LeafField",
    "LeafFields",
    "LeafMatching",
    "is_promotable",
    "leaf_fields",
    "leaf_matching",
    "match_fields",
    "plain_field",
    "plain_schema",
    "shared_fields",
    "stream_schema",
    "stream_type",
]


# The stored form of a namespace's column in a leaf.


def plain_field(column: pa.Field) -> pa.Field:
    """Give a field as a leaf stores it: without the stated ids, which a leaf states once.

    What Pennon keeps for itself stays behind as well, and below a column all metadata: pylance 14
    fails to filter by a nested column whose fields have metadata.
    """
    metadata = {key: text for key, text in (column.metadata or {}).items() if _is_kept(key)}
    return _without_metadata(column).with_metadata(metadata or None)


def _plain_schema(columns: pa.Schema) -> pa.Schema:
    return pa.schema([plain_field(column) for column in columns])


_PLAIN: Final[PerObject[pa.Schema, pa.Schema]] = PerObject(_plain_schema)


def plain_schema(columns: pa.Schema) -> pa.Schema:
    """Give a namespace's columns as a new leaf stores them.

    Args:
        columns: With their ids; the answer for a schema that outlives the statement is kept.
    """
    return _PLAIN.of(columns)


def _is_kept(key: bytes) -> bool:
    return key != FIELD_ID and not key.startswith(b"pennon:")


def _without_metadata(column: pa.Field) -> pa.Field:
    children = [_without_metadata(child) for child in children_of(column.type)]
    plain = column.with_type(with_children(column.type, children))
    return plain.with_metadata(None)


# Which stored types promote to which: every value keeps its meaning and stays distinct.
#
# NULL rule: NULL stays NULL in every type, so a leaf's column of type null promotes to anything.

_FLOAT_DIGITS = {16: 11, 32: 24, 64: 53}
_DECIMAL_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_UNITS = ("s", "ms", "us", "ns")


def is_promotable(stored: pa.DataType, expected: pa.DataType) -> bool:
    """Whether values stored as ``stored`` can be read as ``expected`` without loss.

    Example:
        >>> is_promotable(pa.int32(), pa.int64()), is_promotable(pa.int64(), pa.int32())
        (True, False)
    """
    stored, expected = stream_type(stored), stream_type(expected)
    if stored.equals(expected) or pa.types.is_null(stored):
        return True
    if pa.types.is_integer(stored):
        return _integer_promotes(stored, expected)
    if pa.types.is_floating(stored):
        return bool(pa.types.is_floating(expected) and stored.bit_width <= expected.bit_width)
    if pa.types.is_decimal(stored):
        return bool(
            pa.types.is_decimal(expected)
            and expected.scale >= stored.scale
            and expected.precision - expected.scale >= stored.precision - stored.scale
        )
    if pa.types.is_timestamp(expected):
        return _promotes_to_timestamp(stored, expected)
    if pa.types.is_time(stored) and pa.types.is_time(expected):
        return _UNITS.index(stored.unit) <= _UNITS.index(expected.unit)
    if pa.types.is_fixed_size_binary(stored):
        return bool(expected.equals(pa.binary()))
    return bool(pa.types.is_date(stored) and pa.types.is_date(expected))


def _integer_promotes(stored: pa.DataType, expected: pa.DataType) -> bool:
    is_signed = pa.types.is_signed_integer(stored)
    digits = stored.bit_width - (1 if is_signed else 0)
    if pa.types.is_integer(expected):
        if not pa.types.is_signed_integer(expected):
            return bool(not is_signed and digits <= expected.bit_width)
        return bool(digits <= expected.bit_width - 1)
    if pa.types.is_floating(expected):
        return bool(digits <= _FLOAT_DIGITS[expected.bit_width])
    if pa.types.is_decimal(expected):
        return bool(expected.precision - expected.scale >= _DECIMAL_DIGITS[stored.bit_width])
    return False


def _promotes_to_timestamp(stored: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_date(stored):
        return expected.tz is None
    if not pa.types.is_timestamp(stored):
        return False
    # a finer stored unit is read as long as no value loses its last digits: the cast is checked
    return (stored.tz is None) == (expected.tz is None)


def stream_type(data_type: pa.DataType) -> pa.DataType:
    """Give the plain form of a type: 32-bit offsets, no views, no dictionaries, variable lists.

    Example:
        >>> stream_type(pa.list_(pa.large_utf8(), 3))
        ListType(list<item: string>)
    """
    if pa.types.is_struct(data_type):
        return pa.struct([_stream_field(child) for child in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(
            _stream_field(data_type.key_field),
            _stream_field(data_type.item_field),
            keys_sorted=data_type.keys_sorted,
        )
    if pa.types.is_dictionary(data_type):
        return stream_type(data_type.value_type)
    if isinstance(data_type, pa.BaseExtensionType):
        return stream_type(data_type.storage_type)
    if hasattr(data_type, "value_field"):
        return pa.list_(_stream_field(data_type.value_field))
    if pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return pa.utf8()
    if pa.types.is_large_binary(data_type) or pa.types.is_binary_view(data_type):
        return pa.binary()
    return data_type


def stream_schema(schema: pa.Schema) -> pa.Schema:
    """Give the schema of a scan's stream: the requested one with every type in its plain form."""
    return pa.schema([_stream_field(column) for column in schema], metadata=schema.metadata)


def _stream_field(column: pa.Field) -> pa.Field:
    metadata = column.metadata or {}
    if TYPE_MARKS & metadata.keys():  # else Arrow takes the plain form for the extension type
        column = column.with_metadata(
            {key: text for key, text in metadata.items() if key not in TYPE_MARKS} or None
        )
    return column.with_type(stream_type(column.type))


@dataclass(frozen=True, slots=True)
class LeafField:
    """One field of a leaf: Arrow's view of it, Lance's number, and the id that it states."""

    arrow: pa.Field
    number: int
    stated_id: int | None
    children: tuple[LeafField, ...]

    @property
    def name(self) -> str:
        """The field's name in the leaf."""
        return str(self.arrow.name)

    def walk(self) -> Iterator[LeafField]:
        """Yield the field and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class FieldMatch:
    """A requested field, and the leaf's field that holds it; None where the leaf has none."""

    expected: pa.Field
    stored: LeafField | None
    children: tuple[FieldMatch, ...]

    @property
    def is_same(self) -> bool:
        """Whether the leaf's values need no change but that of their type."""
        if self.stored is None or len(self.children) != len(self.stored.children):
            return False
        return all(
            match.is_same and match.stored is stored
            for match, stored in zip(self.children, self.stored.children, strict=True)
        )


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class LeafFields:
    """The fields of one or more leaves; equal only to itself, which makes it a cheap key."""

    fields: tuple[LeafField, ...]


_of_dataset: WeakKeyDictionary[lance.LanceDataset, tuple[int, LeafFields]] = WeakKeyDictionary()
_shared: WeakValueDictionary[tuple[LeafField, ...], LeafFields] = WeakValueDictionary()


def shared_fields(dataset: lance.LanceDataset) -> LeafFields:
    """Find the fields of a leaf, one object for all leaves that have the same."""
    version = dataset.version
    cached = _of_dataset.get(dataset)
    if cached is not None and cached[0] == version:
        return cached[1]
    fields = tuple(
        _leaf_field(storage_field(arrow), field)
        for arrow, field in zip(dataset.schema, dataset.lance_schema.fields(), strict=True)
    )
    shared = _shared.setdefault(fields, LeafFields(fields))
    _of_dataset[dataset] = (version, shared)
    return shared


def leaf_fields(dataset: lance.LanceDataset) -> tuple[LeafField, ...]:
    """List the fields of a leaf with Lance's numbers and stated ids, nested ones below."""
    return shared_fields(dataset).fields


def _leaf_field(arrow: pa.Field, field: LanceField) -> LeafField:
    below = children_of(arrow.type)
    numbered = field.children()
    if pa.types.is_map(arrow.type) and numbered:
        numbered = numbered[0].children()  # Lance numbers the entries between map and key
    children = tuple(
        _leaf_field(child, number) for child, number in zip(below, numbered, strict=False)
    )
    return LeafField(arrow, field.id(), field_id_of(arrow), children)


def match_fields(
    expected: Sequence[pa.Field],
    stored: Sequence[LeafField],
    leaf: str,
    namespace: Sequence[pa.Field] | None = None,
) -> tuple[FieldMatch, ...]:
    """Find each requested field in a leaf.

    Args:
        expected: Fields of the namespace schema; nested ones may be a part of it.
        stored: All fields of the leaf.
        leaf: The leaf's name for errors.
        namespace: All columns of the namespace, where ``expected`` are some of them: how a leaf
            numbers its fields is the same for every query.

    Raises:
        LeafTypeMismatch: A column's stored type does not promote to the requested one.

    Spec: "Schema".
    """
    return LeafMatching(expected if namespace is None else namespace, stored).of(expected, leaf)


class LeafMatching:
    """Where a leaf has the columns of a namespace. Threads may share it.

    Args:
        namespace: All columns.
        stored: All fields of the leaf.
    """

    def __init__(self, namespace: Sequence[pa.Field], stored: Sequence[LeafField]) -> None:
        self.stored = stored
        self.by_name = {str(column.name): column for column in namespace}
        every = [field for top in stored for field in top.walk() if field.stated_id is not None]
        self.states_nested_ids = len(every) > sum(top.stated_id is not None for top in stored)
        stated = frozenset(field.stated_id for field in every if field.stated_id is not None)
        is_numbered_alike = _is_numbered_alike(namespace, stored)
        self._matching = _Matching("", stated, is_numbered_alike=is_numbered_alike)
        self._columns = self._matching.chosen(list(namespace), stored, is_numbered=False)
        self._whole: dict[int, FieldMatch] = {}

    @property
    def lacking(self) -> frozenset[int]:
        """The ids of the namespace's columns that the leaf has not."""
        every = enumerate(self._columns.every)
        missing = (field_id_of(column) for at, column in every if at not in self._columns.stored)
        return frozenset(field_id for field_id in missing if field_id is not None)

    def of(self, expected: Iterable[pa.Field], leaf: str) -> tuple[FieldMatch, ...]:
        """Find requested columns; as ``match_fields``.

        Args:
            expected: Columns; nested fields may be left out.
            leaf: The leaf's name for errors.
        """
        targets = list(expected)
        matching, columns = replace(self._matching, leaf=leaf), self._columns
        beside = [target for target in targets if _key(target) not in columns.places]
        if beside:
            every = [*columns.every, *beside]
            columns = matching.chosen(every, self.stored, is_numbered=False)
        return tuple(self._one(target, columns, matching) for target in targets)

    def _one(self, target: pa.Field, columns: _Chosen, matching: _Matching) -> FieldMatch:
        at = columns.places[_key(target)]
        if columns is not self._columns or not columns.every[at].equals(
            target, check_metadata=True
        ):
            return matching.sibling(target, columns, (), is_numbered=False)
        # What is requested as it is has the same match for every statement.
        match = self._whole.get(at)
        if match is None:
            match = matching.sibling(target, columns, (), is_numbered=False)
            self._whole[at] = match
        return match


_MATCHINGS: Final[PerObject[pa.Schema, WeakKeyDictionary[LeafFields, LeafMatching]]] = PerObject(
    lambda _: WeakKeyDictionary()
)


def leaf_matching(namespace: pa.Schema, stored: LeafFields) -> LeafMatching:
    """Give where a leaf has a namespace's columns, worked out once for both.

    Args:
        namespace: All columns; a schema that outlives the statement is asked for again.
        stored: The leaf's fields.
    """
    known = _MATCHINGS.of(namespace)
    matching = known.get(stored)
    if matching is None:
        known[stored] = matching = LeafMatching(list(namespace), stored.fields)
    return matching


def _is_numbered_alike(namespace: Sequence[pa.Field], stored: Sequence[LeafField]) -> bool | None:
    """Whether a leaf numbers its fields as the namespace does; None where it is unknown."""
    ids = {target.name: _id_of(target) for target in namespace}
    names = {field_id: name for name, field_id in ids.items() if field_id is not None}
    numbered = [field for field in stored if field.number in names and field.name in ids]
    alike = sum(names[field.number] == field.name for field in numbered)
    return alike > len(numbered) - alike if numbered else None


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Fields of one level, the place of each by its key, and the leaf's field for those it has."""

    every: Sequence[pa.Field]
    places: Mapping[int | str, int]
    stored: Mapping[int, LeafField]


@dataclass(frozen=True, slots=True)
class _Matching:
    leaf: str
    stated: frozenset[int]
    is_numbered_alike: bool | None

    def siblings(
        self,
        expected: Sequence[pa.Field],
        stored: Sequence[LeafField],
        above: tuple[str, ...],
        *,
        known: Sequence[pa.Field],
        is_numbered: bool,
    ) -> tuple[FieldMatch, ...]:
        # A leaf's field that belongs to another column is never a match, requested or not.
        every = [*known, *_beside(expected, known)]
        chosen = self.chosen(every, stored, is_numbered=is_numbered)
        return tuple(
            self.sibling(target, chosen, above, is_numbered=is_numbered) for target in expected
        )

    def chosen(
        self, every: Sequence[pa.Field], stored: Sequence[LeafField], *, is_numbered: bool
    ) -> _Chosen:
        places = {_key(target): at for at, target in reversed(list(enumerate(every)))}
        return _Chosen(every, places, self._choose(every, stored, is_numbered=is_numbered))

    def sibling(
        self, target: pa.Field, chosen: _Chosen, above: tuple[str, ...], *, is_numbered: bool
    ) -> FieldMatch:
        at = chosen.places[_key(target)]
        return self._match(
            target,
            chosen.stored.get(at),
            (*above, target.name),
            known=chosen.every[at],
            is_numbered=is_numbered,
        )

    def _choose(
        self, expected: Sequence[pa.Field], stored: Sequence[LeafField], *, is_numbered: bool
    ) -> dict[int, LeafField]:
        """Match each requested field with at most one of the leaf's, the surest way first."""
        chosen: dict[int, LeafField] = {}
        silent = {field.name: field for field in stored if field.stated_id is None}
        stated = {field.stated_id: field for field in stored if field.stated_id is not None}
        first = {field.name: field for field in reversed(stored)}
        for at, target in enumerate(expected):
            target_id = _id_of(target)
            if target_id is None and target.name not in silent:
                if target.name in first:
                    chosen[at] = first[target.name]
            elif target_id in stated:
                chosen[at] = stated[target_id]
        for by_number in self._ways(is_numbered=is_numbered):
            numbered = {field.number: field for field in reversed(silent.values())}
            for at, target in enumerate(expected):
                if at in chosen:
                    continue
                field = _find(target, silent, numbered if by_number else None)
                is_named = is_numbered and not by_number and _id_of(target) is not None
                if field is not None and not (is_named and field.number not in self.stated):
                    chosen[at] = silent.pop(field.name)
        return chosen

    def _ways(self, *, is_numbered: bool) -> tuple[bool, ...]:
        """Whether fields that state no id match by their numbers (True) or names, surest first."""
        if self.is_numbered_alike or is_numbered:
            return True, False
        # A leaf that numbers its fields otherwise has numbers that say nothing.
        return (False,) if self.is_numbered_alike is False else (False, True)

    def _match(
        self,
        target: pa.Field,
        field: LeafField | None,
        path: tuple[str, ...],
        *,
        known: pa.Field,
        is_numbered: bool,
    ) -> FieldMatch:
        if field is None:
            return FieldMatch(target, None, ())
        below = children_of(target.type)
        if not _is_same_shape(target.type, field.arrow.type) or not (
            below or is_promotable(field.arrow.type, target.type)
        ):
            raise LeafTypeMismatch(
                column=".".join(path), leaf=self.leaf, actual=field.arrow.type, expected=target.type
            )
        is_numbered = is_numbered or field.stated_id == field.number
        if pa.types.is_struct(target.type):
            children = self.siblings(
                below,
                field.children,
                path,
                known=children_of(known.type),
                is_numbered=is_numbered,
            )
            return FieldMatch(target, field, children)
        full = children_of(known.type) if len(children_of(known.type)) == len(below) else below
        children = tuple(
            self._match(child, inner, (*path, child.name), known=whole, is_numbered=is_numbered)
            for child, inner, whole in zip(below, _below(field) if below else (), full, strict=True)
        )
        return FieldMatch(target, field, children)


def _key(target: pa.Field) -> int | str:
    field_id = field_id_of(target)
    return str(target.name) if field_id is None else field_id


def _beside(expected: Sequence[pa.Field], known: Sequence[pa.Field]) -> list[pa.Field]:
    """List the requested fields that are not among the known ones, by id."""
    keys = {_key(target) for target in known}
    return [target for target in expected if _key(target) not in keys]


def _id_of(target: pa.Field) -> int | None:
    field_id = field_id_of(target)
    return None if field_id is None or field_id >= BY_NAME else field_id


def _find(
    target: pa.Field,
    silent: Mapping[str, LeafField],
    numbered: Mapping[int, LeafField] | None,
) -> LeafField | None:
    """Find a field that states no id by its number, or where these say nothing, by its name."""
    if numbered is None:
        return silent.get(target.name)
    field = numbered.get(-1 if (target_id := field_id_of(target)) is None else target_id)
    return field if field is not None and silent.get(field.name) is field else None


def _below(field: LeafField) -> tuple[LeafField, ...]:
    """The fields below a list or a map; Lance does not number the numbers of a fixed-size list."""
    if field.children or not hasattr(field.arrow.type, "value_field"):
        return field.children
    return (LeafField(field.arrow.type.value_field, -1, None, ()),)


def _is_same_shape(expected: pa.DataType, stored: pa.DataType) -> bool:
    return _shape(expected) == _shape(stored)


def _shape(data_type: pa.DataType) -> str:
    if pa.types.is_struct(data_type):
        return "struct"
    if pa.types.is_map(data_type):
        return "map"
    return "list" if is_list(data_type) else "value"
