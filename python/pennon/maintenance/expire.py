"""Expires old versions of a namespace, and the leaf versions that only they read.

The order makes it safe to stop anywhere, and beside writers and readers:

1. old versions of ``__manifest`` are marked: nobody reads them any more. Those that a tag names
   stay, and tags whose time is over go before;
2. those that stay are read: what any of them names is kept;
3. of a leaf's detached versions only those are deleted that the manifest had recorded once and that
   nothing names any more. What a running write has made is recorded nowhere yet, so it stays;
4. a version's files go before the version, so that a second run finds what the first one left;
5. its record, a ``table_version`` row, goes then, and with it the records of commits whose versions
   are gone for good;
6. the marked versions themselves go last, and not before no commit can have begun that Lance has to
   compare with them (``expired_versions`` says why). Times are those of the storage, for clocks of
   machines differ.

A plain dataset has no marks, which other tools would not know: its versions stay as long.

Lance's own clean-up is never run on a leaf: to it every detached version is waste.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Final

import lance
import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching import version_time
from pennon.caching.lance_sessions import version_path
from pennon.catalog.layouts.plain_snapshot import PlainSnapshot
from pennon.errors import LeafMissing, NamespaceHasNoManifest, StorageFailure
from pennon.leaf import forget_leaves
from pennon.leaf.dataset import FIRST_DETACHED, side_by_side
from pennon.maintenance.calls.procedure_declaration import (
    HIDDEN,
    Column,
    Parameter,
    Procedure,
    columns_of,
    count,
    planned,
)
from pennon.maintenance.checks.findings import RawRows, newest_version, version_row_of
from pennon.maintenance.leaves.leaf_files import LeafFiles, Progress, no_progress
from pennon.maintenance.plain_upkeep import (
    clean_up_versions,
    files_of_dataset,
    files_of_versions_alone,
    plain_dataset,
    remove_versions,
)
from pennon.manifest.commits.manifest_commit import keep_small
from pennon.manifest.dataset.storage import (
    MANIFEST,
    StorageOptions,
    is_conflict,
    is_not_found,
    listed_versions,
    mark_expired,
    open_manifest,
    present_numbers,
    storage_failure,
    version_numbers,
)
from pennon.manifest.format.properties import (
    kept_age,
    kept_versions,
    read_specs,
    user_properties,
    writer_grace,
)
from pennon.manifest.format.rows import (
    COMMIT,
    READ_VERSION,
    TABLE,
    TABLE_VERSION,
    CommitRecord,
    ManifestRow,
    table_of_rows,
)
from pennon.manifest.versions.history import opened_present, unseen_rows
from pennon.manifest.versions.tags import Tag, drop_unchanged, expiring, tagged_versions, tags_of
from pennon.predicate.values.time_units import SECONDS_PER_DAY
from pennon.settings import WRITER_GRACE

__all__ = [
    "EXPIRE_SNAPSHOTS",
    "Expired",
    "LeafVersion",
    "expirable_versions",
    "expire",
    "named_versions",
]

# The leaf versions that versions of ``__manifest`` read, and those they ever recorded.
#
# Consecutive versions share most of their fragments, so each fragment is read once in each state of
# its deletions: the work grows with the number of commits and not with its square.

LeafVersion = tuple[str, int]
"""A leaf's directory and one of its versions."""


def named_versions(
    location: str, versions: Iterable[int], storage_options: StorageOptions
) -> set[LeafVersion]:
    """Give the leaf versions that some versions of the manifest read.

    Args:
        location: The namespace.
        versions: Versions of its ``__manifest``.
        storage_options: Given to Lance.
    """
    named: set[LeafVersion] = set()
    seen: set[tuple[str, ...]] = set()
    for _, manifest in opened_present(location, versions, storage_options):
        rows = unseen_rows(
            location, manifest, seen, f"object_type = '{TABLE}'", with_deletions=True
        )
        if rows is None:
            continue
        if rows[READ_VERSION.name].null_count:
            named |= set(_named_by_records(RawRows.read(location, manifest)))
        named |= _pairs(rows)
    return named


def _named_by_records(raw: RawRows) -> Iterator[LeafVersion]:
    records = raw.version_rows()
    for object_id, row in raw.of_type(TABLE).items():
        version = newest_version(row, records.get(object_id, {}))
        if row.location is not None and version is not None:
            yield row.location, version


def recorded_versions(
    location: str, versions: Iterable[int], storage_options: StorageOptions
) -> set[LeafVersion]:
    """Give the detached leaf versions that some versions of the manifest name; as above."""
    tables: dict[str, str] = {}
    records: list[tuple[str, int]] = []
    seen: set[tuple[str, ...]] = set()
    kinds = f"object_type IN ('{TABLE}', '{TABLE_VERSION}')"
    for _, manifest in opened_present(location, versions, storage_options):
        rows = unseen_rows(location, manifest, seen, kinds, with_deletions=False)
        for row in [] if rows is None else rows.to_pylist():
            object_id, number = row["object_id"], row[READ_VERSION.name]
            if row["object_type"] == TABLE and row["location"] is not None:
                tables[object_id] = row["location"]
            if number is not None and number >= FIRST_DETACHED:
                leaf_and_version = (
                    version_row_of(object_id) if row["object_type"] == TABLE_VERSION else None
                )
                records.append(
                    (object_id if leaf_and_version is None else leaf_and_version[0], number)
                )
    return {(tables[table], number) for table, number in records if table in tables}


def _pairs(rows: pa.Table) -> set[LeafVersion]:
    recorded = rows.filter(pc.and_(rows["location"].is_valid(), rows[READ_VERSION.name].is_valid()))
    return set(
        zip(recorded["location"].to_pylist(), recorded[READ_VERSION.name].to_pylist(), strict=True)
    )


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

    versions: Annotated[
        list[int], count("expired_versions"), planned("versions", ", ", "version {}")
    ] = field(default_factory=list)
    tags: Annotated[list[str], HIDDEN] = field(default_factory=list)
    leaf_versions: Annotated[int, Column("deleted_leaf_versions")] = 0
    files: Annotated[list[str], count("deleted_files"), planned("files")] = field(
        default_factory=list
    )
    num_bytes: Annotated[int, Column("freed_bytes")] = 0
    notes: list[str] = field(default_factory=list)

    @property
    def num_files(self) -> int:
        """How many files there are."""
        return len(self.files)

    def add(self, of_leaf: Expired) -> None:
        """Add what was removed of a leaf."""
        self.leaf_versions += of_leaf.leaf_versions
        self.files += of_leaf.files
        self.num_bytes += of_leaf.num_bytes
        self.notes += of_leaf.notes


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
        older_than: Versions committed before this time go; left out, what the table's
            ``history.expire.max-snapshot-age-ms`` says, or five days ago.
        retain_last: How many of the newest versions stay whatever their age; left out, what the
            table's ``history.expire.min-snapshots-to-keep`` says, or one.
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
    before = version_numbers(manifest)
    done = Expired(tags=_tags_without_use(manifest, location, dry_run=dry_run))
    still_there = done.tags if dry_run else ()
    old = expirable_versions(manifest, older_than, retain_last, still_there)
    if old and not dry_run:
        _mark(manifest, location, _oldest_behind(old, version_numbers(manifest)))
    if not dry_run:  # whatever got a tag before the mark stays
        manifest = open_manifest(location, storage_options=options)
    present = _present(manifest)  # first, for what is committed behind this has not expired
    kept = sorted(set(version_numbers(manifest)).difference(old if dry_run else ()))
    done.versions.extend(sorted({*before, *old}.difference(kept)))
    expired = sorted(version for version in present.difference(kept) if version < kept[-1])
    recorded = recorded_versions(location, [*expired, kept[-1]], options)
    unneeded = recorded - named_versions(location, kept, options)
    forget_leaves()
    deleted: set[LeafVersion] = set()
    doomed: dict[str, set[int]] = {}
    for place, version in sorted(unneeded):
        doomed.setdefault(place, set()).add(version)

    def delete(place: str) -> tuple[set[int], Expired]:
        own = Expired()
        return _delete(location, place, options, doomed[place], own, dry_run=dry_run), own

    deletions = zip(doomed, side_by_side(location, delete, list(doomed)), strict=True)
    for at, (place, (gone, own)) in enumerate(deletions, 1):
        progress("leaves cleaned up", at, len(doomed))
        deleted |= {(place, version) for version in gone}
        done.add(own)
    if not dry_run:
        _forget_records(location, options, deleted, kept[0], done)
    if expired:
        _remove_expired(location, options, expired, done, dry_run=dry_run)
    return done


EXPIRE_SNAPSHOTS: Final = Procedure(
    expire,
    "Forget old versions of a table, and delete the files that only they need.",
    columns_of(Expired),
    name="expire_snapshots",
    least={"retain_last": 1},
    refused=(
        Parameter(
            "snapshot_ids",
            "Sequence[int]",
            instead="versions expire by their age: write older_than or retain_last",
        ),
    ),
    renews_table=True,
    command="expire",
    said="{location}: {expired_versions} versions expired, {deleted_leaf_versions} versions of"
    " leaves deleted, {deleted_files} files with {freed_bytes} bytes",
    planned="{location}: {expired_versions} versions to expire, {deleted_leaf_versions} versions of"
    " leaves to delete, {deleted_files} files with {freed_bytes} bytes",
)


def _expire_plain(
    snapshot: PlainSnapshot, older_than: datetime | None, retain_last: int | None, *, dry_run: bool
) -> Expired:
    """Remove versions of a plain dataset by Lance's own clean-up."""
    dataset = snapshot.manifest
    done = Expired(tags=_tags_without_use(dataset, snapshot.location, dry_run=dry_run))
    still_there = done.tags if dry_run else ()
    # A merge of fragments is a compaction that someone asked for, and counts.
    old = expirable_versions(dataset, older_than, retain_last, still_there, ())
    if not old:
        return done
    oldest_kept = _oldest_behind(old, version_numbers(dataset))
    announced = expiring(dataset, oldest_kept, table=snapshot.location)
    with contextlib.nullcontext() if dry_run else announced as notice:
        leaf = files_of_dataset(snapshot)
        done.versions.extend(_settled(leaf, dataset, old, notice))
        _tell_of_grace(done, dataset, [version for version in old if version not in done.versions])
        if done.versions:
            done.files.extend(files_of_versions_alone(leaf, done.versions))
            sizes = (leaf.sizes[path] for path in done.files if path.startswith("data/"))
            done.num_bytes = sum(sizes)
        if done.versions and not dry_run:
            remove_versions(snapshot, done.versions)
    return done


def _mark(manifest: lance.LanceDataset, location: str, oldest_kept: int) -> None:
    try:
        mark_expired(manifest, oldest_kept)
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("expire versions of", location, error) from error


def _remove_expired(
    location: str,
    options: StorageOptions,
    expired: Sequence[int],
    done: Expired,
    *,
    dry_run: bool,
) -> None:
    """Remove versions of ``__manifest`` that have expired long enough ago."""
    manifest = open_manifest(location, storage_options=options)
    announced = expiring(manifest, int(manifest.version), table=location)
    with contextlib.nullcontext() if dry_run else announced as notice:
        files = LeafFiles.open(location, MANIFEST, options)
        settled = _settled(files, manifest, expired, notice)
        _tell_of_grace(done, manifest, sorted(set(expired).difference(settled)))
        for _ in range(0 if dry_run else _ATTEMPTS):
            if not settled:
                return
            clean_up_versions(manifest, settled, location)
            # One may have been held by a tag that is gone by now, as another expiry has one.
            settled = sorted(_present(manifest).intersection(settled) - tagged_versions(manifest))
    if settled and not dry_run:  # Lance's clean-up is silent of files that it may not remove
        raise StorageFailure(
            verb="expire versions of",
            location=location,
            problem=f"the files of version {settled[0]} cannot be removed",
            advice="Check the permissions",
        )


def _settled(
    files: LeafFiles, dataset: lance.LanceDataset, versions: Sequence[int], notice: str | None
) -> list[int]:
    """Choose the versions that no commit under way need be compared with.

    It has begun before the next version was there, and would have stood still for longer than the
    table grants. What time it is the storage says of the notice that was just written.

    Args:
        files: The files of the dataset.
        dataset: At its newest version.
        versions: Which of its versions to look at.
        notice: The tag that says that versions are being removed; None for this machine's time.
    """
    now = datetime.now(UTC) if notice is None else files.changed_at[f"_refs/tags/{notice}.json"]
    limit = now - writer_grace(user_properties(dataset.metadata))
    present = sorted(_present(dataset))
    following = dict(pairwise(present))
    return [
        version
        for version in versions
        if version in following and files.made_at(following[version]) <= limit
    ]


def _tell_of_grace(done: Expired, dataset: lance.LanceDataset, versions: Sequence[int]) -> None:
    """Say which versions are still on the disk, and why."""
    if versions:
        grace = writer_grace(user_properties(dataset.metadata))
        done.notes.append(
            f"the commits of versions {min(versions)} to {max(versions)} are kept until the next"
            f" expiry after {grace}, as {WRITER_GRACE.name} says: a writer that stands still is"
            " compared with them"
        )


def _present(dataset: lance.LanceDataset) -> set[int]:
    return present_numbers(dataset)


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
    first = _first_kept(manifest, newer, retain_last, uncounted)
    # A younger version ends it, too, for clocks differ: what expires has nothing between it.
    young = (version for version in newer if version not in old and version not in tagged)
    first = min(first, *young, newer[-1])
    return [version for version in old if version < first]


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
    if leaf.has_branches:
        done.notes.append(f"leaf {place} has branches, which may share its files")
        return set()
    present = leaf.detached
    doomed = (unneeded & present) - leaf.tagged
    try:
        used = leaf.of_main() | leaf.of(present - doomed)
        lost = leaf.with_blobs(leaf.of(doomed) - used)
    except LeafMissing as error:
        done.notes.append(error.message)
        return set()
    manifests = {version_path(version) for version in doomed}
    for paths in (sorted(lost - manifests), sorted(manifests)):
        done.files += [f"{place}/{path}" for path in paths]
        of_data = (path for path in paths if path.startswith("data/"))
        done.num_bytes += sum(leaf.sizes.get(path, 0) for path in of_data)
        if not dry_run:
            leaf.remove_all(paths)
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
            if not is_conflict(error) and not is_not_found(error):
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
