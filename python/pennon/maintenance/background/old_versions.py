"""Expiring the versions of a table whose properties say how long they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.maintenance.expire import expirable_versions, expire
from pennon.manifest.format.properties import has_specs, user_properties
from pennon.manifest.storage import open_manifest
from pennon.manifest.versions.retention import retention_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["expire_old_versions"]

# Each expiry reads what the versions that stay name, however few go.
_LEAST: Final = 32


def expire_old_versions(location: str, storage: Mapping[str, str]) -> int:
    """Expire versions by the properties of a table; none where they say nothing of an age.

    Args:
        location: The namespace.
        storage: Given to Lance.

    Returns:
        How many have expired; none where few could.

    Raises:
        PennonError: A property is no number that it can be, or the storage refused.

    Example:
        >>> expire_old_versions("/data/lake/orders", {})  # doctest: +SKIP
        64
    """
    manifest = open_manifest(location, storage_options=storage)
    is_automatic = retention_of(user_properties(manifest.metadata)).is_automatic
    if not is_automatic or not has_specs(manifest.metadata):
        return 0
    if len(expirable_versions(manifest)) < _LEAST:
        return 0
    return len(expire(location, storage).versions)
