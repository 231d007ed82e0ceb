"""A lake: the namespaces and tables under one root, by name."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from pennon.arguments import as_names, checked, checked_methods
from pennon.catalog.configured_catalog import Catalog, is_path, stated_place
from pennon.catalog.ddl import table_ddl
from pennon.catalog.ddl.register import register_table
from pennon.catalog.directory import Directory
from pennon.catalog.partitioning import partitioned_by
from pennon.catalog.table_name import parts_of, spelled
from pennon.catalog.tables.loaded_table import load
from pennon.draft import open_snapshot
from pennon.errors import PennonError, SchemaNotUnderstood, TableNotFound
from pennon.namespace.partitioned_namespace import PartitionedNamespace
from pennon.notebook import Bar, html_table
from pennon.planning import plan_scan
from pennon.transforms.registry import parse_transform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Lake", "connect", "create_namespace", "open_namespace"]

# ``pennon.open`` and ``pennon.create``: a table by its path.

_NAME = "pennon"


@checked("pennon.open", runs_lance=True)
def open_namespace(
    path: str | os.PathLike[str],
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedNamespace:
    """Open a table by its path; ``pennon.open`` is this function.

    Args:
        path: Path or URL of a partitioned namespace, or of a plain Lance dataset.
        version: A version of it or a tag, which is then only read; None for the newest.
        storage_options: Given to Lance; never printed.

    Raises:
        NamespaceHasNoManifest: There is nothing.
        PathNotTable: There is something else.
        SnapshotNotFound: There is no such version.
        TableVersionNotFound: There is no such tag.

    Example:
        >>> import pennon
        >>> flights = pennon.open("lake/flights")  # doctest: +SKIP
        >>> flights.scan("time_hour >= TIMESTAMP '2013-07-01'").to_arrow()  # doctest: +SKIP

    Spec: "Metadata Definition".
    """
    location = stated_place(path)
    catalog = _catalog_of(location, storage_options)
    try:
        table = load(catalog, (location,), None if version is None else str(version))
    except TableNotFound:
        open_snapshot(
            location, None, None, catalog.storage
        )  # raises the error that names what is missing
        raise
    return PartitionedNamespace(catalog, table, is_pinned=version is not None)


@checked("pennon.create", runs_lance=True)
def create_namespace(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    partition_by: Sequence[str] = (),
    *,
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedNamespace:
    """Create a table at a path; ``pennon.create`` is this function.

    Args:
        path: Path or URL of a folder that does not exist or is empty.
        schema: Its columns.
        partition_by: As in PARTITIONED BY: ``["months(ordered_at)", "bucket(16, customer_id)"]``.
        properties: Table properties, for example ``{"write.order": "id"}``.
        comment: Its comment.
        storage_options: Given to Lance; never printed.

    Raises:
        TableAlreadyExists: There is a table.
        UnknownTransform: Lists the known ones.
        PartitionSourceNotFound: A transform names a column that is not in the schema.

    Example:
        >>> import pennon, tempfile
        >>> import pyarrow as pa
        >>> schema = pa.schema({"id": pa.int64(), "ordered_at": pa.timestamp("us", "UTC")})
        >>> path = tempfile.mkdtemp() + "/orders"
        >>> orders = pennon.create(path, schema, partition_by=["months(ordered_at)"])
        >>> [field.field_id for field in orders.spec.fields]
        ['ordered_at_year', 'ordered_at_month']

    Spec: "Metadata Definition", "Physical Layout and Naming".
    """
    location = stated_place(path)
    catalog = _catalog_of(location, storage_options)
    stated = {} if comment is None else {"comment": comment}
    return made_table(catalog, (location,), schema, partition_by, {**(properties or {}), **stated})


def made_table(
    catalog: Catalog,
    parts: tuple[str, ...],
    schema: pa.Schema,
    partition_by: Sequence[str],
    properties: Mapping[str, str],
) -> PartitionedNamespace:
    """Create a table by its name or its path.

    Raises:
        SchemaNotUnderstood: The schema is another object.
    """
    if not isinstance(cast("object", schema), pa.Schema):
        kind = type(schema)
        raise SchemaNotUnderstood(type=f"{kind.__module__}.{kind.__qualname__}")
    table = table_ddl.create(
        catalog,
        parts,
        schema=schema,
        transforms=[parse_transform(text) for text in as_names(partition_by)],
        properties=dict(properties),
        mode="create",
    )
    return PartitionedNamespace(catalog, table)


def _catalog_of(location: str, storage_options: Mapping[str, str] | None) -> Catalog:
    above = location.rpartition("/")[0] or "/"
    return Catalog(_NAME, above, storage=dict(storage_options or {}))


@checked("pennon.connect")
def connect(
    root: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    implementation: str = "dir",
    namespace_options: Mapping[str, str] | None = None,
) -> Lake:
    """Connect to a lake; ``pennon.connect`` is this function.

    Args:
        root: The folder or URL under which the namespaces are; what ``pennon.spark`` calls root.
        storage_options: Given to Lance; never printed.
        implementation: Name of a ``lance_namespace`` implementation, or its class by its path.
        namespace_options: Handed to the implementation: ``uri`` and ``header.…`` of a service.
            The root is where new tables are made; others are where the implementation says.

    Example:
        >>> import pennon, tempfile
        >>> import pyarrow as pa
        >>> lake = pennon.connect(tempfile.mkdtemp())
        >>> lake.create_namespace("shop")
        >>> orders = lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
        >>> lake.list_tables("shop")
        ['shop.orders']
        >>> lake.load_table("shop.orders").version
        2
    """
    place, storage = stated_place(root, "root"), dict(storage_options or {})
    options = dict(namespace_options or {})
    return Lake(Catalog("lance", place, implementation, storage, namespace=options))


@checked_methods
class Lake:
    """Namespaces and tables under one root.

    A name is ``shop.orders``; parts with dots or blanks stand in backquotes. The catalog's own name
    in SQL, ``lance``, may stand before it.

    Args:
        catalog: Root, implementation and storage options.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    @property
    def root(self) -> str:
        """The folder or URL.

        Example:
            >>> import pennon
            >>> pennon.connect("/lake").root
            '/lake'
        """
        return self._catalog.root

    def load_table(self, name: str, version: int | str | None = None) -> PartitionedNamespace:
        """Load a table.

        Args:
            name: Its name, or a path or URL.
            version: A version of it or a tag, which is then only read; None for the newest.

        Raises:
            TableNotFound: There is none; the error lists near names.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> orders = lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
            >>> version = orders.append([{"id": 1}])
            >>> lake.load_table("shop.orders").scan().to_arrow().to_pylist()
            [{'id': 1}]
            >>> lake.load_table("shop.orders", version - 1).scan().count_rows()
            0
        """
        number = None if version is None else str(version)
        table = load(self._catalog, parts_of(self._catalog, name), number)
        return PartitionedNamespace(self._catalog, table, is_pinned=version is not None)

    def location_of(self, name: str) -> str:
        """Give the path or URL of a table, which need not be readable.

        Args:
            name: Its name, or a path or URL.

        Raises:
            TableNotFound: There is none; the error lists near names.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> orders = lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
            >>> lake.location_of("shop.orders") == orders.location
            True
        """
        parts = parts_of(self._catalog, name)
        return parts[0] if is_path(name) else Directory(self._catalog).registration(parts).location

    def create_table(
        self,
        name: str,
        schema: pa.Schema,
        partition_by: Sequence[str] = (),
        *,
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> PartitionedNamespace:
        """Create a table; as ``pennon.create``.

        Args:
            name: Its name; its namespace has to be there.
            schema: The columns.
            partition_by: Transforms of columns, as in SQL.
            properties: Table properties.
            comment: What the table is, for people.

        Raises:
            TableAlreadyExists: There is a table of that name.
            NamespaceNotFound: Its namespace is missing.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> schema = pa.schema({"id": pa.int64(), "day": pa.date32()})
            >>> orders = lake.create_table("shop.orders", schema, ["months(day)", "bucket(4, id)"])
            >>> len(orders.spec.fields)
            3
        """
        stated = {} if comment is None else {"comment": comment}
        parts = parts_of(self._catalog, name)
        all_properties = {**(properties or {}), **stated}
        return made_table(self._catalog, parts, schema, partition_by, all_properties)

    def register_table(self, name: str, path: str) -> PartitionedNamespace:
        """Give a name to a table that is there already; it stays where it is.

        Args:
            name: The name, of a namespace that is there.
            path: Path or URL of a partitioned namespace, or of a Lance dataset below the root.

        Raises:
            TableAlreadyExists: The name is taken, or the table has one in that namespace.
            TableNotFound: Nothing is there.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> path = tempfile.mkdtemp() + "/elsewhere"
            >>> made = pennon.create(path, pa.schema({"id": pa.int64()}))
            >>> lake.register_table("shop.orders", path).location == path
            True
        """
        table = register_table(self._catalog, parts_of(self._catalog, name), path)
        return PartitionedNamespace(self._catalog, table)

    def drop_table(self, name: str) -> None:
        """Drop a table with its files.

        Args:
            name: Its name.

        Raises:
            TableNotFound: There is none.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> orders = lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
            >>> lake.drop_table("shop.orders")
            >>> lake.list_tables()
            []
        """
        identifier = parts_of(self._catalog, name)
        if not table_ddl.drop(self._catalog, identifier):
            Directory(self._catalog).registration(identifier)

    def rename_table(self, name: str, to: str) -> None:
        """Give a table another name; its files stay where they are.

        Args:
            name: Its name.
            to: The new one, whose namespace has to be there.

        Raises:
            TableNotFound: There is no table of that name.
            TableAlreadyExists: There is one of the new name.
            NamespaceNotFound: The namespace of the new name is missing.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> orders = lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
            >>> lake.rename_table("shop.orders", "shop.sales")
            >>> lake.list_tables()
            ['shop.sales']
        """
        table_ddl.rename(self._catalog, parts_of(self._catalog, name), parts_of(self._catalog, to))

    def table_exists(self, name: str) -> bool:
        """Tell whether there is a table of that name.

        Args:
            name: Its name.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> orders = lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
            >>> (lake.table_exists("shop.orders"), lake.table_exists("shop.sales"))
            (True, False)
        """
        return Directory(self._catalog).find(parts_of(self._catalog, name)) is not None

    def list_tables(self, namespace: str | None = None) -> list[str]:
        """List the names of the tables of a namespace; without one, of all namespaces.

        Args:
            namespace: Its name; None for all namespaces, and the root.

        Raises:
            NamespaceNotFound: There is none of that name.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> orders = lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
            >>> lake.list_tables()
            ['shop.orders']
        """
        directory = Directory(self._catalog)
        start = () if namespace is None else parts_of(self._catalog, namespace)
        below = (start,) if namespace is not None else directory.with_descendants(())
        return [spelled((*parent, name)) for parent in below for name in directory.tables(parent)]

    def list_namespaces(self, parent: str | None = None) -> list[str]:
        """List the names of the namespaces below another one, or of the root.

        Args:
            parent: Its name; None for the root.

        Raises:
            NamespaceNotFound: There is none of that name.

        Example:
            >>> import pennon, tempfile
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> lake.list_namespaces()
            ['shop']
        """
        start = () if parent is None else parts_of(self._catalog, parent)
        return [spelled(child) for child in Directory(self._catalog).namespaces(start)]

    def create_namespace(self, name: str, *, exist_ok: bool = False) -> None:
        """Create a namespace.

        Args:
            name: Its name.
            exist_ok: Whether it is no error that there is one.

        Raises:
            NamespaceAlreadyExists: There is one of that name.
            NamespaceNotFound: The one above it is missing.

        Example:
            >>> import pennon, tempfile
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> lake.create_namespace("shop", exist_ok=True)
            >>> lake.list_namespaces()
            ['shop']
        """
        Directory(self._catalog).create_namespace(
            parts_of(self._catalog, name), {}, if_not_exists=exist_ok
        )

    def drop_namespace(self, name: str, *, cascade: bool = False) -> None:
        """Drop a namespace.

        Args:
            name: Its name.
            cascade: Whether what is in it goes, too: tables with their files.

        Raises:
            NamespaceNotFound: There is none of that name.
            NamespaceNotEmpty: There is something in it.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> orders = lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
            >>> lake.drop_namespace("shop", cascade=True)
            >>> lake.list_namespaces()
            []
        """
        table_ddl.drop_namespace(self._catalog, parts_of(self._catalog, name), cascade=cascade)

    def __repr__(self) -> str:
        """Name the root."""
        return f"Lake({self.root!r})"

    def _repr_html_(self) -> str:
        names = self.list_tables()
        rows = [_row(self._catalog, name) for name in names[:_SHOWN_IN_HTML]]
        most = max((row[2] or 0 for row in rows), default=0)
        cells = ((name, fields, Bar(count, most)) for name, fields, count in rows)
        more = f"<p>… {len(names):,} in all</p>" if len(rows) < len(names) else ""
        header = ("table", "partitioned by", "rows")
        return f"<p>{escape(repr(self))}</p>{html_table(header, cells)}{more}"


_SHOWN_IN_HTML: Final = 20


def _row(catalog: Catalog, name: str) -> tuple[str, str, int | None]:
    """Tell of a table by what partitions it and its rows; the reason, where it cannot be read."""
    try:
        snapshot = load(catalog, parts_of(catalog, name)).snapshot
        fields = ", ".join(partitioned_by(snapshot.current_spec, snapshot.schema))
        return name, fields, plan_scan(snapshot).num_rows
    except PennonError as error:
        return name, str(error), None
