"""Pennon as an implementation of ``lance_namespace``: ``connect("pennon", {"root": …})``.

The root is the root of a catalog or a partitioned namespace itself. Names and locations are those
that upstream's directory namespace answers; Pennon adds what only the format's manifest knows:

* a name that the catalog registered as a partitioned namespace leads into it: its spec versions,
  partitions and leaves are namespaces and tables below that name;
* describing a namespace shows the runtime properties, describing a leaf the version that the
  snapshot reads;
* below a partitioned namespace nothing can be changed: upstream's changes know nothing of partition
  values and read versions.

Which version is read decides which rows there are. So what upstream cannot read at that version
(its requests have no room for detached versions) is refused, and never read at another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import lance
import lance_namespace as upstream
from lance_namespace import errors as upstream_errors

from pennon.catalog.configured_catalog import Catalog, plain_path
from pennon.catalog.table_name import LOCATION, MARKER
from pennon.catalog.upstream.namespace_requests import (
    at_read_version,
    changed_names,
    read_place,
    refused_inside,
    upstreams_errors,
    value_of,
    with_values,
)
from pennon.errors import (
    DraftLayout,
    NamespaceHasNoManifest,
    NotPartitionedNamespace,
)
from pennon.leaf import LeafSource
from pennon.leaf.dataset import FIRST_DETACHED, open_leaf
from pennon.manifest import Snapshot
from pennon.manifest.draft import draft_properties, is_draft
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.registered_location import is_below_spec, namespace_properties
from pennon.spec.arrow_json import field_to_json

__all__ = ["PennonNamespace"]

_STORAGE: Final = "storage."

Name = tuple[str, ...]
Method = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a name leads: the implementation to ask, and what it is called there."""

    client: Any
    path: Name
    full: Name
    snapshot: Snapshot | None = None
    location: str | None = None

    @property
    def is_leaf_place(self) -> bool:
        """Whether the name is of a spec version or below it."""
        return self.snapshot is not None and is_below_spec(self.snapshot, self.path)


def _changing(operation: str) -> Method:
    """Make an operation that is refused below a partitioned namespace."""

    def change(self: PennonNamespace, request: Any, *content: bytes) -> Any:
        for name in changed_names(request):
            self._refuse_inside(operation, name)
        return getattr(self._outer, operation)(request, *content)

    change.__doc__ = f"Pass ``{operation}`` on; below a partitioned namespace it is refused."
    return change


def _reading(operation: str, *, reads_rows: bool) -> Method:
    """Make an operation on one table that is answered where the table is."""

    def read(self: PennonNamespace, request: Any) -> Any:
        place = self._table_place(value_of(request, "id"))
        changed: dict[str, Any] = {"id": list(place.path)}
        if reads_rows and place.is_leaf_place and value_of(request, "version") is None:
            changed.update(at_read_version(operation, request, place.snapshot, place.path))
        return getattr(place.client, operation)(with_values(request, changed))

    read.__doc__ = f"Answer ``{operation}`` for a table, a leaf at the version that is read."
    return read


class PennonNamespace(upstream.LanceNamespace):  # type: ignore[misc]
    """Catalogs with partitioned namespaces, as ``lance_namespace`` sees them.

    Args:
        root: Path or URL of a catalog's root or of a partitioned namespace.
        properties: ``storage.<option>`` for the storage; whatever else ``dir`` takes goes there.

    Raises:
        InvalidInputError: There is no ``root``.

    Example:
        >>> upstream.connect(
        ...     "pennon.catalog.upstream.lance_namespace.PennonNamespace", {"root": "/lake"}
        ... )
        PennonNamespace(root='/lake')

    Spec: "Runtime Namespace Properties", Appendix E.
    """

    def __init__(self, root: str = "", **properties: Any) -> None:
        if not root:
            message = "Cannot connect to a namespace: the property 'root' is missing."
            raise upstream_errors.InvalidInputError(message)
        self._properties = properties
        self._storage = {
            name.removeprefix(_STORAGE): str(value)
            for name, value in properties.items()
            if name.startswith(_STORAGE)
        }
        self._catalog = Catalog("lance", str(root), storage=self._storage)
        self._root = self._catalog.root
        self._clients: dict[str, Any] = {}
        self._outer = self._client(self._root)

    def __repr__(self) -> str:
        return f"PennonNamespace(root={self._root!r})"

    def namespace_id(self) -> str:
        """Name this namespace, for equality: the storage options are no part of it."""
        return f"PennonNamespace {{ root: {self._root!r} }}"

    def list_namespaces(self, request: Any) -> Any:
        """List child namespaces: of the catalog, of a partitioned namespace, of a partition."""
        place = self._existing(request.id)
        return place.client.list_namespaces(with_values(request, {"id": list(place.path)}))

    def describe_namespace(self, request: Any) -> Any:
        """Describe a namespace with its runtime properties.

        The root of a partitioned namespace shows ``schema`` and every ``partition_spec_v<N>``, a
        spec version ``partition_spec``, a partition the value of its own level.

        Spec: "Runtime Namespace Properties", Appendix E.
        """
        place = self._place(request.id)
        if place.snapshot is None:
            answer = place.client.describe_namespace(with_values(request, {"id": list(place.path)}))
            properties = {**(answer.properties or {}), **self._draft_properties(place)}
            return answer.model_copy(update={"properties": properties})
        # A registration's own properties stand where it is registered.
        asked = place if place.path else replace(place, client=self._outer, path=place.full)
        answer = asked.client.describe_namespace(with_values(request, {"id": list(asked.path)}))
        properties = dict(answer.properties or {})
        if MARKER in properties and LOCATION in properties:
            properties[LOCATION] = self._catalog.address(properties[LOCATION])
        with upstreams_errors():
            properties.update(namespace_properties(place.snapshot, place.path))
        return answer.model_copy(update={"properties": properties})

    def namespace_exists(self, request: Any) -> Any:
        """Check that a namespace is there, at any level."""
        place = self._place(request.id)
        return place.client.namespace_exists(with_values(request, {"id": list(place.path)}))

    def list_tables(self, request: Any) -> Any:
        """List the tables of a namespace: ``dataset`` where the levels of a spec end."""
        place = self._existing(request.id)
        return place.client.list_tables(with_values(request, {"id": list(place.path)}))

    def list_all_tables(self, request: Any) -> Any:
        """List the tables of all levels below a namespace, by full names joined with ``$``."""
        above = tuple(request.id or ())
        names = sorted(SEPARATOR.join(path) for path in self._walk(above, request))
        if request.page_token:
            names = [name for name in names if name > request.page_token]
        limit = request.limit
        page = names if limit is None or limit < 0 else names[:limit]
        token = page[-1] if page and len(page) < len(names) else None
        return upstream.ListTablesResponse(tables=page, page_token=token)

    def describe_table(self, request: Any) -> Any:
        """Describe a table; a leaf with the version that the snapshot reads.

        The schema comes with ``load_detailed_metadata``, as upstream has it: it is the leaf's own.

        Spec: "Read Behavior".
        """
        place = self._table_place(request.id)
        located = with_values(request, {"id": list(place.path)})
        version, elsewhere = request.version, None
        is_plain = request.tag is None and request.branch is None
        if version is None and is_plain:
            version, elsewhere = self._read_at(place)
        elif not is_plain or version < FIRST_DETACHED:
            version = None
        if version is None or not place.is_leaf_place:
            return place.client.describe_table(located)
        light = {"version": None, "load_detailed_metadata": False}
        answer = place.client.describe_table(with_values(located, light))
        if elsewhere is not None:
            answer = answer.model_copy(update={"location": elsewhere, "table_uri": elsewhere})
        if request.load_detailed_metadata:
            return self._describe_leaf(answer, version)
        return answer.model_copy(update={"version": version})

    def table_exists(self, request: Any) -> Any:
        """Check that a table is there, at any level."""
        place = self._table_place(request.id)
        return place.client.table_exists(with_values(request, {"id": list(place.path)}))

    def count_table_rows(self, request: Any) -> Any:
        """Count the rows of a table, of a leaf at the version that the snapshot reads."""
        place = self._table_place(request.id)
        version, elsewhere = request.version, None
        if version is None and request.branch is None:
            version, elsewhere = self._read_at(place)
        if version is None or (version < FIRST_DETACHED and elsewhere is None):
            located = with_values(request, {"id": list(place.path), "version": version})
            return place.client.count_table_rows(located)
        location = elsewhere or self._location(place)
        counted = LeafSource(self._leaf(location, version)).count(request.predicate or None)
        return upstream.CountTableRowsResponse(count=counted)

    query_table = _reading("query_table", reads_rows=True)
    explain_table_query_plan = _reading("explain_table_query_plan", reads_rows=True)
    analyze_table_query_plan = _reading("analyze_table_query_plan", reads_rows=True)
    get_table_stats = _reading("get_table_stats", reads_rows=True)
    list_table_indices = _reading("list_table_indices", reads_rows=True)
    describe_table_index_stats = _reading("describe_table_index_stats", reads_rows=True)
    list_table_versions = _reading("list_table_versions", reads_rows=False)
    describe_table_version = _reading("describe_table_version", reads_rows=False)
    list_table_tags = _reading("list_table_tags", reads_rows=False)
    get_table_tag_version = _reading("get_table_tag_version", reads_rows=False)
    list_table_branches = _reading("list_table_branches", reads_rows=False)
    describe_transaction = _reading("describe_transaction", reads_rows=False)

    create_namespace = _changing("create_namespace")
    drop_namespace = _changing("drop_namespace")
    register_table = _changing("register_table")
    deregister_table = _changing("deregister_table")
    create_table = _changing("create_table")
    create_empty_table = _changing("create_empty_table")
    declare_table = _changing("declare_table")
    drop_table = _changing("drop_table")
    rename_table = _changing("rename_table")
    restore_table = _changing("restore_table")
    insert_into_table = _changing("insert_into_table")
    merge_insert_into_table = _changing("merge_insert_into_table")
    update_table = _changing("update_table")
    delete_from_table = _changing("delete_from_table")
    create_table_index = _changing("create_table_index")
    create_table_scalar_index = _changing("create_table_scalar_index")
    drop_table_index = _changing("drop_table_index")
    create_table_version = _changing("create_table_version")
    batch_create_table_versions = _changing("batch_create_table_versions")
    batch_delete_table_versions = _changing("batch_delete_table_versions")
    batch_commit_tables = _changing("batch_commit_tables")
    update_table_schema_metadata = _changing("update_table_schema_metadata")
    update_field_metadata = _changing("update_field_metadata")
    alter_table_add_columns = _changing("alter_table_add_columns")
    alter_table_alter_columns = _changing("alter_table_alter_columns")
    alter_table_backfill_columns = _changing("alter_table_backfill_columns")
    alter_table_drop_columns = _changing("alter_table_drop_columns")
    create_materialized_view = _changing("create_materialized_view")
    refresh_materialized_view = _changing("refresh_materialized_view")
    create_table_tag = _changing("create_table_tag")
    delete_table_tag = _changing("delete_table_tag")
    update_table_tag = _changing("update_table_tag")
    create_table_branch = _changing("create_table_branch")
    delete_table_branch = _changing("delete_table_branch")
    alter_transaction = _changing("alter_transaction")

    def _client(self, location: str) -> Any:
        if location not in self._clients:
            properties = {**self._properties, "root": location}
            self._clients[location] = upstream.connect("dir", properties)
        return self._clients[location]

    def _place(self, identifier: list[str] | None) -> _Place:
        """Find the implementation that a name belongs to; a missing one stays where it is."""
        full = tuple(identifier or ())
        outer = _Place(self._outer, full, full)
        if identifier is None:
            raise upstream_errors.InvalidInputError("Invalid input: the request has no id")
        with upstreams_errors():
            at_root = self._snapshot_at_root()
            if at_root is not None:
                return replace(outer, snapshot=at_root)
            for depth in range(1, len(full) + 1):
                location = self._registered(full[:depth])
                if location is None:
                    continue
                try:
                    snapshot = Snapshot.open(location, storage_options=self._storage)
                except DraftLayout:
                    return _Place(self._client(location), full[depth:], full, None, location)
                return _Place(self._client(location), full[depth:], full, snapshot)
        return outer

    def _snapshot_at_root(self) -> Snapshot | None:
        try:
            return Snapshot.open(self._root, storage_options=self._storage)
        except (NamespaceHasNoManifest, NotPartitionedNamespace, DraftLayout):
            return None

    def _registered(self, name: Name) -> str | None:
        """Give the location of the partitioned namespace that a name of the catalog stands for."""
        request = upstream.DescribeNamespaceRequest(id=list(name))
        try:
            properties = self._outer.describe_namespace(request).properties or {}
        except upstream_errors.NamespaceNotFoundError:
            return None
        if MARKER not in properties or LOCATION not in properties:
            return None
        return self._catalog.address(properties[LOCATION])

    def _existing(self, identifier: list[str] | None) -> _Place:
        """Find a namespace; upstream lists nothing for a missing one, the interface raises."""
        place = self._place(identifier)
        place.client.namespace_exists(upstream.NamespaceExistsRequest(id=list(place.path)))
        return place

    def _table_place(self, identifier: list[str] | None) -> _Place:
        place = self._place(identifier)
        # A partitioned namespace is no table of the interface: its catalog says so.
        return place if place.path else _Place(self._outer, place.full, place.full)

    def _refuse_inside(self, operation: str, identifier: list[str] | None) -> None:
        if identifier is None:
            return
        place = self._place(identifier)
        if place.snapshot is not None:
            raise refused_inside(operation, place.full, place.snapshot.location)
        above = (place.full[:depth] for depth in range(len(place.full) + 1))
        if any(is_draft(self._properties_of(name)) for name in above):
            error = DraftLayout(verb=operation.replace("_", " "), location=self._root)
            raise upstream_errors.UnsupportedOperationError(error.message)

    def _properties_of(self, name: Name) -> dict[str, str]:
        request = upstream.DescribeNamespaceRequest(id=list(name))
        try:
            return self.describe_namespace(request).properties or {}
        except upstream_errors.NamespaceNotFoundError:
            return {}

    def _draft_properties(self, place: _Place) -> dict[str, str]:
        """Give what makes the folder of a manifest a namespace of the older draft."""
        if place.path:
            return {}
        with upstreams_errors():
            return draft_properties(place.location or self._root, self._storage)

    def _walk(self, above: Name, request: Any) -> Iterator[Name]:
        place = self._existing(list(above))
        ask = {"page_token": None, "limit": None, "id": list(place.path)}
        tables = place.client.list_tables(with_values(request, ask)).tables
        yield from ((*above, name) for name in tables)
        children = upstream.ListNamespacesRequest(id=list(place.path))
        for child in place.client.list_namespaces(children).namespaces:
            yield from self._walk((*above, child), request)

    def _read_at(self, place: _Place) -> tuple[int | None, str | None]:
        """Give the version that is read, and where it is if that is not the leaf's main branch."""
        if place.snapshot is None or not place.is_leaf_place:
            return None, None
        with upstreams_errors():
            return read_place(place.snapshot, place.path)

    def _location(self, place: _Place) -> str:
        request = upstream.DescribeTableRequest(id=list(place.path))
        return str(place.client.describe_table(request).location)

    def _leaf(self, location: str, version: int) -> lance.LanceDataset:
        with upstreams_errors():
            return open_leaf(self._root, plain_path(location), version, self._storage)

    def _describe_leaf(self, answer: Any, version: int) -> Any:
        schema = self._leaf(answer.location, version).schema
        fields = [field_to_json(column) for column in schema]
        return upstream.DescribeTableResponse.from_dict(
            {
                **answer.to_dict(),
                "version": version,
                "schema": {"fields": fields},
                "is_only_declared": False,
            }
        )
