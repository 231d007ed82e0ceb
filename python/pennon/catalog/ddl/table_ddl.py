"""CREATE, REPLACE, DROP and RENAME of tables.

A creation is all or nothing: the namespace is made in a fresh folder, and put at its place and
registered under its name as the last step. A drop forgets the name first and deletes the files
afterwards.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow as pa

from pennon.catalog.columns.spark_types import arrow_schema, declared_columns, stored_schema
from pennon.catalog.configured_catalog import Catalog, absolute_place, is_path
from pennon.catalog.ddl.alter import changed_columns, checked_order
from pennon.catalog.ddl.register import check_sources_stand, unchanged_since_read
from pennon.catalog.ddl.statements import (
    STATEMENT,
    check_named_columns,
    check_names,
    not_supported,
)
from pennon.catalog.directory import Directory
from pennon.catalog.layouts import StoredTable, stored_table
from pennon.catalog.layouts.stored_table import named_at, take_name
from pennon.catalog.partitioning import calls_of
from pennon.catalog.table_name import check_name, relative_location
from pennon.catalog.tables.loaded_table import Table, load
from pennon.catalog.tables.table_folders import (
    delete_files,
    give_place_back,
    place_of_name,
    remove_left_beside,
    staging_place,
    staging_place_of_name,
    take_place,
)
from pennon.draft import open_snapshot
from pennon.errors import (
    NamespaceNotFound,
    NewTableRefused,
    PennonError,
    TableAlreadyExists,
    TableNotFound,
    UnsupportedTableChange,
)
from pennon.leaf import drop_dataset
from pennon.manifest import create as create_manifest
from pennon.manifest.format.properties import check_retention
from pennon.manifest.table_identity import MODES, STRONG, WEAK
from pennon.spec.column_names import check_column
from pennon.spec.evolution import spec_of
from pennon.spec.schema import NamespaceSchema
from pennon.spec.write_properties import check_isolation, check_row_change_modes

if TYPE_CHECKING:
    from pennon.catalog.directory import Name
    from pennon.manifest import Snapshot

__all__ = ["drop", "evolves_by", "publish"]

# The definition of a new table, validated before anything is written.
#
# What would be accepted and then not be so is refused: another format, a table whose files outlive
# it, a transaction mode that is none, a name that cannot be typed again.

# Spark names its own default, parquet, where saveAsTable is given no format.
_FORMATS: Final = frozenset({"lance", "pennon", "parquet"})
# Under which Spark hands STORED AS and ROW FORMAT over.
_HIVE: Final = ("hive.stored-as", "hive.input-format", "hive.output-format", "hive.serde")
# Clauses that Spark hands over as transforms: those that are none.
_CLAUSES: Final = {"cluster_by": ["CLUSTER", "BY"], "sorted_bucket": ["SORTED", "BY"]}


def check_meaning(
    catalog: str,
    table: str,
    properties: Mapping[str, str],
    transforms: Sequence[Mapping[str, object]],
) -> None:
    """Refuse CREATE VIEW, which arrives as a property, and what arrives as a transform.

    Raises:
        StatementNotSupported: It says what to type instead.
    """
    words = unquote(properties.get(STATEMENT, "")).split()
    for transform in transforms:
        words = _CLAUSES.get(str(transform.get("function")), words)
    error = not_supported(words, catalog, table)
    if error is not None:
        raise error


def check_new_table(table: str, properties: Mapping[str, str]) -> None:
    """Refuse what a table of Pennon cannot be.

    Args:
        table: The full name, for errors.
        properties: TBLPROPERTIES and Spark's reserved ones: ``provider``, ``external``, ….

    Raises:
        NewTableRefused: Another format, EXTERNAL, or a transaction mode that is none.
    """
    provider = properties.get("provider")
    if provider is not None and provider.lower() not in _FORMATS:
        raise NewTableRefused(
            table=table,
            why=f"its format would be {provider}, and this catalog stores Lance",
            advice="Leave USING out, or write USING lance",
        )
    stored = next((properties[name] for name in _HIVE if name in properties), None)
    if stored is not None:
        raise NewTableRefused(
            table=table,
            why=f"its files would be stored as {stored}, and this catalog stores Lance",
            advice="Leave STORED AS and ROW FORMAT out",
        )
    if properties.get("external", "false").lower() == "true":
        raise NewTableRefused(
            table=table,
            why="DROP TABLE deletes the files of every table, those at a LOCATION too",
            advice="Leave EXTERNAL out, or use the path as the name: lance.`/path/to/table`",
        )
    transaction = properties.get("transaction", STRONG)
    if transaction.lower() not in MODES:
        raise NewTableRefused(
            table=table,
            why=f"'transaction' = '{transaction}' is neither strong nor weak",
            advice="Write one of these, or leave the property out",
        )


# The columns that WITH SCHEMA EVOLUTION adds or widens, and how it casts the new values.


def evolves_by(name: str, snapshot: Snapshot, change: Mapping[str, object]) -> bool:
    """Whether the table follows its source in one column.

    A column that the table lacks is added, and an error then names whatever prevents it. A type is
    followed where it is wider; where it is narrower, or where partition values would change, the
    column keeps its own, and Spark casts the values as it does for every INSERT.

    Args:
        name: The table's name, for errors.
        snapshot: The table.
        change: As the protocol has it.

    Example:
        >>> evolves_by(
        ...     "shop.orders",
        ...     snapshot,
        ...     {"change": "update_type", "column": ["id"], "type": '"byte"'},
        ... )  # doctest: +SKIP
        False
    """
    if change.get("change") != "update_type":
        return True
    try:
        changed_columns(Table(name, (), snapshot), snapshot.schema, change)
    except UnsupportedTableChange:
        return False
    return True


_LOG = logging.getLogger(__name__)
RESERVED = frozenset(
    {"provider", "location", "comment", "owner", "external", "is_managed_location"}
)


def create(
    catalog: Catalog,
    identifier: Name,
    *,
    schema: object,
    transforms: Sequence[Mapping[str, object]],
    properties: Mapping[str, str],
    mode: str,
) -> Table:
    """Create a table as a partitioned namespace: stage it and publish it; as ``stage``."""
    table = stage(
        catalog,
        identifier,
        schema=schema,
        transforms=transforms,
        properties=properties,
        mode=mode,
    )
    try:
        place = publish(catalog, identifier, table.snapshot.location, mode)
    except PennonError:
        discard(catalog, identifier, table.stored)
        raise
    return table if place == table.snapshot.location else load(catalog, identifier)


def stage(
    catalog: Catalog,
    identifier: Name,
    *,
    schema: object,
    transforms: Sequence[Mapping[str, object]],
    properties: Mapping[str, str],
    mode: str,
) -> Table:
    """Make the files of a table that nobody knows yet: rows can be written to it.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name, or one path or URL.
        schema: The columns: JSON of a Spark StructType, or an Arrow schema.
        transforms: The PARTITIONED BY clause; none makes one leaf.
        properties: TBLPROPERTIES and Spark's reserved ones.
        mode: ``create``, ``replace`` or ``create_or_replace``.

    Raises:
        TableAlreadyExists: ``create`` meets a table of that name.
        TableNotFound: ``replace`` meets none.
        UnsupportedColumnType: Lance does not store a column's type.
        InvalidColumnName: A column, or a field of one, has a name that it cannot have.
        InvalidTableName: The name cannot be typed or stored.
        StatementNotSupported: CREATE VIEW, CLUSTER BY or SORTED BY.
        NewTableRefused: Another format, EXTERNAL, or a transaction mode that is none.
        WriteOrderSyntax: The property ``write.order`` is no order of these columns.
        UnknownIsolation: A property about isolation has another value than it can have.
        RowChangeModeRefused: A property asks for rows to be changed in a way that there is not.
        InvalidRetention: A property about the versions that are kept is no number it can be.
        TablePropertyRefused: A property that another format acts upon.

    Spec: "Metadata Definition", "Physical Layout and Naming".
    """
    if not _is_path(identifier):
        check_name(identifier)
    check_meaning(catalog.name, catalog.full_name(identifier), properties, transforms)
    check_new_table(catalog.full_name(identifier), properties)
    arrow = schema if isinstance(schema, pa.Schema) else arrow_schema(schema)
    arrow, properties = declared_columns(arrow, properties, catalog.full_name(identifier))
    for column in arrow:
        check_column((column.name,), column.type)
    columns = NamespaceSchema.with_fresh_ids(
        stored_schema(arrow) if isinstance(schema, pa.Schema) else arrow
    )
    spec = spec_of(columns, calls_of(transforms))
    is_strong = properties.get("transaction", STRONG).lower() != WEAK
    kept = {name: value for name, value in properties.items() if name not in RESERVED}
    check_names(catalog.full_name(identifier), kept)
    check_named_columns(catalog.full_name(identifier), kept, columns)
    kept = checked_order(kept, columns)
    check_isolation(kept)
    check_row_change_modes(kept)
    check_retention(kept)
    location = _location(catalog, identifier, properties)
    _check_name(catalog, identifier, mode)
    snapshot = create_manifest(
        location,
        columns,
        spec,
        kept,
        strong=is_strong,
        comment=properties.get("comment"),
        storage_options=catalog.storage,
    )
    remove_left_beside(catalog, location)
    if _is_path(identifier):
        return Table(absolute_place(identifier[0]), identifier, snapshot)
    return Table(
        catalog.full_name(identifier), identifier, snapshot, catalog.is_below_root(location)
    )


def publish(
    catalog: Catalog,
    identifier: Name,
    location: str,
    mode: str,
    reads: Sequence[tuple[str, int]] = (),
) -> str:
    """Make a staged table known under its name, in the place of one that is replaced.

    It may be sent again: a table that has its name by now is left as it is.

    Args:
        catalog: The catalog.
        identifier: As given to ``stage``.
        location: Where the staged table is.
        mode: As given to ``stage``.
        reads: The locations and versions of the tables that its rows are made of.

    Returns:
        Where it is now.

    Raises:
        TableAlreadyExists: ``create`` meets a table of that name.
        TableNotFound: ``replace`` meets none.
        WriteConflict: Another writer replaced or dropped the table meanwhile, or changed rows of
            it that those of the staged one are made of.
    """
    if _is_path(identifier):
        place = absolute_place(identifier[0])
        take_place(location, place)
        return place
    directory, place = Directory(catalog), place_of_name(catalog, identifier, location)
    if _is_named(directory, identifier, place):
        return place
    existing = _checked_name(catalog, identifier, mode)
    try:
        if existing is None:
            take_place(location, place)
            directory.register(identifier, place)
        else:
            at = named_at(catalog, identifier, existing.snapshot.location)
            check_sources_stand(catalog, identifier, reads)
            with unchanged_since_read(existing, reads, at):
                take_place(location, place)
                existing.stored.pass_name_on(directory, identifier, place)
    except PennonError:
        # Where a store's answer is lost, the request is repeated and meets its own first change.
        if not _is_named(directory, identifier, place):
            give_place_back(location, place)
            raise
    if existing is not None:
        delete_files(catalog, existing.stored)
    return place


def discard(catalog: Catalog, identifier: Name, table: StoredTable) -> None:
    """Delete the files of a staged table, unless its name points to them."""
    location = table.snapshot.location
    try:
        place = place_of_name(catalog, identifier, location)
        is_kept = not _is_path(identifier) and _is_named(Directory(catalog), identifier, place)
    except PennonError as error:
        _LOG.warning("files of %s stay, for who names them is not known: %s", location, error)
        return
    if not is_kept:
        delete_files(catalog, table)


def _check_name(catalog: Catalog, identifier: Name, mode: str) -> None:
    if not _is_path(identifier):
        _checked_name(catalog, identifier, mode)
        return
    if mode != "create":
        raise UnsupportedTableChange(
            change="replace the files",
            table=identifier[0],
            why="a table that is named by its path has no name to switch",
            advice="Drop it and create it again",
        )
    if _loaded(catalog, identifier) is not None:
        raise TableAlreadyExists(table=identifier[0], kind="a table")


def _checked_name(catalog: Catalog, identifier: Name, mode: str) -> Table | None:
    """Check that a name fits the mode; gives the table that would be replaced."""
    directory = Directory(catalog)
    existing = None if mode == "create" else _loaded(catalog, identifier)
    if mode == "replace" and existing is None:
        directory.registration(identifier)
    if existing is None:
        directory.check_absent(identifier)
    else:
        existing.stored.check_writable("replace")
    return existing


def drop(catalog: Catalog, identifier: Name) -> bool:
    """Drop a table with its files; False when there is none."""
    directory = Directory(catalog)
    if _is_path(identifier):
        table = _loaded(catalog, identifier)
        if table is None:
            return False
        table.stored.check_writable("drop")
        delete_files(catalog, table.stored)
        return True
    registration = directory.find(identifier)
    if registration is None:
        return False
    if not registration.is_partitioned:
        _drop_plain(catalog, identifier, registration.location)
        return True
    stored = _readable(catalog, identifier, registration.location)
    if stored is not None:
        stored.check_writable("drop")
    try:
        directory.deregister(identifier)
    except PennonError:
        if directory.find(identifier) is not None:
            raise
    if stored is not None:
        delete_files(catalog, stored)
    return True


def rename(catalog: Catalog, identifier: Name, to: Name) -> None:
    """Give a table another name; its files stay where they are.

    Raises:
        TableNotFound: There is no such table.
        TableAlreadyExists: The new name is taken.
        UnsupportedTableChange: A plain table, or one named by its path.
    """
    name = catalog.full_name(identifier)
    directory = Directory(catalog)
    if _is_path(identifier) or _is_path(to):
        raise UnsupportedTableChange(
            change="change the name",
            table=name,
            why="it is named by its path",
            advice="Move the folder",
        )
    registration = directory.registration(identifier)
    if not registration.is_partitioned:
        raise UnsupportedTableChange(
            change="change the name",
            table=name,
            why="it is a plain Lance dataset, whose name is that of its folder",
            advice="Create a table of the new name from it",
        )
    to = _below(directory, to)
    check_name(to)
    directory.check_absent(to)
    stored = _readable(catalog, identifier, registration.location)
    if stored is not None:
        stored.check_writable("rename")
    take_name(directory, identifier, to, registration.location)


def drop_namespace(catalog: Catalog, namespace: Name, *, cascade: bool) -> bool:
    """Drop a namespace, with all that is in it when ``cascade``."""
    directory = Directory(catalog)
    directory.properties(namespace)
    if cascade:
        for child in directory.namespaces(namespace):
            drop_namespace(catalog, child, cascade=True)
        for name in directory.tables(namespace):
            drop(catalog, (*namespace, name))
    directory.drop_namespace(namespace)
    return True


def _drop_plain(catalog: Catalog, identifier: Name, location: str) -> None:
    if not Directory(catalog).drop_plain(identifier):
        drop_dataset(location, catalog.storage_of(identifier))


def _readable(catalog: Catalog, identifier: Name, location: str) -> StoredTable | None:
    """Open a table; one whose files are damaged or gone can be dropped and renamed all the same."""
    with contextlib.suppress(PennonError):
        snapshot = open_snapshot(location, None, None, catalog.storage_of(identifier))
        return stored_table(catalog.full_name(identifier), snapshot)
    return None


def _below(directory: Directory, to: Name) -> Name:
    """Take the catalog's name off a new name, where it is not a namespace's as well."""
    if len(to) == 1 or to[0].lower() != directory.catalog.name.lower():
        return to
    try:
        directory.properties(to[:1])
    except NamespaceNotFound:
        return to[1:]
    return to


def _is_named(directory: Directory, identifier: Name, location: str) -> bool:
    existing = directory.find(identifier)
    return existing is not None and (
        relative_location(directory.catalog, existing.location)
        == relative_location(directory.catalog, location)
    )


def _is_path(identifier: Name) -> bool:
    return len(identifier) == 1 and is_path(identifier[0])


def _location(catalog: Catalog, identifier: Name, properties: Mapping[str, str]) -> str:
    if _is_path(identifier):
        return staging_place(absolute_place(identifier[0]))
    stated = properties.get("location")
    if stated is not None:
        return catalog.address(stated).rstrip("/")
    return staging_place_of_name(catalog, identifier)


def _loaded(catalog: Catalog, identifier: Name) -> Table | None:
    try:
        return load(catalog, identifier)
    except TableNotFound:
        return None
