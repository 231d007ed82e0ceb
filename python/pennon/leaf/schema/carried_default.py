"""A column's initial default after its type was promoted.

Fields of a struct are found by their ids, as in a leaf: the default is what a leaf would give that
had been written with it.
"""

from __future__ import annotations

import pyarrow as pa

from pennon.leaf.schema.array_conversion import convert_batch
from pennon.leaf.schema.promotion import stream_schema
from pennon.leaf.schema.reconciliation import LeafField, match_fields
from pennon.spec.initial_default import initial_default, with_initial_default
from pennon.spec.schema import children_of, field_id_of

__all__ = ["carried_default"]


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
