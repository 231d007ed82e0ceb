"""Commits a repair of ``__manifest``: keys of the metadata, then all rows and columns at once.

Lance writes metadata and rows in two commits. The rows come in one that replaces every fragment and
the columns: a reader sees the damage or none of it, the version before stays one to roll back to,
and Lance refuses the commit behind any other, and any other that was begun before it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import lance
import pyarrow as pa

from pennon.errors import ManifestNotRepairable
from pennon.manifest.commits.stated_commit import schema_id
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import StorageOptions, open_manifest, storage_failure
from pennon.manifest.format.commit_record import CommitIdentity, CommitRecord

__all__ = ["replace_rows", "write_keys"]


def write_keys(
    manifest: lance.LanceDataset, location: str, keys: Mapping[str, str]
) -> lance.LanceDataset:
    """Write keys of the metadata.

    Args:
        manifest: ``__manifest`` as it was looked at.
        location: The namespace.
        keys: Their values.

    Returns:
        The version that has them, in which nothing else was changed.

    Raises:
        ManifestNotRepairable: Another writer came first.
        StorageFailure: The storage refused.

    Spec: "Metadata Definition".
    """
    version = int(manifest.version) + 1
    try:
        manifest.update_metadata(dict(keys))
    except (OSError, RuntimeError, ValueError) as error:
        raise _refused(location, error) from error
    if manifest.version != version:
        raise _changed_meanwhile(location)
    return manifest


def replace_rows(
    manifest: lance.LanceDataset,
    location: str,
    rows: pa.Table,
    spec_version: int,
    storage_options: StorageOptions | None = None,
) -> int:
    """Put rows in the place of all rows of a version; its metadata stays.

    Args:
        manifest: ``__manifest`` as it was looked at.
        location: The namespace.
        rows: All of them, with all columns.
        spec_version: The newest partition spec.
        storage_options: Given to Lance.

    Returns:
        The version that has the rows.

    Raises:
        ManifestNotRepairable: Another writer came first.
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema".
    """
    record = CommitRecord(
        CommitIdentity.fresh(),
        "repair",
        base_version=int(manifest.version),
        spec_version=spec_version,
        schema_id=schema_id(manifest.metadata),
        made_at=int(time.time()),
    )
    options = dict(storage_options or {}) or None
    try:
        fragments = lance.fragment.write_fragments(
            rows, manifest, mode="overwrite", schema=rows.schema, storage_options=options
        )
        # Lance does not look for versions that have expired meanwhile.
        if open_manifest(location, storage_options=options).version != manifest.version:
            raise _changed_meanwhile(location)
        made = lance.LanceDataset.commit(
            manifest,
            lance.LanceOperation.Overwrite(rows.schema, fragments),
            read_version=manifest.version,
            max_retries=0,
            commit_message=record.to_json(),
            storage_options=options,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise _refused(location, error) from error
    return int(made.version)


def _refused(location: str, error: Exception) -> Exception:
    return (
        _changed_meanwhile(location)
        if is_conflict(error)
        else storage_failure("repair", location, error)
    )


def _changed_meanwhile(location: str) -> ManifestNotRepairable:
    return ManifestNotRepairable(
        location=location,
        why="another writer changed its __manifest meanwhile",
        advice="Run it again",
    )
