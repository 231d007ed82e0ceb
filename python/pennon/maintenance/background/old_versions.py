"""Expires the versions of a table after the time that its properties state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.maintenance.expire import expirable_versions, expire
from pennon.manifest.dataset.storage import listed_versions, open_manifest
from pennon.manifest.format.properties import has_specs, user_properties
from pennon.manifest.versions.retention import retention_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["expire_old_versions"]

# Each expiry reads what the versions that stay name, however few go: so many at least, and one for
# so many that stay. As long as fewer were made since the last look there is none.
_LEAST: Final = 32
_KEPT_FOR_ONE: Final = 4
_MOST_REMEMBERED: Final = 10_000


def expire_old_versions(location: str, storage: Mapping[str, str]) -> int:
    """Expire versions by the properties of a table; none where they say nothing of an age.

    Args:
        location: The namespace.
        storage: Given to Lance.

    Returns:
        How many have expired; none where few could for those that stay.

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
    version = int(manifest.version)
    seen, num_kept = _looked_at.get(location, (0, 0))
    if 0 <= version - seen < _least(num_kept):
        return 0
    num_listed = len(listed_versions(manifest))
    num_old = len(expirable_versions(manifest))
    if len(_looked_at) >= _MOST_REMEMBERED:
        _looked_at.clear()
    _looked_at[location] = version, num_listed - num_old
    if num_old < _least(num_listed - num_old):
        return 0
    return len(expire(location, storage).versions)


def _least(num_kept: int) -> int:
    return max(_LEAST, num_kept // _KEPT_FOR_ONE)


# What was found last: the version of each table, and how many versions had to stay.
_looked_at: Final[dict[str, tuple[int, int]]] = {}
