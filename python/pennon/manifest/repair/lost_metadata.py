"""Detects and restores lost metadata keys without which a namespace cannot be read.

``schema``, the specs, and Pennon's own ``pennon.salt`` and ``pennon.transaction`` are written with
a namespace or a spec version and never removed. Where one is missing, an earlier version of
``__manifest`` has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import lance

from pennon.errors import ManifestMetadataLost, ManifestNotRepairable, PennonError
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import (
    StorageOptions,
    open_manifest,
    storage_failure,
    version_numbers,
)
from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.manifest.format.properties import (
    DRAFT_ENABLED,
    SALT,
    SCHEMA,
    TRANSACTION,
    WRITER_FLAGS,
    guarded_flags,
    has_specs,
)
from pennon.spec.partition_spec import spec_key

__all__ = ["RestoredKeys", "check_metadata_is_there", "restore_keys"]

_ANY_SPEC: Final = "partition_spec_v<N>"


@dataclass(frozen=True, slots=True)
class RestoredKeys:
    """Keys that were restored.

    Args:
        keys: Their names.
        from_version: The newest version of the manifest that one of them came from.
        version: The version of the manifest that has them.
    """

    keys: tuple[str, ...]
    from_version: int
    version: int


def check_metadata_is_there(location: str, manifest: lance.LanceDataset) -> None:
    """Check that a manifest which is a partitioned namespace's still says so.

    Raises:
        ManifestMetadataLost: It has no spec, but other traces of having been one.
    """
    metadata = manifest.metadata
    if has_specs(metadata) or DRAFT_ENABLED in metadata:
        return
    has_traces = any(key in metadata for key in (SCHEMA, SALT, TRANSACTION))
    # Version 1 has the columns, and the metadata is what completes a creation.
    if manifest.version > 1 and not has_traces:
        has_traces = any(name.startswith(PARTITION_PREFIX) for name in manifest.schema.names)
    if has_traces:
        raise ManifestMetadataLost(location=location, version=manifest.version, keys=_ANY_SPEC)


def restore_keys(
    location: str, spec_versions: Iterable[int], storage_options: StorageOptions | None = None
) -> RestoredKeys | None:
    """Restore the keys that are lost from earlier versions, each from the newest that has it.

    Args:
        location: The namespace.
        spec_versions: Of the rows of the manifest: each has to have its spec.
        storage_options: Given to Lance.

    Returns:
        What was restored; None where nothing is lost, or no earlier version has it.

    Raises:
        ManifestNotRepairable: Another writer came first.
        StorageFailure: The storage refused.

    Spec: "Metadata Definition".
    """
    manifest = open_manifest(location, storage_options=storage_options)
    lost = _lost(manifest.metadata, spec_versions)
    restored: dict[str, str] = {}
    newest = 0
    for version in reversed(version_numbers(manifest)):
        if not lost - restored.keys():
            break
        if version >= manifest.version:
            continue
        earlier = _metadata(location, version, storage_options)
        if _is_another(manifest.metadata, earlier):
            continue
        here = {key: earlier[key] for key in lost - restored.keys() if key in earlier}
        if _ANY_SPEC in lost and has_specs(earlier):
            here |= {key: text for key, text in earlier.items() if has_specs({key: text})}
            lost = (lost - {_ANY_SPEC}) | here.keys()
        newest = max(newest, version if here else 0)
        restored |= {key: text for key, text in here.items() if key not in restored}
    if not restored:
        return None
    guard = guarded_flags(manifest.metadata)
    try:
        manifest.update_metadata({**restored, WRITER_FLAGS: guard})
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("repair", location, error) from error
        raise ManifestNotRepairable(
            location=location,
            why="another writer changed its __manifest meanwhile",
            advice="Run it again",
        ) from error
    return RestoredKeys(tuple(sorted(restored)), newest, int(manifest.version))


def _lost(metadata: Mapping[str, str], spec_versions: Iterable[int]) -> set[str]:
    lost = {SCHEMA} - metadata.keys()
    lost |= {spec_key(number) for number in spec_versions} - metadata.keys()
    if not has_specs(metadata):
        lost.add(_ANY_SPEC)
    if lost or (SALT in metadata) != (TRANSACTION in metadata):
        lost |= {SALT, TRANSACTION} - metadata.keys()
    return lost


def _metadata(
    location: str, version: int, storage_options: StorageOptions | None
) -> Mapping[str, str]:
    try:
        return dict(open_manifest(location, version, None, storage_options).metadata)
    except PennonError:
        return {}  # its files were cleaned up


def _is_another(metadata: Mapping[str, str], earlier: Mapping[str, str]) -> bool:
    """Whether an earlier version was another namespace's at the same place."""
    own, other = metadata.get(SALT), earlier.get(SALT)
    return own is not None and other is not None and own != other
