"""The older draft of the specification: ``lance.partitioning.*`` and ``column=value`` names.

The properties stand in the metadata map of ``__manifest``, or in the ``metadata`` of a namespace
row below which the partitions are. Every leaf is a table row whose id ends with one
``column=value`` part per partition column; the value is text.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import lance
import pyarrow as pa

from pennon.errors import DraftNotReadable, MigrationRefused, NamespaceHasNoManifest
from pennon.manifest.dataset.storage import (
    StorageOptions,
    is_conflict,
    open_manifest,
    storage_failure,
)
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.format.properties import (
    DRAFT_ENABLED,
    SALT,
    SCHEMA,
    STRONG,
    TRANSACTION,
    WEAK,
    WRITER_FLAGS,
    guarded_flags,
)
from pennon.manifest.format.rows import (
    NAMESPACE,
    PRIMARY_KEY,
    READ_VERSION,
    TABLE,
    ManifestRow,
    partition_columns,
    table_of_rows,
)
from pennon.spec import NamespaceSchema, PartitionSpec
from pennon.spec.arrow_json import object_from_text
from pennon.spec.column_names import column_path

__all__ = [
    "DraftColumn",
    "DraftLeaf",
    "DraftNamespace",
    "draft_names",
    "draft_of",
    "draft_properties",
    "draft_salt",
    "is_draft",
    "read_draft",
    "remove_draft",
    "write_rows",
]

DRAFT_PREFIX: Final = "lance.partitioning."
_COLUMNS: Final = "lance.partitioning.partition-columns"
_SCHEMA: Final = "lance.partitioning.schema"
_CALL: Final = re.compile(r"(\w+)(?:[\[(](\d+)[\])])?")
_SIZES: Final = ("num_buckets", "bucket_size", "width", "truncate_size")


@dataclass(frozen=True, slots=True)
class DraftColumn:
    """A partition column of the draft.

    Args:
        sources: Its source columns' paths.
        function: ``identity``, ``bucket``, ``truncate``, ``hash``, ``year`` … ``hour``.
        size: The number of buckets or the width.
    """

    sources: tuple[tuple[str, ...], ...]
    function: str
    size: int | None


@dataclass(frozen=True, slots=True)
class DraftLeaf:
    """A leaf of the draft.

    Args:
        object_id: Its id.
        location: Its directory.
        texts: One text per partition column, in their order; None where the id does not contain
            them.
    """

    object_id: str
    location: str
    texts: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class DraftNamespace:
    """A namespace of the draft.

    Args:
        location: The directory namespace that holds it.
        above: The id of the namespace row that has its properties; empty for the root.
        schema: Its schema, with ids.
        columns: Its partition columns.
        leaves: Its leaves.
        properties: Its own properties, ``lance.partitioning.*``.
        manifest: The manifest that was read.
    """

    location: str
    above: str
    schema: NamespaceSchema
    columns: Sequence[DraftColumn]
    leaves: Sequence[DraftLeaf]
    properties: Mapping[str, str]
    manifest: lance.LanceDataset


def is_draft(properties: Mapping[str, object] | None) -> bool:
    """Whether properties are those of a namespace of the draft.

    Example:
        >>> is_draft({"lance.partitioning.enabled": "true"})
        True
    """
    return str((properties or {}).get(DRAFT_ENABLED)).lower() == "true"


def read_draft(location: str, storage_options: StorageOptions | None = None) -> DraftNamespace:
    """Read the only namespace of the older draft in a folder.

    Args:
        location: The folder that holds its ``__manifest``.
        storage_options: Given to Lance.

    Raises:
        NamespaceHasNoManifest: There is nothing.
        DraftNotReadable: It is none of the draft, or one that cannot be understood.

    Spec: the draft, §2 and §3.
    """
    return draft_of(location, open_manifest(location, storage_options=storage_options))


def draft_of(
    location: str, manifest: lance.LanceDataset, above: str | None = None
) -> DraftNamespace:
    """Read a namespace of the older draft from a version of its manifest.

    Args:
        location: The folder that holds its ``__manifest``.
        manifest: The version.
        above: The id of its namespace row; None for the only one that is there.

    Raises:
        DraftNotReadable: As of ``read_draft``.
    """
    try:
        rows = manifest.to_table(columns=["object_id", "object_type", "location", "metadata"])
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("read", location, error) from error
    objects = rows.to_pylist()
    above, properties = _properties(location, manifest, objects, above)
    for key in (_SCHEMA, _COLUMNS):
        if properties.get(key) is None:
            advice = "Restore the property, or open an earlier version"
            raise DraftNotReadable(location=location, why=f"it has no {key}", advice=advice)
    schema = _schema(properties)
    columns = _columns(location, properties, schema)
    tables = {str(e["object_id"]): e["location"] for e in objects if e["object_type"] == TABLE}
    leaves = list(_leaves(tables, above, len(columns)))
    if above and not leaves:
        # The draft's picture of the layout leaves the name of the namespace out.
        leaves = list(_leaves(tables, "", len(columns)))
    own = {key: str(value) for key, value in properties.items() if key.startswith(DRAFT_PREFIX)}
    return DraftNamespace(location, above, schema, columns, leaves, own, manifest)


def _leaves(tables: Mapping[str, str | None], above: str, levels: int) -> Iterator[DraftLeaf]:
    """Find the leaves: below a namespace of its own all tables, else those of ``column=value``."""
    prefix = above + SEPARATOR if above else ""
    for object_id, location in tables.items():
        below = object_id.removeprefix(prefix)
        if not object_id.startswith(prefix) or (levels and not above and "=" not in below):
            continue
        yield DraftLeaf(object_id, location or f"{object_id}.lance", _texts(below, levels))


def _texts(below: str, levels: int) -> tuple[str, ...] | None:
    """Take an id apart; a value may contain the separator."""
    parts: list[str] = []
    for part in below.removesuffix(".lance").split(SEPARATOR):
        if parts and "=" not in part:
            parts[-1] += SEPARATOR + part
        else:
            parts.append(part)
    if not levels:
        return ()
    is_told = len(parts) == levels and all("=" in part for part in parts)
    return tuple(part.partition("=")[2] for part in parts) if is_told else None


def draft_names(location: str, manifest: lance.LanceDataset) -> tuple[str, ...]:
    """List the ids of the namespaces of the draft in a manifest; the root's is empty.

    Args:
        location: The folder of the manifest, for errors.
        manifest: The manifest.
    """
    if is_draft(manifest.metadata):
        return ("",)
    try:
        rows = manifest.to_table(
            columns=["object_id", "object_type", "metadata"],
            filter=f"object_type = '{NAMESPACE}'",
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("read", location, error) from error
    return tuple(_enabled(rows.to_pylist()))


def draft_properties(
    location: str, storage_options: StorageOptions | None = None
) -> dict[str, str]:
    """Give the properties of the draft that a folder's manifest has for itself; none elsewhere."""
    try:
        metadata = open_manifest(location, storage_options=storage_options).metadata
    except NamespaceHasNoManifest:
        return {}
    own = {key: text for key, text in metadata.items() if key.startswith(DRAFT_PREFIX)}
    return own if is_draft(own) else {}


def _enabled(objects: Sequence[Mapping[str, object]]) -> dict[str, dict[str, object]]:
    """Give the properties of the namespaces of the draft by their ids."""
    enabled: dict[str, dict[str, object]] = {}
    for object_ in objects:
        if object_["object_type"] == NAMESPACE and DRAFT_ENABLED in str(object_["metadata"]):
            kept = object_from_text(str(object_["metadata"]), f"metadata of {object_['object_id']}")
            inner = kept.get("properties")
            properties = inner if isinstance(inner, dict) else kept
            if is_draft(properties):
                enabled[str(object_["object_id"])] = properties
    return enabled


def _properties(
    location: str,
    manifest: lance.LanceDataset,
    objects: Sequence[Mapping[str, object]],
    above: str | None,
) -> tuple[str, dict[str, object]]:
    if not above and is_draft(manifest.metadata):
        return "", dict(manifest.metadata)
    enabled = _enabled(objects)
    if above in enabled:
        return above, enabled[above]
    if above is None and len(enabled) == 1:
        return next(iter(enabled.items()))
    why = f"neither its metadata nor one of its namespaces has {DRAFT_ENABLED} = true"
    advice = "Name the folder of a namespace of the older draft"
    if enabled and above is None:
        why = f"it holds several: {', '.join(enabled)}"
        name = next(iter(enabled)).replace(SEPARATOR, "/")
        advice = f"Name one of them, as {location}/{name}"
    raise DraftNotReadable(location=location, why=why, advice=advice)


def _object(properties: Mapping[str, object], key: str) -> object:
    """Give the value of a key, whether it is JSON or the text of it."""
    value = properties.get(key)
    if isinstance(value, str):
        return object_from_text(f'{{"it":{value}}}', key)["it"]
    return value


def _schema(properties: Mapping[str, object]) -> NamespaceSchema:
    written = _object(properties, _SCHEMA)
    columns = written.get("fields") if isinstance(written, dict) else None
    for at, column in enumerate(columns if isinstance(columns, list) else []):
        if isinstance(column, dict):
            # The schema demands ids, the draft has none: any will do until all are given anew.
            column["metadata"] = {"lance:field_id": str(at), **(column.get("metadata") or {})}
    schema = NamespaceSchema.from_json(json.dumps(written), _SCHEMA)
    return NamespaceSchema.with_fresh_ids(schema.arrow)


def _columns(
    location: str, properties: Mapping[str, object], schema: NamespaceSchema
) -> tuple[DraftColumn, ...]:
    written = _object(properties, _COLUMNS)
    if not isinstance(written, list):
        raise DraftNotReadable(
            location=location, why=f"{_COLUMNS} is no array", advice="Correct the property"
        )
    return tuple(_column(location, entry, schema) for entry in written)


def _column(location: str, written: object, schema: NamespaceSchema) -> DraftColumn:
    stated = written if isinstance(written, dict) else {}
    called = _CALL.fullmatch(str(stated.get("function", "")))
    properties = stated.get("properties") or {}
    sizes = [str(value) for name, value in properties.items() if name.replace("-", "_") in _SIZES]
    if called is not None and called.group(2):
        sizes.append(called.group(2))
    names = _names(stated, schema)
    if called is None or not names or not all(size.isdecimal() for size in sizes):
        raise DraftNotReadable(
            location=location,
            why=f"{_COLUMNS} has {written!r}, which names no known column, function or size",
            advice="Correct the property",
        )
    return DraftColumn(names, called.group(1).lower(), int(sizes[0]) if sizes else None)


def _names(written: Mapping[str, object], schema: NamespaceSchema) -> tuple[tuple[str, ...], ...]:
    paths: list[tuple[str, ...]] = []
    ids = written.get("source-ids") or [written.get("source-id")]
    for id_ in [written["name"]] if "name" in written else (ids if isinstance(ids, list) else []):
        if isinstance(id_, str):
            column = schema.field_by_path(column_path(id_))
        else:
            column = schema.field_by_id(id_) if isinstance(id_, int) else None
        if column is None:
            return ()
        paths.append(column.path)
    return tuple(paths)


# A namespace of the current format beside the older draft's, in the same manifest.


def write_rows(
    draft: DraftNamespace,
    spec: PartitionSpec,
    rows: Sequence[ManifestRow],
    salt: str,
    *,
    strong: bool,
    storage_options: StorageOptions | None = None,
) -> int:
    """Write a namespace of the current format beside the draft's, in the same manifest.

    The rows come first; what makes them a partitioned namespace is the last commit, of the
    metadata. A run that was interrupted can be made again.

    Args:
        draft: The namespace of the draft.
        spec: The spec.
        rows: Namespaces, tables and table versions.
        salt: What the partitions' names were derived with.
        strong: Whether leaves are read at a recorded version.
        storage_options: Given to Lance.

    Returns:
        The version of the manifest that has it.
    """
    manifest = open_manifest(draft.location, storage_options=storage_options)
    expected = partition_columns([spec])
    fields = [pa.field(name, kind) for name, kind in expected.items()]
    fields = [READ_VERSION, *fields] if strong else fields
    added = [field for field in fields if field.name not in manifest.schema.names]
    try:
        manifest.update_metadata({SALT: salt})
        if added:
            manifest.add_columns(added)
        key = manifest.schema.field("object_id")
        if not key.nullable and PRIMARY_KEY not in (key.metadata or {}):
            # Without it Lance does not detect that two writers insert the same new partition.
            manifest.update_field_metadata({"object_id": {PRIMARY_KEY.decode(): "0"}})
        merge = manifest.merge_insert("object_id")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        merge.execute(table_of_rows(rows, manifest.schema))
        manifest = open_manifest(draft.location, storage_options=storage_options)
        manifest.update_metadata(
            {
                SCHEMA: draft.schema.to_json(),
                spec.key: spec.to_json(),
                TRANSACTION: STRONG if strong else WEAK,
                WRITER_FLAGS: guarded_flags(manifest.metadata),
            }
        )
    except (OSError, RuntimeError, ValueError) as error:
        if is_conflict(error):
            raise MigrationRefused(
                location=draft.location,
                why="another writer changed its __manifest meanwhile",
                advice="Run it again",
            ) from error
        raise storage_failure("migrate", draft.location, error) from error
    return int(manifest.version)


def draft_salt(manifest: lance.LanceDataset) -> str:
    """Give the salt of an interrupted migration, or a new one."""
    return str(manifest.metadata.get(SALT) or secrets.token_hex(16))


def remove_draft(draft: DraftNamespace, storage_options: StorageOptions | None = None) -> int:
    """Remove the draft's rows and properties; no file of a leaf.

    Returns:
        The version of the manifest without them.
    """
    manifest = open_manifest(draft.location, storage_options=storage_options)
    removed = {draft.above} if draft.above else set()
    for leaf in draft.leaves:
        parts = leaf.object_id.split(SEPARATOR)
        removed.update(SEPARATOR.join(parts[: at + 1]) for at in range(len(parts)))
    try:
        for key in sorted(removed):
            text = key.replace("'", "''")
            manifest.delete(f"object_id = '{text}'")
        keys = [key for key in manifest.metadata if key.startswith(DRAFT_PREFIX)]
        if keys:
            manifest.update_metadata(dict.fromkeys(keys))
    except OSError as error:
        raise storage_failure("change", draft.location, error) from error
    return int(manifest.version)
