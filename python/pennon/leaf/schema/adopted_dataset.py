"""Maps the columns of an existing dataset to the namespace's by name, for adoption.

Once its fields state the namespace's ids, renaming a column of the table no longer matters to it.
The ids it stated before, of another namespace, mean nothing here and are overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import lance
import pyarrow as pa

from pennon.leaf.schema.field_ids import state_field_ids
from pennon.leaf.schema.reconciliation import FieldMatch, LeafField, leaf_fields, match_fields
from pennon.spec.schema import field_id_of

__all__ = ["NamedColumns", "columns_by_name", "state_ids"]

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
