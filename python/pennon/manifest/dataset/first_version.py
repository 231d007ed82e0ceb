"""Versions of ``__manifest`` from before it was a partitioned namespace."""

from __future__ import annotations

from bisect import bisect_left

import lance

from pennon.errors import SnapshotNotFound
from pennon.manifest.dataset.storage import StorageOptions, open_manifest, version_numbers
from pennon.manifest.format.properties import has_specs
from pennon.manifest.format.rows import TABLE

__all__ = ["when_made"]


def when_made(
    location: str, manifest: lance.LanceDataset, storage_options: StorageOptions
) -> lance.LanceDataset:
    """Give the version that made a namespace a partitioned one, for the version just before it.

    Lance takes rows and metadata in two commits, so a creation leaves one version in between. It
    has no table yet, and neither has the one that completes it.

    Args:
        location: The namespace.
        manifest: A version of its manifest without any partition spec.
        storage_options: Given to Lance.

    Returns:
        The next version; the given one where the namespace is none now either.

    Raises:
        SnapshotNotFound: It had tables then, or became partitioned only later.
    """
    latest = open_manifest(location, storage_options=storage_options)
    if not has_specs(latest.metadata):
        return manifest
    listed = version_numbers(latest)

    def is_made(version: int) -> bool:
        return has_specs(open_manifest(location, version, None, storage_options).metadata)

    first = listed[bisect_left(listed, True, key=is_made)]
    if first == manifest.version + 1 and not manifest.count_rows(f"object_type = '{TABLE}'"):
        return open_manifest(location, first, None, storage_options)
    raise SnapshotNotFound(
        location=location,
        asked=f"at version {manifest.version}",
        existing="it is a partitioned namespace since version"
        f" {first}, and its versions from there are {first} to {listed[-1]}",
    )
