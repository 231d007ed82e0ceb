"""Checks that ``__manifest`` has the columns that its metadata requires, with fitting types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import lance
import pyarrow as pa

from pennon.errors import (
    ManifestColumnMissing,
    ManifestColumnsLost,
    ManifestColumnType,
    ManifestMetadataLost,
    PennonError,
    PropertiesInSchema,
)
from pennon.manifest.dataset.storage import StorageOptions, open_manifest, version_numbers
from pennon.manifest.format.properties import (
    DRAFT_ENABLED,
    SALT,
    SCHEMA,
    STRONG,
    TRANSACTION,
    has_specs,
)
from pennon.manifest.format.rows import (
    BASE_COLUMNS,
    PARTITION_PREFIX,
    READ_BRANCH,
    READ_TAG,
    READ_VERSION,
    partition_columns,
)
from pennon.spec.partition_spec import PartitionSpec, is_same_kind, spec_key

__all__ = ["check_columns", "check_metadata_is_there", "lost_keys", "properties_in_schema"]

# Detects lost metadata keys without which a namespace cannot be read.
#
# ``schema``, the specs, and Pennon's own ``pennon.salt`` and ``pennon.transaction`` are written
# with a namespace or a spec version and never removed. Where one is missing, an earlier version of
# ``__manifest`` has it.

_ANY_SPEC: Final = "partition_spec_v<N>"


@dataclass(frozen=True, slots=True)
class LostKeys:
    """Keys that are lost, or cannot be read, as earlier versions of the manifest have them.

    Args:
        values: By key; none where nothing is lost, or no earlier version has it.
        from_version: The newest version that one of them comes from; None where there is none, or
            the metadata of the manifest's own schema has them.
    """

    values: Mapping[str, str]
    from_version: int | None


def check_metadata_is_there(location: str, manifest: lance.LanceDataset) -> None:
    """Check that a manifest which is a partitioned namespace's still says so.

    Raises:
        ManifestMetadataLost: It has no spec, but other traces of having been one.
        PropertiesInSchema: Another writer has put them beside the columns.
    """
    metadata = manifest.metadata
    if has_specs(metadata) or DRAFT_ENABLED in metadata:
        return
    if has_specs(properties_in_schema(manifest)):
        raise PropertiesInSchema(location=location)
    has_traces = any(key in metadata for key in (SCHEMA, SALT, TRANSACTION))
    # Version 1 has the columns, and the metadata is what completes a creation.
    if manifest.version > 1 and not has_traces:
        has_traces = any(name.startswith(PARTITION_PREFIX) for name in manifest.schema.names)
    if has_traces:
        raise ManifestMetadataLost(location=location, version=manifest.version, keys=_ANY_SPEC)


def properties_in_schema(manifest: lance.LanceDataset) -> dict[str, str]:
    """Give the schema and the specs that stand in the metadata of the manifest's Arrow schema.

    Args:
        manifest: ``__manifest`` at a version.

    Spec: "Metadata Definition".
    """
    stated = {key.decode(): text.decode() for key, text in (manifest.schema.metadata or {}).items()}
    return {key: stated[key] for key in sorted(stated) if key == SCHEMA or has_specs({key: ""})}


def lost_keys(
    location: str,
    manifest: lance.LanceDataset,
    spec_versions: Iterable[int],
    storage_options: StorageOptions | None = None,
) -> LostKeys:
    """Find the keys that are lost in earlier versions, each in the newest that has it.

    What stands in the metadata of the manifest's schema is taken from there.

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
    beside = properties_in_schema(manifest)
    restored = {key: text for key, text in beside.items() if key not in metadata}
    lost = lost - {_ANY_SPEC} if has_specs(restored) else lost
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


# ``base_objects`` is of no use to a reader, and the specification does not list it.
_NEEDED: Final = BASE_COLUMNS[:-1]


def check_columns(
    location: str,
    manifest: lance.LanceDataset,
    specs: Mapping[int, PartitionSpec],
    metadata: Mapping[str, str],
) -> None:
    """Check the columns of a version of ``__manifest``.

    Args:
        location: The namespace, for errors.
        manifest: Its ``__manifest``.
        specs: Every partition spec, by version.
        metadata: The namespace's metadata map.

    Raises:
        ManifestColumnMissing: It lacks one that every directory namespace has.
        ManifestColumnsLost: A foreign writer dropped some.
        ManifestColumnType: One has a type of another kind.

    Spec: "Manifest Table Schema".
    """
    present = {field.name: field.type for field in manifest.schema}
    for column in _NEEDED:
        if column.name not in present:
            raise ManifestColumnMissing(
                location=location,
                version=manifest.version,
                column=column.name,
                expected=column.type,
            )
    expected = partition_columns(specs.values())
    lost = [name for name in expected if name not in present]
    if metadata.get(TRANSACTION) == STRONG and READ_VERSION.name not in present:
        lost.insert(0, READ_VERSION.name)
    if lost:
        raise ManifestColumnsLost(
            location=location, version=manifest.version, columns=", ".join(lost)
        )
    for name in (READ_BRANCH, READ_TAG):
        if name in present and not pa.types.is_string(present[name]):
            raise ManifestColumnType(
                location=location, column=name, actual=present[name], expected=pa.utf8()
            )
    for name, declared in expected.items():
        if not is_same_kind(present[name], declared):
            raise ManifestColumnType(
                location=location, column=name, actual=present[name], expected=declared
            )
