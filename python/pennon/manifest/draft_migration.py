"""A namespace of the current format beside the older draft's, in the same manifest."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import lance
import pyarrow as pa

from pennon.errors import MigrationRefused
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import StorageOptions, open_manifest, storage_failure
from pennon.manifest.draft import DRAFT_PREFIX, DraftNamespace
from pennon.manifest.format.columns import PRIMARY_KEY, READ_VERSION, partition_columns
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.format.properties import (
    SALT,
    SCHEMA,
    STRONG,
    TRANSACTION,
    WEAK,
    WRITER_FLAGS,
    guarded_flags,
)
from pennon.manifest.format.rows import ManifestRow, table_of_rows
from pennon.spec import PartitionSpec

__all__ = ["draft_salt", "remove_draft", "write_rows"]


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
