"""Partitions as child namespaces: a partitioned table, its spec versions and their partitions.

To Spark the name of a partitioned namespace is a table's, so that nothing is listed below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.catalog.configured_catalog import Catalog, absolute_place, is_path
from pennon.catalog.directory import Directory
from pennon.errors import (
    DraftLayout,
    NamespaceHasNoManifest,
    NamespaceNotFound,
    NotPartitionedNamespace,
)
from pennon.manifest import Snapshot
from pennon.manifest.namespace_rows import child_namespaces, namespace_properties

if TYPE_CHECKING:
    from pennon.catalog.directory import Name

__all__ = ["described_properties"]

_SHOWN = 5


def described_properties(catalog: Catalog, namespace: Name) -> dict[str, str]:
    """Give what describing a namespace shows, inside of tables too.

    Args:
        catalog: The catalog.
        namespace: A namespace of the catalog; a partitioned table, its spec version or partition.

    Returns:
        The namespace's own properties, and the runtime properties of the format: schema and specs
        of a table, the spec of a spec version, a partition's value of its own level.

    Raises:
        NamespaceNotFound: There is none of that name.

    Spec: "Runtime Namespace Properties", Appendix E.
    """
    if namespace and is_path(namespace[0]):
        place = absolute_place(namespace[0])
        return _inside(catalog, place, namespace, 1)
    directory = Directory(catalog)
    try:
        properties = directory.properties(namespace)
    except NamespaceNotFound:
        for depth in range(1, len(namespace) + 1):
            registration = directory.find(namespace[:depth])
            if registration is not None and registration.is_partitioned:
                return _inside(catalog, registration.location, namespace, depth)
        raise
    root = _partitioned(catalog.root, catalog)
    return properties if root is None else {**properties, **namespace_properties(root, namespace)}


def _inside(catalog: Catalog, location: str, namespace: Name, depth: int) -> dict[str, str]:
    snapshot = _partitioned(location, catalog)
    name = catalog.full_name(namespace)
    if snapshot is None:
        raise NamespaceNotFound(namespace=name, near=f"{location} holds no partitioned namespace")
    path = namespace[depth:]
    for level in range(len(path)):
        above = path[:level]
        children = child_namespaces(snapshot, above)
        if path[level] not in children:
            where = catalog.full_name((*namespace[:depth], *above))
            shown = ", ".join(children[:_SHOWN]) or "nothing"
            raise NamespaceNotFound(
                namespace=name,
                near=f"the namespaces in {where} are {shown}"
                + (", …" if len(children) > _SHOWN else ""),
            )
    own = {} if path else {"location": location}
    return {**own, **namespace_properties(snapshot, path)}


def _partitioned(location: str, catalog: Catalog) -> Snapshot | None:
    try:
        return Snapshot.open(location, storage_options=catalog.storage)
    except (NamespaceHasNoManifest, NotPartitionedNamespace, DraftLayout):
        return None
