"""The procedures that CALL runs, and CALL itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.catalog.configured_catalog import is_path, near_name
from pennon.catalog.ddl.register import register_table
from pennon.catalog.directory import Directory
from pennon.catalog.table_name import by_name, parts_of, spelled
from pennon.catalog.tables.loaded_table import load, read_changes, told_changes
from pennon.errors import NamespaceHasNoManifest, PlainDatasetRefused, UnknownProcedure
from pennon.maintenance.adopt import ADOPT
from pennon.maintenance.calls.procedure_declaration import (
    Arguments,
    Column,
    Parameter,
    Procedure,
    Rows,
    columns_of,
)
from pennon.maintenance.checks.check_manifest import CHECK
from pennon.maintenance.compact import COMPACT
from pennon.maintenance.expire import EXPIRE_SNAPSHOTS
from pennon.maintenance.migrate import MIGRATE
from pennon.maintenance.plain_upkeep import plain_dataset
from pennon.maintenance.repair import REPAIR
from pennon.maintenance.rewrite_partitions import REWRITE_PARTITIONS
from pennon.maintenance.rollback import ROLLBACK, ROLLBACK_TO_TIMESTAMP
from pennon.maintenance.statistics import ANALYZE
from pennon.maintenance.vacuum import VACUUM
from pennon.manifest.table_identity import MODES
from pennon.search import refresh_indexes
from pennon.transaction.mode_change import ChangedMode, set_transaction_mode

if TYPE_CHECKING:
    from typing import Any

    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Name

__all__ = ["PROCEDURES", "SET_TRANSACTION_MODE", "Answer", "call", "find_procedure"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call of a procedure gives.

    Args:
        schema: Its columns, as the JSON of a Spark StructType.
        rows: Its rows.
        renewed: The tables whose kept rows are to be read anew, as users type them.
    """

    schema: Mapping[str, object]
    rows: Rows
    renewed: tuple[str, ...] = ()


def _changes(
    catalog: Catalog,
    identifier: Name,
    *,
    from_version: int,
    to_version: int | None = None,
    key: Sequence[str] = (),
) -> Rows:
    """Tell the changes of rows.

    Args:
        catalog: The catalog.
        identifier: The table.
        from_version: The version before the first of these commits.
        to_version: The version of the last one; left out, the newest.
        key: Columns that identify a row, so that updates are reported as such.
    """
    start = load(catalog, identifier, str(from_version))
    end = load(catalog, identifier, None if to_version is None else str(to_version))
    return tuple(told_changes(read_changes(end, start, list(key))))


def _refresh_indexes(
    catalog: Catalog, identifier: Name, *, indexes: Sequence[str] = ()
) -> tuple[tuple[int], ...]:
    """Build indexes for rows that came after them.

    Args:
        catalog: The catalog.
        identifier: The table.
        indexes: Which; left out, all.
    """
    table = load(catalog, identifier)
    return ((refresh_indexes(table.snapshot, table.name, list(indexes) or None),),)


_REFRESH_INDEXES: Final = Procedure(
    _refresh_indexes,
    "Build the indexes of a table for rows that came after them.",
    (Column("version", "long"),),
    name="refresh_indexes",
)
SET_TRANSACTION_MODE: Final = Procedure(
    set_transaction_mode,
    "Make the transactions of a table strong or weak; its rows stay where they are.",
    columns_of(ChangedMode),
    choices={"mode": MODES},
    renews_table=True,
    command="set-transaction-mode",
    said="{location} is at version {version}, with {mode} transactions",
)
_CHANGES: Final = Procedure(
    _changes,
    "Tell the rows that the commits between two versions deleted, inserted and updated.",
    (
        Column("change_type", "string"),
        Column("commit_version", "long"),
        Column("commit_timestamp", "timestamp"),
        Column("row", "string"),  # as JSON; the metadata table changes has the columns themselves
    ),
    name="changes",
)
_REGISTER_TABLE: Final = Procedure(
    register_table,
    "Give a name to a partitioned namespace or a Lance dataset that is there.",
    (
        Column("table", "string", "name"),
        Column("location", "string", "snapshot.location"),
        Column("version", "long", "snapshot.version"),
    ),
    refused=(
        Parameter(
            "metadata_file",
            instead="write path => '…' with the table's folder, which has no such file",
        ),
    ),
)

PROCEDURES: Final[Mapping[str, Procedure[Any]]] = {
    procedure.name: procedure
    for procedure in (
        CHECK,
        REPAIR,
        ADOPT,
        MIGRATE,
        EXPIRE_SNAPSHOTS,
        VACUUM,
        COMPACT,
        ANALYZE,
        REWRITE_PARTITIONS,
        _REGISTER_TABLE,
        _CHANGES,
        _REFRESH_INDEXES,
        ROLLBACK,
        ROLLBACK_TO_TIMESTAMP,
        SET_TRANSACTION_MODE,
    )
}
# Iceberg's procedures, and what does their work here.
_ALSO_CALLED: Final[Mapping[str, str]] = {
    "rewrite_data_files": "compact",
    "rewrite_position_delete_files": "compact",
    "remove_orphan_files": "vacuum",
    "rollback_to_snapshot": "rollback",
    "set_current_snapshot": "rollback",
    "compute_table_stats": "analyze",
    "compute_partition_stats": "analyze",
    "add_files": "adopt",
    "create_changelog_view": "changes",
    "register": "register_table",
}
# Other procedures of Iceberg, and why there is none here.
_NOT_NEEDED: Final[Mapping[str, str]] = {
    "ancestors_of": "SELECT * FROM <table>.history lists the versions",
    "cherrypick_snapshot": "the format has no branches to take a version from",
    "fast_forward": "the format has no branches",
    "publish_changes": "the format has no branches, and what is committed is published",
    "rewrite_manifests": "commits keep the manifest small by themselves",
    "rewrite_table_path": "its paths are relative, so that a copied folder is a table",
    "snapshot": "CREATE TABLE … AS SELECT copies a table",
}


def find_procedure(name: str) -> Procedure[Any]:
    """Give the procedure of a name, with or without ``system.`` in front.

    Raises:
        UnknownProcedure: There is none; the error lists those there are.

    Example:
        >>> find_procedure("system.Vacuum").name
        'vacuum'
    """
    stated = name.lower().removeprefix("system.")
    if stated not in PROCEDURES:
        # These two plan a query, so that the JVM answers them.
        callable_names = sorted([*PROCEDURES, "explain_join", "explain_scan"])
        why = f"there is none{_instead_of(stated, callable_names)}"
        raise UnknownProcedure(procedure=name, why=why, known=", ".join(callable_names))
    return PROCEDURES[stated]


def _instead_of(name: str, callable_names: Sequence[str]) -> str:
    """Say what to call in place of a procedure that is not there; nothing where nothing is near."""
    if name in _NOT_NEEDED:
        return f", and {_NOT_NEEDED[name]}"
    instead = _ALSO_CALLED.get(name) or near_name(name, callable_names)
    return "" if instead is None else f", did you mean {instead}"


def call(
    catalog: Catalog,
    procedure: str,
    arguments: Arguments,
    namespace: tuple[str, ...] = (),
    time_zone: str = "UTC",
) -> Answer:
    """Call a procedure.

    Args:
        catalog: The catalog that it is called in.
        procedure: Its name, ``system.`` in front or not.
        arguments: Values by parameter name.
        namespace: Where a table of one name is looked for before the root.
        time_zone: The session's, in which the times of a condition are read.

    Raises:
        UnknownProcedure: There is none of that name; the error lists those there are.
        PlainDatasetRefused: It needs a manifest, and the table has none.
        ProcedureArgument: An argument does not fit.
    """
    called = find_procedure(procedure)
    checked = called.checked(arguments)
    stated = str(checked.pop(called.table))
    table = _within(catalog, stated, namespace)
    identifier = parts_of(catalog, table)
    full = catalog.full_name(identifier)
    try:
        with by_name(full):
            result = called.run(
                checked,
                catalog=catalog,
                identifier=identifier,
                location=_location(catalog, identifier) if called.takes("location") else None,
                storage_options=catalog.storage_of(identifier),
                time_zone=time_zone,
            )
            rows = called.told_rows(result, checked)
    except NamespaceHasNoManifest as error:
        plain_dataset(_location(catalog, identifier), catalog.storage_of(identifier), error)
        raise PlainDatasetRefused(procedure=called.name, table=full) from error
    # A dry run changes nothing, and what it looks at may be too damaged to be read.
    is_changed = called.renews_table and checked.get("dry_run") is not True
    return Answer(called.schema, rows, (full,) if is_changed else ())


def _location(catalog: Catalog, identifier: Name) -> str:
    """Give the place of a table, which is named below the catalog or by its path."""
    if is_path(identifier[0]):
        return identifier[0]
    return Directory(catalog).registration(identifier).location


def _within(catalog: Catalog, table: str, namespace: tuple[str, ...]) -> str:
    """Give a table's name with the namespace that a name alone means."""
    name = table.replace("`", "")
    parts = parts_of(catalog, table)
    if not namespace or parts != (name,) or not name or is_path(name):
        return table
    directory = Directory(catalog)
    within = (*namespace, name)
    return table if not directory.find(within) and directory.find(parts) else spelled(within)
