"""Giving a name to a table that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.catalog.ddl.new_table import check_table_name
from pennon.catalog.directory import Directory
from pennon.catalog.loaded_table import Table, load
from pennon.errors import TableAlreadyExists, UnsupportedTableChange
from pennon.manifest.table_layout import TableLayout

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Name

__all__ = ["register_table"]


def register_table(catalog: Catalog, identifier: Name, path: str) -> Table:
    """Make a partitioned namespace or a plain Lance dataset known under a name.

    Nothing of the table changes: it stays where it is, and is the catalog's from here on. DROP
    TABLE deletes its files.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name; the namespaces are there.
        path: Path or URL of the table, or its place below the root. A plain dataset has to be
            below the root, as ``lance_namespace`` has it.

    Returns:
        The table under its name.

    Raises:
        TableAlreadyExists: The name is taken, or another name of that namespace is the table's.
        NamespaceNotFound: The namespace is missing.
        InvalidTableName: The name cannot be typed or stored.
        TableNotFound: Nothing is there.
        PathNotTable: Something else is there.
        UnsupportedTableChange: It is a table of the older draft.
        CatalogRefused: The catalog takes no plain dataset at that place.

    Example:
        >>> from pennon.catalog.configured_catalog import Catalog
        >>> lake = Catalog("lance", "/data/lake")
        >>> register_table(lake, ("shop", "orders"), "1f2e_orders").name  # doctest: +SKIP
        'lance.shop.orders'

    Spec: "Physical Layout and Naming".
    """
    check_table_name(identifier)
    directory = Directory(catalog)
    directory.check_absent(identifier)
    there = load(catalog, (catalog.address(path).rstrip("/"),))
    location, layout = there.snapshot.location, there.snapshot.layout
    _check_unnamed(catalog, directory, identifier[:-1], location)
    if layout is TableLayout.DRAFT:
        raise UnsupportedTableChange(
            change="register",
            table=location,
            why="it is a table of the older draft, which the catalog knows by its place",
            advice="Migrate it first: pennon migrate",
        )
    if layout is TableLayout.PLAIN:
        directory.register_plain(identifier, location)
    else:
        directory.register(identifier, location)
    return load(catalog, identifier)


def _check_unnamed(catalog: Catalog, directory: Directory, parent: Name, location: str) -> None:
    """Refuse a second name in one namespace: dropping one would delete the other's files."""
    for name in directory.tables(parent):
        known = directory.find((*parent, name))
        if known is not None and known.location.rstrip("/") == location.rstrip("/"):
            there = f"that table, by the name {catalog.full_name((*parent, name))}"
            raise TableAlreadyExists(table=location, there=there)
