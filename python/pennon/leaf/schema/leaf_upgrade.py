"""The schema changes of a leaf before it can take rows of the namespace's present schema.

A column or a nested field that the leaf lacks is added: NULL in older rows, by metadata alone, or
the column's initial default, which is written out, so that a leaf that has a column states its
values itself. NOT NULL is taken off where the namespace has taken it off, or dropped the field.

A column that ALTER TABLE has promoted is stored again in the wider type, and one with maps whose
entries have other fields now. A leaf that is narrower
for any other reason keeps its type: then values are converted to it, or refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.errors import LeafSchemaMismatch
from pennon.leaf.schema.file_layout import field_key
from pennon.leaf.schema.plain_field import plain_field
from pennon.leaf.schema.schema_widening import Addition
from pennon.spec.initial_default import INITIAL_DEFAULT
from pennon.spec.schema import NamespaceSchema, children_of, with_children

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.leaf.schema.reconciliation import FieldMatch, LeafField

__all__ = ["PROMOTED_FROM", "Upgrade", "stored_field", "upgrade_of"]

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
    return plain_field(match.expected.with_type(data_type).with_nullable(nullable))


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
