"""The table of procedures that CALL runs: name, parameters, result columns, function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennon.catalog.configured_catalog import absolute_place, is_path
from pennon.catalog.ddl.register import register_table
from pennon.catalog.directory import Directory
from pennon.catalog.failures_by_name import by_name
from pennon.catalog.table_name import parts_of, spelled
from pennon.errors import NamespaceHasNoManifest, PlainDatasetRefused, UnknownProcedure
from pennon.maintenance.adoption.given_values import path_values
from pennon.maintenance.adoption.split import adopt_or_split
from pennon.maintenance.calls.procedure_call import Arguments, ProcedureCall
from pennon.maintenance.calls.procedure_signature import Parameter, Procedure, Rows
from pennon.maintenance.calls.procedures_of_iceberg import instead_of
from pennon.maintenance.calls.version_procedures import TABLE, VERSION_PROCEDURES
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

__all__ = ["PROCEDURES", "Answer", "Parameter", "Procedure", "call", "find_procedure"]


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


def _check(call: ProcedureCall) -> Rows:
    report = check(call.location, call.storage)
    return tuple(
        (str(finding.severity), finding.section, finding.where, finding.problem)
        for finding in report.findings
    )


def _repair(call: ProcedureCall) -> Rows:
    done = repair(
        call.location,
        call.storage,
        dry_run=call.flag("dry_run"),
        keep_whole_files=call.flag("keep_whole_files"),
    )
    columns, keys, notes = ", ".join(done.columns), ", ".join(done.keys), "; ".join(done.notes)
    mended = "\n".join(done.rows)
    return ((done.version, columns, keys, done.from_version, done.leaves_read, notes, mended),)


def _adopt(call: ProcedureCall) -> Rows:
    snapshot = Snapshot.open(call.location, storage_options=call.storage)
    done = adopt_or_split(
        snapshot,
        absolute_place(call.text("path")),
        path_values(call.text("partition_values")),
        is_split=call.flag("split"),
        move=call.flag("move"),
    )
    return tuple(
        (leaf.dataset, leaf.object_id, leaf.location, leaf.values, leaf.num_rows, leaf.version)
        for leaf in done
    )


def _migrate(call: ProcedureCall) -> Rows:
    done = migrate(call.location_of("path"), call.storage, remove_old=call.flag("remove_old"))
    return ((done.version, done.leaves, done.rows, "; ".join(done.notes)),)


def _expire(call: ProcedureCall) -> Rows:
    is_dry = call.flag("dry_run")
    done = expire(
        call.location,
        call.storage,
        older_than=call.moment("older_than"),
        retain_last=call.number("retain_last"),
        dry_run=is_dry,
    )
    counts = (len(done.versions), done.leaf_versions, done.num_files, done.num_bytes)
    versions = ", ".join(map(str, done.versions)) if is_dry else None
    files = "\n".join(done.files) if is_dry else None
    return ((*counts, versions, files, "; ".join(done.notes)),)


def _vacuum(call: ProcedureCall) -> Rows:
    is_dry = call.flag("dry_run")
    done = vacuum(call.location, call.storage, older_than=call.moment("older_than"), dry_run=is_dry)
    listed = "\n".join(done.files) if is_dry else None
    notes = "; ".join(done.notes)
    return ((len(done.files), done.num_bytes, len(done.leaves), listed, notes),)


def _compact(call: ProcedureCall) -> Rows:
    is_dry = call.flag("dry_run")
    done = compact(
        call.location,
        call.storage,
        where=call.optional_text("where"),
        time_zone=call.time_zone,
        target_bytes=call.number("target_bytes") or DEFAULT_TARGET_BYTES,
        strategy=(call.text("strategy") or "binpack").lower(),
        dry_run=is_dry,
    )
    counts = (done.leaves, done.files_before, done.files_after, done.num_rows, done.version)
    listed = "\n".join(done.partitions) if is_dry else None
    return ((*counts, listed, "; ".join(done.notes)),)


def _analyze(call: ProcedureCall) -> Rows:
    done = analyze(
        call.location,
        call.storage,
        columns=call.columns("columns"),
        where=call.optional_text("where"),
        time_zone=call.time_zone,
    )
    return ((len(done.partitions), done.num_rows, done.version, "; ".join(done.notes)),)


def _rewrite_partitions(call: ProcedureCall) -> Rows:
    is_dry = call.flag("dry_run")
    done = rewrite_partitions(
        call.location,
        call.storage,
        where=call.optional_text("where"),
        time_zone=call.time_zone,
        dry_run=is_dry,
    )
    listed = "\n".join(done.partitions) if is_dry else None
    counts = (len(done.partitions), done.num_rows, done.spec_version, done.version)
    return ((*counts, listed, "; ".join(done.notes)),)


def _register_table(call: ProcedureCall) -> Rows:
    parts = parts_of(call.catalog, call.text("table"))
    done = register_table(call.catalog, parts, call.text("path"))
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
            "Mend what foreign clients, clean-ups and lost files did to a table.",
            (TABLE, Parameter("dry_run", "boolean"), Parameter("keep_whole_files", "boolean")),
            {
                "version": "long",
                "restored_columns": "string",
                "restored_keys": "string",
                "from_version": "long",
                "leaves_read": "long",
                "notes": "string",
                "mended_rows": "string",
            },
            _repair,
            renews_table=True,
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
            renews_table=True,
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
            renews_table=True,
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
            renews_table=True,
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
            renews_table=True,
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
            renews_table=True,
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


def find_procedure(name: str) -> Procedure:
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
        why = f"there is none{instead_of(stated, callable_names)}"
        raise UnknownProcedure(procedure=name, why=why, known=", ".join(callable_names))
    return PROCEDURES[stated]


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
    stated = ProcedureCall(catalog, called.checked(arguments), time_zone)
    if TABLE not in called.parameters:
        return Answer(called.schema, called.run(stated))
    table = _within(catalog, stated.text("table"), namespace)
    of_table = stated.of_table(table)
    full = catalog.full_name(parts_of(catalog, table))
    try:
        with by_name(full):
            rows = called.run(of_table)
    except NamespaceHasNoManifest as error:
        plain_dataset(of_table.location, catalog.storage, error)
        raise PlainDatasetRefused(procedure=called.name, table=full) from error
    # A dry run changes nothing, and what it looks at may be too damaged to be read.
    is_changed = called.renews_table and not stated.flag("dry_run")
    return Answer(called.schema, rows, (full,) if is_changed else ())


def _within(catalog: Catalog, table: str, namespace: tuple[str, ...]) -> str:
    """Give a table's name with the namespace that a name alone means."""
    name = table.replace("`", "")
    parts = parts_of(catalog, table)
    if not namespace or parts != (name,) or not name or is_path(name):
        return table
    directory = Directory(catalog)
    within = (*namespace, name)
    return table if not directory.find(within) and directory.find(parts) else spelled(within)
