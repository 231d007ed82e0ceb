"""The commands that show a lake and its tables: they parse arguments, call and print."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pennon
from pennon.catalog.configured_catalog import is_local, stated_place
from pennon.cli.output import print_line, print_table, progress_line, table_picture
from pennon.draft import open_snapshot
from pennon.errors import (
    NamespaceHasNoManifest,
    NotPartitionedNamespace,
    PennonError,
    RootNotFound,
    TableNotFound,
)
from pennon.maintenance.checks.check_manifest import CHECK, check
from pennon.maintenance.checks.findings import CheckReport, Severity
from pennon.maintenance.procedures import PROCEDURES
from pennon.manifest.table_identity import STRONG, WEAK

if TYPE_CHECKING:
    from pennon.maintenance.calls.procedure_declaration import Parameter, Procedure
    from pennon.manifest.versions.history import HistoryEntry
    from pennon.manifest.versions.tags import Tag
    from pennon.namespace import Lake, PartitionedNamespace
    from pennon.planning import ScanPlan

__all__ = [
    "Commands",
    "add_root",
    "add_storage",
    "add_table_commands",
    "add_upkeep_commands",
    "lake_of",
    "pair",
    "pairs",
    "positive",
]

# The table argument of a command: ``--root lake shop.orders``, or a path.

Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it


def add_table(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Add the table, the root and the storage options to a command."""
    parser.add_argument(
        "table",
        nargs="?" if is_optional else None,
        help="its name below --root, as shop.orders; or the path or URL of its folder",
    )
    add_root(parser, None)
    add_storage(parser)


def add_root(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Add the root to a command."""
    here = "" if default is None else " (default: here)"
    parser.add_argument("--root", default=default, help=f"folder or URL of the lake{here}")


def add_storage(parser: argparse.ArgumentParser) -> None:
    """Add storage options to a command."""
    parser.add_argument(
        "--storage",
        action="append",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="storage option for Lance; may be repeated",
    )


def positive(text: str) -> int:
    """Read a number of at least 1.

    Raises:
        argparse.ArgumentTypeError: It is smaller.
    """
    number = int(text)
    if number < 1:
        message = f"{text} is not at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


def moment(text: str) -> datetime:
    """Read a time in ISO 8601; without a zone it is one of UTC.

    Raises:
        argparse.ArgumentTypeError: It is none.

    Example:
        >>> print(moment("2026-11-21T10:00"))
        2026-11-21 10:00:00+00:00
    """
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r} is no time as 2026-11-21T10:00"
        raise argparse.ArgumentTypeError(message) from error
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def pair(text: str) -> tuple[str, str]:
    """Read ``KEY=VALUE``.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        message = f"{text!r} is not KEY=VALUE"
        raise argparse.ArgumentTypeError(message)
    return key, value


def pairs(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Bring the pairs of one option together; the last one of a key holds."""
    return dict(given)


def opened(options: argparse.Namespace, version: str | None = None) -> PartitionedNamespace:
    """Open the table that a command is about.

    Args:
        options: With ``table``, ``root`` and ``storage``.
        version: A version of it or a tag; None for the newest.

    Raises:
        TableNotFound: There is none of that name.
        PennonError: Nothing readable is at the path.
    """
    if options.root is not None:
        return lake_of(options).load_table(options.table, version)
    _check_path(options.table)
    return pennon.open(options.table, version, pairs(options.storage))


def location_of(options: argparse.Namespace) -> str:
    """Give the path or URL of the table that a command is about, which need not be readable.

    Args:
        options: As in ``opened``.

    Raises:
        TableNotFound: There is none of that name.
    """
    if options.root is not None:
        return lake_of(options).location_of(options.table)
    _check_path(options.table)
    return stated_place(options.table)


def lake_of(options: argparse.Namespace) -> Lake:
    """Connect to the root that a command names.

    A statement of SQL makes a root that is missing; a command finds there nothing to show.

    Raises:
        RootNotFound: It is a local path where no folder is.
    """
    root = stated_place(options.root, "root")
    if is_local(root) and not Path(root).exists():
        raise RootNotFound(root=root)
    return pennon.connect(options.root, storage_options=pairs(options.storage))


def say_no_tables(root: str) -> None:
    """Say that a lake has no tables, where the list of them would stand empty."""
    print(f"There are no tables below {stated_place(root, 'root')}.", file=sys.stderr)


def _check_path(name: str) -> None:
    if is_local(name) and "/" not in name and not Path(name).exists():
        near = "there is no folder of that name; a table's name needs --root"
        raise TableNotFound(table=name, near=near)


_MOST_PARTITIONS = 100


def add_table_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the commands to the parser of ``pennon``."""
    _add_tables(commands)
    _add_describe(commands)
    _add_plan(commands)
    _add_history(commands)
    _add_tag(commands)
    _add_register(commands)


def _add_tables(commands: Commands[argparse.ArgumentParser]) -> None:
    tables = commands.add_parser("tables", help="list the tables of a lake")
    add_root(tables, ".")
    tables.add_argument("namespace", nargs="?", help="only those of this namespace")
    tables.add_argument("--json", action="store_true", help="print JSON")
    add_storage(tables)
    tables.set_defaults(run=_tables)


def _add_describe(commands: Commands[argparse.ArgumentParser]) -> None:
    describe = commands.add_parser("describe", help="show columns, partition specs and size")
    add_table(describe)
    describe.add_argument("--version", dest="at", help="a version of it, or a tag")
    describe.add_argument("--json", action="store_true", help="print JSON")
    describe.set_defaults(run=_describe)


def _add_plan(commands: Commands[argparse.ArgumentParser]) -> None:
    plan = commands.add_parser("plan", help="show which partitions a predicate needs")
    add_table(plan)
    plan.add_argument("predicate", help="a condition in Spark SQL")
    plan.add_argument("--version", dest="at", help="a version of it, or a tag")
    plan.add_argument("--json", action="store_true", help="print JSON")
    plan.set_defaults(run=_plan)


def _add_history(commands: Commands[argparse.ArgumentParser]) -> None:
    history = commands.add_parser("history", help="show what made the versions of a table")
    add_table(history)
    history.add_argument("--limit", type=positive, metavar="N", help="only the newest ones")
    history.add_argument("--json", action="store_true", help="print JSON")
    history.set_defaults(run=_history)


def _add_tag(commands: Commands[argparse.ArgumentParser]) -> None:
    tag = commands.add_parser("tag", help="name a version of a table; without a name, list tags")
    add_table(tag)
    tag.add_argument("name", nargs="?", help="the tag")
    tag.add_argument("--version", dest="at", type=int, help="the version (default: the newest)")
    tag.add_argument("--retain-days", type=positive, metavar="N", help="expires after so long")
    tag.add_argument("--replace", action="store_true", help="move a tag that is there")
    tag.add_argument("--drop", action="store_true", help="remove the tag")
    tag.add_argument("--json", action="store_true", help="print the list as JSON")
    tag.set_defaults(run=_tag, usage=tag.error)


def _add_register(commands: Commands[argparse.ArgumentParser]) -> None:
    register = commands.add_parser("register", help="give a name to a table that is there")
    register.add_argument("table", help="the name, in a namespace that is there: shop.orders")
    register.add_argument("path", help="path or URL of the table, or its place below the root")
    add_root(register, ".")
    add_storage(register)
    register.set_defaults(run=_register)


def _tables(options: argparse.Namespace) -> int:
    names = lake_of(options).list_tables(options.namespace)
    if options.json:
        print(json.dumps(names, indent=2))
        return 0
    for name in names:
        print(name)
    if not names:
        say_no_tables(options.root)
    return 0


def _describe(options: argparse.Namespace) -> int:
    namespace = opened(options, version=options.at)
    plan = namespace.scan().plan()
    if options.json:
        print(json.dumps(_description(namespace, plan), indent=2))
        return 0
    for line in table_picture(namespace, plan, _specs(namespace), _mode(namespace)):
        print(line)
    return 0


def _history(options: argparse.Namespace) -> int:
    rows = []
    entries = opened(options).history(options.limit)
    if options.json:
        print(json.dumps([_entry(entry) for entry in entries], indent=2))
        return 0
    for entry in entries:
        record = entry.record
        counts = (None, None) if record is None else (record.added_rows, record.removed_rows)
        added, removed = (None if count is None else f"{count:,}" for count in counts)
        moment = f"{entry.committed_at:%Y-%m-%d %H:%M:%S}"
        user = None if record is None else record.identity.user
        rows.append([str(entry.version), moment, entry.operation, added, removed, user])
    names = ["version", "committed at (UTC)", "operation", "added", "removed", "user"]
    print_table(names, [True, False, False, True, True, False], rows, print)
    return 0


def _entry(entry: HistoryEntry) -> dict[str, object]:
    record = entry.record
    return {
        "version": entry.version,
        "committed_at": entry.committed_at.isoformat(),
        "operation": entry.operation,
        "added_rows": None if record is None else record.added_rows,
        "removed_rows": None if record is None else record.removed_rows,
        "user": None if record is None else record.identity.user,
    }


def _register(options: argparse.Namespace) -> int:
    table = lake_of(options).register_table(options.table, options.path)
    print(f"{table.name} is at {table.location}, version {table.version}")
    return 0


def _tag(options: argparse.Namespace) -> int:
    if options.drop and options.name is None:
        options.usage("--drop needs the name of a tag")
    namespace = opened(options)
    if options.name is None:
        _show_tags(namespace.tags().values(), is_json=options.json)
    elif options.drop:
        namespace.drop_tag(options.name)
        print(f"tag {options.name} is removed")
    else:
        retain = None if options.retain_days is None else timedelta(days=options.retain_days)
        version = namespace.create_tag(
            options.name, options.at, retain=retain, replace=options.replace
        )
        print(f"tag {options.name} names version {version}")
    return 0


def _show_tags(tags: Iterable[Tag], *, is_json: bool) -> None:
    if is_json:
        shown = [
            {
                "name": tag.name,
                "version": tag.version,
                "set_at": tag.set_at.isoformat(),
                "retain_seconds": None if tag.retain is None else tag.retain.total_seconds(),
            }
            for tag in tags
        ]
        print(json.dumps(shown, indent=2))
        return
    rows = [
        [
            tag.name,
            str(tag.version),
            f"{tag.set_at:%Y-%m-%d %H:%M:%S}",
            None if tag.retain is None else str(tag.retain),
        ]
        for tag in tags
    ]
    names = ["tag", "version", "set at (UTC)", "retained for"]
    print_table(names, [False, True, False, False], rows, print)


def _mode(namespace: PartitionedNamespace) -> str:
    if namespace.is_draft:
        return f"older draft, read only: pennon migrate {namespace.location}"
    return "strong transactions" if namespace.snapshot.is_strong else "weak transactions"


def _description(namespace: PartitionedNamespace, plan: ScanPlan) -> dict[str, object]:
    snapshot = namespace.snapshot
    return {
        "location": namespace.location,
        "version": namespace.version,
        "transaction": STRONG if snapshot.is_strong else WEAK,
        "is_draft": namespace.is_draft,
        "comment": snapshot.comment,
        "columns": {column.name: str(column.type) for column in namespace.schema},
        "specs": _specs(namespace),
        "properties": dict(snapshot.properties),
        "partitions": plan.table.num_rows,
        "rows": plan.num_rows,
        "bytes": plan.num_bytes,
    }


def _specs(namespace: PartitionedNamespace) -> dict[int, dict[str, str]]:
    schema = namespace.snapshot.schema

    def source(field_id: int) -> str:
        return str(schema.field_by_id(field_id) or f"<dropped column {field_id}>")

    return {
        version: {
            field.field_id: field.derivation.sql([source(number) for number in field.source_ids])
            for field in spec.fields
        }
        for version, spec in namespace.specs.items()
    }


def _plan(options: argparse.Namespace) -> int:
    from pennon.planning.reports.explain import scan_report  # noqa: PLC0415 - only this command needs it

    namespace = opened(options, version=options.at)
    plan = namespace.scan(options.predicate).plan()
    if options.json:
        print(json.dumps(_plan_object(plan), indent=2))
        return 0
    for item, text in scan_report(plan):
        print(f"{item}: {text}")
    print(f"manifest: {plan.manifest_sql}")
    for at, partition in enumerate(plan.partitions):
        if at == _MOST_PARTITIONS:
            print(f"… and {len(plan.partitions) - at} more")
            break
        values = ", ".join(f"{name}={value}" for name, value in _texts(partition.values).items())
        print(f"  {partition.location}  {values or '(no partition field)'}")
        rest = f", filter {partition.residual}" if partition.residual else ""
        print(f"    version {partition.version}, rows {_or_unknown(partition.num_rows)}{rest}")
    return 0


def _plan_object(plan: ScanPlan) -> dict[str, object]:
    partitions = [
        {
            "object_id": partition.object_id,
            "location": partition.location,
            "version": partition.version,
            "values": _texts(partition.values),
            "residual": partition.residual,
            "rows": partition.num_rows,
            "bytes": partition.num_bytes,
        }
        for partition in plan.partitions
    ]
    return {
        "manifest_sql": plan.manifest_sql,
        "partitions_total": plan.partitions_total,
        "partitions": partitions,
    }


def _texts(values: Mapping[str, object]) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in values.items()}


def _or_unknown(value: object) -> str:
    return "unknown" if value is None else str(value)


_MOST_FINDINGS: Final = 200
# Annotation of a parameter → how its option is read.
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "str": {"metavar": "TEXT"},
    "int": {"type": int, "metavar": "N"},
    "bool": {"action": "store_true"},
    "datetime": {"type": moment, "metavar": "TIME"},
    "Sequence[str]": {"nargs": "+", "default": [], "metavar": "NAME"},
    "Mapping[str, str]": {
        "nargs": "+",
        "action": "extend",
        "default": [],
        "type": pair,
        "metavar": "NAME=VALUE",
    },
}


def add_upkeep_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add a command for every procedure that has one to the parser of ``pennon``."""
    for procedure in PROCEDURES.values():
        if procedure.command:
            _add(commands, procedure)


def _add(commands: Commands[argparse.ArgumentParser], procedure: Procedure[Any]) -> None:
    purpose = procedure.description[:1].lower() + procedure.description[1:].rstrip(".")
    is_check = procedure is CHECK
    of_all = "; without a table, all of the root" if is_check else ""
    parser = commands.add_parser(procedure.command, help=purpose + of_all)
    if (option := procedure.options.get("table")) is None:
        add_table(parser, is_optional=is_check)
    else:
        meaning = "its name below --root, or its path"
        parser.add_argument(option, dest="table", required=True, metavar="TABLE", help=meaning)
        add_root(parser, None)
        add_storage(parser)
    one = parser.add_mutually_exclusive_group(required=True) if procedure.one_of else parser
    for parameter in procedure.own_parameters:
        target = one if parameter.name in procedure.one_of else parser
        _add_option(target, parameter, procedure.options.get(parameter.name))
    if is_check:
        parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_check if is_check else partial(_run, procedure))


def _add_option(
    parser: argparse._ActionsContainer, parameter: Parameter, option: str | None
) -> None:
    how, meaning = dict(_OPTIONS[parameter.kind]), parameter.meaning.replace("%", "%%")
    if parameter.least == 1:
        how["type"] = positive
    if parameter.kind == "datetime":
        meaning += "; TIME is as 2026-11-21T10:00 (UTC)"
    if parameter.choices:
        how = {"choices": parameter.choices}
    if parameter.is_required:
        how.pop("metavar", None)
        parser.add_argument(parameter.name, help=meaning, **how)
    else:
        name = option or "--" + parameter.name.replace("_", "-")
        parser.add_argument(name, dest=parameter.name, help=meaning, **how)


def _run(procedure: Procedure[Any], options: argparse.Namespace) -> int:
    arguments: dict[str, object] = {}
    for parameter in procedure.own_parameters:
        value = getattr(options, parameter.name)
        if value not in (None, []):
            is_mapping = parameter.kind == "Mapping[str, str]"
            arguments[parameter.name] = pairs(value) if is_mapping else value
    location = location_of(options)
    storage = pairs(options.storage)
    with progress_line() as progress:
        done = procedure.run(
            arguments, location=location, storage_options=storage, progress=progress
        )
    for line in procedure.told_lines(location, done, arguments):
        print_line(line)
    return 1 if arguments.get("dry_run") and procedure.finds(done) else 0


def _check(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        reports = [
            check(location, pairs(options.storage), version=options.version, progress=progress)
            for location in _checked(options)
        ]
    are_valid = bool(reports) and all(report.is_valid for report in reports)
    if options.json:
        shown = [report.to_object() for report in reports]
        one = options.table is not None and len(shown) == 1
        print_line(json.dumps(shown[0] if one else shown, indent=2, ensure_ascii=False))
    else:
        for report in reports:
            _show(report)
    if not reports:  # a root that was mistyped must not pass for a healthy one
        say_no_tables(options.root)
    return 0 if are_valid else 1


def _checked(options: argparse.Namespace) -> list[str]:
    """Give the locations to check: one table, or all of a root."""
    if options.table is not None:
        location = location_of(options)
        if options.root is not None or not _is_root(location, options):
            return [location]
        options.root, options.table = location, None
    if options.root is None:
        options.root = "."
    lake = lake_of(options)
    return [lake.location_of(name) for name in lake.list_tables()]


def _is_root(location: str, options: argparse.Namespace) -> bool:
    """Tell whether a path is no table, but a root with tables below it."""
    try:
        open_snapshot(location, None, None, pairs(options.storage))
    except NotPartitionedNamespace:
        return True
    except NamespaceHasNoManifest:
        lake = pennon.connect(location, storage_options=pairs(options.storage))
        return bool(lake.list_tables())
    except PennonError:
        return False
    return False


def _show(report: CheckReport) -> None:
    order = {severity: at for at, severity in enumerate(Severity)}
    findings = sorted(report.findings, key=lambda finding: order[finding.severity])
    for finding in findings[:_MOST_FINDINGS]:
        print_line(str(finding))
    if len(findings) > _MOST_FINDINGS:
        print_line(f"… and {len(findings) - _MOST_FINDINGS} more; --json prints all")
    print_line(
        f"{report.location} at version {report.version}: {report.leaves} leaves,"
        f" {report.rows} rows checked, {len(report.violations)} violations"
    )
