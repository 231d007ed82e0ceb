"""Checks that ``__manifest`` has the columns that its metadata requires, with fitting types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import lance
import pyarrow as pa

from pennon.errors import ManifestColumnMissing, ManifestColumnsLost, ManifestColumnType
from pennon.manifest.format.columns import (
    BASE_COLUMNS,
    READ_BRANCH,
    READ_TAG,
    READ_VERSION,
    partition_columns,
)
from pennon.manifest.format.properties import STRONG, TRANSACTION
from pennon.spec.partition_spec import PartitionSpec, is_same_kind

__all__ = ["check_columns"]

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
