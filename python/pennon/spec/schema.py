"""The namespace schema: the columns that all leaves share, each with an id that is never reused.

Every field, nested ones included, carries its id in its metadata under ``lance:field_id``. Fresh
ids are given depth-first in the order in which Lance numbers the fields of a new dataset, so that
the ids of a fresh leaf equal the namespace's. A map has an unnamed level ("entries") between
itself and its key: it takes an id that no field shows. The items of a fixed-size list of plain
values are no field to Lance; they take no id here either.

As soon as the highest id ever given is higher than every id in use, it is kept in the schema's
own metadata under ``pennon:highest_field_id``, so that a dropped column's id is not given again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pennon.errors import InvalidNamespaceSchema, InvalidPartitionFieldName
from pennon.spec.arrow_json import (
    UnknownKeys,
    field_from_json,
    field_to_json,
    object_from_text,
    text_of,
    unknown_keys,
    with_unknown_keys,
)
from pennon.transforms.transform import Transform

__all__ = [
    "BY_NAME",
    "FIELD_ID",
    "NamespaceSchema",
    "SchemaField",
    "checked_name",
    "children_of",
    "default_name",
    "field_id_of",
    "level_name",
    "unique_name",
    "with_children",
]

# Generates the field ids of new partition fields that the user does not name.
#
# identity gives the column's name, the others the columns' names and a word for the transform:
# ``id_bucket``, ``a_b_bucket``, ``name_trunc``, ``ts_year``, ``email_expr``. A number makes the
# name unique over every spec version, because a field id is never used for another derivation.

_LEGAL = re.compile(r"[a-z0-9_]+")
_ILLEGAL_RUN = re.compile(r"[^a-z0-9_]+")


def default_name(transform: Transform, columns: Sequence[Sequence[str]]) -> str:
    """Derive a field's name from its transform and columns, nested names joined by ``_``.

    Example:
        >>> from pennon.transforms.registry import from_json
        >>> bucket = from_json({"type": "bucket", "num_buckets": 16})
        >>> default_name(bucket, [("Customer", "id")])
        'customer_id_bucket'

    Spec: "Partition Field ID".
    """
    stem = "_".join(_legal(name) for path in columns for name in path) or "field"
    return stem + transform.name_suffix


def level_name(prefix: str, transform: Transform) -> str:
    """Name one level of a composed transform that the user gave a name.

    Example:
        >>> from pennon.transforms.registry import from_json
        >>> level_name("event", from_json({"type": "year"}))
        'event_year'
    """
    return f"{prefix}_{transform.type}"


def unique_name(name: str, taken: Collection[str]) -> str:
    """Add the smallest number that makes a name differ, also in more than case, from all others.

    Example:
        >>> unique_name("id_bucket", {"ID_bucket", "id_bucket_2"})
        'id_bucket_3'
    """
    lowered = {other.lower() for other in taken}
    if name not in lowered:
        return name
    number = 2
    while f"{name}_{number}" in lowered:
        number += 1
    return f"{name}_{number}"


def checked_name(name: str, taken: Collection[str]) -> str:
    """Check a name that the user chose.

    Raises:
        InvalidPartitionFieldName: The name has other characters than the format's column names
            carry safely, or another partition field has or had it.

    Spec: "Partition Field ID".
    """
    if not _LEGAL.fullmatch(name):
        raise InvalidPartitionFieldName(name=name, reason="it has other characters")
    if name in {other.lower() for other in taken}:
        raise InvalidPartitionFieldName(name=name, reason="another partition field has or had it")
    return name


def _legal(name: str) -> str:
    return _ILLEGAL_RUN.sub("_", name.lower()).strip("_") or "field"


FIELD_ID: Final = b"lance:field_id"
HIGHEST_FIELD_ID: Final = b"pennon:highest_field_id"
BY_NAME: Final = 3 << 29
"""Ids from here on are of no format: a leaf's fields are found by their names (the older draft)."""

_SCHEMA_KEYS: Final = frozenset({"fields", "metadata"})


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field of the namespace schema and where it is."""

    path: tuple[str, ...]
    field: pa.Field
    id: int

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True, eq=False)
class NamespaceSchema:
    """The schema of a partitioned namespace.

    Args:
        arrow: The columns; every field carries its id under ``lance:field_id``.
        extra: Keys of the JSON object that Pennon does not know; written back as they were.
        field_extra: The same of fields and of their types.

    Example:
        >>> schema = NamespaceSchema.with_fresh_ids(
        ...     pa.schema({"id": pa.int64(), "day": pa.date32()})
        ... )
        >>> schema.field_by_path(("day",)).id
        1

    Spec: "Schema".
    """

    arrow: pa.Schema
    extra: Mapping[str, object] = field(default_factory=dict)
    field_extra: UnknownKeys = field(default_factory=dict)
    _by_id: Mapping[int, SchemaField] = field(init=False, repr=False)
    _by_path: Mapping[tuple[str, ...], SchemaField] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_id: dict[int, SchemaField] = {}
        names = Counter(self.arrow.names)
        for top in self.arrow:
            if names[top.name] > 1:
                raise InvalidNamespaceSchema(
                    where=f"field '{top.name}'",
                    actual=f"{names[top.name]} columns of this name",
                    expected="a name of its own",
                )
            if field_id_of(top) is None:
                raise InvalidNamespaceSchema(
                    where=f"field '{top.name}'",
                    actual="no lance:field_id",
                    expected="the field's id in its metadata",
                )
            for column in _walk(top, ()):
                if column.id in by_id:
                    raise InvalidNamespaceSchema(
                        where=f"field '{column}'",
                        actual=f"lance:field_id {column.id}, also the id of '{by_id[column.id]}'",
                        expected="an id of its own",
                    )
                by_id[column.id] = column
        object.__setattr__(self, "_by_id", by_id)
        object.__setattr__(
            self, "_by_path", {schema_field.path: schema_field for schema_field in by_id.values()}
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamespaceSchema) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """Every field that has an id, parents before their children."""
        return tuple(self._by_id.values())

    @property
    def highest_id(self) -> int:
        """The highest field id ever given, -1 where none was."""
        kept = (self.arrow.metadata or {}).get(HIGHEST_FIELD_ID)
        highest = max(self._by_id, default=-1)
        for parent in self._by_id.values():
            highest = max(highest, parent.id + (1 if pa.types.is_map(parent.field.type) else 0))
        return max(highest, int(kept)) if kept is not None else highest

    def field_by_id(self, field_id: int) -> SchemaField | None:
        """Find a field, at any depth, by its id; None where no field has it (any more).

        Spec: "Partition Field Schema", "Column removal resistant".
        """
        return self._by_id.get(field_id)

    def field_by_path(self, path: Sequence[str]) -> SchemaField | None:
        """Find a field by the names from the top: exactly, else the only one but for case.

        Example:
            >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"Id": pa.int64()}))
            >>> str(schema.field_by_path(["id"]))
            'Id'
        """
        exact = self._by_path.get(tuple(path))
        if exact is not None:
            return exact
        lowered = tuple(name.lower() for name in path)
        alike = [
            column
            for path_in_schema, column in self._by_path.items()
            if tuple(name.lower() for name in path_in_schema) == lowered
        ]
        return alike[0] if len(alike) == 1 else None

    def evolved(self, arrow: pa.Schema) -> NamespaceSchema:
        """Replace the columns: fields with an id keep it, new fields get ids never given before.

        Args:
            arrow: The new columns; a field without ``lance:field_id`` is new.

        Example:
            >>> old = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.int64(), "b": pa.int64()}))
            >>> new = old.evolved(pa.schema([old.arrow.field("a"), pa.field("c", pa.int8())]))
            >>> new.field_by_path(["c"]).id
            2

        Spec: "Schema" (field ids are never reused).
        """
        numbers = _Numbers(self.highest_id + 1)
        columns = [_numbered(column, numbers, is_fresh=False) for column in arrow]
        metadata = {**(self.arrow.metadata or {}), **(arrow.metadata or {})}
        metadata.pop(HIGHEST_FIELD_ID, None)
        return NamespaceSchema(
            _schema(columns, metadata, numbers.following - 1), self.extra, self.field_extra
        )

    def with_ids_given(self, highest: int) -> NamespaceSchema:
        """Remember that ids were given to fields that this schema does not know.

        Args:
            highest: The highest of them; a lower one than the own changes nothing.

        Example:
            >>> older = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.int64()}))
            >>> older.with_ids_given(4).highest_id
            4

        Spec: "Schema" (field ids are never reused).
        """
        if highest <= self.highest_id:
            return self
        metadata = {**(self.arrow.metadata or {}), HIGHEST_FIELD_ID: str(highest).encode()}
        return NamespaceSchema(self.arrow.with_metadata(metadata), self.extra, self.field_extra)

    def to_json(self) -> str:
        """Write the text of the metadata key ``schema``; keys that Pennon does not know survive.

        Spec: "Metadata Definition", Appendix A.
        """
        columns = [
            with_unknown_keys(field_to_json(column), self.field_extra) for column in self.arrow
        ]
        written: dict[str, object] = {"fields": columns}
        if self.arrow.metadata:
            written["metadata"] = {
                key.decode(): value.decode() for key, value in self.arrow.metadata.items()
            }
        return text_of({**written, **self.extra})

    @classmethod
    def from_json(cls, text: str, key: str = "schema") -> NamespaceSchema:
        """Read the text of the metadata key ``schema``.

        Raises:
            CorruptJson: The text is not a JSON object.
            InvalidArrowJson: A field or type is not one of Arrow's.
            InvalidNamespaceSchema: A column has no id, or two fields have the same.

        Spec: "Schema", Appendix A.
        """
        written = object_from_text(text, key)
        columns = written.get("fields")
        if not isinstance(columns, list):
            raise InvalidNamespaceSchema(
                where=f"{key}.fields", actual=repr(columns), expected="an array of fields"
            )
        metadata = written.get("metadata")
        arrow = pa.schema(
            [field_from_json(column, f"{key}.fields[{at}]") for at, column in enumerate(columns)],
            metadata={str(name): str(value) for name, value in metadata.items()}
            if isinstance(metadata, dict)
            else None,
        )
        extra = {name: value for name, value in written.items() if name not in _SCHEMA_KEYS}
        return cls(arrow, extra, unknown_keys(columns))

    @classmethod
    def with_fresh_ids(cls, schema: pa.Schema, first: int = 0) -> NamespaceSchema:
        """Number every field of a new namespace's schema as Lance will; ids it has are dropped.

        Args:
            schema: The columns.
            first: The first id; ``BY_NAME`` for a schema whose leaves state no ids.

        Example:
            >>> point = pa.struct({"x": pa.int32()})
            >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"p": point, "s": pa.utf8()}))
            >>> [(str(field), field.id) for field in schema.fields]
            [('p', 0), ('p.x', 1), ('s', 2)]

        Spec: "Schema".
        """
        numbers = _Numbers(first)
        columns = [_numbered(column, numbers, is_fresh=True) for column in schema]
        metadata = dict(schema.metadata or {})
        metadata.pop(HIGHEST_FIELD_ID, None)
        return cls(_schema(columns, metadata, numbers.following - 1))


@dataclass(slots=True)
class _Numbers:
    """The next field id to give."""

    following: int

    def draw(self) -> int:
        self.following += 1
        return self.following - 1


def field_id_of(arrow_field: pa.Field) -> int | None:
    """Read the id that a field states; None where it states none.

    Raises:
        InvalidNamespaceSchema: What it states is no whole number.

    Example:
        >>> field_id_of(pa.field("a", pa.int8(), metadata={"lance:field_id": "7"}))
        7

    Spec: "Schema".
    """
    stated = (arrow_field.metadata or {}).get(FIELD_ID)
    if stated is None:
        return None
    text = stated.decode(errors="replace")
    if not text.isdecimal():
        raise InvalidNamespaceSchema(
            where=f"field '{arrow_field.name}'",
            actual=f"lance:field_id {text!r}",
            expected="a whole number",
        )
    return int(text)


def children_of(data_type: pa.DataType) -> list[pa.Field]:
    """List the fields below a type that can have an id, in Lance's order."""
    if not data_type.num_fields:
        return []
    if pa.types.is_struct(data_type):
        return list(data_type)
    if pa.types.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return [data_type.value_field]
    if pa.types.is_fixed_size_list(data_type):
        inner = data_type.value_type
        # Lance numbers neither plain values nor fixed-size lists below a fixed-size list
        is_numbered = pa.types.is_nested(inner) and not pa.types.is_fixed_size_list(inner)
        return [data_type.value_field] if is_numbered else []
    return []


def with_children(data_type: pa.DataType, children: Sequence[pa.Field]) -> pa.DataType:
    """Put other fields below a type, as many as ``children_of`` lists."""
    if not children:
        return data_type
    if pa.types.is_struct(data_type):
        return pa.struct(children)
    if pa.types.is_map(data_type):
        return pa.map_(children[0], children[1], keys_sorted=data_type.keys_sorted)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(children[0], data_type.list_size)
    return (
        pa.large_list(children[0]) if pa.types.is_large_list(data_type) else pa.list_(children[0])
    )


def _walk(arrow_field: pa.Field, above: tuple[str, ...]) -> Iterator[SchemaField]:
    path = (*above, arrow_field.name)
    stated = field_id_of(arrow_field)
    if stated is not None:
        yield SchemaField(path, arrow_field, stated)
    for child in children_of(arrow_field.type):
        yield from _walk(child, path)


def _numbered(arrow_field: pa.Field, numbers: _Numbers, *, is_fresh: bool) -> pa.Field:
    stated = None if is_fresh else field_id_of(arrow_field)
    number = numbers.draw() if stated is None else stated
    data_type = arrow_field.type
    if pa.types.is_map(data_type) and stated is None:
        numbers.draw()
    children = [_numbered(child, numbers, is_fresh=is_fresh) for child in children_of(data_type)]
    metadata = {**(arrow_field.metadata or {}), FIELD_ID: str(number).encode()}
    return arrow_field.with_type(with_children(data_type, children)).with_metadata(metadata)


def _schema(columns: Sequence[pa.Field], metadata: dict[bytes, bytes], highest: int) -> pa.Schema:
    plain = NamespaceSchema(pa.schema(columns))
    if highest > plain.highest_id:
        metadata[HIGHEST_FIELD_ID] = str(highest).encode()
    return pa.schema(columns, metadata=metadata or None)
