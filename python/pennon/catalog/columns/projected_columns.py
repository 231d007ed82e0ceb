"""The columns that a query reads: Spark's pruned schema with the namespace's field ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import UnknownColumn
from pennon.leaf.read.metadata_columns import named_metadata_column
from pennon.spec.initial_default import INITIAL_DEFAULT
from pennon.spec.schema import FIELD_ID, children_of, with_children

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["column_paths", "with_field_ids"]


def with_field_ids(pruned: pa.Schema, full: pa.Schema) -> pa.Schema:
    """Give each field of a pruned schema the id and the default of its namesake in the full one.

    Args:
        pruned: Spark's schema in Arrow's types; nested fields may be left out, and metadata
            columns stand among the others.
        full: The namespace schema.

    Raises:
        UnknownColumn: The full schema has no such column.
    """
    metadata = [
        None if full.get_all_field_indices(field.name) else named_metadata_column(field)
        for field in pruned
    ]
    pairs = list(zip(pruned, metadata, strict=True))
    own = iter(_matched([pair for pair, hidden in pairs if hidden is None], full))
    return pa.schema([hidden or next(own) for _, hidden in pairs])


def column_paths(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    """List the paths of the top-level columns and of the fields of structs."""
    stack: list[tuple[tuple[str, ...], pa.Field]] = [((field.name,), field) for field in schema]
    for path, field in stack:
        yield path
        if pa.types.is_struct(field.type):
            stack.extend(((*path, child.name), child) for child in field.type)


def _matched(pruned: Sequence[pa.Field], full: pa.Schema | pa.DataType) -> list[pa.Field]:
    places = [full.get_all_field_indices(field.name) for field in pruned]
    lowered: dict[str, list[pa.Field]] = {}
    for column in full if not all(places) else ():
        lowered.setdefault(column.name.lower(), []).append(column)
    matched = []
    for field, exact in zip(pruned, places, strict=True):
        alike = [full.field(exact[0])] if exact else lowered.get(field.name.lower(), [])
        if len(alike) != 1:
            raise UnknownColumn(column=field.name, columns=", ".join(one.name for one in full))
        matched.append(_with_id(field, alike[0]))
    return matched


def _with_id(field: pa.Field, source: pa.Field) -> pa.Field:
    below = children_of(field.type)
    if below:
        sources = children_of(source.type)
        if not pa.types.is_struct(field.type):  # keys, items and entries pair by their place
            children = [_with_id(*pair) for pair in zip(below, sources, strict=False)]
            children += below[len(children) :]
        else:
            children = _matched(below, source.type)
        field = field.with_type(with_children(field.type, children))
    kept = {
        key: entry
        for key, entry in (source.metadata or {}).items()
        if key in (FIELD_ID, INITIAL_DEFAULT)
    }
    return field.with_metadata(kept or None)
