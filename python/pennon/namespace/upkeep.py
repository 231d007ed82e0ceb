"""Maintenance of a table in Python: check, repair, compact, expire."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pennon.arguments import (
    as_names,
    check_least,
    check_one_of,
    checked_methods,
    wrapped_methods,
)
from pennon.catalog.tables.opened_location import missed_by_name
from pennon.errors import ArgumentRefused
from pennon.maintenance.checks.check import check
from pennon.maintenance.compact import DEFAULT_TARGET_BYTES, STRATEGIES, compact
from pennon.maintenance.expire import expire
from pennon.maintenance.leaves.progress import no_progress
from pennon.maintenance.repair import repair
from pennon.maintenance.rewrite_partitions import rewrite_partitions
from pennon.maintenance.rollback import rollback
from pennon.maintenance.statistics.analyze import Analyzed, analyze
from pennon.maintenance.vacuum import vacuum
from pennon.manifest.transaction_mode import STRONG, WEAK
from pennon.transaction.mode_change import set_transaction_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pennon.maintenance.checks.findings import CheckReport
    from pennon.maintenance.compact import Compacted
    from pennon.maintenance.expire import Expired
    from pennon.maintenance.leaves.progress import Progress
    from pennon.maintenance.repair import Repaired
    from pennon.maintenance.rewrite_partitions import RewrittenPartitions
    from pennon.maintenance.vacuum import Vacuumed
    from pennon.transaction.mode_change import ChangedMode

__all__ = ["Maintenance"]

_Class = TypeVar("_Class", bound=type)


def _missing_by_name(cls: _Class) -> _Class:
    """Let every public method say of a table that was dropped that it was."""
    return wrapped_methods(cls, _of_table_there)


def _of_table_there(_: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(self: Maintenance, *arguments: object, **named: object) -> object:
        with missed_by_name(self.name, self.location, self.storage_options):
            return method(self, *arguments, **named)

    return called


@checked_methods
@_missing_by_name
@dataclass(frozen=True, slots=True)
class Maintenance:
    """The upkeep of one table; what the procedures of SQL and the command line do.

    Args:
        name: The table's name in its catalog, or its path.
        location: Path or URL of the table.
        storage_options: Given to Lance, never printed.
        refresh: Takes the table to the version that a change made.
    """

    name: str
    location: str
    storage_options: Mapping[str, str]
    refresh: Callable[[], object]

    def check(self, version: int | None = None, progress: Progress = no_progress) -> CheckReport:
        """Hold every rule of the format against the files, and compute partition values again.

        Args:
            version: A version of ``__manifest``; None for the newest.
            progress: Called with how far it is.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.check().is_valid
            True
        """
        return check(self.location, self.storage_options, version=version, progress=progress)

    def repair(
        self,
        progress: Progress = no_progress,
        *,
        dry_run: bool = False,
        keep_whole_files: bool = False,
    ) -> Repaired:
        """Mend what other writers, clean-ups and lost files did to the table.

        Args:
            progress: Called with how far it is.
            dry_run: Whether to tell only what would be done.
            keep_whole_files: Whether partitions of which files are gone, or torn, keep the rows of
                the others; else they are set aside.

        Raises:
            ManifestNotRepairable: What was lost stands nowhere else.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.repair().columns
            ()
        """
        done = repair(
            self.location,
            self.storage_options,
            dry_run=dry_run,
            keep_whole_files=keep_whole_files,
            progress=progress,
        )
        self.refresh()
        return done

    def expire_snapshots(
        self,
        older_than: datetime | None = None,
        retain_last: int | None = None,
        *,
        dry_run: bool = False,
    ) -> Expired:
        """Remove old versions, and the files that only they read.

        Args:
            older_than: Versions from before this time go, which without a zone is UTC; None for as
                long as the table's ``history.expire.max-snapshot-age-ms`` says, or five days ago.
            retain_last: How many of the newest versions stay whatever their age; None for what the
                table's ``history.expire.min-snapshots-to-keep`` says, or one.
            dry_run: Whether to list only.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.expire_snapshots(retain_last=10).versions
            []
        """
        check_least("expire_snapshots", "retain_last", retain_last, 1)
        older_than = _with_zone(older_than)
        return expire(
            self.location,
            self.storage_options,
            older_than=older_than,
            retain_last=retain_last,
            dry_run=dry_run,
        )

    def vacuum(self, older_than: datetime | None = None, *, dry_run: bool = False) -> Vacuumed:
        """Remove files that no version needs: what killed writers and failed statements left.

        Args:
            older_than: Files changed before this time go, which without a zone is UTC; None for
                five days ago.
            dry_run: Whether to list only.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.vacuum(dry_run=True).files
            []
        """
        older_than = _with_zone(older_than)
        return vacuum(self.location, self.storage_options, older_than=older_than, dry_run=dry_run)

    def compact(
        self,
        where: str | None = None,
        target_bytes: int = DEFAULT_TARGET_BYTES,
        strategy: str = "binpack",
        *,
        dry_run: bool = False,
    ) -> Compacted:
        """Put the rows of partitions with many small files into few large ones.

        A file of which another commit changes rows meanwhile is left alone; every write that was
        based on the older files goes on.

        Args:
            where: A Spark SQL condition: only partitions that may have a row that satisfies it.
            target_bytes: How large files shall be.
            strategy: ``binpack``, or ``sort``: every partition that is not in the write order.
            dry_run: Whether to list the partitions only.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.compact().leaves
            0
        """
        check_least("compact", "target_bytes", target_bytes, 1)
        check_one_of("compact", "strategy", strategy, STRATEGIES)
        done = compact(
            self.location,
            self.storage_options,
            where=where,
            target_bytes=target_bytes,
            strategy=strategy,
            dry_run=dry_run,
        )
        self.refresh()
        return done

    def analyze(self, columns: Sequence[str] = (), where: str | None = None) -> Analyzed:
        """Count the statistics of columns that the manifest lacks: foreign and adopted rows.

        A partition that another commit moves on meanwhile is left as it is.

        Args:
            columns: Names of columns; none for those that ``write.statistics.columns`` says.
            where: A Spark SQL condition: only partitions that may have a row that satisfies it.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.append([{"letter": "a"}])
            3
            >>> letters.maintenance.analyze(["letter"]).num_rows
            1
        """
        done = analyze(self.location, self.storage_options, columns=as_names(columns), where=where)
        self.refresh()
        return done

    def rewrite_partitions(
        self, where: str | None = None, *, dry_run: bool = False
    ) -> RewrittenPartitions:
        """Put the rows of partitions of older specs into partitions of the present one.

        Args:
            where: A Spark SQL condition: only partitions that may have a row that satisfies it.
            dry_run: Whether to list the partitions only.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.rewrite_partitions().partitions
            []
        """
        done = rewrite_partitions(self.location, self.storage_options, where=where, dry_run=dry_run)
        self.refresh()
        return done

    def rollback(self, version: int | None = None, *, timestamp: datetime | None = None) -> int:
        """Make an older version the newest one again; the versions between stay readable.

        Args:
            version: The version to bring back.
            timestamp: Instead of a version: what was there at this time.

        Returns:
            The new version.

        Raises:
            ArgumentRefused: Neither a version nor a time is given, or both are.
            SnapshotNotFound: There is no such version, or none that old.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> empty = letters.version
            >>> version = letters.append([{"letter": "a"}])
            >>> version = letters.maintenance.rollback(empty)
            >>> letters.scan().count_rows()
            0
        """
        if (version is None) == (timestamp is None):
            raise ArgumentRefused(
                function="rollback",
                parameter="version",
                why="it is left out" if version is None else "a timestamp is given, too",
                expected="a version or a timestamp",
            )
        done = rollback(self.location, version, self.storage_options, timestamp=timestamp)
        self.refresh()
        return done

    def set_transaction_mode(self, mode: str, progress: Progress = no_progress) -> ChangedMode:
        """Make the table's transactions strong or weak; its rows stay where they are.

        Writers that run meanwhile are refused, or have committed. Those of other clients in weak
        mode know nothing of it and have to be stopped.

        Args:
            mode: ``strong``, or ``weak``: writes commit partition by partition, and every Lance
                client sees their rows.
            progress: Called with how far it is.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.append([{"letter": "a"}])
            3
            >>> letters.maintenance.set_transaction_mode("weak").leaves
            1
            >>> letters.scan().count_rows()
            1
        """
        check_one_of("set_transaction_mode", "mode", mode, (STRONG, WEAK))
        done = set_transaction_mode(self.location, mode, self.storage_options, progress=progress)
        self.refresh()
        return done


def _with_zone(moment: datetime | None) -> datetime | None:
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)
