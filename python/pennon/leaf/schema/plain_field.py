"""The stored form of a namespace's column in a leaf."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pennon.caching import PerObject
from pennon.spec.schema import FIELD_ID, children_of, with_children

__all__ = ["plain_field", "plain_schema"]


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
