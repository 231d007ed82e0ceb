"""What a directory says of a name, kept as long as its manifest stays at one version.

Spark loads each table of a query twice. To open the newest version of the manifest costs a fifth of
a search in it, and tells all changes, whoever made them: none is made without a new version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from pennon.caching import Cache, TableKey, storage_identity, version_identity
from pennon.errors import NamespaceHasNoManifest, StorageFailure
from pennon.manifest.dataset.storage import open_manifest

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog

__all__ = ["known_properties"]

Properties = Mapping[str, str] | None

_DIRECTORY: Final = "dir"
_ENTRY_BYTES: Final = 1 << 10
_known: Final[Cache[Properties]] = Cache(
    "names of directories", max_bytes=4096 * _ENTRY_BYTES, weigh=lambda _: _ENTRY_BYTES
)


def known_properties(
    catalog: Catalog, name: tuple[str, ...], describe: Callable[[tuple[str, ...]], Properties]
) -> Properties:
    """Give the properties of a name as they are now.

    Args:
        catalog: Whose name it is.
        name: Its parts.
        describe: Asks the catalog for them; None where it has no namespace of that name.
    """
    key = _key(catalog, name)
    if key is None:
        return describe(name)
    # An answer of a version that comes in between is not asked for under this one again.
    return _known.find(key, lambda: describe(name))


def _key(catalog: Catalog, name: tuple[str, ...]) -> TableKey | None:
    """Make the key of a name at the newest version; None where there are no versions to tell."""
    if catalog.implementation != _DIRECTORY:
        return None
    root = catalog.root
    try:
        manifest = open_manifest(root, storage_options=catalog.storage, is_read_only=True)
    except (NamespaceHasNoManifest, StorageFailure):
        return None
    version, identity = int(manifest.version), version_identity(manifest)
    return TableKey(root, version, identity, storage_identity(catalog.storage), tuple(name))
