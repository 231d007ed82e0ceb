"""The commands that check and repair tables: they parse arguments, call and print."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final

import pennon
from pennon.cli.commands.table_argument import (
    add_root,
    add_storage,
    add_table,
    lake_of,
    location_of,
    pair,
    pairs,
)
from pennon.cli.output.progress_line import progress_line
from pennon.draft import open_snapshot
from pennon.errors import NamespaceHasNoManifest, NotPartitionedNamespace, PennonError
from pennon.maintenance.adoption.split import adopt_or_split
from pennon.maintenance.checks.check import check
from pennon.maintenance.checks.findings import CheckReport, Severity
from pennon.maintenance.migrate import migrate
from pennon.maintenance.repair import repair
from pennon.manifest import Snapshot
from pennon.namespace.opening import absolute

__all__ = ["add_repair_commands"]

_MOST_FINDINGS: Final = 200

_Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it


def add_repair_commands(commands: _Commands[argparse.ArgumentParser]) -> None:
    """Add the commands to the parser of ``pennon``."""
    checked = _command(
        commands,
        "check",
        "check every rule of the format against the files; without a table, all of the root",
        is_optional=True,
    )
    checked.add_argument("--version", dest="at", type=int, help="a version of its __manifest")
    checked.add_argument("--json", action="store_true", help="print JSON")
    checked.set_defaults(run=_check)
    repaired = _command(commands, "repair", "restore manifest columns that a writer dropped")
    repaired.set_defaults(run=_repair)
    adopted = commands.add_parser("adopt", help="make existing Lance datasets partitions in place")
    adopted.add_argument("dataset", help="folder or URL of a Lance dataset, or of several")
    adopted.add_argument(
        "--into", required=True, metavar="TABLE", help="its name below --root, or its path"
    )
    add_root(adopted, None)
    add_storage(adopted)
    adopted.add_argument(
        "--values",
        nargs="+",
        action="extend",
        default=[],
        type=pair,
        metavar="NAME=VALUE",
        help="partition values, by partition field or source column",
    )
    adopted.add_argument("--move", action="store_true", help="move datasets into the namespace")
    adopted.add_argument(
        "--split", action="store_true", help="copy the rows into the partitions they belong to"
    )
    adopted.set_defaults(run=_adopt)
    migrated = _command(commands, "migrate", "bring a namespace of the older draft to this format")
    migrated.add_argument("--weak", action="store_true", help="leaves are read at their newest")
    migrated.add_argument("--remove-old", action="store_true", help="remove the draft's rows")
    migrated.set_defaults(run=_migrate)


def _command(
    commands: _Commands[argparse.ArgumentParser],
    name: str,
    purpose: str,
    *,
    is_optional: bool = False,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=purpose)
    add_table(parser, is_optional=is_optional)
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _check(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        reports = [
            check(location, pairs(options.storage), version=options.at, progress=progress)
            for location in _checked(options)
        ]
    are_valid = all(report.is_valid for report in reports)
    if options.json:
        shown = [report.to_object() for report in reports]
        one = options.table is not None and len(shown) == 1
        _say(json.dumps(shown[0] if one else shown, indent=2, ensure_ascii=False))
        return 0 if are_valid else 1
    for report in reports:
        _show(report)
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
        _say(str(finding))
    if len(findings) > _MOST_FINDINGS:
        _say(f"… and {len(findings) - _MOST_FINDINGS} more; --json prints all")
    _say(
        f"{report.location} at version {report.version}: {report.leaves} leaves,"
        f" {report.rows} rows checked, {len(report.violations)} violations"
    )


def _repair(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        done = repair(location_of(options), pairs(options.storage), progress=progress)
    for note in done.notes:
        _say(note)
    if done.keys:
        _say(f"{done.location}: restored metadata {', '.join(done.keys)} from earlier versions")
    if done.columns:
        source = "the leaves"
        if done.from_version is not None:
            source = f"version {done.from_version} of __manifest"
            if done.leaves_read:
                source += f" and {done.leaves_read} leaves"
        _say(f"{done.location}: restored {', '.join(done.columns)} from {source}")
    for name in done.lacking:
        _say(name)
    _say(f"{done.location} is at version {done.version}")
    return 1 if done.lacking else 0


def _adopt(options: argparse.Namespace) -> int:
    location = location_of(options, options.into)
    snapshot = Snapshot.open(location, storage_options=pairs(options.storage))
    with progress_line() as progress:
        done = adopt_or_split(
            snapshot,
            absolute(options.dataset),
            dict(options.values),
            is_split=options.split,
            move=options.move,
            progress=progress,
        )
    for leaf in done:
        _say(f"{leaf.dataset}: {leaf.values}, {leaf.num_rows} rows, leaf {leaf.object_id}")
    what = "partitions written" if options.split else "adopted"
    version = done[0].version if done else snapshot.version
    _say(f"{snapshot.location} is at version {version}, {len(done)} {what}")
    return 0


def _migrate(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        done = migrate(
            location_of(options),
            pairs(options.storage),
            strong=not options.weak,
            remove_old=options.remove_old,
            progress=progress,
        )
    for note in done.notes:
        _say(note)
    _say(f"{done.location} is at version {done.version}: {done.leaves} leaves, {done.rows} rows")
    return 0
