"""A table as SQL names it: a partitioned namespace or a plain dataset at one version."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.caching import LOOK
from pennon.catalog.configured_catalog import Catalog, absolute_place, is_path
from pennon.catalog.directory import Directory
from pennon.catalog.failures_by_name import by_name
from pennon.catalog.layouts import StoredTable, stored_table
from pennon.catalog.layouts.plain_snapshot import open_plain
from pennon.catalog.partitioning import partitioning
from pennon.catalog.table_name import parts_of
from pennon.catalog.tables.opened_location import DROPPED, open_location
from pennon.draft import open_snapshot
from pennon.errors import (
    NamespaceHasNoManifest,
    TableFilesGone,
    TableMadeAnew,
    TableNotFound,
    TableVersionNotFound,
)
from pennon.leaf.read.metadata_columns import ROW_ID_COLUMNS, metadata_columns
from pennon.manifest import Snapshot
from pennon.manifest.partition_struct import struct_fields
from pennon.manifest.table_identity import check_same_table, table_id
from pennon.manifest.table_layout import TableLayout
from pennon.manifest.versions.tags import MAIN, listed_names, tags_of
from pennon.predicate.values.time_units import EPOCH
from pennon.spec.column_names import hiding_column

if TYPE_CHECKING:
    from pennon.catalog.directory import Name

__all__ = ["Table", "load", "reopen", "reopen_newest"]

_LAST_VERSION = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table at one version.

    Args:
        name: Its full name, or its path.
        identifier: The parts below the catalog.
        snapshot: What is read.
        is_managed: Whether the catalog chose its location, so that no DDL need state it.
        look: Tells this look at the table from the next one.
    """

    name: str
    identifier: Name
    snapshot: Snapshot
    is_managed: bool = False
    look: str = field(default_factory=lambda: secrets.token_hex(8), repr=False, compare=False)

    @property
    def stored(self) -> StoredTable:
        """What can be done to it, however it is stored."""
        return stored_table(self.name, self.snapshot)

    @property
    def identity(self) -> str:
        """What distinguishes the table at this version from another one that was at its location.

        Where the manifest leaves the versions of leaves open, it distinguishes the queries as well:
        the next one looks at the leaves anew.
        """
        identity = self.snapshot.identity
        return identity if self.snapshot.names_leaf_versions else f"{identity}{LOOK}{self.look}"

    @property
    def table_id(self) -> str | None:
        """What is the same at all versions of the table, and no other's; None where nothing is.

        Spark asks by it whether a table that a query was made for has been made anew.
        """
        if not self.stored.has_manifest:
            return None
        return table_id(self.snapshot)

    @property
    def metadata_columns(self) -> pa.Schema:
        """The columns beside the table's own."""
        return pa.schema(metadata_columns(struct_fields(self.snapshot), self.snapshot.schema.arrow))

    @property
    def row_id(self) -> tuple[str, ...]:
        """The metadata columns that name a row; none where a column's name stands in the way."""
        return ROW_ID_COLUMNS if hiding_column(self.snapshot.schema.arrow.names) is None else ()

    @property
    def partitioning(self) -> tuple[dict[str, object], ...]:
        """The current spec as Spark's transforms."""
        return partitioning(self.snapshot.current_spec, self.snapshot.schema)

    @property
    def properties(self) -> dict[str, str]:
        """The user's properties, and Spark's reserved ones: comment, provider, location."""
        shown = {
            **self.snapshot.properties,
            "provider": "lance",
            "location": self.snapshot.location,
        }
        if self.is_managed:
            shown["is_managed_location"] = "true"
        comment = self.snapshot.comment
        return shown if comment is None else {**shown, "comment": comment}


def load(
    catalog: Catalog,
    identifier: Name,
    version: str | None = None,
    timestamp_micros: int | None = None,
) -> Table:
    """Load a table by its name or its path, now or at an earlier version.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name, or one path or URL.
        version: VERSION AS OF, a version of ``__manifest`` (of the dataset for a plain one), or the
            name of a tag, or ``main`` for the newest.
        timestamp_micros: TIMESTAMP AS OF, in microseconds since the epoch.

    Raises:
        TableNotFound: There is none.
        TableFilesGone: There is one, and its folder is gone.
        PathNotTable: The path holds something else.
        TableVersionNotFound: There is no such tag, or a plain dataset lacks the version.
    """
    timestamp = None
    if timestamp_micros is not None:
        timestamp = EPOCH + timedelta(microseconds=timestamp_micros)
    if len(identifier) == 1 and is_path(identifier[0]):
        location = absolute_place(identifier[0])
        number = _number(location, location, version, catalog.storage)
        snapshot = open_location(location, number, timestamp, catalog.storage)
        if snapshot is None:
            makes = "CREATE TABLE makes one, or save() in mode error or ignore"
            raise TableNotFound(table=location, near=f"nothing readable is there: {makes}")
        return Table(location, identifier, snapshot)
    registration = Directory(catalog).registration(identifier)
    name = catalog.full_name(identifier)
    number = _number(name, registration.location, version, catalog.storage)
    opened: Snapshot | None
    with by_name(name):
        if registration.is_partitioned:
            try:
                opened = open_snapshot(registration.location, number, timestamp, catalog.storage)
            except NamespaceHasNoManifest as error:
                raise TableFilesGone(table=name, location=registration.location) from error
        else:
            opened = open_plain(registration.location, number, timestamp, catalog.storage)
    if opened is None:
        why = f"the catalog names {registration.location}, and no dataset is there"
        raise TableNotFound(table=name, near=why)
    return Table(name, identifier, opened, catalog.is_below_root(opened.location))


def reopen(
    name: str,
    location: str,
    version: int,
    identity: str,
    storage: Mapping[str, str],
    *,
    layout: TableLayout,
) -> Snapshot:
    """Open the snapshot that an earlier load pinned.

    Args:
        name: The table's name, for errors.
        location: Path or URL.
        version: The version that was loaded.
        identity: The ``Table.identity`` that was loaded.
        storage: Given to Lance.
        layout: How it was stored.

    Raises:
        SnapshotNotFound: That version has expired.
        TableMadeAnew: Another table stands there by now.
        TableNotFound: Nothing is there any more.
        TableVersionNotFound: That version of a plain dataset has been removed.
    """
    snapshot: Snapshot | None = None
    with by_name(name):
        if layout.has_manifest:
            with contextlib.suppress(NamespaceHasNoManifest):
                snapshot = open_snapshot(location, version, None, storage)
        else:
            snapshot = open_plain(location, version, None, storage)
    if snapshot is None:
        raise TableNotFound(table=name, near=DROPPED)
    if _of_table(snapshot.identity) != _of_table(identity):
        raise TableMadeAnew(table=name, location=location)
    return snapshot


def reopen_newest(catalog: Catalog, name: str, location: str, table_id: str) -> Snapshot:
    """Open the newest version of a table that was loaded earlier.

    Args:
        catalog: The catalog.
        name: The table's name, or its path.
        location: Path or URL.
        table_id: The ``Table.table_id`` that was loaded; empty where there was none.

    Raises:
        TableMadeAnew: Another table stands there, or has the name, by now.
        TableNotFound: Nothing is there any more, and no table has the name.
    """
    snapshot = open_location(location, None, None, catalog.storage)
    if snapshot is None:
        identifier = parts_of(catalog, name)
        named = None if is_path(identifier[0]) else Directory(catalog).find(identifier)
        if named is not None and named.location != location:
            raise TableMadeAnew(table=name, location=named.location)
        raise TableNotFound(table=name, near=DROPPED)
    with by_name(name):
        check_same_table(snapshot, table_id)
    return snapshot


def _of_table(identity: str) -> str:
    """Leave away how the leaves looked."""
    return identity.partition(LOOK)[0]


def _number(
    table: str, location: str, version: str | None, storage: Mapping[str, str]
) -> int | None:
    """Give the number of a version, which may be named by a tag or ``main``."""
    if version is None:
        return None
    if not version.strip().isdecimal():
        return _tagged(table, location, version, storage)
    number = int(version)
    if number > _LAST_VERSION:
        raise TableVersionNotFound(
            table=table, asked=f"at version {version}", why="versions are numbers of 64 bits"
        )
    return number


def _tagged(table: str, location: str, name: str, storage: Mapping[str, str]) -> int:
    newest = open_location(location, None, None, storage)
    tags = {} if newest is None else tags_of(newest.manifest)
    if name not in tags:
        if newest is not None and name == MAIN:
            return newest.version
        raise TableVersionNotFound(
            table=table,
            asked=f"at version {name!r}",
            why=f"versions are whole numbers or tags, and {listed_names(tags)}",
        )
    return tags[name].version
