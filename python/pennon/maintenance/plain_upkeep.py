"""The upkeep of a plain Lance dataset, by Lance's own functions: no manifest says what to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import lance
from lance.optimize import Compaction, CompactionOptions

from pennon.caching.lance_sessions import lance_options, opening
from pennon.catalog.layouts.plain_snapshot import PlainSnapshot, open_plain
from pennon.errors import NamespaceHasNoManifest, StorageFailure
from pennon.leaf import leaf_uri
from pennon.leaf.dataset import open_own_leaf
from pennon.maintenance.checks.findings import RawRow
from pennon.maintenance.leaves.leaf_files import (
    LeafFiles,
    detached_versions,
    files_of_version,
    newest_of_main,
    transaction_path,
)
from pennon.manifest.dataset.storage import (
    StorageOptions,
    is_conflict,
    is_not_found,
    listed_versions,
    storage_failure,
)
from pennon.spec.arrow_json import object_or_empty

__all__ = [
    "VersionUnknown",
    "clean_up_versions",
    "compact_fragments",
    "files_of_dataset",
    "files_of_versions_alone",
    "forgotten_version",
    "plain_dataset",
    "remove_versions",
    "restore_dataset",
]

# Finds the version of a leaf that the manifest meant, where the manifest has lost it.
#
# The detached versions of a leaf form chains. A committed one is the last of its chain, or an
# earlier one where a later commit failed; the manifest row's own statistics distinguish them. What
# they leave open is not guessed.


@dataclass(frozen=True, slots=True)
class VersionFound:
    """The version to read.

    Args:
        version: Lance's version.
        why: How it was found, for the report.
    """

    version: int
    why: str


@dataclass(frozen=True, slots=True)
class VersionUnknown:
    """Several versions could be meant, or none.

    Args:
        candidates: Those that could be.
        why: What cannot be known.
    """

    candidates: Sequence[int]
    why: str


def forgotten_version(
    location: str, row: RawRow, storage_options: StorageOptions
) -> VersionFound | VersionUnknown:
    """Find the version of a leaf that the manifest's row was written for.

    Args:
        location: The namespace.
        row: The leaf's row, its statistics in ``metadata``.
        storage_options: Given to Lance.

    Raises:
        LeafMissing: The leaf is gone.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    place = row.location or ""
    main = newest_of_main(location, place, storage_options)
    detached = detached_versions(leaf_uri(location, place), storage_options)
    if not detached:
        return VersionFound(int(main.version), "the newest of its main branch, it has no other")
    recorded = _statistics(row.metadata)
    if recorded is None:
        return VersionUnknown(detached, "the row states no number of rows to recognise it by")
    datasets = {
        version: open_own_leaf(location, place, version, storage_options) for version in detached
    }
    fitting = [version for version, dataset in datasets.items() if _fits(dataset, recorded)]
    if len(fitting) > 1:
        read = [datasets[version].read_transaction(version) for version in fitting]
        built_on = {transaction.read_version for transaction in read if transaction is not None}
        fitting = [version for version in fitting if version not in built_on] or fitting
    if len(fitting) == 1:
        return VersionFound(fitting[0], f"the detached version with {recorded[0]} rows")
    if not fitting and _fits(main, recorded):
        return VersionFound(int(main.version), "the newest of its main branch")
    num_fitting, num_rows = len(fitting), recorded[0]
    why = f"{num_fitting} of {len(detached)} detached versions have the {num_rows} rows of the row"
    return VersionUnknown(fitting or detached, why)


def _statistics(metadata: str | None) -> tuple[int, int | None] | None:
    kept = object_or_empty(metadata)
    if not str(kept.get("num_rows", "")).isdecimal():
        return None
    fragments = str(kept.get("num_fragments", ""))
    return int(str(kept["num_rows"])), int(fragments) if fragments.isdecimal() else None


def _fits(dataset: lance.LanceDataset, recorded: tuple[int, int | None]) -> bool:
    num_rows, num_fragments = recorded
    if num_fragments is not None and len(dataset.get_fragments()) != num_fragments:
        return False
    return bool(dataset.count_rows() == num_rows)


_ATTEMPTS: Final = 5
_LAST_VERSION: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class CompactedFragments:
    """What was put together, or would be.

    Args:
        version: The dataset's version.
        files_before: Fragments that were rewritten.
        files_after: What these became.
        num_rows: Their rows.
    """

    version: int
    files_before: int = 0
    files_after: int = 0
    num_rows: int = 0


def plain_dataset(
    location: str, storage_options: StorageOptions | None, missing: NamespaceHasNoManifest
) -> PlainSnapshot:
    """Open the plain dataset that stands where a namespace was looked for.

    Args:
        location: Its path or URL.
        storage_options: Given to Lance.
        missing: What was raised, which is raised again where there is no dataset either.
    """
    snapshot = open_plain(location, None, None, storage_options or {})
    if snapshot is None:
        raise missing
    return snapshot


def compact_fragments(
    snapshot: PlainSnapshot, target_bytes: int, excluded: Sequence[int], *, dry_run: bool
) -> CompactedFragments:
    """Put fragments of a dataset together as Lance plans it.

    Args:
        snapshot: The dataset.
        target_bytes: How large files shall be.
        excluded: Fragments that stay as they are.
        dry_run: Whether to count only.

    Raises:
        StorageFailure: The storage refused, or others changed the same rows each time.
    """
    options = CompactionOptions(
        max_bytes_per_file=target_bytes, excluded_fragment_ids=list(excluded)
    )
    dataset = snapshot.manifest
    problem: Exception | None = None
    for _ in range(_ATTEMPTS):
        plan = Compaction.plan(dataset, options)
        fragments = [fragment for task in plan.tasks for fragment in task.fragments]
        rows = sum(fragment.physical_rows - fragment.num_deletions for fragment in fragments)
        if dry_run or not fragments:
            return CompactedFragments(int(dataset.version), len(fragments), 0, rows)
        try:
            made = Compaction.commit(dataset, [task.execute(dataset) for task in plan.tasks])
        except (OSError, RuntimeError, ValueError) as error:
            if not is_conflict(error):
                raise storage_failure("compact", snapshot.location, error) from error
            problem = error
            dataset = _newest(snapshot)
        else:
            version = int(dataset.version)
            return CompactedFragments(version, len(fragments), made.fragments_added, rows)
    raise StorageFailure(
        verb="compact",
        location=snapshot.location,
        problem="others changed its rows each time",
        advice="Run it again while nobody updates it",
    ) from problem


def files_of_dataset(snapshot: PlainSnapshot) -> LeafFiles:
    """List the files of a dataset.

    Raises:
        StorageFailure: The storage refused.
    """
    root, _, place = snapshot.location.rstrip("/").rpartition("/")
    return LeafFiles.open(root, place, snapshot.storage_options)


def files_of_versions_alone(leaf: LeafFiles, versions: Sequence[int]) -> list[str]:
    """List the files that go with versions of the main branch.

    Args:
        leaf: The dataset's files.
        versions: The versions; others need the files that are left out.
    """
    doomed = set(versions)
    lost, kept = set[str](), leaf.of(leaf.detached)
    for entry in listed_versions(leaf.main):
        version = int(entry["version"])
        files = lost if version in doomed else kept
        try:
            dataset = leaf.main.checkout_version(version)
            made_by = dataset.read_transaction(version)
        except (OSError, ValueError) as error:
            if is_not_found(error):  # another expiry has removed it since it was listed
                continue
            raise storage_failure("read", str(leaf.main.uri), error) from error
        files.update(files_of_version(dataset))
        if made_by is not None:
            files.add(transaction_path(made_by))
        numbers = (version, _LAST_VERSION - version)
        files.update(f"_versions/{number}.manifest" for number in numbers)
    return sorted(leaf.with_blobs(lost - kept) & leaf.sizes.keys())


def remove_versions(snapshot: PlainSnapshot, versions: Sequence[int]) -> None:
    """Remove versions of a plain dataset; as ``clean_up_versions``."""
    clean_up_versions(snapshot.manifest, versions, snapshot.location)


def clean_up_versions(dataset: lance.LanceDataset, versions: Sequence[int], location: str) -> None:
    """Remove versions of the main branch, and the files that they alone need.

    Those that a tag holds stay, and those that another expiry takes at the same time are no error.

    Args:
        dataset: The dataset, or ``__manifest``, at any version.
        versions: The versions.
        location: The table, for errors.

    Raises:
        StorageFailure: The storage refused.
    """
    for attempt in range(_ATTEMPTS):
        try:
            dataset.cleanup_old_versions(
                versions=list(versions), error_if_tagged_old_versions=False
            )
        except (OSError, RuntimeError, ValueError) as error:
            # Lance lists tags and versions, and then reads those that went in between.
            if not is_not_found(error) or attempt == _ATTEMPTS - 1:
                raise storage_failure("expire versions of", location, error) from error
        else:
            return


def restore_dataset(snapshot: PlainSnapshot, target: PlainSnapshot) -> int:
    """Make an older version of a dataset the newest one again; gives the new version.

    Args:
        snapshot: The newest version.
        target: The version to bring back.

    Raises:
        StorageFailure: The storage refused.
    """
    if target.version == snapshot.version:
        return snapshot.version
    try:
        committed = lance.LanceDataset.commit(
            snapshot.location,
            lance.LanceOperation.Restore(target.version),
            read_version=snapshot.version,
            storage_options=lance_options(snapshot.storage_options),
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("roll back", snapshot.location, error) from error
    return int(committed.version)


def _newest(snapshot: PlainSnapshot) -> lance.LanceDataset:
    return lance.dataset(**opening(snapshot.location, snapshot.storage_options))
