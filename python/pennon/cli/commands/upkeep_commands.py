"""The commands of procedures, made from their declarations."""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pennon
from pennon.cli.commands.table_commands import (
    Commands,
    add_root,
    add_storage,
    add_table,
    lake_of,
    location_of,
    moment,
    pair,
    pairs,
    positive,
    say_no_tables,
)
from pennon.cli.output.progress_line import progress_line
from pennon.cli.output.row_format import print_line
from pennon.draft import open_snapshot
from pennon.errors import NamespaceHasNoManifest, NotPartitionedNamespace, PennonError
from pennon.maintenance.checks.check import CHECK, check
from pennon.maintenance.checks.findings import CheckReport, Severity
from pennon.maintenance.procedures import PROCEDURES

if TYPE_CHECKING:
    from pennon.maintenance.calls.procedure_declaration import Parameter, Procedure

__all__ = ["add_upkeep_commands"]

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
