"""Requests of ``lance_namespace``, which are models or plain mappings, and its error classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lance_namespace import errors as upstream_errors

from pennon.catalog.configured_catalog import Catalog, absolute_place, is_path
from pennon.catalog.directory import Directory
from pennon.errors import (
    DraftLayout,
    NamespaceHasNoManifest,
    NamespaceNotFound,
    NotPartitionedNamespace,
    PennonError,
    StorageFailure,
)
from pennon.leaf.dataset import FIRST_DETACHED, leaf_uri, resolve_reference
from pennon.manifest import Snapshot
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.registered_location import child_namespaces, namespace_properties, row_of_leaf

if TYPE_CHECKING:
    from pennon.catalog.directory import Name

__all__ = [
    "at_read_version",
    "changed_names",
    "described_properties",
    "read_place",
    "refused_inside",
    "upstreams_errors",
    "value_of",
    "with_values",
]


def changed_names(request: Any) -> Iterator[list[str] | None]:
    """Give every name that a request changes: its own, a new one, those of a batch."""
    yield value_of(request, "id")
    target = value_of(request, "new_namespace_id")
    if target is not None:
        yield target
    for entry in value_of(request, "entries") or ():
        yield from changed_names(entry)
    for operation in value_of(request, "operations") or ():
        named = operation if isinstance(operation, Mapping) else operation.model_dump()
        for field in named.values():
            if isinstance(field, Mapping):
                yield from changed_names(field)


def value_of(request: Any, name: str) -> Any:
    """Give a value of a request; None where it has none."""
    return request.get(name) if isinstance(request, Mapping) else getattr(request, name, None)


def with_values(request: Any, changed: Mapping[str, Any]) -> Any:
    """Give a request with some values changed."""
    if isinstance(request, Mapping):
        return {**request, **changed}
    return request.model_copy(update=dict(changed))


@contextmanager
def upstreams_errors() -> Iterator[None]:
    """Say Pennon's errors as the interface does."""
    try:
        yield
    except StorageFailure as error:
        raise upstream_errors.ServiceUnavailableError(str(error)) from error
    except PennonError as error:
        raise upstream_errors.InvalidTableStateError(str(error)) from error


def refused_inside(
    operation: str, name: tuple[str, ...], location: str
) -> upstream_errors.LanceNamespaceError:
    """Make the error of a change below a partitioned namespace.

    Args:
        operation: What was asked.
        name: Of what.
        location: The partitioned namespace that it belongs to.
    """
    where = SEPARATOR.join(name) or "the root"
    message = (
        f"Cannot {operation} {where}: it belongs to the partitioned namespace at {location}, whose"
        " partition values and versions this operation would not keep. Write through Spark SQL, or"
        " through Pennon's own commands."
    )
    return upstream_errors.UnsupportedOperationError(message)


# The leaf version that a request of ``lance_namespace`` reads, and its location.


def read_place(snapshot: Snapshot, path: Sequence[str]) -> tuple[int | None, str | None]:
    """Give the version at which a snapshot reads a leaf, and where it is.

    Args:
        snapshot: The partitioned namespace.
        path: The leaf.

    Returns:
        The version, None for the newest of the main branch; path or URL of the branch that has it,
        None for the leaf itself.

    Raises:
        LeafMissing: There is no such branch or tag.

    Spec: "Read Behavior".
    """
    row = row_of_leaf(snapshot, path)
    version = row.get("read_version")
    stated = version if isinstance(version, int) else None
    branch, tag = (_text(row.get(name)) for name in ("read_branch", "read_tag"))
    if branch is None and tag is None:
        return stated, None
    root, location = snapshot.location, str(row["location"])
    resolved = resolve_reference(root, location, (branch, tag), stated, snapshot.storage_options)
    is_elsewhere = resolved.location != location
    return resolved.version, leaf_uri(root, resolved.location) if is_elsewhere else None


def at_read_version(
    operation: str, request: Any, snapshot: Snapshot | None, path: Sequence[str]
) -> dict[str, Any]:
    """Give what makes a request read a leaf at its read version.

    Raises:
        UnsupportedOperationError: The request cannot name that version, or not its branch.
    """
    if snapshot is None or value_of(request, "branch") is not None:
        return {}
    with upstreams_errors():
        version, elsewhere = read_place(snapshot, path)
    if version is None:
        return {}
    has_version = isinstance(request, Mapping) or "version" in type(request).model_fields
    if version >= FIRST_DETACHED or elsewhere is not None or not has_version:
        where = "" if elsewhere is None else f" of {elsewhere}"
        message = (
            f"Cannot answer {operation} for {SEPARATOR.join(value_of(request, 'id'))}: the table"
            f" is read at version {version}{where}, which this operation cannot name. Open the"
            " location that describe_table gives with lance.dataset(location, version=…)."
        )
        raise upstream_errors.UnsupportedOperationError(message)
    return {"version": version}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


# Partitions as child namespaces: a partitioned table, its spec versions and their partitions.
#
# To Spark the name of a partitioned namespace is a table's, so that nothing is listed below it.

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
