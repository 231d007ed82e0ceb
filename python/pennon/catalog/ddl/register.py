"""Registration of an existing table under a name."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from pennon.catalog.configured_catalog import is_local
from pennon.catalog.directory import Directory
from pennon.catalog.table_name import check_name
from pennon.catalog.tables.loaded_table import Table, load
from pennon.errors import PathNotTable, RegistrationRefused, TableNotFound
from pennon.manifest.dataset.storage import MANIFEST

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Name
    from pennon.catalog.layouts import StoredTable

__all__ = ["register_table"]


def register_table(catalog: Catalog, identifier: Name, path: str) -> Table:
    """Make a partitioned namespace or a plain Lance dataset known under a name.

    Nothing of the table changes: it stays where it is, and is the catalog's from here on. DROP
    TABLE deletes its files.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name; the namespaces are there.
        path: Path or URL of the table, or its place below the root. A plain dataset has to be
            right below the root, as ``lance_namespace`` has it.

    Returns:
        The table under its name.

    Raises:
        TableAlreadyExists: The name is taken.
        NamespaceNotFound: The namespace is missing.
        InvalidTableName: The name cannot be typed or stored.
        TableNotFound: Nothing is there.
        PathNotTable: Something else is there.
        RegistrationRefused: It has a name, or was given one meanwhile, is part of a table, a plain
            dataset that is not right below the root, or a table of the older draft.

    Example:
        >>> from pennon.catalog.configured_catalog import Catalog
        >>> lake = Catalog("lance", "/data/lake")
        >>> register_table(lake, ("shop", "orders"), "1f2e_orders").name  # doctest: +SKIP
        'lance.shop.orders'

    Spec: "Physical Layout and Naming".
    """
    check_name(identifier)
    directory = Directory(catalog)
    directory.check_absent(identifier)
    location = _one_spelling(catalog, catalog.address(path))
    try:
        stored = load(catalog, (location,)).stored
    except TableNotFound as error:
        near = f"nothing readable is at {location}"
        raise TableNotFound(table=catalog.full_name(identifier), near=near) from error
    _check_whole(catalog, identifier, location, stored)
    _check_unnamed(catalog, directory, identifier, location)
    stored.register(directory, identifier, location)
    try:
        # Again: of writers that all found it without a name, none but the first may go on. Two
        # that see each other both give way, for a table with two names loses its files with one.
        _check_unnamed(catalog, directory, identifier, location)
    except RegistrationRefused:
        stored.deregister(directory, identifier)
        raise
    return load(catalog, identifier)


def _one_spelling(catalog: Catalog, location: str) -> str:
    """Give a place the one path that it has, without ``.``, ``..`` and links, below the root."""
    if not is_local(location):
        scheme, _, place = location.partition("://")
        return f"{scheme}://{posixpath.normpath(place)}"
    try:
        real = os.path.realpath(location)
    except ValueError as error:
        raise PathNotTable(path=repr(location), why="no path has such characters") from error
    below = real.removeprefix(os.path.realpath(catalog.root) + "/") if catalog.is_local else real
    return real if below == real else catalog.prefix + below


def _check_whole(catalog: Catalog, identifier: Name, location: str, stored: StoredTable) -> None:
    """Refuse parts of tables, and what could be read under the name, but not be dropped."""
    if stored.snapshot.layout.is_only_read:
        why = "it is a table of the older draft, which the catalog knows by its place"
        advice = "Migrate it first: pennon migrate"
    elif stored.has_manifest:
        return
    elif location.rpartition("/")[2] == MANIFEST:
        why, advice = "it is the manifest of a namespace", "Name the folder that it is in"
    elif f"{_folder(location)}/" != catalog.prefix:
        why = "a plain dataset has to be right below the root, and a partition is no table"
        advice = "Move it there, or read it by its path"
    elif len(identifier) == 1:
        why = "a plain dataset has its name in a namespace"
        advice = "Create a namespace, and register it there"
    else:
        return
    name = catalog.full_name(identifier)
    raise RegistrationRefused(path=location, table=name, why=why, advice=advice)


def _folder(location: str) -> str:
    return location.rpartition("/")[0]


def _check_unnamed(catalog: Catalog, directory: Directory, identifier: Name, location: str) -> None:
    """Refuse a second name in the catalog: dropping one would delete the other's files."""
    for parent in directory.with_descendants(()):
        for name in directory.tables(parent):
            registered_as = (
                directory.find((*parent, name)) if (*parent, name) != identifier else None
            )
            if (
                registered_as is not None
                and _one_spelling(catalog, registered_as.location) == location
            ):
                raise RegistrationRefused(
                    path=location,
                    table=catalog.full_name(identifier),
                    why=f"it has the name {catalog.full_name((*parent, name))}",
                    advice="Use that name, or rename it",
                )
