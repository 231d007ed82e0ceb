"""The table of procedures that CALL runs: name, parameters, result columns, function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pennon.catalog.configured_catalog import is_path
from pennon.catalog.configured_catalog import plain_path as _plain
from pennon.catalog.ddl.register import register_table
from pennon.catalog.directory import Directory
from pennon.catalog.failures_by_name import by_name
from pennon.catalog.table_name import parts_of, spelled
from pennon.errors import NamespaceHasNoManifest, PlainDatasetRefused, UnknownProcedure
from pennon.maintenance.adoption.given_values import path_values
from pennon.maintenance.adoption.split import adopt_or_split
from pennon.maintenance.calls.procedure_signature import (
    TIME_ZONE,
    Arguments,
    Parameter,
    Procedure,
    Rows,
)
from pennon.maintenance.calls.procedures_of_iceberg import instead_of
from pennon.maintenance.calls.version_procedures import (
    TABLE,
    VERSION_PROCEDURES,
    located,
    moment_of,
)
from pennon.maintenance.checks.check import check
from pennon.maintenance.compact import DEFAULT_TARGET_BYTES, STRATEGIES, compact
from pennon.maintenance.expire import expire
from pennon.maintenance.migrate import migrate
from pennon.maintenance.plain_upkeep import plain_dataset
from pennon.maintenance.repair import repair
from pennon.maintenance.rewrite_partitions import rewrite_partitions
from pennon.maintenance.statistics.analyze import analyze
from pennon.maintenance.vacuum import vacuum
from pennon.manifest import Snapshot

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog

__all__ = ["PROCEDURES", "Parameter", "Procedure", "call"]


def _check(catalog: Catalog, arguments: Arguments) -> Rows:
    report = check(located(catalog, str(arguments["table"])), catalog.storage)
    return tuple(
        (str(finding.severity), finding.section, finding.where, finding.problem)
        for finding in report.findings
    )


def _repair(catalog: Catalog, arguments: Arguments) -> Rows:
    done = repair(located(catalog, str(arguments["table"])), catalog.storage)
    columns, keys, notes = ", ".join(done.columns), ", ".join(done.keys), "; ".join(done.notes)
    return ((done.version, columns, keys, done.from_version, done.leaves_read, notes),)


def _adopt(catalog: Catalog, arguments: Arguments) -> Rows:
    location = located(catalog, str(arguments["table"]))
    snapshot = Snapshot.open(location, storage_options=catalog.storage)
    values = path_values(str(arguments.get("partition_values") or ""))
    path = _plain(str(arguments["path"])).rstrip("/")
    done = adopt_or_split(
        snapshot,
        path,
        values,
        is_split=bool(arguments.get("split")),
        move=bool(arguments.get("move")),
    )
    return tuple(
        (leaf.dataset, leaf.object_id, leaf.location, leaf.values, leaf.num_rows, leaf.version)
        for leaf in done
    )


def _migrate(catalog: Catalog, arguments: Arguments) -> Rows:
    done = migrate(
        located(catalog, str(arguments["path"])),
        catalog.storage,
        remove_old=bool(arguments.get("remove_old")),
    )
    return ((done.version, done.leaves, done.rows, "; ".join(done.notes)),)


def _expire(catalog: Catalog, arguments: Arguments) -> Rows:
    retained, is_dry = arguments.get("retain_last"), bool(arguments.get("dry_run"))
    done = expire(
        located(catalog, str(arguments["table"])),
        catalog.storage,
        older_than=moment_of(arguments.get("older_than")),
        retain_last=retained if isinstance(retained, int) else None,
        dry_run=is_dry,
    )
    counts = (len(done.versions), done.leaf_versions, done.num_files, done.num_bytes)
    versions = ", ".join(map(str, done.versions)) if is_dry else None
    files = "\n".join(done.files) if is_dry else None
    return ((*counts, versions, files, "; ".join(done.notes)),)


def _vacuum(catalog: Catalog, arguments: Arguments) -> Rows:
    done = vacuum(
        located(catalog, str(arguments["table"])),
        catalog.storage,
        older_than=moment_of(arguments.get("older_than")),
        dry_run=bool(arguments.get("dry_run")),
    )
    listed = "\n".join(done.files) if arguments.get("dry_run") else None
    notes = "; ".join(done.notes)
    return ((len(done.files), done.num_bytes, len(done.leaves), listed, notes),)


def _compact(catalog: Catalog, arguments: Arguments) -> Rows:
    where, target = arguments.get("where"), arguments.get("target_bytes")
    strategy = str(arguments.get("strategy") or "binpack").lower()
    is_dry = bool(arguments.get("dry_run"))
    done = compact(
        located(catalog, str(arguments["table"])),
        catalog.storage,
        where=where if isinstance(where, str) else None,
        time_zone=str(arguments[TIME_ZONE]),
        target_bytes=target if isinstance(target, int) else DEFAULT_TARGET_BYTES,
        strategy=strategy,
        dry_run=is_dry,
    )
    counts = (done.leaves, done.files_before, done.files_after, done.num_rows, done.version)
    listed = "\n".join(done.partitions) if is_dry else None
    return ((*counts, listed, "; ".join(done.notes)),)


def _analyze(catalog: Catalog, arguments: Arguments) -> Rows:
    names, where = str(arguments.get("columns") or ""), arguments.get("where")
    done = analyze(
        located(catalog, str(arguments["table"])),
        catalog.storage,
        columns=[part.strip().strip("`") for part in names.split(",") if part.strip()],
        where=where if isinstance(where, str) else None,
        time_zone=str(arguments[TIME_ZONE]),
    )
    return ((len(done.partitions), done.num_rows, done.version, "; ".join(done.notes)),)


def _rewrite_partitions(catalog: Catalog, arguments: Arguments) -> Rows:
    where, is_dry = arguments.get("where"), bool(arguments.get("dry_run"))
    done = rewrite_partitions(
        located(catalog, str(arguments["table"])),
        catalog.storage,
        where=where if isinstance(where, str) else None,
        time_zone=str(arguments[TIME_ZONE]),
        dry_run=is_dry,
    )
    listed = "\n".join(done.partitions) if is_dry else None
    counts = (len(done.partitions), done.num_rows, done.spec_version, done.version)
    return ((*counts, listed, "; ".join(done.notes)),)


def _register_table(catalog: Catalog, arguments: Arguments) -> Rows:
    parts = parts_of(catalog, str(arguments["table"]))
    done = register_table(catalog, parts, str(arguments["path"]))
    return ((done.name, done.snapshot.location, done.snapshot.version),)


PROCEDURES: Mapping[str, Procedure] = {
    procedure.name: procedure
    for procedure in (
        Procedure(
            "check",
            "Check every rule of the format; a row for each violation.",
            (TABLE,),
            dict.fromkeys(("severity", "section", "object", "problem"), "string"),
            _check,
        ),
        Procedure(
            "repair",
            "Restore manifest columns and keys that a foreign client dropped.",
            (TABLE,),
            {
                "version": "long",
                "restored_columns": "string",
                "restored_keys": "string",
                "from_version": "long",
                "leaves_read": "long",
                "notes": "string",
            },
            _repair,
        ),
        Procedure(
            "adopt",
            "Take an existing Lance dataset, or a folder of them, into a table.",
            (
                TABLE,
                Parameter("path", is_required=True),
                # As a path has them: region=eu/day=2025-01-01
                Parameter("partition_values"),
                Parameter("move", "boolean"),
                # Copies the rows of datasets that hold several partitions.
                Parameter("split", "boolean"),
            ),
            {
                **dict.fromkeys(("dataset", "object_id", "location", "partition"), "string"),
                "rows": "long",
                "version": "long",
            },
            _adopt,
        ),
        Procedure(
            "migrate",
            "Copy a table of the older draft into the format of today.",
            (Parameter("path", is_required=True), Parameter("remove_old", "boolean")),
            {"version": "long", "leaves": "long", "rows": "long", "notes": "string"},
            _migrate,
        ),
        Procedure(
            "expire_snapshots",
            "Forget old versions of a table, and delete the files that only they need.",
            (
                TABLE,
                Parameter("older_than", "timestamp"),
                Parameter("retain_last", "long", least=1),
                Parameter("dry_run", "boolean"),
                Parameter(
                    "snapshot_ids",
                    "array<long>",
                    instead="versions expire by their age: write older_than or retain_last",
                ),
            ),
            {
                **dict.fromkeys(
                    ("expired_versions", "deleted_leaf_versions", "deleted_files", "freed_bytes"),
                    "long",
                ),
                # Numbers with commas between, and one path a line; of a dry run alone.
                **dict.fromkeys(("versions", "files", "notes"), "string"),
            },
            _expire,
        ),
        Procedure(
            "vacuum",
            "Delete files below a table that no version names.",
            (TABLE, Parameter("older_than", "timestamp"), Parameter("dry_run", "boolean")),
            {
                **dict.fromkeys(("deleted_files", "freed_bytes", "removed_leaves"), "long"),
                # One path a line, of a dry run alone.
                "files": "string",
                "notes": "string",
            },
            _vacuum,
        ),
        Procedure(
            "compact",
            "Rewrite leaves of many small files into few large ones.",
            (
                TABLE,
                Parameter("where"),
                Parameter("target_bytes", "long", least=1),
                Parameter("strategy", choices=STRATEGIES),
                Parameter("dry_run", "boolean"),
            ),
            {
                **dict.fromkeys(
                    ("leaves", "files_before", "files_after", "rows", "version"), "long"
                ),
                # One partition a line, of a dry run alone.
                "partitions": "string",
                "notes": "string",
            },
            _compact,
        ),
        Procedure(
            "analyze",
            "Count the statistics of columns that the manifest lacks.",
            (TABLE, Parameter("columns"), Parameter("where")),
            {**dict.fromkeys(("partitions", "rows", "version"), "long"), "notes": "string"},
            _analyze,
        ),
        Procedure(
            "rewrite_partitions",
            "Put the rows of partitions of older specs into partitions of the present one.",
            (TABLE, Parameter("where"), Parameter("dry_run", "boolean")),
            {
                **dict.fromkeys(
                    ("rewritten_partitions", "rows", "spec_version", "version"), "long"
                ),
                # One partition a line, of a dry run alone.
                "partitions": "string",
                "notes": "string",
            },
            _rewrite_partitions,
        ),
        Procedure(
            "register_table",
            "Give a name to a partitioned namespace or a Lance dataset that is there.",
            (
                TABLE,
                Parameter("path", is_required=True),
                Parameter(
                    "metadata_file",
                    instead="write path => '…' with the table's folder, which has no such file",
                ),
            ),
            {"table": "string", "location": "string", "version": "long"},
            _register_table,
        ),
        *VERSION_PROCEDURES,
    )
}


def call(
    catalog: Catalog,
    procedure: str,
    arguments: Arguments,
    namespace: tuple[str, ...] = (),
    time_zone: str = "UTC",
) -> tuple[Mapping[str, object], Rows]:
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
    name = procedure.lower().removeprefix("system.")
    called = PROCEDURES.get(name)
    if called is None:
        # These two plan a query, so that the JVM answers them.
        callable_names = sorted([*PROCEDURES, "explain_join", "explain_scan"])
        why = f"there is none{instead_of(name, callable_names)}"
        raise UnknownProcedure(procedure=procedure, why=why, known=", ".join(callable_names))
    checked = {**called.checked(arguments), TIME_ZONE: time_zone}
    if TABLE in called.parameters:
        table = _within(catalog, str(checked["table"]), namespace)
        full = catalog.full_name(parts_of(catalog, table))
        try:
            with by_name(full):
                return called.schema, called.run(catalog, {**checked, "table": table})
        except NamespaceHasNoManifest as error:
            plain_dataset(located(catalog, table), catalog.storage, error)
            raise PlainDatasetRefused(procedure=name, table=full) from error
    return called.schema, called.run(catalog, checked)


def _within(catalog: Catalog, table: str, namespace: tuple[str, ...]) -> str:
    """Give a table's name with the namespace that a name alone means."""
    name = table.replace("`", "")
    parts = parts_of(catalog, table)
    if not namespace or parts != (name,) or not name or is_path(name):
        return table
    directory = Directory(catalog)
    within = (*namespace, name)
    return table if not directory.find(within) and directory.find(parts) else spelled(within)
