"""Finds the version of a leaf that the manifest meant, where the manifest has lost it.

The detached versions of a leaf form chains. A committed one is the last of its chain, or an
earlier one where a later commit failed; the manifest row's own statistics distinguish them. What
they leave open is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import lance
from lance.file import LanceFileSession

from pennon.leaf import leaf_uri, open_leaf
from pennon.leaf.dataset import open_own_leaf
from pennon.maintenance.checks.manifest_rows import RawRow
from pennon.manifest.dataset.storage import StorageOptions
from pennon.spec.json_text import object_or_empty

__all__ = ["VersionFound", "VersionUnknown", "detached_versions", "forgotten_version"]

_DETACHED: Final = re.compile(r"(?:.*/)?d(\d+)\.manifest")


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
    main = open_leaf(location, place, None, storage_options)
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


def detached_versions(uri: str, storage_options: StorageOptions) -> list[int]:
    """List the detached versions of a leaf, by the files that hold them."""
    files = LanceFileSession(uri, storage_options=dict(storage_options) or None).list("_versions")
    matches = (_DETACHED.fullmatch(name) for name in files)
    return sorted(int(match_.group(1)) for match_ in matches if match_ is not None)


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
