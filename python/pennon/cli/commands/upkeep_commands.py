"""The commands for the upkeep of tables: they parse arguments, call and print."""

from __future__ import annotations

import argparse

from pennon.cli.commands.table_argument import (
    Commands,
    location_of,
    moment,
    pairs,
    positive,
    table_command,
)
from pennon.cli.output.progress_line import progress_line
from pennon.cli.output.row_format import print_line
from pennon.maintenance.compact import DEFAULT_TARGET_BYTES, STRATEGIES, compact
from pennon.maintenance.expire import expire
from pennon.maintenance.rewrite_partitions import rewrite_partitions
from pennon.maintenance.rollback import rollback
from pennon.maintenance.statistics.analyze import analyze
from pennon.maintenance.vacuum import vacuum
from pennon.manifest.transaction_mode import MODES
from pennon.transaction.mode_change import set_transaction_mode

__all__ = ["add_upkeep_commands"]


def add_upkeep_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the commands to the parser of ``pennon``."""
    _add_expire(commands)
    _add_vacuum(commands)
    _add_compact(commands)
    _add_analyze(commands)
    _add_rewrite_partitions(commands)
    _add_rollback(commands)
    _add_set_transaction_mode(commands)


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("the newest version always stays: at least 1")
    return number


def _add_expire(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = table_command(commands, "expire", "remove old versions and what only they read")
    parser.add_argument(
        "--older-than",
        type=moment,
        metavar="TIME",
        help="versions from before 2026-11-21T10:00 (UTC); as the table says where it is left out,"
        " or five days ago",
    )
    parser.add_argument(
        "--retain-last", type=_at_least_one, metavar="N", help="newest versions to keep"
    )
    parser.add_argument("--dry-run", action="store_true", help="list versions and files only")
    parser.set_defaults(run=_expire)


def _expire(options: argparse.Namespace) -> int:
    location = location_of(options)
    with progress_line() as progress:
        done = expire(
            location,
            pairs(options.storage),
            older_than=options.older_than,
            retain_last=options.retain_last,
            dry_run=options.dry_run,
            progress=progress,
        )
    expired, deleted = "expired", "deleted"
    if options.dry_run:
        expired, deleted = "to expire", "to delete"
        for version in done.versions:
            print_line(f"version {version}")
        for file in done.files:
            print_line(file)
    for note in done.notes:
        print_line(note)
    print_line(
        f"{location}: {len(done.versions)} versions {expired},"
        f" {done.leaf_versions} versions of leaves {deleted},"
        f" {done.num_files} files with {done.num_bytes} bytes"
    )
    return 0


def _add_vacuum(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = table_command(commands, "vacuum", "remove files that no version needs")
    parser.add_argument(
        "--older-than",
        type=moment,
        metavar="TIME",
        help="files changed before 2026-11-21T10:00 (UTC); five days ago where it is left out",
    )
    parser.add_argument("--dry-run", action="store_true", help="list the files, remove none")
    parser.set_defaults(run=_vacuum)


def _vacuum(options: argparse.Namespace) -> int:
    location = location_of(options)
    with progress_line() as progress:
        done = vacuum(
            location,
            pairs(options.storage),
            older_than=options.older_than,
            dry_run=options.dry_run,
            progress=progress,
        )
    for file in [*(done.files if options.dry_run else ()), *done.notes]:
        print_line(file)
    what = "to remove" if options.dry_run else "removed"
    print_line(
        f"{location}: {len(done.files)} files with {done.num_bytes} bytes {what},"
        f" {len(done.leaves)} leaves that no version knows among them"
    )
    return 0


def _add_compact(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = table_command(commands, "compact", "put the rows of small files into large ones")
    parser.add_argument("--where", metavar="CONDITION", help="only partitions it may hold in")
    parser.add_argument(
        "--target-bytes", type=positive, default=DEFAULT_TARGET_BYTES, metavar="N", help="of a file"
    )
    parser.add_argument(
        "--strategy", choices=STRATEGIES, default=STRATEGIES[0], help="sort: by the write order"
    )
    parser.add_argument("--dry-run", action="store_true", help="list the partitions only")
    parser.set_defaults(run=_compact)


def _compact(options: argparse.Namespace) -> int:
    location = location_of(options)
    with progress_line() as progress:
        done = compact(
            location,
            pairs(options.storage),
            where=options.where,
            target_bytes=options.target_bytes,
            strategy=options.strategy,
            dry_run=options.dry_run,
            progress=progress,
        )
    for partition in [*(done.partitions if options.dry_run else ()), *done.notes]:
        print_line(partition)
    what, became = "compacted", f"{done.files_before} files became {done.files_after}"
    if options.dry_run:
        what, became = "to compact", f"{done.files_before} files"
    print_line(
        f"{location} is at version {done.version}: {done.leaves} leaves with"
        f" {done.num_rows} rows {what}, {became}"
    )
    return 0


def _add_analyze(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = table_command(commands, "analyze", "count the statistics of columns that are missing")
    parser.add_argument("--columns", nargs="+", default=[], metavar="NAME", help="of columns")
    parser.add_argument("--where", metavar="CONDITION", help="only partitions it may hold in")
    parser.set_defaults(run=_analyze)


def _analyze(options: argparse.Namespace) -> int:
    location = location_of(options)
    with progress_line() as progress:
        done = analyze(
            location,
            pairs(options.storage),
            columns=options.columns,
            where=options.where,
            progress=progress,
        )
    for note in done.notes:
        print_line(note)
    print_line(
        f"{location} is at version {done.version}:"
        f" {len(done.partitions)} partitions with {done.num_rows} rows analyzed"
    )
    return 0


def _add_rollback(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = table_command(commands, "rollback", "make an older version the newest one again")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--version", dest="at", type=int, help="the version")
    target.add_argument(
        "--timestamp",
        type=moment,
        metavar="TIME",
        help="what was there at 2026-11-21T10:00 (UTC)",
    )
    parser.set_defaults(run=_rollback)


def _rollback(options: argparse.Namespace) -> int:
    location, at, timestamp = location_of(options), options.at, options.timestamp
    version = rollback(location, at, pairs(options.storage), timestamp=timestamp)
    source = f"version {at}" if timestamp is None else f"{timestamp:%Y-%m-%d %H:%M:%S %Z}"
    print_line(f"{location} is at version {version}, with the rows of {source}")
    return 0


def _add_set_transaction_mode(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = table_command(commands, "set-transaction-mode", "make transactions strong or weak")
    parser.add_argument("mode", choices=MODES)
    parser.set_defaults(run=_set_transaction_mode)


def _set_transaction_mode(options: argparse.Namespace) -> int:
    location = location_of(options)
    with progress_line() as progress:
        done = set_transaction_mode(
            location, options.mode, pairs(options.storage), progress=progress
        )
    for note in done.notes:
        print_line(note)
    print_line(f"{location} is at version {done.version}, with {done.mode} transactions")
    return 0


def _add_rewrite_partitions(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = table_command(
        commands, "rewrite-partitions", "put the rows of older partition specs into the present one"
    )
    parser.add_argument("--where", metavar="CONDITION", help="only partitions it may hold in")
    parser.add_argument("--dry-run", action="store_true", help="list the partitions only")
    parser.set_defaults(run=_rewrite_partitions)


def _rewrite_partitions(options: argparse.Namespace) -> int:
    location = location_of(options)
    with progress_line() as progress:
        done = rewrite_partitions(
            location,
            pairs(options.storage),
            where=options.where,
            dry_run=options.dry_run,
            progress=progress,
        )
    for partition in [*(done.partitions if options.dry_run else ()), *done.notes]:
        print_line(partition)
    what = "to rewrite" if options.dry_run else "rewritten"
    print_line(
        f"{location} is at version {done.version}: {len(done.partitions)} partitions"
        f" with {done.num_rows} rows {what} into spec {done.spec_version}"
    )
    return 0
