"""Restores columns of ``__manifest`` that a foreign writer dropped.

A left join on ``object_id`` adds all of them in one commit: a reader sees the manifest without
the columns, which it refuses, or with all their values. Metadata and all other columns stay.
"""

from __future__ import annotations

import lance
import pyarrow as pa

from pennon.errors import ManifestNotRepairable
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import StorageOptions, open_manifest, storage_failure
from pennon.manifest.format.properties import WRITER_FLAGS, guarded_flags, has_guard

__all__ = ["add_columns", "add_rows", "set_guard"]


def set_guard(
    location: str, version: int, storage_options: StorageOptions | None = None
) -> lance.LanceDataset:
    """Set the writer guard, so that upstream's directory namespace changes the manifest no more.

    Args:
        location: The namespace.
        version: The version of the manifest that was looked at.
        storage_options: Given to Lance.

    Returns:
        The manifest, in which nothing but the guard was changed since.

    Raises:
        ManifestNotRepairable: Another writer came first.
    """
    manifest = open_manifest(location, storage_options=storage_options)
    metadata = manifest.metadata
    if manifest.version == version and not has_guard(metadata):
        version += 1
        try:
            manifest.update_metadata({WRITER_FLAGS: guarded_flags(metadata)})
        except OSError as error:
            raise storage_failure("repair", location, error) from error
    if manifest.version != version:
        raise _changed_meanwhile(location)
    return manifest


def _changed_meanwhile(location: str) -> ManifestNotRepairable:
    return ManifestNotRepairable(
        location=location,
        why="another writer changed its __manifest meanwhile",
        advice="Run it again",
    )


def add_columns(manifest: lance.LanceDataset, location: str, columns: pa.Table) -> int:
    """Add columns to the manifest's rows.

    Args:
        manifest: The manifest at the version that was looked at.
        location: The namespace.
        columns: ``object_id`` and the columns to add; rows that are not in it get NULL.

    Returns:
        The version of the manifest that has them.

    Raises:
        ManifestNotRepairable: Another writer came first.
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema".
    """
    try:
        manifest.merge(columns, "object_id")
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("repair", location, error) from error
        raise _changed_meanwhile(location) from error
    return int(manifest.version)


def add_rows(location: str, rows: pa.Table, storage_options: StorageOptions | None = None) -> int:
    """Add rows whose ``object_id`` is not there yet.

    Returns:
        The version of the manifest that has them.
    """
    manifest = open_manifest(location, storage_options=storage_options)
    try:
        merge = manifest.merge_insert("object_id").when_not_matched_insert_all()
        merge.execute(rows.select(manifest.schema.names).cast(manifest.schema))
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("repair", location, error) from error
    return int(manifest.version)
