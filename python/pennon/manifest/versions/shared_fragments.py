"""Reads the rows of many versions of ``__manifest``, each shared fragment only once."""

from __future__ import annotations

from typing import Final

import lance
import pyarrow as pa

from pennon.errors import SnapshotNotFound
from pennon.manifest.dataset.storage import (
    StorageOptions,
    open_manifest,
    present_versions,
    storage_failure,
    version_numbers,
)
from pennon.manifest.format.columns import READ_VERSION
from pennon.manifest.format.rows import TABLE
from pennon.manifest.versions.tags import tagged_versions

__all__ = ["leaf_locations", "open_present", "unseen_rows"]

_COLUMNS: Final = ("object_id", "object_type", "location", READ_VERSION.name)


def leaf_locations(location: str, storage_options: StorageOptions) -> set[str]:
    """Give the directories of the leaves that any version of the manifest knows.

    Args:
        location: The namespace.
        storage_options: Given to Lance.
    """
    places: set[str] = set()
    seen: set[tuple[str, ...]] = set()
    newest = open_manifest(location, storage_options=storage_options)
    for version in version_numbers(newest):
        manifest = open_present(location, version, storage_options)
        if manifest is None:
            continue
        condition = f"object_type = '{TABLE}'"
        rows = unseen_rows(location, manifest, seen, condition, with_deletions=True)
        if rows is not None:
            places.update(place for place in rows["location"].to_pylist() if place is not None)
    return places


def open_present(
    location: str, version: int, storage_options: StorageOptions
) -> lance.LanceDataset | None:
    """Open a version of the manifest; None where it was removed since it was listed."""
    try:
        return open_manifest(
            location, version, storage_options=storage_options, is_expired_too=True
        )
    except SnapshotNotFound:
        return None


def unseen_rows(
    location: str,
    manifest: lance.LanceDataset,
    seen: set[tuple[str, ...]],
    condition: str,
    *,
    with_deletions: bool,
) -> pa.Table | None:
    """Read the rows of the fragments that no version before had in this state.

    Args:
        location: The namespace, for errors.
        manifest: Its ``__manifest`` at a version.
        seen: The states of fragments that were read; those of this version are added.
        condition: Which rows.
        with_deletions: Whether a fragment with other deletions is read again.

    Returns:
        Ids, types, locations and read versions; None where every fragment was seen before, or
        where the version has expired since it was opened, or is about to.

    Raises:
        StorageFailure: The storage refused.
    """
    fresh, states = [], set()
    for fragment in manifest.get_fragments():
        metadata = fragment.metadata
        state = tuple(file.path for file in metadata.files)
        if with_deletions and metadata.deletion_file is not None:
            state = (*state, metadata.deletion_file.path(fragment.fragment_id))
        if state not in seen:
            states.add(state)
            fresh.append(fragment)
    if not fresh:
        return None
    names = [name for name in _COLUMNS if name in manifest.schema.names]
    try:
        rows = manifest.scanner(columns=names, filter=condition, fragments=fresh).to_table()
    except (OSError, RuntimeError, ValueError) as error:
        if _is_expiring(manifest, error):
            return None  # and its fragments are read with a later version that has them
        raise storage_failure("read", location, error) from error
    seen.update(states)
    if READ_VERSION.name not in names:
        rows = rows.append_column(READ_VERSION.name, pa.nulls(len(rows), READ_VERSION.type))
    return rows


def _is_expiring(manifest: lance.LanceDataset, error: Exception) -> bool:
    """Whether rows of a version are gone because it expires.

    Lance removes the files of a version before the version itself, and whoever did so may have been
    killed in between: nobody reads that version any more. The newest and tagged ones never expire.
    """
    versions = [int(entry["version"]) for entry in present_versions(manifest)]
    if manifest.version not in versions:
        return True
    kept = {max(versions), *tagged_versions(manifest)}
    return manifest.version not in kept and "not found" in str(error).lower()
