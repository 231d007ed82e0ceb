"""Schema columns declared as bare ``timestamp``: unit and zone are taken from the leaves.

The JSON type of the specification has no place for them, and upstream's client writes the bare name
for every timestamp. Pennon states both. So for a bare one a leaf is looked at, once per version of
``__manifest``; without a leaf it is one of microseconds without a zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import lance
import pyarrow as pa
from sqlglot import exp

from pennon.manifest.dataset.storage import StorageOptions
from pennon.manifest.format.columns import READ_VERSION
from pennon.manifest.format.names import SEPARATOR, TABLE_NAME
from pennon.manifest.format.properties import SCHEMA
from pennon.manifest.format.rows import TABLE
from pennon.predicate.dialect import DataFusion
from pennon.spec.json_text import object_from_text
from pennon.spec.schema import NamespaceSchema, field_id_of

__all__ = ["with_stored_timestamps"]

_MOST_LEAVES: Final = 8
_BARE: Final = "timestamp"


def with_stored_timestamps(
    schema: NamespaceSchema,
    metadata: Mapping[str, str],
    location: str,
    manifest: lance.LanceDataset,
    storage_options: StorageOptions,
) -> NamespaceSchema:
    """Give top-level columns of a bare timestamp type the type that a leaf stores them in.

    Args:
        schema: As the metadata has it.
        metadata: The namespace's metadata map.
        location: The namespace.
        manifest: Its ``__manifest``.
        storage_options: Given to Lance.

    Spec: "Schema" (JsonArrowDataType).
    """
    bare = _bare_columns(metadata)
    if not bare:
        return schema
    for stored in _leaf_schemas(location, manifest, storage_options):
        columns = [
            _typed(column, stored) if column.name in bare else column for column in schema.arrow
        ]
        return replace(schema, arrow=pa.schema(columns, schema.arrow.metadata))
    return schema


def _bare_columns(metadata: Mapping[str, str]) -> set[str]:
    columns = object_from_text(metadata[SCHEMA], SCHEMA).get("fields")
    names = set()
    for column in columns if isinstance(columns, list) else []:
        kind = column.get("type")
        name = kind.get("type") if isinstance(kind, Mapping) else kind
        if isinstance(name, str) and name.strip().lower() == _BARE:
            names.add(str(column["name"]))
    return names


def _leaf_schemas(
    location: str, manifest: lance.LanceDataset, storage_options: StorageOptions
) -> Iterator[pa.Schema]:
    """Open a few leaves, one after the other; one that is not there is an error when it is read."""
    names = [
        "location",
        *([READ_VERSION.name] if READ_VERSION.name in manifest.schema.names else []),
    ]
    is_table = exp.column("object_type").eq(exp.Literal.string(TABLE))
    is_named = exp.column("object_id").like(exp.Literal.string(f"v%{SEPARATOR}{TABLE_NAME}"))
    condition = exp.and_(is_table, is_named).sql(dialect=DataFusion)
    rows = manifest.to_table(columns=names, filter=condition, limit=_MOST_LEAVES)
    for row in rows.to_pylist():
        place = row["location"] or ""
        is_whole = "://" in place or place.startswith("/")
        uri = place if is_whole else f"{location.rstrip('/')}/{place}"
        try:
            yield lance.dataset(
                uri,
                version=row.get(READ_VERSION.name),
                storage_options=dict(storage_options) or None,
            ).schema
        except (OSError, ValueError):
            continue


def _typed(column: pa.Field, stored: pa.Schema) -> pa.Field:
    """Take a stored timestamp's type: by the id that the field states, else by its name."""
    field_id = field_id_of(column)
    named = [field for field in stored if field.name == column.name]
    own = [field for field in stored if field_id_of(field) == field_id] or named
    is_told = bool(own) and pa.types.is_timestamp(own[0].type)
    return column.with_type(own[0].type) if is_told else column
