"""Registration of an existing table under a name."""

from __future__ import annotations

import contextlib
import os
import posixpath
from typing import TYPE_CHECKING

from pennon.catalog.configured_catalog import is_local
from pennon.catalog.directory import Directory
from pennon.catalog.table_name import check_name
from pennon.catalog.tables.loaded_table import Table, load
from pennon.errors import (
    PathNotTable,
    PennonError,
    RegistrationRefused,
    SnapshotNotFound,
    StorageFailure,
    TableNotFound,
    UnsupportedTableChange,
    WriteConflict,
)
from pennon.manifest import Snapshot
from pennon.manifest.commits.commit_lookup import rewritten_leaves
from pennon.manifest.commits.root_change import confirm_schema
from pennon.manifest.dataset.storage import MANIFEST, is_conflict, storage_failure
from pennon.manifest.format.properties import REPLACED
from pennon.manifest.table_identity import change_under_way, open_commit_base
from pennon.transaction.concurrency.read_set import ReadSet
from pennon.transaction.mode_change import without_writers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Name
    from pennon.catalog.layouts import StoredTable
    from pennon.manifest.format.properties import NamedAt

__all__ = ["check_sources_stand", "register_table", "unchanged_since_read"]

# A table that another one replaces whose rows were made of it: REPLACE TABLE t AS SELECT … FROM t.
#
# Rows that were committed since the query read the table are not among the new ones, and would be
# lost; a column that was dropped since would be there again. So nothing is written to it any more
# while the name moves, and the name does not move where anything was written since. A query that
# does not read the table takes whatever comes first.
#
# A weak table keeps no versions of its partitions to compare: it is not replaced by its own rows.

_EVERY_ROW = ((),)


@contextlib.contextmanager
def unchanged_since_read(
    table: Table, reads: Sequence[tuple[str, int]], named_at: NamedAt | None = None
) -> Iterator[None]:
    """Keep a table as a query has read it until its name is another one's.

    Args:
        table: The one that is replaced.
        reads: Locations and versions of what the query read.
        named_at: Where the name is kept; None where only its implementation knows.

    Raises:
        UnsupportedTableChange: It is made of a table whose transactions are weak.
        WriteConflict: Another commit changed its rows or columns since.
        TransactionModeChanged: Its transactions are being changed.
    """
    newest = table.snapshot
    versions = sorted({version for location, version in reads if location == newest.location})
    if not versions:
        yield
        return
    if not table.stored.has_manifest:
        if versions != [newest.version]:
            raise _changed(table, "another commit changed it")
        yield
        return
    if not newest.is_strong:
        raise UnsupportedTableChange(
            change="replace the rows",
            table=table.name,
            why="the new ones are made of it, its transactions are weak, and rows that others add"
            " meanwhile would be lost",
            advice=f"CALL lance.system.set_transaction_mode('{table.name}', 'strong') first",
        )
    with without_writers(newest, REPLACED, named_at) as fence:
        for version in versions:
            _check_same(table, version, fence.snapshot)
        _keep_columns(table, fence.snapshot)
        fence.check()
        yield


def check_sources_stand(
    catalog: Catalog, identifier: Name, reads: Sequence[tuple[str, int]]
) -> None:
    """Refuse rows that were made of a table which another one has replaced since.

    It may have had the name that the new table is about to get: whoever replaced it first is not
    among what the rows are made of.

    Args:
        catalog: The catalog.
        identifier: The name.
        reads: Locations and versions of what the query read.

    Raises:
        WriteConflict: A table below the catalog's root was replaced or dropped.
    """
    for location in sorted({location for location, _ in reads}):
        if catalog.is_below_root(location) and _is_replaced(catalog, location):
            why = "the new rows are made of a table that was replaced or dropped meanwhile"
            raise WriteConflict(table=catalog.full_name(identifier), why=why)


def _is_replaced(catalog: Catalog, location: str) -> bool:
    try:
        notice = change_under_way(load(catalog, (location,)).snapshot)
    except TableNotFound:
        return True
    except PennonError:  # it is there, and what is wrong with it is nothing of this statement
        return False
    return notice is not None and notice.target == REPLACED and not notice.is_abandoned()


def _check_same(table: Table, version: int, held: Snapshot) -> None:
    try:
        read = Snapshot.open(held.location, version, storage_options=_options(held))
    except (SnapshotNotFound, StorageFailure) as error:
        raise _changed(table, f"version {version}, which it read, has expired") from error
    if not read.schema.arrow.equals(held.schema.arrow, check_metadata=True):
        raise _changed(table, "another commit changed its columns meanwhile")
    conflict = ReadSet(read, _EVERY_ROW).changed_in(
        held, lambda: rewritten_leaves(held.location, _options(held))
    )
    if conflict is not None:
        raise _changed(table, f"partition {conflict.partition}: {conflict.reason}")


def _keep_columns(table: Table, held: Snapshot) -> None:
    """Refuse every change of columns that was begun before; the fence refuses those of rows."""
    try:
        confirm_schema(open_commit_base(held), held.storage_options)
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("replace", held.location, error) from error
        raise _changed(table, "another commit changed its columns meanwhile") from error


def _options(snapshot: Snapshot) -> dict[str, str]:
    return dict(snapshot.storage_options)


def _changed(table: Table, why: str) -> WriteConflict:
    return WriteConflict(table=table.name, why=f"the new rows are made of it, and {why}")


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
