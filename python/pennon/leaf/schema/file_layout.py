"""The namespace field of each column of a data file, renumbered for another leaf.

A data file numbers its columns by the schema that it was written with; a fragment lists those
numbers. The numbers are known to Lance alone, so a fragment can be moved to a leaf that numbers
its fields differently (one of another client, or one that was made meanwhile) by its list alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
from lance.schema import LanceSchema

from pennon.spec.schema import children_of, field_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lance.lance.schema import LanceField

    from pennon.leaf.schema.reconciliation import FieldMatch

__all__ = ["leaf_numbers", "read_layout", "renumbered", "write_layout"]


def write_layout(columns: Sequence[pa.Field], written: pa.Schema) -> str:
    """Describe the columns that files written with a schema have.

    Args:
        columns: The namespace's columns, with their ids.
        written: The schema of the files: the same columns, as the leaf stores them.

    Returns:
        Text: for each field its key (the id), its number in the files, and its stored type.
    """
    numbered = LanceSchema.from_pyarrow(written).fields()
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
    numbered = field.children()
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
