"""Expires old versions of a namespace, and the leaf versions that only they read.

The order makes it safe to stop anywhere, and beside writers and readers:

1. old versions of ``__manifest`` are removed, as Lance does it; those that a tag names stay, and
   tags whose time is over go before;
2. those that are left are read: what any of them names is kept;
3. of a leaf's detached versions only those are deleted that the manifest had recorded once and that
   nothing names any more. What a running write has made is recorded nowhere yet, so it stays;
4. a version's files go before the version, so that a second run finds what the first one left. What
   only versions recorded that a rollback undid is known from those alone: where a run is killed
   behind the first step vacuum takes it;
5. its record, a ``table_version`` row, goes last, and with it the records of commits whose versions
   are gone for good.

Lance's own clean-up is never run on a leaf: to it every detached version is waste.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import lance

from pennon.caching import version_time
from pennon.catalog.layouts.plain_snapshot import PlainSnapshot
from pennon.errors import LeafMissing, NamespaceHasNoManifest, StorageFailure
from pennon.leaf import forget_leaves
from pennon.maintenance.checks.manifest_rows import RawRows
from pennon.maintenance.leaf_references import LeafVersion, named_versions, recorded_versions
from pennon.maintenance.leaves.leaf_files import LeafFiles, manifest_path
from pennon.maintenance.leaves.progress import Progress, no_progress
from pennon.maintenance.plain_upkeep import (
    files_of_dataset,
    files_of_versions_alone,
    plain_dataset,
    remove_versions,
)
from pennon.manifest.commits.fragment_merge import keep_small
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import (
    StorageOptions,
    listed_versions,
    open_manifest,
    storage_failure,
    version_numbers,
)
from pennon.manifest.format.commit_record import COMMIT, CommitRecord
from pennon.manifest.format.properties import read_specs, user_properties
from pennon.manifest.format.rows import TABLE, TABLE_VERSION, ManifestRow, table_of_rows
from pennon.manifest.versions.expiry_notice import expiring
from pennon.manifest.versions.retention import kept_age, kept_versions
from pennon.manifest.versions.tags import Tag, drop_unchanged, tagged_versions, tags_of
from pennon.predicate.values.time_units import SECONDS_PER_DAY

__all__ = ["Expired", "expirable_versions", "expire"]

# So long a commit may still be asked for again by whoever has not heard of it.
_RETRIED_SECONDS: Final = SECONDS_PER_DAY
_ATTEMPTS: Final = 5
# A merge reserves its fragments' ids in a version of its own, which pylance has no class for.
_MERGES: Final = ("Rewrite", "BaseOperation")


@dataclass(slots=True)
class Expired:
    """What was removed, or would be.

    Args:
        versions: Versions of ``__manifest``.
        tags: Tags that were to hold until a time that is over.
        leaf_versions: Versions of leaves.
        files: Files of leaves, those of the versions themselves included, relative to the
            namespace.
        num_bytes: Bytes of their data files.
        notes: What was left alone, and why.
    """

    versions: list[int] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    leaf_versions: int = 0
    files: list[str] = field(default_factory=list)
    num_bytes: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def num_files(self) -> int:
        """How many files there are."""
        return len(self.files)


def expire(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    older_than: datetime | None = None,
    retain_last: int | None = None,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Expired:
    """Remove old versions of a namespace and the leaf versions that only they named.

    Args:
        location: The namespace, or a plain dataset.
        storage_options: Given to Lance.
        older_than: Versions committed before this time, with a zone, go; None for what the table's
            ``history.expire.max-snapshot-age-ms`` says, or five days ago.
        retain_last: How many of the newest versions stay whatever their age, at least one; None for
            what the table's ``history.expire.min-snapshots-to-keep`` says, or one.
        dry_run: Whether to list only.
        progress: Called with how far it is.

    Raises:
        NotPartitionedNamespace: It is none.
        InvalidRetention: A property that is asked for is no number that it can be.
        StorageFailure: The storage refused.

    Example:
        >>> expire("/data/lake/orders", retain_last=10).versions  # doctest: +SKIP
        [1, 2, 3]

    Spec: "Multi-Partition Transaction (Strong)".
    """
    options = dict(storage_options or {})
    try:
        manifest = open_manifest(location, storage_options=options)
    except NamespaceHasNoManifest as error:
        plain = plain_dataset(location, options, error)
        return _expire_plain(plain, older_than, retain_last, dry_run=dry_run)
    read_specs(manifest.metadata, location)
    done = Expired(tags=_tags_without_use(manifest, location, dry_run=dry_run))
    still_there = done.tags if dry_run else ()
    done.versions.extend(expirable_versions(manifest, older_than, retain_last, still_there))
    kept = set(version_numbers(manifest)).difference(done.versions)
    recorded = recorded_versions(location, [*done.versions, max(kept)], options)
    versions = sorted(kept)
    if not dry_run:
        left = _remove_versions(manifest, location, options, done, versions)
        if left is None:
            return done
        versions = left
    unneeded = recorded - named_versions(location, versions, options)
    forget_leaves()
    deleted: set[LeafVersion] = set()
    places = sorted({place for place, _ in unneeded})
    for at, place in enumerate(places, 1):
        progress("leaves cleaned up", at, len(places))
        doomed = {version for leaf, version in unneeded if leaf == place}
        gone = _delete(location, place, options, doomed, done, dry_run=dry_run)
        deleted |= {(place, version) for version in gone}
    if not dry_run:
        _forget_records(location, options, deleted, versions[0], done)
    return done


def _expire_plain(
    snapshot: PlainSnapshot, older_than: datetime | None, retain_last: int | None, *, dry_run: bool
) -> Expired:
    """Remove versions of a plain dataset by Lance's own clean-up."""
    dataset = snapshot.manifest
    done = Expired(tags=_tags_without_use(dataset, snapshot.location, dry_run=dry_run))
    still_there = done.tags if dry_run else ()
    # A merge of fragments is a compaction that someone asked for, and counts.
    done.versions.extend(expirable_versions(dataset, older_than, retain_last, still_there, ()))
    if done.versions:
        leaf = files_of_dataset(snapshot)
        done.files.extend(files_of_versions_alone(leaf, done.versions))
        done.num_bytes = sum(leaf.sizes[path] for path in done.files if path.startswith("data/"))
    if done.versions and not dry_run:
        kept = set(version_numbers(dataset)).difference(done.versions)
        with expiring(dataset, _oldest_behind(done.versions, kept), table=snapshot.location):
            remove_versions(snapshot, done.versions)
    return done


def _remove_versions(
    manifest: lance.LanceDataset,
    location: str,
    options: StorageOptions,
    done: Expired,
    kept: Sequence[int],
) -> list[int] | None:
    """Remove versions of ``__manifest``; give those that are left.

    Args:
        manifest: Its newest version.
        location: The namespace.
        options: Given to Lance.
        done: The versions that shall go.
        kept: The others.

    Returns:
        None where one got a tag at this very moment, as a rollback gives it: what it reads of
        leaves is left to the next run.
    """
    for _ in range(_ATTEMPTS):
        if done.versions:
            _clean_up(manifest, location, done.versions, kept)
        # The tags first: a rollback drops its tag when the version that it made is listed.
        newest = open_manifest(location, storage_options=options)
        tagged = tagged_versions(newest).intersection(done.versions)
        versions = version_numbers(newest)
        stayed = sorted(set(done.versions).intersection(versions) - tagged)
        if not stayed:
            break
        # A tag held it that is gone by now, as a rollback and another expiry have one for a while.
    else:  # Lance's clean-up is silent of files that it may not remove
        problem = f"the files of version {stayed[0]} cannot be removed"
        advice = "Check the permissions"
        raise StorageFailure(
            verb="expire versions of", location=location, problem=problem, advice=advice
        )
    if not tagged:
        return versions
    done.versions[:] = [version for version in done.versions if version not in versions]
    done.notes.append(f"version {min(tagged)} got a tag meanwhile: leaves are left to the next run")
    return None


def _clean_up(
    manifest: lance.LanceDataset, location: str, versions: Sequence[int], kept: Sequence[int]
) -> None:
    """Remove versions of ``__manifest`` that no tag holds; those that went before are no error."""
    with expiring(manifest, _oldest_behind(versions, kept), table=location):
        try:
            manifest.cleanup_old_versions(
                versions=list(versions), error_if_tagged_old_versions=False
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise storage_failure("expire versions of", location, error) from error


def _oldest_behind(versions: Sequence[int], kept: Collection[int]) -> int:
    return min(version for version in kept if version > max(versions))


def _tags_without_use(dataset: lance.LanceDataset, table: str, *, dry_run: bool) -> list[str]:
    """Drop the tags whose time is over, or list them only; give their names.

    One may be moved meanwhile, and holds then what it names now. Lance drops a tag by its name
    alone: so whoever moves one behind the last look sees the notice, waits, and makes it again.
    """
    over = _tags_that_are_over(dataset)
    if dry_run or not over:
        return [tag.name for tag in over]
    with expiring(dataset, int(dataset.version), table=table):
        return [tag.name for tag in over if drop_unchanged(dataset, tag, table=table)]


def _tags_that_are_over(dataset: lance.LanceDataset) -> list[Tag]:
    now = datetime.now(UTC)
    return [tag for tag in tags_of(dataset).values() if tag.is_over(now)]


def expirable_versions(
    manifest: lance.LanceDataset,
    older_than: datetime | None = None,
    retain_last: int | None = None,
    ignored_tags: Collection[str] = (),
    uncounted: Collection[str] = _MERGES,
) -> list[int]:
    """List the versions that may go; the newest and those with a tag stay.

    Args:
        manifest: ``__manifest`` at its newest version.
        older_than: As of ``expire``.
        retain_last: As of ``expire``.
        ignored_tags: Tags that are there and whose time is over.
        uncounted: Lance's operations whose versions do not count among those to retain.

    Raises:
        InvalidRetention: A property that is asked for is no number that it can be.
        StorageFailure: The storage refused.
    """
    properties = user_properties(manifest.metadata)
    limit = older_than or datetime.now(UTC) - kept_age(properties)
    retain_last = kept_versions(properties) if retain_last is None else retain_last
    if manifest.branches.list():
        return []
    tagged = tagged_versions(manifest, ignored_tags)
    listed = sorted(listed_versions(manifest), key=lambda entry: int(entry["version"]))
    old = [int(entry["version"]) for entry in listed if version_time(entry) < limit]
    old = [version for version in old if version not in tagged]
    if not old or len(listed) <= retain_last:
        return []
    # Each version that is counted costs a read: those before the oldest that may go decide nothing.
    newer = [version for entry in listed if (version := int(entry["version"])) >= old[0]]
    first_kept = _first_kept(manifest, newer, retain_last, uncounted)
    return [version for version in old if version < first_kept]


def _first_kept(
    manifest: lance.LanceDataset,
    versions: Sequence[int],
    retain_last: int,
    uncounted: Collection[str],
) -> int:
    """Find the oldest of the newest versions."""
    counted = 0
    for version in reversed(versions):
        made_by = manifest.read_transaction(version)
        if made_by is None or type(made_by.operation).__name__ not in uncounted:
            counted += 1
            if counted == max(1, retain_last):
                return version
    return versions[0]


def _delete(
    location: str,
    place: str,
    options: StorageOptions,
    unneeded: set[int],
    done: Expired,
    *,
    dry_run: bool,
) -> set[int]:
    """Delete versions of a leaf and the files that only they have; give those that are gone."""
    try:
        leaf = LeafFiles.open(location, place, options)
    except LeafMissing:
        return unneeded
    if leaf.main.branches.list():
        done.notes.append(f"leaf {place} has branches, which may share its files")
        return set()
    present = leaf.detached
    doomed = (unneeded & present) - leaf.tagged
    try:
        used = leaf.of_main() | leaf.of(present - doomed)
        lost = leaf.of(doomed) - used
    except LeafMissing as error:
        done.notes.append(error.message)
        return set()
    manifests = {manifest_path(version) for version in doomed}
    for path in [*sorted(lost - manifests), *sorted(manifests)]:
        size = leaf.sizes.get(path, 0) if dry_run else leaf.remove(path)
        done.files.append(f"{place}/{path}")
        done.num_bytes += size if path.startswith("data/") else 0
    done.leaf_versions += len(doomed)
    return unneeded - present | doomed


def _forget_records(
    location: str,
    options: StorageOptions,
    deleted: set[LeafVersion],
    oldest: int,
    done: Expired,
) -> None:
    """Remove the records of deleted versions, save a leaf's newest, and of forgotten commits."""
    for _ in range(_ATTEMPTS):
        manifest = open_manifest(location, storage_options=options)
        raw = RawRows.read(location, manifest)
        places = {object_id: row.location for object_id, row in raw.of_type(TABLE).items()}
        records = [
            ManifestRow(row.object_id, TABLE_VERSION)
            for table, rows in raw.version_rows().items()
            for number, row in rows.items()
            if number < max(rows) and (places.get(table), row.read_version) in deleted
        ]
        records += _forgotten_commits(raw, oldest)
        if not records:
            return
        merge = manifest.merge_insert("object_id").when_matched_delete()
        try:
            merge.conflict_retries(0).execute(table_of_rows(records, manifest.schema))
        except (OSError, RuntimeError) as error:
            if not is_conflict(error):
                raise storage_failure("commit to", location, error) from error
        else:
            keep_small(manifest)
            return
    done.notes.append("other writers were busy: records of deleted versions are left")


def _forgotten_commits(raw: RawRows, oldest: int) -> list[ManifestRow]:
    """Give the records of commits that no version is left of and that nobody asks for again."""
    limit = time.time() - _RETRIED_SECONDS
    kept_records = [
        CommitRecord.from_json(row.metadata)
        for row in raw.of_type(COMMIT).values()
        if row.metadata is not None
    ]
    return [
        record.row()
        for record in kept_records
        if record.base_version < oldest and record.made_at < limit
    ]
