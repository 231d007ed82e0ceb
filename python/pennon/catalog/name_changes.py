"""Atomic changes of table names: REPLACE TABLE and RENAME TABLE.

In a directory namespace each is one commit of its manifest, so that a table never has two names,
nor none. Other implementations of the interface can only forget and register: there a crash in
between leaves a table without a name, which its path still opens, and not one with two, of which
either DROP would delete the files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.catalog.table_registration import registration_of, relative_location
from pennon.errors import PennonError, WriteConflict
from pennon.manifest.format.change_notice import NamedAt
from pennon.manifest.registered_location import (
    move_registration,
    rename_registration,
    take_plain_name,
)

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Directory, Name

__all__ = ["named_at", "point_to_namespace", "replace_partitioned", "take_name"]


def named_at(catalog: Catalog, identifier: Name, location: str) -> NamedAt | None:
    """Tell where the name of a partitioned namespace is kept, for whoever has no catalog at hand.

    Args:
        catalog: The catalog.
        identifier: The name.
        location: Where it points to.

    Returns:
        None where only the implementation of the catalog knows.
    """
    if catalog.implementation != "dir":
        return None
    place = relative_location(catalog, location)
    return NamedAt(catalog.root, tuple(identifier), place)


def replace_partitioned(directory: Directory, identifier: Name, old: str, new: str) -> None:
    """Point the name of a partitioned namespace to another location.

    Args:
        directory: The catalog's.
        identifier: The name.
        old: Where it points to.
        new: Where it shall point to.

    Raises:
        WriteConflict: It points elsewhere by now.
    """
    catalog = directory.catalog
    if catalog.implementation == "dir":
        old, new = (relative_location(catalog, location) for location in (old, new))
        if not move_registration(catalog.root, identifier, old, new, catalog.storage):
            name = catalog.full_name(identifier)
            raise WriteConflict(table=name, why="another writer replaced or dropped the table")
        return
    _register_again(directory, (identifier, old), (identifier, new))


def point_to_namespace(directory: Directory, identifier: Name, old: str, new: str) -> None:
    """Point the name of a plain table to a partitioned namespace; the table's files stay.

    Args:
        directory: The catalog's.
        identifier: The name.
        old: Where the plain table is.
        new: Where the partitioned namespace is.

    Raises:
        TableAlreadyExists: Another writer replaced the table.
    """
    catalog = directory.catalog
    if catalog.implementation != "dir":
        directory.deregister_plain(identifier)
        directory.register(identifier, new)
        return
    is_taken = take_plain_name(
        catalog.root,
        identifier,
        relative_location(catalog, old),
        registration_of(catalog, new),
        catalog.storage,
    )
    if not is_taken:
        # A folder that merely lies there: a namespace of its name is found before it.
        directory.register(identifier, new)


def take_name(directory: Directory, identifier: Name, to: Name, location: str) -> None:
    """Give a partitioned namespace another name.

    Args:
        directory: The catalog's.
        identifier: The name.
        to: The new one.
        location: Where it is.

    Raises:
        WriteConflict: The table was dropped, or the new name given away, meanwhile.
    """
    catalog = directory.catalog
    if catalog.implementation == "dir":
        if not rename_registration(catalog.root, identifier, to, catalog.storage):
            name = catalog.full_name(identifier)
            why = "another writer dropped the table or took its new name"
            raise WriteConflict(table=name, why=why)
        return
    _register_again(directory, (identifier, location), (to, location))


def _register_again(directory: Directory, old: tuple[Name, str], new: tuple[Name, str]) -> None:
    """Forget a name and its location, and register others; the old ones where that fails."""
    directory.deregister(old[0])
    try:
        directory.register(*new)
    except PennonError:
        directory.register(*old)
        raise
