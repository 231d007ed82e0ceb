"""Removes unreferenced files: of killed writers, failed statements and dropped leaves.

Kept is what any version of ``__manifest`` that is still there reads, what a tag or the main branch
of a leaf holds, and everything younger than the limit: a write that runs names its files last. Old
versions themselves are not removed, that is ``expire``'s work.

Only files of Lance datasets are touched, and only folders that are named as leaves are.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

from pennon.caching.lance_sessions import version_path
from pennon.catalog.layouts.plain_snapshot import PlainSnapshot
from pennon.errors import LeafMissing, NamespaceHasNoManifest
from pennon.leaf import forget_leaves
from pennon.leaf.dataset import FIRST_DETACHED, leaf_uri, side_by_side
from pennon.leaf.write.destination import YOUNG_ON_STORE
from pennon.maintenance.calls.procedure_declaration import (
    Column,
    Procedure,
    columns_of,
    count,
    planned,
)
from pennon.maintenance.expire import LeafVersion, named_versions
from pennon.maintenance.leaves.leaf_files import (
    INDICES,
    LeafFiles,
    Progress,
    files_of_version,
    no_progress,
)
from pennon.maintenance.plain_upkeep import files_of_dataset, plain_dataset
from pennon.manifest.dataset.storage import (
    MANIFEST,
    StorageOptions,
    open_manifest,
    present_numbers,
    version_numbers,
)
from pennon.manifest.format.names import is_leaf_directory
from pennon.manifest.format.properties import DEFAULT_AGE, read_specs
from pennon.manifest.versions.history import leaf_locations, opened_present

__all__ = ["VACUUM", "Vacuumed", "vacuum"]

_YOUNG_IN_MANIFEST: Final = timedelta(hours=1)
_OF_LANCE: Final = ("data/", "_deletions/", INDICES, "_transactions/", "_versions/d")


@dataclass(slots=True)
class Vacuumed:
    """What was removed, or would be.

    Args:
        files: Files, relative to the namespace.
        num_bytes: Their bytes.
        leaves: Folders of leaves that no version knows, each removed as a whole.
        notes: What was left alone, and why.
    """

    files: Annotated[list[str], count("deleted_files"), planned("files")] = field(
        default_factory=list
    )
    num_bytes: Annotated[int, Column("freed_bytes")] = 0
    leaves: Annotated[list[str], count("removed_leaves")] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def vacuum(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    older_than: datetime | None = None,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Vacuumed:
    """Remove the files of a namespace that no version of it needs.

    Args:
        location: The namespace, or a plain dataset.
        storage_options: Given to Lance.
        older_than: Files changed before this time go; left out, five days ago. A write that takes
            longer than that loses what it staged. On an object store files of the last hour stay.
        dry_run: Whether to list only.
        progress: Called with how far it is.

    Raises:
        NotPartitionedNamespace: It is none.
        StorageFailure: The storage refused.

    Example:
        >>> vacuum("/data/lake/orders", dry_run=True).num_bytes  # doctest: +SKIP
        70250

    Spec: "Multi-Partition Transaction (Strong)", "Physical Layout and Naming".
    """
    options = dict(storage_options or {})
    now = datetime.now(UTC)
    limit = older_than or now - DEFAULT_AGE
    if "://" in location:
        limit = min(limit, now - YOUNG_ON_STORE)
    try:
        manifest = open_manifest(location, storage_options=options)
    except NamespaceHasNoManifest as error:
        return _vacuum_plain(plain_dataset(location, options, error), limit, dry_run=dry_run)
    read_specs(manifest.metadata, location)
    versions = version_numbers(manifest)
    named = named_versions(location, versions, options)
    locations = leaf_locations(location, options)
    done = Vacuumed()
    if manifest.branches.list():
        # What a branch's own versions of the manifest read is not among those of the main line.
        done.notes.append("its __manifest has branches, which may read any file")
        return done
    strays, places = sorted(set(_leaf_folders(location)) - locations), sorted(locations)
    waste: dict[str, list[str]] = {}
    leaves: dict[str, LeafFiles] = {}

    def look(place: str) -> tuple[LeafFiles | None, list[str], Vacuumed]:
        noted = Vacuumed()
        try:
            leaf = LeafFiles.open(location, place, options)
        except LeafMissing as error:
            return None, [], Vacuumed(notes=[error.message])
        return leaf, list(_waste(leaf, named, limit, noted)), noted

    looked = zip(places, side_by_side(location, look, places), strict=True)
    for at, (place, (leaf, paths, noted)) in enumerate(looked, 1):
        progress("leaves looked through", at, len(locations))
        done.notes += noted.notes
        if leaf is not None:
            leaves[place], waste[place] = leaf, paths
    # What was committed meanwhile may read what looked like waste.
    newest = open_manifest(location, storage_options=options)
    later = sorted(set(version_numbers(newest)).difference(versions))
    named_since = named_versions(location, later, options) - named
    known_since = {place for place, _ in named_since}
    forget_leaves()
    own = LeafFiles.open(location, MANIFEST, options)
    _remove(own, _waste_of_manifest(own, limit), done, dry_run=dry_run)
    for place, paths in waste.items():
        if place not in known_since:
            _remove(leaves[place], paths, done, dry_run=dry_run)
    for place in strays:
        if place not in known_since:
            _remove_folder(location, place, limit, done, dry_run=dry_run)
    return done


VACUUM: Final = Procedure(
    vacuum,
    "Delete files below a table that no version names.",
    columns_of(Vacuumed),
    renews_table=True,
    command="vacuum",
    said="{location}: {deleted_files} files with {freed_bytes} bytes removed,"
    " {removed_leaves} leaves that no version knows among them",
    planned="{location}: {deleted_files} files with {freed_bytes} bytes to remove,"
    " {removed_leaves} leaves that no version knows among them",
)


def _vacuum_plain(snapshot: PlainSnapshot, limit: datetime, *, dry_run: bool) -> Vacuumed:
    """Remove files of a plain dataset that no version of it needs, be it detached or not."""
    done = Vacuumed()
    leaf = files_of_dataset(snapshot)
    every = {(leaf.place, version) for version in leaf.detached}
    for path in list(_waste(leaf, every, limit, done)):
        done.files.append(path)
        done.num_bytes += leaf.sizes[path] if dry_run else leaf.remove(path)
    return done


def _waste(
    leaf: LeafFiles, named: set[LeafVersion], limit: datetime, done: Vacuumed
) -> Iterator[str]:
    """List the files of a leaf that nothing needs, those of versions before the versions."""
    if leaf.has_branches:
        done.notes.append(f"leaf {leaf.place} has branches, which may share its files")
        return
    present = leaf.detached
    young = {version for version in present if leaf.changed_at[version_path(version)] >= limit}
    read = {version for place, version in named if place == leaf.place}
    kept = present & (read | young | leaf.tagged)
    if not read <= present | {version for version in read if version < FIRST_DETACHED}:
        done.notes.append(f"leaf {leaf.place} lacks a version that is read: check the table")
        return
    try:
        used = leaf.with_blobs(leaf.of_main() | leaf.of(kept))
    except LeafMissing:  # an expiry beside it has removed a version since it was listed
        done.notes.append(f"leaf {leaf.place} is left alone: versions of it were removed meanwhile")
        return
    for path in sorted(leaf.sizes):
        if path.startswith(_OF_LANCE) and path not in used and leaf.changed_at[path] < limit:
            yield path


def _waste_of_manifest(own: LeafFiles, limit: datetime) -> list[str]:
    """List the files that commits have left which failed, on a full disk for one.

    Young ones stay whatever the limit is: a commit under way has written its file and names it
    last, and a file of the manifest that goes by mistake takes the whole table with it.
    """
    limit = min(limit, datetime.now(UTC) - _YOUNG_IN_MANIFEST)
    old = {
        path
        for path in own.sizes
        if path.startswith(("data/", "_deletions/")) and own.changed_at[path] < limit
    }
    if not old:
        return []
    seen: set[int] = set()
    for _ in range(2):  # and once more, for what was committed since the first look
        newest = open_manifest(own.root, storage_options=own.storage_options)
        present = present_numbers(newest)
        for _, manifest in opened_present(own.root, present - seen, own.storage_options):
            old.difference_update(files_of_version(manifest))
        seen |= present
    return sorted(old)


def _remove(leaf: LeafFiles, paths: Sequence[str], done: Vacuumed, *, dry_run: bool) -> None:
    done.files += [f"{leaf.place}/{path}" for path in paths]
    sizes = sum(leaf.sizes[path] for path in paths)
    done.num_bytes += sizes if dry_run else leaf.remove_all(paths)


def _leaf_folders(location: str) -> Iterator[str]:
    """List the folders that are named as leaves; those of an object store are not looked for."""
    if "://" in location:
        return
    for path in Path(location).iterdir():
        if path.is_dir() and is_leaf_directory(path.name):
            yield path.name


def _remove_folder(
    location: str, place: str, limit: datetime, done: Vacuumed, *, dry_run: bool
) -> None:
    """Remove a leaf that no version of the manifest knows, unless something in it is young."""
    folder = Path(leaf_uri(location, place))
    try:
        sizes = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
        stats = [*sizes.values()] or [folder.stat()]
    except FileNotFoundError:  # a writer that was refused removes what it has made
        return
    if max(stat.st_mtime for stat in stats) >= limit.timestamp():
        return
    done.leaves.append(place)
    done.files += [str(entry.relative_to(location)) for entry in sorted(sizes)]
    done.num_bytes += sum(stat.st_size for stat in sizes.values())
    if not dry_run:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
