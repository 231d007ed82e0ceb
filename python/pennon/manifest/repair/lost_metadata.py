"""Detects lost metadata keys without which a namespace cannot be read.

``schema``, the specs, and Pennon's own ``pennon.salt`` and ``pennon.transaction`` are written with
a namespace or a spec version and never removed. Where one is missing, an earlier version of
``__manifest`` has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import lance

from pennon.errors import ManifestMetadataLost, PennonError
from pennon.manifest.dataset.storage import StorageOptions, open_manifest, version_numbers
from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.manifest.format.properties import (
    DRAFT_ENABLED,
    SALT,
    SCHEMA,
    TRANSACTION,
    has_specs,
)
from pennon.spec.partition_spec import spec_key

__all__ = ["LostKeys", "check_metadata_is_there", "lost_keys"]

_ANY_SPEC: Final = "partition_spec_v<N>"


@dataclass(frozen=True, slots=True)
class LostKeys:
    """Keys that are lost, or cannot be read, as earlier versions of the manifest have them.

    Args:
        values: By key; none where nothing is lost, or no earlier version has it.
        from_version: The newest version that one of them comes from; None where there is none.
    """

    values: Mapping[str, str]
    from_version: int | None


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


def lost_keys(
    location: str,
    manifest: lance.LanceDataset,
    spec_versions: Iterable[int],
    storage_options: StorageOptions | None = None,
) -> LostKeys:
    """Find the keys that are lost in earlier versions, each in the newest that has it.

    Args:
        location: The namespace.
        manifest: Its ``__manifest`` at the newest version.
        spec_versions: Of the rows of the manifest: each has to have its spec.
        storage_options: Given to Lance.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Metadata Definition".
    """
    metadata = _readable(manifest.metadata)
    lost = _lost(metadata, spec_versions) | (manifest.metadata.keys() - metadata.keys())
    restored: dict[str, str] = {}
    newest = None
    for version in reversed(version_numbers(manifest)):
        if not lost - restored.keys():
            break
        if version >= manifest.version:
            continue
        earlier = _metadata(location, version, storage_options)
        if _is_another(metadata, earlier):
            continue
        here = {key: earlier[key] for key in lost - restored.keys() if key in earlier}
        if _ANY_SPEC in lost and has_specs(earlier):
            here |= {key: text for key, text in earlier.items() if has_specs({key: text})}
            lost = (lost - {_ANY_SPEC}) | here.keys()
        newest = newest or (version if here else None)
        restored |= {key: text for key, text in here.items() if key not in restored}
    return LostKeys(dict(sorted(restored.items())), newest)


def _readable(metadata: Mapping[str, str]) -> dict[str, str]:
    """Leave out what should be JSON and is none."""
    return {
        key: text
        for key, text in metadata.items()
        if not (key == SCHEMA or has_specs({key: text})) or _is_json(text)
    }


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


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
        return _readable(open_manifest(location, version, None, storage_options).metadata)
    except PennonError:
        return {}  # its files were cleaned up


def _is_another(metadata: Mapping[str, str], earlier: Mapping[str, str]) -> bool:
    """Whether an earlier version was another namespace's at the same place."""
    own, other = metadata.get(SALT), earlier.get(SALT)
    return own is not None and other is not None and own != other
