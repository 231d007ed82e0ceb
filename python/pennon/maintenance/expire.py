"""Expiring old versions of a namespace, and the versions of leaves that nobody can read any more.

The order makes it safe to stop anywhere, and beside writers and readers:

1. old versions of ``__manifest`` are removed, as Lance does it;
2. those that are left are read: what any of them names is kept;
3. of a leaf's detached versions only those are deleted that the manifest had recorded once and that
   nothing names any more. What a running write has made is recorded nowhere yet, so it stays;
4. a version's files go before the version, so that a second run finds what the first one left;
5. its record, a ``table_version`` row, goes last.

Lance's own clean-up is never run on a leaf: to it every detached version is waste.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import lance
from lance.file import LanceFileSession
from sqlglot import exp

from pennon.errors import LeafMissing
from pennon.leaf import open_leaf
from pennon.leaf.dataset import forget_leaves, leaf_uri
from pennon.maintenance.checks.manifest_rows import RawRows, newest_version
from pennon.maintenance.leaf_versions import detached_versions
from pennon.manifest.format.properties import read_specs
from pennon.manifest.format.rows import TABLE
from pennon.manifest.manifest_outcome import is_conflict
from pennon.manifest.storage import StorageOptions, open_manifest, storage_failure
from pennon.predicate.dialect import DataFusion

__all__ = ["Expired", "expire"]

DEFAULT_AGE: Final = timedelta(days=5)
_FIRST_DETACHED: Final = 1 << 63
_KEYS_AT_ONCE: Final = 500
_ATTEMPTS: Final = 5

_LeafVersion = tuple[str, int]


@dataclass(slots=True)
class Expired:
    """What was removed.

    Args:
        versions: Versions of ``__manifest``.
        leaf_versions: Versions of leaves.
        num_files: Files of leaves, those of the versions themselves included.
        num_bytes: Bytes of their data files.
        notes: What was left alone, and why.
    """

    versions: list[int] = field(default_factory=list)
    leaf_versions: int = 0
    num_files: int = 0
    num_bytes: int = 0
    notes: list[str] = field(default_factory=list)


def expire(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    older_than: datetime | None = None,
    retain_last: int = 1,
) -> Expired:
    """Remove old versions of a namespace and the leaf versions that only they named.

    Args:
        location: The namespace.
        storage_options: Given to Lance.
        older_than: Versions committed before this time, with a zone, go; None for five days ago.
        retain_last: How many of the newest versions stay whatever their age; at least one does.

    Raises:
        NotPartitionedNamespace: It is none.
        StorageFailure: The storage refused.

    Example:
        >>> expire("/data/lake/orders", retain_last=10).versions  # doctest: +SKIP
        [1, 2, 3]

    Spec: "Multi-Partition Transaction (Strong)".
    """
    options = dict(storage_options or {})
    manifest = open_manifest(location, storage_options=options)
    read_specs(manifest.metadata, location)
    limit = older_than or datetime.now(UTC) - DEFAULT_AGE
    done = Expired(_expirable(manifest, limit, retain_last))
    recorded = set(_recorded(RawRows.read(location, manifest)))
    for version in done.versions:
        old = open_manifest(location, version, storage_options=options)
        recorded |= set(_recorded(RawRows.read(location, old)))
    if done.versions:
        try:
            manifest.cleanup_old_versions(versions=done.versions)
        except (OSError, RuntimeError, ValueError) as error:
            raise storage_failure("expire versions of", location, error) from error
    unneeded = recorded - _named_by_all(location, options)
    forget_leaves()
    deleted: set[_LeafVersion] = set()
    for place in sorted({each for each, _ in unneeded}):
        versions = {version for each, version in unneeded if each == place}
        gone = _Leaf(location, place, options, done).delete(versions)
        deleted |= {(place, version) for version in gone}
    _forget_records(location, options, deleted, done)
    return done


def _expirable(manifest: lance.LanceDataset, limit: datetime, retain_last: int) -> list[int]:
    """List the versions to remove; the newest and those with a tag stay."""
    if manifest.branches.list():
        return []
    tagged = {int(each["version"]) for each in manifest.tags.list().values()}
    # Lance gives the times of versions as naive local ones.
    old = [
        int(each["version"])
        for each in sorted(manifest.versions(), key=lambda each: int(each["version"]))
        if each["timestamp"].astimezone(UTC) < limit
    ]
    newest = [int(each["version"]) for each in manifest.versions()]
    stays = {*sorted(newest)[-max(1, retain_last) :], *tagged}
    return [version for version in old if version not in stays]


def _recorded(raw: RawRows) -> Iterator[_LeafVersion]:
    """Give every detached version of a leaf that a version of the manifest tells of."""
    records = raw.version_rows()
    for object_id, row in raw.of_type(TABLE).items():
        told = [
            row.read_version,
            *(each.read_version for each in records.get(object_id, {}).values()),
        ]
        for version in told:
            if row.location is not None and version is not None and version >= _FIRST_DETACHED:
                yield row.location, version


def _named_by_all(location: str, options: StorageOptions) -> set[_LeafVersion]:
    """Give what the versions of the manifest that are there read."""
    named: set[_LeafVersion] = set()
    for each in open_manifest(location, storage_options=options).versions():
        manifest = open_manifest(location, int(each["version"]), storage_options=options)
        raw = RawRows.read(location, manifest)
        records = raw.version_rows()
        for object_id, row in raw.of_type(TABLE).items():
            version = newest_version(row, records.get(object_id, {}))
            for one in (version, row.read_version):
                if row.location is not None and one is not None:
                    named.add((row.location, one))
    return named


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One leaf to delete versions of."""

    root: str
    place: str
    options: StorageOptions
    done: Expired

    def delete(self, unneeded: set[int]) -> set[int]:
        """Delete versions and the files that only they have; give those that are gone."""
        try:
            main = open_leaf(self.root, self.place, None, self.options)
        except LeafMissing:
            return unneeded
        if main.branches.list():
            self.done.notes.append(f"leaf {self.place} has branches, which may share its files")
            return set()
        tagged = {int(each["version"]) for each in main.tags.list().values()}
        present = set(detached_versions(leaf_uri(self.root, self.place), self.options))
        doomed = (unneeded & present) - tagged
        try:
            used = self._used(main, sorted(present - doomed))
            lost = {name: size for each in doomed for name, size in _files(self._open(each))}
        except LeafMissing as error:
            self.done.notes.append(error.message)
            return set()
        for name, size in lost.items():
            if name not in used:
                self._remove(name)
                self.done.num_bytes += size
        for version in sorted(doomed):
            self._remove(f"_versions/d{version}.manifest")
        self.done.leaf_versions += len(doomed)
        return unneeded - present | doomed

    def _used(self, main: lance.LanceDataset, detached: Sequence[int]) -> set[str]:
        of_main = [main.checkout_version(int(each["version"])) for each in main.versions()]
        kept = [*of_main, *(self._open(each) for each in detached)]
        return {name for dataset in kept for name, _ in _files(dataset)}

    def _open(self, version: int) -> lance.LanceDataset:
        return open_leaf(self.root, self.place, version, self.options)

    def _remove(self, name: str) -> None:
        uri = leaf_uri(self.root, self.place)
        try:
            LanceFileSession(uri, storage_options=dict(self.options) or None).delete_file(name)
        except (OSError, ValueError) as error:
            if "not found" not in str(error).lower():
                raise storage_failure("delete a file of", uri, error) from error
        self.done.num_files += 1


def _files(dataset: lance.LanceDataset) -> Iterator[tuple[str, int]]:
    """Give the data and deletion files in a version's own directory, with the data's bytes."""
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        for file in metadata.files:
            if file.base_id is None:
                yield f"data/{file.path}", file.file_size_bytes or 0
        if metadata.deletion_file is not None:
            yield metadata.deletion_file.path(fragment.fragment_id), 0


def _forget_records(
    location: str, options: StorageOptions, deleted: set[_LeafVersion], done: Expired
) -> None:
    """Remove the ``table_version`` rows of deleted versions, save a leaf's newest."""
    raw = RawRows.read(location, open_manifest(location, storage_options=options))
    places = {each: row.location for each, row in raw.of_type(TABLE).items()}
    records = [
        row.object_id
        for table, rows in raw.version_rows().items()
        for number, row in rows.items()
        if number < max(rows) and (places.get(table), row.read_version) in deleted
    ]
    for at in range(0, len(records), _KEYS_AT_ONCE):
        keys = [exp.Literal.string(each) for each in records[at : at + _KEYS_AT_ONCE]]
        condition = exp.column("object_id").isin(*keys).sql(dialect=DataFusion)
        if not _deleted(location, options, condition):
            done.notes.append("other writers were busy: records of deleted versions are left")
            return


def _deleted(location: str, options: StorageOptions, condition: str) -> bool:
    for _ in range(_ATTEMPTS):
        try:
            open_manifest(location, storage_options=options).delete(condition)
        except (OSError, RuntimeError) as error:
            if not is_conflict(error):
                raise storage_failure("commit to", location, error) from error
        else:
            return True
    return False
