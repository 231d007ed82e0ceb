"""The older draft of the specification: ``lance.partitioning.*`` and ``column=value`` names.

The properties stand in the metadata map of ``__manifest``, or in the ``metadata`` of a namespace
row below which the partitions are. Every leaf is a table row whose id ends with one
``column=value`` part per partition column; the value is text.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import lance
import pyarrow as pa

from pennon.errors import MigrationRefused
from pennon.manifest.columns import PRIMARY_KEY, READ_VERSION, partition_columns
from pennon.manifest.names import SEPARATOR
from pennon.manifest.outcome import is_conflict
from pennon.manifest.properties import (
    GUARD_BIT,
    SALT,
    SCHEMA,
    TRANSACTION,
    WRITER_FLAGS,
)
from pennon.manifest.rows import NAMESPACE, TABLE, ManifestRow, table_of_rows
from pennon.manifest.storage import StorageOptions, open_manifest, storage_failure
from pennon.spec import NamespaceSchema, PartitionSpec
from pennon.spec.json_text import object_from_text

__all__ = ["DraftColumn", "DraftLeaf", "DraftNamespace", "read_draft", "remove_draft", "write_rows"]

ENABLED: Final = "lance.partitioning.enabled"
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
        texts: One text per partition column, in their order.
    """

    object_id: str
    location: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DraftNamespace:
    """A namespace of the draft.

    Args:
        location: The directory namespace that holds it.
        above: The id of the namespace row that has its properties; empty for the root.
        schema: Its schema, with ids.
        columns: Its partition columns.
        leaves: Its leaves.
        manifest: The manifest that was read.
    """

    location: str
    above: str
    schema: NamespaceSchema
    columns: Sequence[DraftColumn]
    leaves: Sequence[DraftLeaf]
    manifest: lance.LanceDataset


def read_draft(location: str, storage_options: StorageOptions | None = None) -> DraftNamespace:
    """Read a namespace of the older draft.

    Raises:
        NamespaceHasNoManifest: There is nothing.
        MigrationRefused: It is none of the draft, or one that cannot be understood.

    Spec: the draft, §2 and §3.
    """
    manifest = open_manifest(location, storage_options=storage_options)
    try:
        rows = manifest.to_table(columns=["object_id", "object_type", "location", "metadata"])
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("read", location, error) from error
    objects = rows.to_pylist()
    above, properties = _properties(location, manifest, objects)
    schema = _schema(properties)
    columns = _columns(location, properties, schema)
    prefix = above + SEPARATOR if above else ""
    leaves = []
    for each in objects:
        object_id = str(each["object_id"])
        if each["object_type"] != TABLE or not object_id.startswith(prefix):
            continue
        parts = object_id.removeprefix(prefix).split(SEPARATOR)
        if len(parts) != len(columns) or not all("=" in part for part in parts):
            continue
        parts[-1] = parts[-1].removesuffix(".lance")
        texts = tuple(part.partition("=")[2] for part in parts)
        leaves.append(DraftLeaf(object_id, str(each["location"]), texts))
    return DraftNamespace(location, above, schema, columns, leaves, manifest)


def _properties(
    location: str, manifest: lance.LanceDataset, objects: Sequence[Mapping[str, object]]
) -> tuple[str, dict[str, object]]:
    if manifest.metadata.get(ENABLED) == "true":
        return "", dict(manifest.metadata)
    for each in objects:
        if each["object_type"] != NAMESPACE or ENABLED not in str(each["metadata"]):
            continue
        kept = json.loads(str(each["metadata"]))
        properties = kept.get("properties", kept)
        if str(properties.get(ENABLED)).lower() == "true":
            return str(each["object_id"]), properties
    raise MigrationRefused(
        location=location,
        why=f"neither its metadata nor one of its namespaces has {ENABLED} = true",
        advice="Name the folder of a namespace of the older draft",
    )


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
        raise MigrationRefused(
            location=location, why=f"{_COLUMNS} is no array", advice="Correct the property"
        )
    return tuple(_column(location, each, schema) for each in written)


def _column(location: str, written: object, schema: NamespaceSchema) -> DraftColumn:
    known = written if isinstance(written, dict) else {}
    called = _CALL.fullmatch(str(known.get("function", "")))
    properties = known.get("properties") or {}
    sizes = [str(value) for name, value in properties.items() if name.replace("-", "_") in _SIZES]
    if called is not None and called.group(2):
        sizes.append(called.group(2))
    names = _names(known, schema)
    if called is None or not names or not all(size.isdecimal() for size in sizes):
        raise MigrationRefused(
            location=location,
            why=f"{_COLUMNS} has {written!r}, which names no known column, function or size",
            advice="Correct the property",
        )
    return DraftColumn(names, called.group(1).lower(), int(sizes[0]) if sizes else None)


def _names(written: Mapping[str, object], schema: NamespaceSchema) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    ids = written.get("source-ids") or [written.get("source-id")]
    for each in [written["name"]] if "name" in written else (ids if isinstance(ids, list) else []):
        if isinstance(each, str):
            known = schema.field_by_path(tuple(each.split(".")))
        else:
            known = schema.field_by_id(each) if isinstance(each, int) else None
        if known is None:
            return ()
        found.append(known.path)
    return tuple(found)


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
    wanted = partition_columns([spec])
    fields = [pa.field(name, kind) for name, kind in wanted.items()]
    fields = [READ_VERSION, *fields] if strong else fields
    added = [each for each in fields if each.name not in manifest.schema.names]
    flags = manifest.metadata.get(WRITER_FLAGS, "0")
    try:
        manifest.update_metadata({SALT: salt})
        if added:
            manifest.add_columns(added)
        key = manifest.schema.field("object_id")
        if not key.nullable and PRIMARY_KEY not in (key.metadata or {}):
            # Without it Lance does not tell two inserts of one new partition apart.
            manifest.update_field_metadata({"object_id": {PRIMARY_KEY.decode(): "0"}})
        merge = manifest.merge_insert("object_id")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        merge.execute(table_of_rows(rows, manifest.schema))
        manifest = open_manifest(draft.location, storage_options=storage_options)
        manifest.update_metadata(
            {
                SCHEMA: draft.schema.to_json(),
                spec.key: spec.to_json(),
                TRANSACTION: "strong" if strong else "weak",
                WRITER_FLAGS: str((int(flags) if flags.isdecimal() else 0) | GUARD_BIT),
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
    gone = {draft.above} if draft.above else set()
    for each in draft.leaves:
        parts = each.object_id.split(SEPARATOR)
        gone.update(SEPARATOR.join(parts[: at + 1]) for at in range(len(parts)))
    try:
        for key in sorted(gone):
            text = key.replace("'", "''")
            manifest.delete(f"object_id = '{text}'")
        keys = [key for key in manifest.metadata if key.startswith("lance.partitioning.")]
        if keys:
            manifest.update_metadata(dict.fromkeys(keys))
    except OSError as error:
        raise storage_failure("change", draft.location, error) from error
    return int(manifest.version)
