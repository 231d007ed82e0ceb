"""Converts the Arrow arrays of a leaf to exactly the read types; matching ones are not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import LeafValueMismatch
from pennon.leaf.schema.reconciliation import FieldMatch, LeafField
from pennon.spec.initial_default import initial_default
from pennon.spec.schema import children_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["convert_batch", "relabelled"]


def convert_batch(
    arrays: Sequence[pa.Array | None],
    matches: Sequence[FieldMatch],
    schema: pa.Schema,
    num_rows: int,
    leaf: str,
) -> pa.RecordBatch:
    """Build the requested batch from a leaf's columns.

    Args:
        arrays: One array per match, None where the leaf lacks the column: every row then has the
            column's initial default, or NULL.
        matches: One per column of ``schema``.
        schema: The requested columns, in plain types.
        num_rows: Rows of the batch, needed where there is no column.
        leaf: The leaf's name for errors.

    Raises:
        LeafValueMismatch: A value does not survive the promotion of its type.
    """
    if not matches:
        return pa.RecordBatch.from_struct_array(
            pa.StructArray.from_buffers(pa.struct([]), num_rows, [None])
        ).replace_schema_metadata(schema.metadata)
    columns = []
    for array, match in zip(arrays, matches, strict=True):
        default = initial_default(match.expected) if array is None else None
        if default is not None:
            columns.append(pa.repeat(default, num_rows))
            continue
        try:
            columns.append(_convert(array, match, num_rows))
        except pa.ArrowInvalid as error:
            raise LeafValueMismatch(
                column=match.expected.name,
                leaf=leaf,
                actual="" if match.stored is None else match.stored.arrow.type,
                expected=match.expected.type,
                why=str(error),
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def relabelled(array: pa.Array, column: pa.Field) -> pa.Array:
    """Give an array the names and nullabilities of a column's type, which it has but for these.

    Arrow's own cast refuses a NULL struct whose type has a NOT NULL field.
    """
    if array.type.equals(column.type):
        return array
    return _convert(array, _by_place(column, column.with_type(array.type)), len(array))


def _by_place(expected: pa.Field, given: pa.Field) -> FieldMatch:
    below = zip(children_of(expected.type), children_of(given.type), strict=True)
    children = tuple(_by_place(child, inner) for child, inner in below)
    stored_children = tuple(child.stored for child in children if child.stored is not None)
    return FieldMatch(expected, LeafField(given, -1, None, stored_children), children)


def _convert(array: pa.Array | None, match: FieldMatch, num_rows: int) -> pa.Array:
    target = match.expected.type
    if array is not None and array.type.equals(target) and not match.children:
        return array
    if array is None or match.stored is None:
        return pa.nulls(num_rows, target)
    if array.type.equals(target) and match.is_same:
        return array
    if not match.children:
        return array.cast(target)
    if pa.types.is_struct(target):
        return _convert_struct(array, match)
    if not pa.types.is_list(array.type) and not pa.types.is_map(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    is_map = pa.types.is_map(target)
    below = _convert_entries(array, match) if is_map else _convert_items(array, match)
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [below]
    )


def _convert_struct(array: pa.Array, match: FieldMatch) -> pa.Array:
    assert match.stored is not None  # noqa: S101 - for the type checker
    places = {id(field): at for at, field in enumerate(match.stored.children)}
    children = [
        _convert(
            None if child.stored is None else array.field(places[id(child.stored)]),
            child,
            len(array),
        )
        for child in match.children
    ]
    mask = array.is_null() if array.null_count else None
    if not children:
        validity = array.buffers()[0]
        return pa.Array.from_buffers(
            match.expected.type, len(array), [validity], array.null_count, array.offset, []
        )
    return pa.StructArray.from_arrays(children, fields=list(match.expected.type), mask=mask)


def _convert_items(array: pa.Array, match: FieldMatch) -> pa.Array:
    return _convert(array.values, match.children[0], len(array.values))


def _convert_entries(array: pa.Array, match: FieldMatch) -> pa.Array:
    keys = _convert(array.keys, match.children[0], len(array.keys))
    items = _convert(array.items, match.children[1], len(array.items))
    target = match.expected.type
    return pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
