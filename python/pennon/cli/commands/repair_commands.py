"""The commands that check and repair tables: they parse arguments, call and print."""

from __future__ import annotations

import argparse
import json
from typing import Final

import pennon
from pennon.catalog.configured_catalog import stated_place
from pennon.cli.commands.table_argument import (
    Commands,
    add_root,
    add_storage,
    lake_of,
    location_of,
    pair,
    pairs,
    say_no_tables,
    table_command,
)
from pennon.cli.output.progress_line import progress_line
from pennon.cli.output.row_format import print_line
from pennon.draft import open_snapshot
from pennon.errors import NamespaceHasNoManifest, NotPartitionedNamespace, PennonError
from pennon.maintenance.adoption.split import adopt_or_split
from pennon.maintenance.checks.check import check
from pennon.maintenance.checks.findings import CheckReport, Severity
from pennon.maintenance.migrate import migrate
from pennon.maintenance.repair import repair
from pennon.manifest import Snapshot

__all__ = ["add_repair_commands"]

_MOST_FINDINGS: Final = 200


def add_repair_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the commands to the parser of ``pennon``."""
    checked = table_command(
        commands,
        "check",
        "check every rule of the format against the files; without a table, all of the root",
        is_optional=True,
    )
    checked.add_argument("--version", dest="at", type=int, help="a version of its __manifest")
    checked.add_argument("--json", action="store_true", help="print JSON")
    checked.set_defaults(run=_check)
    repaired = table_command(
        commands, "repair", "mend what foreign writers, clean-ups and lost files did to a table"
    )
    repaired.add_argument("--dry-run", action="store_true", help="tell only what would be done")
    repaired.add_argument(
        "--keep-whole-files",
        action="store_true",
        help="keep the rows of whole files in partitions of which others are gone or torn",
    )
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
    migrated = table_command(
        commands, "migrate", "bring a namespace of the older draft to this format"
    )
    migrated.add_argument("--weak", action="store_true", help="leaves are read at their newest")
    migrated.add_argument("--remove-old", action="store_true", help="remove the draft's rows")
    migrated.set_defaults(run=_migrate)


def _check(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        reports = [
            check(location, pairs(options.storage), version=options.at, progress=progress)
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


def _repair(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        done = repair(
            location_of(options),
            pairs(options.storage),
            dry_run=options.dry_run,
            keep_whole_files=options.keep_whole_files,
            progress=progress,
        )
    for note in done.notes:
        print_line(note)
    restored = "would restore" if options.dry_run else "restored"
    if done.keys:
        print_line(
            f"{done.location}: {restored} metadata {', '.join(done.keys)} from earlier versions"
        )
    if done.columns:
        source = "the leaves"
        if done.from_version is not None:
            source = f"version {done.from_version} of __manifest"
            if done.leaves_read:
                source += f" and {done.leaves_read} leaves"
        print_line(f"{done.location}: {restored} {', '.join(done.columns)} from {source}")
    for change in done.rows:
        print_line(change)
    print_line(f"{done.location} is at version {done.version}")
    if done.version != done.version_before:
        print_line(f"`pennon rollback --version {done.version_before}` undoes the repair")
    return 1 if options.dry_run and done.is_any else 0


def _adopt(options: argparse.Namespace) -> int:
    location = location_of(options, options.into)
    snapshot = Snapshot.open(location, storage_options=pairs(options.storage))
    with progress_line() as progress:
        done = adopt_or_split(
            snapshot,
            stated_place(options.dataset),
            dict(options.values),
            is_split=options.split,
            move=options.move,
            progress=progress,
        )
    for leaf in done:
        print_line(f"{leaf.dataset}: {leaf.values}, {leaf.num_rows} rows, leaf {leaf.object_id}")
    what = "partitions written" if options.split else "adopted"
    version = done[0].version if done else snapshot.version
    print_line(f"{snapshot.location} is at version {version}, {len(done)} {what}")
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
        print_line(note)
    print_line(
        f"{done.location} is at version {done.version}: {done.leaves} leaves, {done.rows} rows"
    )
    return 0
